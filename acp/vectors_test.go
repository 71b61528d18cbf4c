package acp_test

import (
	"bytes"
	"encoding/json"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/internal/vectors"
	"github.com/deliberd/deliberd/machine"
)

const anyID = "01HXYZ0000000000000000ABCD"

func TestVectorsACP(t *testing.T) {
	vectors.Run(t, "acp", map[string]func(*testing.T, json.RawMessage){
		"weight":         vectorWeight,
		"weight_refuse":  vectorWeightRefuse,
		"tally":          vectorTally,
		"quorum":         vectorQuorum,
		"quorum_invalid": vectorQuorumInvalid,
		"timeline":       vectorTimeline,
		"transition":     vectorTransition,
		"schema":         vectorSchema(wireSchemas(t)),
		"ulid":           vectorULID,
	})
}

type factors struct {
	ParticipantID   string `json:"participant_id"`
	Type            string `json:"type"`
	DomainAuthority string `json:"domain_authority"`
	Confidence      string `json:"confidence"`
	TrustScore      string `json:"trust_score"`
}

func (f factors) parse() (da, c, ts acp.Decimal, err error) {
	if da, err = acp.ParseDecimal(f.DomainAuthority); err != nil {
		return
	}
	if c, err = acp.ParseDecimal(f.Confidence); err != nil {
		return
	}
	ts, err = acp.ParseDecimal(f.TrustScore)
	return
}

func (f factors) weight(t *testing.T) acp.Decimal {
	t.Helper()
	da, c, ts, err := f.parse()
	if err != nil {
		t.Fatal(err)
	}
	return acp.Weight(da, c, ts)
}

func vectorWeight(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		factors
		Exact string
	}](t, raw)
	if got := v.weight(t).String(); got != v.Exact {
		t.Fatalf("weight %s, want %s", got, v.Exact)
	}
}

func vectorWeightRefuse(t *testing.T, raw json.RawMessage) {
	v := vectors.As[factors](t, raw)
	if _, _, _, err := v.parse(); code(err) != acp.CodeInvalidNumber {
		t.Fatalf("got %v, want a refusal", err)
	}
}

type votes struct {
	VotesFor     string `json:"votes_for"`
	VotesAgainst string `json:"votes_against"`
}

func vectorTally(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Responses []factors
		Exact     votes
		Expected  string
	}](t, raw)
	order := v.Responses
	rng := rand.New(rand.NewPCG(1, 2))
	for range 20 {
		var tally acp.Tally
		for _, r := range order {
			tally = tally.Add(acp.ResponseType(r.Type), r.weight(t))
		}
		got := votes{tally.VotesFor.String(), tally.VotesAgainst.String()}
		if got != v.Exact || string(tally.Outcome()) != v.Expected {
			t.Fatalf("got %v %s, want %v %s", got, tally.Outcome(), v.Exact, v.Expected)
		}
		order = slices.Clone(order)
		rng.Shuffle(len(order), func(i, j int) { order[i], order[j] = order[j], order[i] })
	}
}

func vectorQuorum(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Policy       *string
		Threshold    json.RawMessage
		Responses    uint64
		Weights      []string
		Types        []string
		Participants []string
		Author       string
		IsMet        *bool `json:"is_met"`
		Error        string
	}](t, raw)
	var policy acp.QuorumPolicy
	var err error
	tally := acp.Tally{Responses: v.Responses}
	name := "count"
	if v.Policy != nil {
		name = *v.Policy
	}
	switch name {
	case "count":
		var n uint64
		n, err = acp.ParseQuorum(v.Threshold)
		policy = acp.Count{Threshold: n}
	case "weighted":
		threshold, bad := acp.ParseDecimal(vectors.As[string](t, v.Threshold))
		if bad != nil {
			t.Fatal(bad)
		}
		policy, err = acp.NewWeighted(threshold)
		for i, text := range v.Weights {
			w, bad := acp.ParseDecimal(text)
			if bad != nil {
				t.Fatal(bad)
			}
			kind := acp.Endorse
			if v.Types != nil {
				kind = acp.ResponseType(v.Types[i])
			}
			tally = tally.Add(kind, w)
		}
	case "unanimous":
		policy, err = acp.NewUnanimous(v.Participants, v.Author)
	default:
		t.Fatalf("no test knows the policy %q", name)
	}
	if v.IsMet == nil {
		if code(err) != v.Error {
			t.Fatalf("got %v, want %s", err, v.Error)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if got := policy.IsMet(tally); got != *v.IsMet {
		t.Fatalf("met is %v, want %v", got, *v.IsMet)
	}
}

func vectorQuorumInvalid(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Quorum json.RawMessage
		Error  string
	}](t, raw)
	if n, err := acp.ParseQuorum(v.Quorum); code(err) != v.Error {
		t.Fatalf("got %d, %v; want %s", n, err, v.Error)
	}
}

type step struct {
	Do   string
	At   string
	Note string
	factors
	ProposalID string `json:"proposal_id"`
	Author     string
	Domain     string
	Quorum     json.RawMessage
	ExpiresAt  *string `json:"expires_at"`
	Outcome    string
	Reason     string

	Expect         string
	Status         *string
	Responses      *int
	DecisionEvents *int `json:"decision_events"`
	Resolution     *struct {
		Outcome   string
		Trigger   string
		DecidedAt string `json:"decided_at"`
		votes
	}
}

func vectorTimeline(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct{ Steps []step }](t, raw)
	var w acp.Workspace
	for i, s := range v.Steps {
		if s.ProposalID == "" {
			s.ProposalID = anyID
		}
		err := s.run(t, &w)
		if got := code(err); got != s.Expect && (got != "" || s.Expect != "ok") {
			t.Fatalf("step %d (%s): got %v, want %s", i, s.Do, err, s.Expect)
		}
		s.check(t, i, &w)
	}
}

func (s step) run(t *testing.T, w *acp.Workspace) error {
	now := mustTime(t, s.At)
	switch s.Do {
	case "submit":
		quorum, err := acp.ParseQuorum(s.Quorum)
		if err != nil {
			return err
		}
		in := acp.Submission{ProposalID: s.ProposalID, Type: acp.ProposalType, Domain: s.Domain, Author: s.Author, Quorum: quorum}
		if s.ExpiresAt != nil {
			at := mustTime(t, *s.ExpiresAt)
			in.ExpiresAt = &at
		}
		return w.Submit(in, now)
	case "respond":
		da, c, ts, err := s.parse()
		if err != nil {
			return err
		}
		return w.Respond(s.ProposalID, acp.Response{
			ParticipantID: s.ParticipantID, ResponseType: acp.ResponseType(s.Type),
			DomainAuthority: da, Confidence: c, TrustScore: ts,
		}, now)
	case "sweep":
		w.Sweep(now)
		return nil
	case "escalate":
		policy := ""
		if s.Reason == "policy" {
			policy = "p"
		}
		return w.Escalate(s.ProposalID, "somebody", policy, now)
	case "resolve":
		return w.Resolve(s.ProposalID, "human", acp.Outcome(s.Outcome), now)
	}
	t.Fatalf("no test knows the step %q", s.Do)
	return nil
}

func (s step) check(t *testing.T, i int, w *acp.Workspace) {
	t.Helper()
	p, ok := w.Proposal(s.ProposalID)
	if s.Status == nil {
		return
	}
	if !ok || string(p.Status) != *s.Status {
		t.Fatalf("step %d (%s): status %s, want %s", i, s.Do, p.Status, *s.Status)
	}
	if s.Responses != nil && len(p.Responses) != *s.Responses {
		t.Fatalf("step %d (%s): %d responses, want %d", i, s.Do, len(p.Responses), *s.Responses)
	}
	decisions := w.Decisions(s.ProposalID)
	if s.DecisionEvents != nil && len(decisions) != *s.DecisionEvents {
		t.Fatalf("step %d (%s): %d decision events, want %d", i, s.Do, len(decisions), *s.DecisionEvents)
	}
	if (s.Resolution == nil) != (p.Resolution == nil) {
		t.Fatalf("step %d (%s): resolution %v, want %v", i, s.Do, p.Resolution, s.Resolution)
	}
	if s.Resolution == nil {
		return
	}
	r, d := p.Resolution, decisions[len(decisions)-1]
	got := votes{r.VotesFor.String(), r.VotesAgainst.String()}
	if string(r.Outcome) != s.Resolution.Outcome || string(r.Trigger) != s.Resolution.Trigger || got != s.Resolution.votes ||
		r.DecidedAt != mustTime(t, s.Resolution.DecidedAt) {
		t.Fatalf("step %d (%s): resolution %+v, want %+v", i, s.Do, r, s.Resolution)
	}
	if d.Outcome != r.Outcome || d.Trigger != r.Trigger || d.DecidedAt != r.DecidedAt || d.CausedBy != s.ProposalID {
		t.Fatalf("step %d (%s): the decision event %+v is not of %+v", i, s.Do, d, r)
	}
}

func vectorTransition(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct{ From, Action, Expect string }](t, raw)
	created, expires := mustTime(t, "2025-01-15T10:00:00Z"), mustTime(t, "2025-01-15T10:05:00Z")
	s := acp.State{Author: "author", Status: acp.Status(v.From), Quorum: acp.Count{Threshold: 2}, ExpiresAt: &expires}
	got := "ok"
	settle := func(now acp.Time) {
		if !s.Settle(now) {
			got = "no_effect"
		}
	}
	refused := func(err error) {
		if err != nil {
			got = code(err)
		}
	}
	switch v.Action {
	case "respond":
		refused(s.Admit("A", false, acp.Endorse))
	case "quorum":
		s.Tally.Responses = 2
		settle(created)
	case "timeout":
		settle(expires)
	case "escalate":
		refused(s.Escalate(acp.EscalatedByHand, created))
	case "resolve":
		refused(s.Resolve(acp.Approved, created))
	default:
		t.Fatalf("no test knows the action %q", v.Action)
	}
	if got != v.Expect {
		t.Fatalf("%s from %s: %s, want %s", v.Action, v.From, got, v.Expect)
	}
}

func vectorSchema(compiled map[string][2]*jsonschema.Schema) func(*testing.T, json.RawMessage) {
	return func(t *testing.T, raw json.RawMessage) {
		v := vectors.As[struct {
			Schema        string
			Object        json.RawMessage
			WireQuorum    string `json:"wire_quorum"`
			Protocol      string
			Valid         bool
			WithoutFormat bool `json:"valid_without_format_assertion"`
		}](t, raw)
		text := []byte(v.Object)
		if v.WireQuorum != "" {
			members := vectors.As[map[string]json.RawMessage](t, text)
			members["quorum"] = json.RawMessage(v.WireQuorum)
			var err error
			if text, err = json.Marshal(members); err != nil {
				t.Fatal(err)
			}
		}
		instance, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range []bool{v.WithoutFormat, v.Valid} {
			if err := compiled[v.Schema][i].Validate(instance); (err == nil) != want {
				t.Fatalf("asserting formats %v: %v, want valid %v", i == 1, err, want)
			}
		}
		want := v.Valid && !strings.HasPrefix(v.Protocol, "refuse")
		if err := decodeWire(v.Schema, text); (err == nil) != want {
			t.Fatalf("decoding gave %v, want accepted %v", err, want)
		}
	}
}

func decodeWire(kind string, text []byte) (err error) {
	switch kind {
	case "proposal":
		_, err = acp.DecodeProposal(text)
	case "response":
		_, err = acp.DecodeResponse(text)
	case "resolution":
		_, err = acp.DecodeResolution(text)
	case "decision_event":
		_, err = acp.DecodeDecisionEvent(text)
	}
	return err
}

// wireSchemas compiles Appendix B twice: without and with asserted formats.
func wireSchemas(t testing.TB) map[string][2]*jsonschema.Schema {
	at := map[string]string{
		"proposal":       "https://acp-protocol.org/v1/proposal",
		"response":       "https://acp-protocol.org/v1/proposal#/$defs/Response",
		"resolution":     "https://acp-protocol.org/v1/proposal#/$defs/Resolution",
		"decision_event": "https://acp-protocol.org/v1/decision-event",
	}
	out := map[string][2]*jsonschema.Schema{}
	for kind, url := range at {
		var pair [2]*jsonschema.Schema
		for i := range pair {
			c := newCompiler(t, i == 1, "proposal", "decision-event")
			s, err := c.Compile(url)
			if err != nil {
				t.Fatal(err)
			}
			pair[i] = s
		}
		out[kind] = pair
	}
	return out
}

func newCompiler(t testing.TB, formats bool, names ...string) *jsonschema.Compiler {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{})
	if formats {
		c.AssertFormat()
	}
	for _, name := range names {
		text, err := acp.Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
		if err != nil {
			t.Fatal(err)
		}
		if err := c.AddResource(doc.(map[string]any)["$id"].(string), doc); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func vectorULID(t *testing.T, raw json.RawMessage) {
	v := vectors.As[struct {
		Value string
		Valid bool
	}](t, raw)
	if err := acp.CheckID(v.Value); (err == nil) != v.Valid {
		t.Fatalf("got %v, want valid %v", err, v.Valid)
	}
}

func mustTime(t testing.TB, text string) acp.Time {
	t.Helper()
	at, err := acp.ParseTime(text)
	if err != nil {
		t.Fatal(err)
	}
	return at
}

// code is the code of a refusal, "" for no error, the text for any other.
func code(err error) string {
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	if err != nil {
		return err.Error()
	}
	return ""
}
