package acp_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

type m = map[string]any

// newBench is a world with an author, three agents, two humans and an
// operator. All but the operator and the outsider hold full authority and
// trust in "d".
func newBench(t testing.TB) *machinetest.Bench {
	b := machinetest.New(t, acp.New())
	b.Add(machine.Agent, "author", "A", "B", "C", "outsider")
	b.Add(machine.Human, "hana", "hugo", "stranger")
	b.Add(machine.Operator, "op")
	for _, id := range []string{"author", "A", "B", "C", "hana", "hugo"} {
		b.Grant(id, "d", "1", "1")
	}
	return b
}

func submit(b *machinetest.Bench, extra m) string {
	b.T.Helper()
	body := m{"type": "proposal", "domain": "d", "payload": m{"action": "go"}}
	for k, v := range extra {
		body[k] = v
	}
	if body["quorum"] == nil && body["quorum_policy"] == nil {
		body["quorum"] = 2
	}
	var r acp.Result
	decode(b.T, b.Must("author", "acp.submit", body), &r)
	return r.ProposalID
}

func respond(b *machinetest.Bench, who, id, kind string, confidence any) acp.Result {
	b.T.Helper()
	var r acp.Result
	decode(b.T, b.Must(who, "acp.respond", m{"proposal_id": id, "response_type": kind, "confidence": confidence}), &r)
	return r
}

func decode(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

type view struct {
	acp.Proposal
	Tally struct {
		Responses    int
		VotesFor     string `json:"votes_for"`
		VotesAgainst string `json:"votes_against"`
	}
	Escalation *struct {
		Reason, Policy, By, Note, Responsible string
		At                                    int64 `json:"at_ms"`
	}
	Decisions []acp.DecisionEvent
}

func see(b *machinetest.Bench, id string) view {
	b.T.Helper()
	var v view
	if err := b.Query("acp.get", "A", m{"proposal_id": id}, &v); err != nil {
		b.T.Fatal(err)
	}
	return v
}

func (v view) want(t testing.TB, status acp.Status, outcome acp.Outcome, trigger acp.Trigger, votesFor, votesAgainst string, decisions int) {
	t.Helper()
	if v.Status != status || len(v.Decisions) != decisions || v.Tally.VotesFor != votesFor || v.Tally.VotesAgainst != votesAgainst {
		t.Fatalf("%s with %d decisions, %s to %s; want %s, %d, %s to %s",
			v.Status, len(v.Decisions), v.Tally.VotesFor, v.Tally.VotesAgainst, status, decisions, votesFor, votesAgainst)
	}
	if decisions == 0 {
		if v.Resolution != nil {
			t.Fatalf("resolved: %+v", v.Resolution)
		}
		return
	}
	if d := v.Decisions[decisions-1]; d.Outcome != outcome || d.Trigger != trigger || v.Resolution.Outcome != outcome || v.Resolution.Trigger != trigger {
		t.Fatalf("%s by %s, want %s by %s", d.Outcome, d.Trigger, outcome, trigger)
	}
}

func TestExamplesOfAppendixC(t *testing.T) {
	type response struct{ who, kind, authority, confidence, trust string }
	for _, c := range []struct {
		name, domain  string
		quorum        int
		responses     []response
		timeout       bool
		status        acp.Status
		outcome       acp.Outcome
		trigger       acp.Trigger
		votes, contra string
	}{
		{"C.1", "risk.credit", 2, []response{{"A", "endorse", "0.9", "0.85", "0.9"}, {"B", "endorse", "0.8", "0.7", "0.85"}}, false, acp.Resolved, acp.Approved, acp.ByQuorum, "1.1645", "0"},
		{"C.2", "ops.deploy", 2, []response{{"S", "challenge", "0.95", "0.90", "0.95"}, {"J", "endorse", "0.4", "0.6", "0.7"}}, false, acp.Resolved, acp.Rejected, acp.ByQuorum, "0.168", "0.81225"},
		{"C.3", "finance.budget", 3, []response{{"A", "endorse", "0.8", "0.75", "0.9"}}, true, acp.Resolved, acp.Approved, acp.ByTimeout, "0.54", "0"},
		{"C.4", "strategy.pricing", 2, []response{{"A", "endorse", "0.9", "0.8", "0.9"}, {"B", "challenge", "0.9", "0.8", "0.9"}}, false, acp.Escalated, acp.OutcomeEscalated, acp.ByQuorum, "0.648", "0.648"},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := newBench(t)
			b.Grant("author", c.domain, "0.5", "0.5")
			b.Grant("hana", c.domain, "1", "1")
			id := submit(b, m{"domain": c.domain, "quorum": c.quorum, "expires_in_ms": 300_000})
			for _, r := range c.responses {
				b.Add(machine.Agent, r.who)
				b.Grant(r.who, c.domain, r.authority, r.trust)
				b.Advance(1000)
				respond(b, r.who, id, r.kind, json.Number(r.confidence))
			}
			if c.timeout {
				b.Advance(300_000)
			}
			see(b, id).want(t, c.status, c.outcome, c.trigger, c.votes, c.contra, 1)
			if c.status != acp.Escalated {
				return
			}
			b.Must("hana", "acp.resolve", m{"proposal_id": id, "outcome": "approved", "note": "the board agrees"})
			v := see(b, id)
			v.want(t, acp.Resolved, acp.Approved, acp.ByHand, c.votes, c.contra, 2)
			if v.Decisions[1].Supersedes != v.Decisions[0].EventID || v.Decisions[1].Actor != "hana" || v.Decisions[0].Escalation != acp.EscalatedByTie {
				t.Fatalf("lineage: %+v", v.Decisions)
			}
		})
	}
}

func TestTheWireObjectOfAProposalVerifies(t *testing.T) {
	b := newBench(t)
	b.Grant("A", "d", "0.1", "1")
	b.Grant("B", "d", "0.2", "1")
	b.Grant("C", "d", "0.300000000000000001", "1") // beyond a double
	id := submit(b, m{"quorum": 3, "expires_in_ms": 5000})
	respond(b, "A", id, "endorse", 1)
	respond(b, "B", id, "endorse", 1)
	respond(b, "C", id, "challenge", 1)
	for _, q := range acp.New().Queries() {
		if q.Name != "acp.get" {
			continue
		}
		out, err := q.Run(b.Tx, b.Ctx(), "A", json.RawMessage(`{"proposal_id":"`+id+`"}`))
		if err != nil {
			t.Fatal(err)
		}
		p, err := acp.DecodeProposal(canonical(t, out))
		if err != nil {
			t.Fatal(err)
		}
		if err := p.Verify(nil); err != nil {
			t.Fatal(err)
		}
		if p.Responses[2].DomainAuthority.String() != "0.300000000000000001" || p.Resolution.Outcome != acp.Rejected {
			t.Fatalf("canonical JSON lost digits: %+v", p)
		}
	}
}

func TestASubmissionIsRefused(t *testing.T) {
	b := newBench(t)
	past := acp.At(b.Now - 1).String()
	for code, bodies := range map[string][]m{
		machine.CodeMalformed: {
			{"type": "rumour"}, {"payload": []int{1}}, {"payload": nil}, {"domain": ""}, {"domain": "a b"}, {"domain": "d*"}, {"domain": strings.Repeat("d", 129)},
			{"extra": 1}, {"expires_at": acp.At(b.Now + 9).String(), "expires_in_ms": 5}, {"proposal_id": "01HXYZ0000000000000000ABCD"},
			{"quorum": nil, "quorum_policy": 1}, {"Quorum": 3}, {"escalate_policy": ""}, {"expires_at": nil},
		},
		acp.CodeInvalidQuorum: {
			{"quorum": 0}, {"quorum": -1}, {"quorum": 1.5}, {"quorum": "2"}, {"quorum": true},
			{"quorum_policy": m{"type": "weighted", "threshold": 1}},
			{"quorum": del, "quorum_policy": m{"type": "weighted", "threshold": 0}}, {"quorum": del, "quorum_policy": m{"type": "weighted"}},
			{"quorum": del, "quorum_policy": m{"type": "weighted", "threshold": "1"}}, {"quorum": del, "quorum_policy": m{"type": "lottery"}},
			{"quorum": del, "quorum_policy": m{"type": "unanimous", "threshold": 2}}, {"quorum": del},
		},
		acp.CodeInvalidID:      {{"proposal_id": "x"}, {"proposal_id": ""}},
		acp.CodeInvalidTime:    {{"expires_at": "tomorrow"}, {"expires_at": "2035-01-15T12:00:00+02:00"}},
		machine.CodeOutOfRange: {{"expires_at": past}, {"expires_at": acp.At(b.Now).String()}, {"expires_in_ms": 0}, {"expires_in_ms": 315360000001}, {"expires_in_ms": 0.5}},
		machine.CodeNoGrant:    {{"domain": "elsewhere"}},
	} {
		for _, extra := range bodies {
			body := m{"type": "proposal", "domain": "d", "payload": m{}, "quorum": 2}
			for k, v := range extra {
				if body[k] = v; v == del {
					delete(body, k)
				}
			}
			b.Refused(code, "author", "acp.submit", body)
		}
	}
	b.Refused(machine.CodeNoGrant, "outsider", "acp.submit", m{"type": "proposal", "domain": "d", "payload": m{}, "quorum": 1})
	b.Grant("outsider", "lonely", "1", "1")
	b.Refused(acp.CodeInvalidQuorum, "outsider", "acp.submit", m{"type": "proposal", "domain": "lonely", "payload": m{}, "quorum_policy": m{"type": "unanimous"}})
}

const del = "delete this member"

func TestAResponseIsRefused(t *testing.T) {
	b := newBench(t)
	b.Grant("B", "d", "0.7", "0.80")
	id := submit(b, m{"quorum": 3})
	body := func(extra m) m {
		out := m{"proposal_id": id, "response_type": "endorse", "confidence": 0.5}
		for k, v := range extra {
			if out[k] = v; v == del {
				delete(out, k)
			}
		}
		return out
	}
	respond(b, "A", id, "endorse", 0.5)
	b.Refused(acp.CodeDuplicateResponse, "A", "acp.respond", body(nil))
	b.Refused(acp.CodeSelfResponse, "author", "acp.respond", body(nil))
	b.Refused(machine.CodeNoGrant, "outsider", "acp.respond", body(nil))
	b.Refused(machine.CodeNotFound, "B", "acp.respond", body(m{"proposal_id": "01HXYZ0000000000000000ABCD"}))
	b.Refused(machine.CodeGrantExceeded, "B", "acp.respond", body(m{"domain_authority": 0.71}))
	b.Refused(machine.CodeGrantExceeded, "B", "acp.respond", body(m{"trust_score": 0.8000000000000002}))
	for code, bodies := range map[string][]m{
		acp.CodeInvalidResponseType: {{"response_type": "abstain"}, {"response_type": "ENDORSE"}, {"response_type": del}},
		machine.CodeOutOfRange:      {{"confidence": 1.01}, {"confidence": -0.1}, {"trust_score": 2}, {"domain_authority": -1}},
		acp.CodeInvalidNumber:       {{"confidence": "0.5"}, {"confidence": true}, {"confidence": []int{}}, {"trust_score": "NaN"}},
		machine.CodeMalformed:       {{"confidence": del}, {"confidence": nil}, {"reason": 1}, {"reason": nil}, {"reason": strings.Repeat("x", acp.MaxReason+1)}, {"weight": 1}},
		acp.CodeInvalidID:           {{"proposal_id": strings.ToLower(id)}, {"proposal_id": del}},
	} {
		for _, extra := range bodies {
			b.Refused(code, "B", "acp.respond", body(extra))
		}
	}
	b.Must("author", "acp.escalate", m{"proposal_id": id})
	b.Refused(acp.CodeNotPending, "B", "acp.respond", body(nil))
	b.Refused(machine.CodeUnknownKind, "B", "acp.withdraw", body(nil))
}

func TestAuthorityAndTrustComeFromTheRegistry(t *testing.T) {
	b := newBench(t)
	b.Grant("A", "d", "0.9", "0.8")
	b.Grant("B", "d", "0.9", "0.8")
	id := submit(b, m{"quorum": 2})
	if r := respond(b, "A", id, "endorse", 0.5); r.Weight != "0.36" {
		t.Fatalf("weight %s as granted, want 0.36", r.Weight)
	}
	var r acp.Result
	decode(t, b.Must("B", "acp.respond", m{"proposal_id": id, "response_type": "challenge", "confidence": 0.5, "domain_authority": 0.9, "trust_score": 0.1}), &r)
	if r.Weight != "0.045" || r.Decision == nil || r.Decision.Outcome != acp.Approved {
		t.Fatalf("a lower claim lowers the weight: %+v", r)
	}
	p := see(b, id)
	if got := p.Responses[1]; got.TrustScore.String() != "0.1" || got.DomainAuthority.String() != "0.9" || got.Timestamp != acp.At(b.Now) {
		t.Fatalf("kept %+v", got)
	}
}

func TestAGrantThatIsNoDecimalRefusesInsteadOfStoppingTheNode(t *testing.T) {
	b := newBench(t)
	b.Grant("A", "d", "much", "1")
	id := submit(b, nil)
	b.Refused("bad_grant", "A", "acp.respond", m{"proposal_id": id, "response_type": "endorse", "confidence": 1})
}

func TestAResponseAtTheExpiryCountsAndALaterOneIsRefused(t *testing.T) {
	b := newBench(t)
	expires := b.Now + 1000
	at := acp.At(expires).String()
	quorum, partial, late := submit(b, m{"expires_at": at}), submit(b, m{"expires_at": at}), submit(b, m{"expires_at": at})
	for _, id := range []string{quorum, partial, late} {
		respond(b, "A", id, "challenge", 0.25)
	}
	if next, ok, _ := b.Machine.Next(b.Tx); !ok || next != expires+1 {
		t.Fatalf("next tick at %d, want %d", next, expires+1)
	}
	b.Advance(1000)
	see(b, late).want(t, acp.Pending, "", "", "0", "0.25", 0)
	respond(b, "B", quorum, "endorse", 0.5)
	see(b, quorum).want(t, acp.Resolved, acp.Approved, acp.ByQuorum, "0.5", "0.25", 1)
	b.Now++
	b.Refused(acp.CodeNotPending, "B", "acp.respond", m{"proposal_id": late, "response_type": "endorse", "confidence": 1})
	see(b, late).want(t, acp.Resolved, acp.Rejected, acp.ByTimeout, "0", "0.25", 1)
	see(b, partial).want(t, acp.Resolved, acp.Rejected, acp.ByTimeout, "0", "0.25", 1)
	if _, ok, _ := b.Machine.Next(b.Tx); ok {
		t.Fatal("something is still scheduled")
	}
}

func TestAResponseAtTheExpiryThatLeavesTheQuorumUnmetIsTheLast(t *testing.T) {
	b := newBench(t)
	id := submit(b, m{"quorum": 3, "expires_in_ms": 1000})
	b.Advance(1000)
	respond(b, "A", id, "endorse", 1)
	see(b, id).want(t, acp.Resolved, acp.Approved, acp.ByTimeout, "1", "0", 1)
	b.Refused(acp.CodeNotPending, "B", "acp.respond", m{"proposal_id": id, "response_type": "endorse", "confidence": 1})
}

func TestTimeResolvesOnce(t *testing.T) {
	b := newBench(t)
	empty, zero := submit(b, m{"expires_in_ms": 1000}), submit(b, m{"expires_in_ms": 1000})
	forever := submit(b, nil)
	respond(b, "A", zero, "endorse", 0)
	b.Advance(5000)
	see(b, empty).want(t, acp.Expired, acp.OutcomeExpired, acp.ByTimeout, "0", "0", 1)
	see(b, zero).want(t, acp.Escalated, acp.OutcomeEscalated, acp.ByTimeout, "0", "0", 1)
	b.Advance(1 << 40)
	see(b, forever).want(t, acp.Pending, "", "", "0", "0", 0)
	see(b, empty).want(t, acp.Expired, acp.OutcomeExpired, acp.ByTimeout, "0", "0", 1)
	b.Refused(acp.CodeIllegalTransition, "hana", "acp.resolve", m{"proposal_id": empty, "outcome": "approved"})
	b.Refused(acp.CodeIllegalTransition, "author", "acp.escalate", m{"proposal_id": empty})
}

func TestHumansResolveEscalations(t *testing.T) {
	b := newBench(t)
	id := submit(b, m{"quorum": 3, "expires_in_ms": 1000})
	respond(b, "A", id, "challenge", 0.5)
	b.Refused(acp.CodeIllegalTransition, "hana", "acp.resolve", m{"proposal_id": id, "outcome": "approved"})
	b.Refused(machine.CodeNoGrant, "outsider", "acp.escalate", m{"proposal_id": id})
	b.Refused(machine.CodeMalformed, "author", "acp.escalate", m{"proposal_id": id, "policy": ""})
	b.Refused(machine.CodeMalformed, "author", "acp.escalate", m{"proposal_id": id, "responsible": strings.Repeat("x", 129)})
	b.Refused(machine.CodeMalformed, "author", "acp.escalate", m{"proposal_id": id, "note": strings.Repeat("x", acp.MaxReason+1)})
	b.Must("op", "acp.escalate", m{"proposal_id": id, "policy": "four-eyes", "note": "touches production", "responsible": "team-sre"})
	b.Refused(acp.CodeIllegalTransition, "author", "acp.escalate", m{"proposal_id": id})
	b.Advance(5000)
	v := see(b, id)
	v.want(t, acp.Escalated, acp.OutcomeEscalated, acp.ByHand, "0", "0.5", 1)
	if e := v.Escalation; e.Reason != "policy" || e.Policy != "four-eyes" || e.By != "op" || e.Responsible != "team-sre" || e.Note == "" || e.At == 0 {
		t.Fatalf("metadata %+v", e)
	}
	for _, outcome := range []string{"escalated", "expired", "APPROVED", ""} {
		b.Refused(acp.CodeInvalidOutcome, "hana", "acp.resolve", m{"proposal_id": id, "outcome": outcome})
	}
	b.Refused(machine.CodeNoGrant, "stranger", "acp.resolve", m{"proposal_id": id, "outcome": "approved"})
	b.Must("hana", "acp.resolve", m{"proposal_id": id, "outcome": "rejected"})
	v = see(b, id)
	v.want(t, acp.Resolved, acp.Rejected, acp.ByHand, "0", "0.5", 2)
	if d := v.Decisions; d[0].Policy != "four-eyes" || d[1].CausedBy != id || d[1].PayloadHash == "" || d[1].ActionID == "" || d[0].EventID == d[1].EventID {
		t.Fatalf("decisions %+v", d)
	}
	b.Refused(acp.CodeIllegalTransition, "hana", "acp.resolve", m{"proposal_id": id, "outcome": "approved"})
}

func TestNobodyResolvesHisOwnProposal(t *testing.T) {
	b := newBench(t)
	var r acp.Result
	decode(t, b.Must("hana", "acp.submit", m{"type": "proposal", "domain": "d", "payload": m{}, "quorum": 1}), &r)
	b.Must("hana", "acp.escalate", m{"proposal_id": r.ProposalID})
	b.Refused(acp.CodeSelfResolution, "hana", "acp.resolve", m{"proposal_id": r.ProposalID, "outcome": "approved"})
	b.Must("hugo", "acp.resolve", m{"proposal_id": r.ProposalID, "outcome": "approved"})
}

func TestEntryTypesResolveOnSubmission(t *testing.T) {
	b := newBench(t)
	for _, kind := range []acp.EntryType{acp.Observation, acp.Hypothesis} {
		var r acp.Result
		decode(t, b.Must("author", "acp.submit", m{"type": kind, "domain": "d", "payload": m{}, "expires_in_ms": 5}), &r)
		v := see(b, r.ProposalID)
		v.want(t, acp.Resolved, acp.Approved, acp.ByQuorum, "0", "0", 1)
		if !v.Decisions[0].Auto || v.ExpiresAt != nil || v.Quorum != 1 || v.Verify(nil) != nil {
			t.Fatalf("%s: %+v, %v", kind, v, v.Verify(nil))
		}
		b.Refused(acp.CodeNotPending, "A", "acp.respond", m{"proposal_id": r.ProposalID, "response_type": "endorse", "confidence": 1})
	}
	if len(b.Events) != 4 || b.Events[1].Type != "acp.decided" {
		t.Fatalf("events %+v", b.Events)
	}
}

func TestOperatorsConfigure(t *testing.T) {
	b := newBench(t)
	b.Grant("author", "prod.db", "1", "1")
	b.Grant("author", "production", "1", "1")
	b.Must("op", "acp.configure", m{"hypotheses": "respond", "escalate": []m{{"policy": "prod", "domain": "prod.*"}}})
	id := submit(b, m{"type": "hypothesis", "quorum": 3})
	see(b, id).want(t, acp.Pending, "", "", "0", "0", 0)
	respond(b, "A", id, "endorse", 1)
	see(b, id).want(t, acp.Resolved, acp.Approved, acp.ByQuorum, "1", "0", 1)

	id = submit(b, m{"domain": "prod.db"})
	v := see(b, id)
	v.want(t, acp.Escalated, acp.OutcomeEscalated, acp.ByHand, "0", "0", 1)
	if v.Decisions[0].Policy != "prod" || v.Decisions[0].Escalation != "policy" {
		t.Fatalf("decision %+v", v.Decisions[0])
	}
	see(b, submit(b, m{"domain": "production"})).want(t, acp.Pending, "", "", "0", "0", 0)

	b.Must("op", "acp.configure", m{"hypotheses": "auto"})
	see(b, submit(b, m{"type": "hypothesis"})).want(t, acp.Resolved, acp.Approved, acp.ByQuorum, "0", "0", 1)
	see(b, submit(b, m{"domain": "prod.db"})).want(t, acp.Escalated, acp.OutcomeEscalated, acp.ByHand, "0", "0", 1)
	b.Must("op", "acp.configure", m{"escalate": []m{}})
	see(b, submit(b, m{"domain": "prod.db"})).want(t, acp.Pending, "", "", "0", "0", 0)
	for _, bad := range []m{
		{"hypotheses": "never"}, {"escalate": nil}, {"escalate": []m{{"policy": "p"}}}, {"escalate": []m{{"policy": "", "domain": "d"}}},
		{"escalate": []m{{"policy": "p", "domain": ".*"}}}, {"escalate": []m{{"policy": "p", "domain": "*.d"}}}, {"escalate": slices.Repeat([]m{{"policy": "p", "domain": "d"}}, 101)},
	} {
		b.Refused(machine.CodeMalformed, "op", "acp.configure", bad)
	}
}

func TestASubmissionMayNameItsPolicy(t *testing.T) {
	b := newBench(t)
	v := see(b, submit(b, m{"escalate_policy": "four-eyes"}))
	v.want(t, acp.Escalated, acp.OutcomeEscalated, acp.ByHand, "0", "0", 1)
	if v.Escalation.Policy != "four-eyes" || v.Decisions[0].Actor != "author" {
		t.Fatalf("%+v, %+v", v.Escalation, v.Decisions[0])
	}
}

func TestAWeightedQuorumCountsBothSides(t *testing.T) {
	b := newBench(t)
	id := submit(b, m{"quorum_policy": m{"type": "weighted", "threshold": 1}})
	respond(b, "A", id, "endorse", 0.6)
	respond(b, "B", id, "challenge", 0.3)
	see(b, id).want(t, acp.Pending, "", "", "0.6", "0.3", 0)
	respond(b, "C", id, "challenge", 0.1)
	see(b, id).want(t, acp.Resolved, acp.Approved, acp.ByQuorum, "0.6", "0.4", 1)
}

func TestAUnanimousQuorumFixesItsParticipants(t *testing.T) {
	b := newBench(t)
	id := submit(b, m{"quorum_policy": m{"type": "unanimous"}})
	if q := see(b, id).Quorum; q != 5 {
		t.Fatalf("quorum %d, want A, B, C, hana and hugo", q)
	}
	b.Grant("outsider", "d", "1", "1") // too late
	b.Refused(acp.CodeNotEligible, "outsider", "acp.respond", m{"proposal_id": id, "response_type": "endorse", "confidence": 1})
	if asks := asksOf(b, "outsider"); len(asks) != 0 {
		t.Fatalf("asked though not eligible: %v", asks)
	}
	for _, who := range []string{"A", "B", "C", "hana"} {
		respond(b, who, id, "endorse", 0.1)
	}
	see(b, id).want(t, acp.Pending, "", "", "0.4", "0", 0)
	respond(b, "hugo", id, "challenge", 1)
	see(b, id).want(t, acp.Resolved, acp.Rejected, acp.ByQuorum, "0.4", "1", 1)
}
