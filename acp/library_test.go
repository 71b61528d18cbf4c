package acp_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/acp"
)

func TestANumberBeyondTheBoundsIsRefusedBeforeItIsComputedWith(t *testing.T) {
	for _, text := range []string{
		"", "NaN", "Infinity", "-Infinity", "inf", `"1"`, "null", "true", "+1", ".5", "1.", "01", "1e", "1e+", "--1", "1_0", "0x1", "1e401", "1e-401",
		"1e999999999999999999999", "1e-999999999", strings.Repeat("1", 65), "1 ", " 1", "1e1.5", "١",
	} {
		if d, err := acp.ParseDecimal(text); code(err) != acp.CodeInvalidNumber {
			t.Errorf("%q: %v, %v", text, d, err)
		}
	}
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0e400": "0", "1e-2": "0.01", "1E+2": "100", "0.90": "0.9", "-1.50": "-1.5", "100": "100", "1.0e0": "1",
	} {
		if d, err := acp.ParseDecimal(text); err != nil || d.String() != want {
			t.Errorf("%q: %v, %v, want %s", text, d, err, want)
		}
	}
}

func TestATimeIsUTC(t *testing.T) {
	for text, want := range map[string]string{
		"2025-01-15T10:00:00Z": "2025-01-15T10:00:00Z", "2025-01-15T10:00:00+00:00": "2025-01-15T10:00:00Z",
		"2025-01-15t10:00:00.1230z": "2025-01-15T10:00:00.123Z", "2016-12-31T23:59:60Z": "2017-01-01T00:00:00Z",
		"2016-12-31T23:59:60.5Z": "2017-01-01T00:00:00Z",
	} {
		if at, err := acp.ParseTime(text); err != nil || at.String() != want {
			t.Errorf("%s: %v, %v, want %s", text, at, err, want)
		}
	}
	for _, text := range []string{
		"", "2025-01-15", "2025-01-15 10:00:00Z", "2025-01-15T10:00Z", "2025-01-15T1:00:00Z", "2025-01-15T10:00:00", "2025-01-15T10:00:00+02:00",
		"2025-01-15T10:00:00-00:00", "2025-01-15T10:00:00,5Z", "2025-02-30T10:00:00Z", "2025-01-15T24:00:00Z", "2025-01-15T10:00:00.Z", "2025-01-15T10:00:60Z",
		"2025-01-15T10:00:00." + strings.Repeat("0", 60) + "Z",
	} {
		if at, err := acp.ParseTime(text); code(err) != acp.CodeInvalidTime {
			t.Errorf("%q: %v, %v", text, at, err)
		}
	}
}

func TestAnEventIDIsAULIDOfTheDecision(t *testing.T) {
	at := mustTime(t, "2025-01-15T10:02:00Z")
	first, second := acp.EventID(anyID, 0, at), acp.EventID(anyID, 1, at)
	if acp.CheckID(first) != nil || acp.CheckID(second) != nil || first == second || first != acp.EventID(anyID, 0, at) || first[:10] != second[:10] {
		t.Fatalf("%s and %s", first, second)
	}
}

func TestAWorkspaceRefusesBadSubmissions(t *testing.T) {
	now := mustTime(t, "2025-01-15T10:00:00Z")
	good := acp.Submission{ProposalID: anyID, Type: acp.ProposalType, Domain: "d", Author: "a", Quorum: 1}
	for want, change := range map[string]func(*acp.Submission){
		acp.CodeInvalidID:     func(s *acp.Submission) { s.ProposalID = "x" },
		acp.CodeInvalidObject: func(s *acp.Submission) { s.Author = "" },
		acp.CodeInvalidQuorum: func(s *acp.Submission) { s.Quorum = 0 },
	} {
		var w acp.Workspace
		in := good
		change(&in)
		if err := w.Submit(in, now); code(err) != want {
			t.Errorf("%+v: %v, want %s", in, err, want)
		}
		if _, ok := w.Proposal(in.ProposalID); ok {
			t.Errorf("%s: kept all the same", want)
		}
	}
	var w acp.Workspace
	if err := w.Submit(good, now); err != nil {
		t.Fatal(err)
	}
	if err := w.Submit(good, now); code(err) != acp.CodeDuplicateProposal {
		t.Fatalf("a second submission: %v", err)
	}
	if err := w.Respond("01HXYZ0000000000000000ABCE", acp.Response{}, now); code(err) != "not_found" {
		t.Fatalf("an unknown proposal: %v", err)
	}
}

func TestALateResponseFindsTheExpiryResolved(t *testing.T) {
	now, expires := mustTime(t, "2025-01-15T10:00:00Z"), mustTime(t, "2025-01-15T10:05:00Z")
	var w acp.Workspace
	if err := w.Submit(acp.Submission{ProposalID: anyID, Type: acp.ProposalType, Domain: "d", Author: "a", Quorum: 1, ExpiresAt: &expires}, now); err != nil {
		t.Fatal(err)
	}
	err := w.Respond(anyID, acp.Response{ParticipantID: "p", ResponseType: acp.Endorse}, mustTime(t, "2025-01-15T10:05:00.001Z"))
	p, _ := w.Proposal(anyID)
	if code(err) != acp.CodeNotPending || p.Status != acp.Expired || len(w.Decisions(anyID)) != 1 || len(p.Responses) != 0 {
		t.Fatalf("%v, %+v", err, p)
	}
}

func TestVerifyFindsWhatTheResponsesDoNotGive(t *testing.T) {
	const whole = `{"schema_version":"1.0","proposal_id":"01HXYZ0000000000000000ABCD","type":"proposal","domain":"d","author":"a","payload":{},
		"status":"resolved","quorum":2,"created_at":"2025-01-15T10:00:00Z","expires_at":"2025-01-15T10:05:00Z","responses":[
		{"schema_version":"1.0","participant_id":"p","response_type":"endorse","confidence":1,"domain_authority":0.5,"trust_score":1,"weight":0.1,"timestamp":"2025-01-15T10:01:00Z"},
		{"schema_version":"1.0","participant_id":"q","response_type":"challenge","confidence":1,"domain_authority":0.2,"trust_score":1,"weight":0.9,"timestamp":"2025-01-15T10:01:00Z"}],
		"resolution":{"schema_version":"1.0","outcome":"approved","trigger":"quorum","votes_for":0.1,"votes_against":0.9,"decided_at":"2025-01-15T10:01:00Z"}}`
	for _, c := range []struct{ from, to, want string }{
		{"", "", ""}, // wire weights play no part
		{`"outcome":"approved"`, `"outcome":"rejected"`, acp.CodeInconsistent},
		{`"participant_id":"q"`, `"participant_id":"p"`, acp.CodeDuplicateResponse},
		{`"participant_id":"q"`, `"participant_id":"a"`, acp.CodeSelfResponse},
		{`"quorum":2`, `"quorum":3`, acp.CodeInconsistent},
		{`"trigger":"quorum"`, `"trigger":"timeout"`, acp.CodeInconsistent},
		{`"trigger":"quorum"`, `"trigger":"manual"`, ""},
		{`"status":"resolved"`, `"status":"escalated"`, acp.CodeInconsistent},
		{`"status":"resolved"`, `"status":"expired"`, acp.CodeInconsistent},
		{`"domain_authority":0.5`, `"domain_authority":0.2`, acp.CodeInconsistent},
		{`"resolution":{`, `"resolution":null,"other":{`, acp.CodeInconsistent},
	} {
		p, err := acp.DecodeProposal([]byte(strings.Replace(whole, c.from, c.to, 1)))
		if err != nil {
			t.Fatalf("%s: %v", c.to, err)
		}
		if err := p.Verify(nil); code(err) != c.want {
			t.Errorf("%s: %v, want %q", c.to, err, c.want)
		}
	}
}

func TestExactValuesMustRoundToTheNumberBesideThem(t *testing.T) {
	const r = `{"schema_version":"1.0","outcome":"approved","trigger":"quorum","votes_for":0.3,"votes_against":0,"decided_at":"2025-01-15T10:02:00Z","exact":`
	for exact, want := range map[string]string{
		`{"votes_for":"0.30000000000000000001"}}`: "",
		`{"votes_for":"0.31"}}`:                   acp.CodeInconsistent,
		`{"votes_for":"many"}}`:                   acp.CodeInvalidNumber,
		`5}`:                                      "", // somebody else's member
	} {
		got, err := acp.DecodeResolution([]byte(r + exact))
		if code(err) != want {
			t.Errorf("%s: %v, want %q", exact, err, want)
		}
		if strings.Contains(exact, "0001") && got.VotesFor.String() != "0.30000000000000000001" {
			t.Errorf("kept %s", got.VotesFor)
		}
	}
}

func TestMembersThatDifferInCaseAreNotTaken(t *testing.T) {
	const r = `{"schema_version":"1.0","outcome":"approved","trigger":"quorum","votes_for":0.3,"votes_against":0,"decided_at":"2025-01-15T10:02:00Z","OUTCOME":"rejected"}`
	got, err := acp.DecodeResolution([]byte(r))
	if err != nil || got.Outcome != acp.Approved {
		t.Fatalf("%+v, %v", got, err)
	}
	if _, err := acp.DecodeResolution([]byte(`{"schema_version":"1.0","schema_version":"1.0"}`)); code(err) != "malformed" {
		t.Fatalf("duplicate members: %v", err)
	}
	if _, err := acp.DecodeResolution([]byte(strings.Replace(r, `"1.0"`, `"1.1"`, 1))); code(err) != acp.CodeVersion {
		t.Fatalf("another version: %v", err)
	}
}

func TestAWireObjectWritesNumbersInFull(t *testing.T) {
	v, _ := acp.ParseDecimal("1e-30")
	text, err := json.Marshal(acp.Resolution{VotesFor: v, DecidedAt: mustTime(t, "2025-01-15T10:02:00Z")})
	if err != nil || !strings.Contains(string(text), `"votes_for":0.000000000000000000000000000001,`) || !strings.Contains(string(text), `"exact":{"votes_for":"0.000000000000000000000000000001"`) {
		t.Fatalf("%s, %v", text, err)
	}
}
