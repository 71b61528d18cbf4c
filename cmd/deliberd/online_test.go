package main

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/api/apitest"
	"github.com/deliberd/deliberd/api/door"
	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/merkle"
	"github.com/deliberd/deliberd/pbft"
	"github.com/deliberd/deliberd/registry"
	"github.com/deliberd/deliberd/reputation"
)

// stage is a shell before a node in memory that takes the real machines'
// kinds, checks every body against its kind's schema, and answers what the
// test tells it to.
type stage struct {
	*shell
	b       *apitest.Backend
	answers map[string]any // by kind or query
	last    machine.Action // submitted last
	params  json.RawMessage
}

var machines = []machine.Machine{registry.New(), membership.New(), acp.New(), agora.New(), deliberation.New()}

func newStage(t *testing.T) *stage {
	s := &stage{shell: newShell(t), b: apitest.New(), answers: map[string]any{}}
	schemas := map[string]json.RawMessage{}
	for _, m := range machines {
		s.b.Actions = append(s.b.Actions, m.Kinds()...)
		s.b.Reads = append(s.b.Reads, m.Queries()...)
	}
	for _, k := range s.b.Actions {
		schemas[k.Name] = k.Schema
	}
	for _, q := range s.b.Reads {
		schemas[q.Name] = q.Schema
	}
	s.b.OnSubmit = func(a machine.Action) (any, error) {
		check(t, a.Kind, schemas[a.Kind], a.Body)
		s.last = a
		return s.answers[a.Kind], nil
	}
	s.b.OnQuery = func(name, _ string, params json.RawMessage, _ bool) (any, error) {
		check(t, name, schemas[name], params)
		s.params = params
		if err, ok := s.answers[name].(error); ok {
			return nil, err
		}
		return s.answers[name], nil
	}
	l, err := door.Listen(door.Config{Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- door.Serve(ctx, l, s.b, apitest.Cluster, nil) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
	t.Setenv("DELIBERD_NODE", l.URL())
	t.Setenv("DELIBERD_AS", "ada")
	for _, id := range []string{"ada", "bob"} {
		s.ok("agent", "new", id)
		me, err := client.ReadIdentity("keys/" + id + ".json")
		if err != nil {
			t.Fatal(err)
		}
		s.b.Register(id, me.Key().Public())
	}
	return s
}

func check(t *testing.T, name string, schema, value json.RawMessage) {
	t.Helper()
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err == nil {
		err = c.AddResource("urn:"+name, doc)
	}
	if err != nil {
		t.Errorf("schema of %s: %v", name, err)
		return
	}
	compiled, err := c.Compile("urn:" + name)
	if err != nil {
		t.Errorf("schema of %s: %v", name, err)
		return
	}
	in, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err == nil {
		err = compiled.Validate(in)
	}
	if err != nil {
		t.Errorf("%s %s: %v", name, value, err)
	}
}

const (
	r1 = "01JD0000000000000000000001" // a round or proposal
	a1 = "01JD000000000000000000000A" // arguments
	a2 = "01JD000000000000000000000B"
	n1 = "12D3KooWGjMCwkHzAvXwCMUNdF1mLzSWbBrXkFF3ufCNRCyrCAAS"
)

func TestEveryWriteSendsTheBodyItsKindAsksFor(t *testing.T) {
	s := newStage(t)
	stands := deliberation.Answer{Round: r1, Phase: deliberation.PhaseCollecting}
	for _, k := range s.b.Actions {
		switch {
		case strings.HasPrefix(k.Name, "deliberatic."):
			s.answers[k.Name] = stands
		case strings.HasPrefix(k.Name, "acp."):
			s.answers[k.Name] = map[string]any{"proposal_id": r1, "status": "pending", "responses": 1}
		case strings.HasPrefix(k.Name, "agora."):
			s.answers[k.Name] = agora.Result{RoundID: "deploy-42", Status: "open"}
		default:
			s.answers[k.Name] = map[string]any{}
		}
	}
	s.answers["deliberatic.get"] = deliberation.View{Round: &deliberation.Round{}, State: &deliberation.State{Outcome: &deliberation.Outcome{Winner: a1, Hash: strings.Repeat("a", 64)}}}
	ev := "type=performance,value=0.9,width=0.2,at=2026-01-15T00:00:00Z"
	evJSON := `"evidence":[{"confidence":0.2,"timestamp":"2026-01-15T00:00:00Z","type":"performance","value":0.9}]`
	s.write("why.md", "Because <it> holds.")
	for _, c := range []struct{ line, kind, body string }{
		{"agent revoke bob --reason gone", "registry.revoke", `{"id":"bob","reason":"gone"}`},
		{"agent grant bob risk.* --authority 0.90 --trust 1", "registry.grant", `{"authority":0.9,"pattern":"risk.*","principal":"bob","trust":1}`},
		{"agent ungrant bob risk.*", "registry.ungrant", `{"pattern":"risk.*","principal":"bob"}`},
		{"approve " + r1, "cluster.approve", `{"change":"` + r1 + `"}`},
		{"remove " + n1, "cluster.remove", `{"node":"` + n1 + `"}`},
		{`acp submit --domain risk.credit --payload {"loan":17} --quorum 2 --expires-in 5m`, "acp.submit", `{"domain":"risk.credit","expires_in_ms":300000,"payload":{"loan":17},"quorum":2,"type":"proposal"}`},
		{`acp submit --domain a --payload {} --weighted 1.50`, "acp.submit", `{"domain":"a","payload":{},"quorum_policy":{"threshold":1.5,"type":"weighted"},"type":"proposal"}`},
		{`acp submit --domain a --payload {} --unanimous --expires-at 2026-01-15T00:00:00Z --escalate-policy p`, "acp.submit", `{"domain":"a","escalate_policy":"p","expires_at":"2026-01-15T00:00:00Z","payload":{},"quorum_policy":{"type":"unanimous"},"type":"proposal"}`},
		{`acp submit --domain a --payload {} --type observation`, "acp.submit", `{"domain":"a","payload":{},"type":"observation"}`},
		{"acp respond " + r1 + " endorse --confidence 0.85", "acp.respond", `{"confidence":0.85,"proposal_id":"` + r1 + `","response_type":"endorse"}`},
		{"acp respond " + r1 + " challenge --confidence 1 --authority 0.5 --trust 0.25 --reason no", "acp.respond", `{"confidence":1,"domain_authority":0.5,"proposal_id":"` + r1 + `","reason":"no","response_type":"challenge","trust_score":0.25}`},
		{"acp escalate " + r1 + " --note look --responsible on-call --policy p", "acp.escalate", `{"note":"look","policy":"p","proposal_id":"` + r1 + `","responsible":"on-call"}`},
		{"acp resolve " + r1 + " approve --note ok", "acp.resolve", `{"note":"ok","outcome":"approved","proposal_id":"` + r1 + `"}`},
		{"acp resolve " + r1 + " rejected", "acp.resolve", `{"outcome":"rejected","proposal_id":"` + r1 + `"}`},
		{`agora propose --id deploy-42 --action {"type":"deploy"} --voters ada,bob:3 --vetoers cyd --quorum 2/3 --deadline 1m --auto`, "agora.propose",
			`{"action":{"type":"deploy"},"auto_evaluate":true,"deadline_in_ms":60000,"id":"deploy-42","quorum":{"type":"fraction","value":"2/3"},"vetoers":["cyd"],"voters":["ada",{"id":"bob","weight":3}]}`},
		{`agora propose --action {} --voters ada --quorum 1`, "agora.propose", `{"action":{},"quorum":{"type":"count","value":1},"voters":["ada"]}`},
		{`agora propose --action {} --voters ada --quorum 0.5`, "agora.propose", `{"action":{},"quorum":{"type":"fraction","value":0.5},"voters":["ada"]}`},
		{"agora vote deploy-42 no --reason friday", "agora.vote", `{"choice":"no","reason":"friday","round_id":"deploy-42"}`},
		{"agora veto deploy-42 --reason backup", "agora.veto", `{"reason":"backup","round_id":"deploy-42"}`},
		{"agora evaluate deploy-42", "agora.evaluate", `{"round_id":"deploy-42"}`},
		{"round open Pump? --participants ada,bob,cyd", "deliberatic.open", `{"participants":["ada","bob","cyd"],"title":"Pump?","windows":{"collect_ms":300000,"confirm_ms":300000,"evidence_ms":300000}}`},
		{`round open Pump? --question @why.md --domain a.b --task {"x":1} --option yes --option 2 --rule supermajority --on-rejected human --reviewers eve --minimum 1 --tau 0.2 ` +
			`--gamma-plus 0.5 --gamma-minus 0.5 --empty-weight 0.1 --method rectified --weight-method discounted-gm --window 10s --collect 20s --review 1m`, "deliberatic.open",
			`{"domain":"a.b","empty_weight":0.1,"gamma_minus":0.5,"gamma_plus":0.5,"method":"rectified","minimum":1,"on_rejected":"human","options":["yes",2],"question":"Because <it> holds.","reviewers":["eve"],` +
				`"rule":"supermajority","task":{"x":1},"tau":0.2,"title":"Pump?","weight_method":"discounted-gm","windows":{"collect_ms":20000,"confirm_ms":10000,"evidence_ms":10000,"review_ms":60000}}`},
		{"round position " + r1 + " --answer pump --text @why.md --facts {\"a\":true} --probability 0.8 --final --evidence " + ev, "deliberatic.position",
			`{"answer":"pump",` + evJSON + `,"facts":{"a":true},"final":true,"probability":0.8,"round":"` + r1 + `","text":"Because <it> holds."}`},
		{"round challenge " + r1 + " " + a1 + " --text no --evidence " + ev, "deliberatic.challenge", `{` + evJSON + `,"round":"` + r1 + `","target":"` + a1 + `","text":"no"}`},
		{"round support " + r1 + " " + a1 + " --final", "deliberatic.support", `{"final":true,"round":"` + r1 + `","target":"` + a1 + `"}`},
		{"round relate " + r1 + " " + a1 + " attack " + a2, "deliberatic.relate", `{"from":"` + a1 + `","relation":"attack","round":"` + r1 + `","to":"` + a2 + `"}`},
		{"round evidence " + r1 + " " + a1 + " --type performance --value 0.9 --width 0.2 --at 2026-01-15T00:00:00Z", "deliberatic.evidence", `{"argument":"` + a1 + `",` + evJSON + `,"round":"` + r1 + `"}`},
		{"round done " + r1, "deliberatic.done", `{"round":"` + r1 + `"}`},
		{"round resolve " + r1, "deliberatic.resolve", `{"round":"` + r1 + `"}`},
		{"round confirm " + r1, "deliberatic.confirm", `{"accept":true,"outcome_hash":"` + strings.Repeat("a", 64) + `","round":"` + r1 + `","winner":"` + a1 + `"}`},
		{"round confirm " + r1 + " --reject --winner " + a2, "deliberatic.confirm", `{"accept":false,"round":"` + r1 + `","winner":"` + a2 + `"}`},
		{"round review " + r1 + " --winner " + a1 + " --reason ok", "deliberatic.review", `{"reason":"ok","round":"` + r1 + `","winner":"` + a1 + `"}`},
		{"round outcome " + r1 + " --answer pump --vindicated bob", "deliberatic.outcome", `{"answer":"pump","round":"` + r1 + `","vindicated":["bob"]}`},
	} {
		s.last = machine.Action{}
		s.ok(strings.Fields(c.line)...)
		if s.last.Kind != c.kind || string(s.last.Body) != c.body || s.last.Actor != "ada" {
			t.Errorf("%s:\n%s %s\nwant\n%s %s", c.line, s.last.Kind, s.last.Body, c.kind, c.body)
		}
		var answer api.Answer
		if s.json(&answer, strings.Fields(c.line)...); answer.Finality != api.Ordered || answer.ActionID != s.last.ID {
			t.Errorf("%s: %+v", c.line, answer)
		}
	}
	s.ok("round", "confirm", r1, "--answer", "pump", "--standing", a1, "--for", "10m")
	if want := regexp.MustCompile(`^{"round":"` + r1 + `","standing":{"answers":\["pump"\],"expires_ms":\d{13},"winners":\["` + a1 + `"\]}}$`); !want.Match(s.last.Body) {
		t.Errorf("%s", s.last.Body)
	}
}

func TestWhatCannotBeSentIsWrongUsage(t *testing.T) {
	s := newStage(t)
	s.last = machine.Action{}
	for _, line := range []string{
		"acp submit --domain a", "acp submit --payload {}", "acp submit --domain a --payload nonsense --quorum 1", "acp submit --domain a --payload {}",
		"acp submit --domain a --payload {} --quorum 1 --unanimous", "acp submit --domain a --payload {} --weighted much",
		"acp respond " + r1 + " endorse", "acp respond " + r1 + " endorse --confidence high", "acp respond " + r1 + " endorse --confidence 1e-1", "acp respond " + r1 + " endorse --confidence 1 --trust .5",
		"agora propose --voters ada --quorum 1", "agora propose --action {} --voters ada --quorum 0", "agora propose --action {} --voters ada --quorum 3/0",
		"agora propose --action {} --voters ada:0 --quorum 1", "agora veto x", "agora dissents", "agora dissents --round a --agent b",
		"agent grant bob x --authority 0.9", "agent revoke bob", "round position " + r1, "round evidence " + r1 + " " + a1, "round open x --tau 2", "round open x --task nonsense",
		"round position " + r1 + " --answer a --text @missing", "round confirm " + r1 + " --answer a --reject", "agent inbox --wait 2m",
	} {
		s.fails(exitUsage, "usage", strings.Fields(line)...)
	}
	if s.last.Kind != "" {
		t.Errorf("%s was sent", s.last.Kind)
	}
}

func TestARefusalOfTheClusterIsPrintedWithItsFix(t *testing.T) {
	s := newStage(t)
	s.b.OnSubmit = func(machine.Action) (any, error) {
		return nil, machine.Refuse("same_answer", "deliberd round support "+r1+" "+a1, "This answer has been given.").With("position", a1)
	}
	golden(t, "refusal", s.fails(exitRefused, "same_answer", "round", "position", r1, "--answer", "pump"))
	_, _, errs := s.run("round", "position", r1, "--answer", "pump", "--json")
	golden(t, "refusal_json", errs)
}

func TestRegisteringPinsTheClusterInTheIdentity(t *testing.T) {
	s := newStage(t)
	s.answers["registry.register"] = map[string]any{}
	s.ok("agent", "new", "cyd")
	golden(t, "agent_register", s.ok("agent", "register", "cyd", "--kind", "human", "--name", "Cyd"))
	me, err := client.ReadIdentity("keys/cyd.json")
	if err != nil || me.Cluster != apitest.Cluster {
		t.Errorf("%+v %v", me, err)
	}
	var body registry.Register
	if err := json.Unmarshal(s.last.Body, &body); err != nil || body.JWK.X != me.PublicJWK().X || body.Kind != machine.Human {
		t.Errorf("%s %v", s.last.Body, err)
	}
	s.fails(exitUsage, "usage", "agent", "register", "dee", "--key", "keys/cyd.json")
	s.fails(exitRefused, "no_identity", "agent", "register", "dee")
}

func TestRotatingSurvivesAnInterruption(t *testing.T) {
	s := newStage(t)
	old, err := client.ReadIdentity("keys/ada.json")
	if err != nil {
		t.Fatal(err)
	}
	// The answer is lost: the new key waits beside the old one.
	s.b.OnSubmit = func(machine.Action) (any, error) { return nil, machine.Refuse("not_ready", "wait", "Not now.") }
	s.run("agent", "rotate", "--timeout", "100ms")
	next, err := client.ReadIdentity("keys/ada.json.next")
	if err != nil {
		t.Fatal(err)
	}
	// It had been accepted: the old key is revoked, the new one counts.
	s.b.Register("ada", next.Key().Public())
	s.b.OnSubmit = func(machine.Action) (any, error) {
		return nil, machine.Refuse(machine.CodeRevoked, "use an active key", "The key is not active.")
	}
	s.answers["registry.get"] = registry.View{}
	golden(t, "agent_rotate", s.ok("agent", "rotate"))
	now, err := client.ReadIdentity("keys/ada.json")
	if err != nil || now.Key().KID() != next.Key().KID() || now.Key().KID() == old.Key().KID() {
		t.Errorf("%+v %v", now, err)
	}
	if _, err := client.ReadIdentity("keys/ada.json.next"); client.CodeOf(err) != client.CodeNoIdentity {
		t.Errorf("%v", err)
	}
}

func TestInvitingPrintsOneLineWhoseSecretStaysHere(t *testing.T) {
	s := newStage(t)
	s.b.Nodes = []api.Peer{{NodeID: n1, Addresses: []string{"/ip4/192.0.2.1/tcp/7701"}}}
	expires := machine.Stamp(time.Now().Add(time.Hour).UnixMilli())
	s.answers["cluster.invite"] = membership.InvitationView{State: membership.Open, ExpiresMS: expires}
	inv, err := membership.ParseInvitation(s.ok("invite", "--role", "observer", "--expires", "1h"))
	if err != nil || inv.Role != membership.RoleObserver || inv.Genesis != apitest.Cluster || inv.ExpiresMS != expires || len(inv.Addrs) != 1 || inv.Addrs[0] != "/ip4/192.0.2.1/tcp/7701/p2p/"+n1 {
		t.Fatalf("%+v %v", inv, err)
	}
	key, err := inv.Key()
	if err != nil {
		t.Fatal(err)
	}
	want := fmt.Sprintf(`{"expires_in_ms":3600000,"key":%q,"role":"observer"}`, key.Public().X())
	if string(s.last.Body) != want {
		t.Errorf("%s, want %s", s.last.Body, want)
	}
	s.answers["cluster.invite"] = membership.InvitationView{State: membership.PendingApproval, Change: r1, ExpiresMS: expires}
	if _, _, errs := s.run("invite"); !strings.Contains(errs, "deliberd approve "+r1) {
		t.Errorf("%s", errs)
	}
	s.b.Nodes = nil
	s.fails(exitRefused, "no_address", "invite")
}

func TestStatusAndPeers(t *testing.T) {
	s := newStage(t)
	s.b.State.Voters = []string{"a", "b", "c", "d"}
	s.b.State.ByzantineTolerance = 1
	s.b.State.DecisionLog.Root = strings.Repeat("a", 64)
	golden(t, "status", s.ok("status"))
	golden(t, "status_json", s.ok("status", "--json"))
	s.b.State.Voters, s.b.State.Ready = s.b.State.Voters[:1], false
	golden(t, "status_alone", s.ok("status"))
	s.b.Nodes = []api.Peer{{NodeID: n1, Operator: "ops", Role: "voter", Leader: true, Self: true, Addresses: []string{"/ip4/192.0.2.1/tcp/7701"}}, {NodeID: "x", Role: "observer", Connected: true}, {NodeID: "y", Role: "joining"}}
	golden(t, "peers", s.ok("peers"))

	golden(t, "guilt_none", s.ok("guilt"))
	round := pbft.Instance{Protocol: pbft.Protocol, Genesis: "aa", Epoch: 1, Purpose: "deliberatic.verdict", ID: "01JD0000000000000000000000"}
	s.b.Proofs = []api.Guilt{{NodeID: n1, Proof: pbft.Guilt{Instance: round, A: pbft.Vote{Phase: pbft.Commit, View: 2}, B: pbft.Vote{Phase: pbft.Commit, View: 2, Digest: pbft.Digest{1}}}}}
	s.b.State.Guilty = []string{n1}
	golden(t, "guilt", s.ok("guilt"))
	golden(t, "guilt_json", s.ok("guilt", "--json"))
	golden(t, "status_guilty", s.ok("status"))
}

func TestReadsPrintTables(t *testing.T) {
	s := newStage(t)
	for name, c := range map[string]struct {
		query  string
		answer any
		line   string
		params string
	}{
		"agent_list": {"registry.list", registry.List{Principals: []registry.View{{Principal: machine.Principal{ID: "ada", Kind: machine.Agent, Operator: "ops", Name: "Ada"}}, {Principal: machine.Principal{ID: "old", Kind: machine.Human}, Revoked: &registry.Revocation{}}}, Next: "old"},
			"agent list --domain risk.credit --limit 2", `{"domain":"risk.credit","limit":2}`},
		"agent_show": {"registry.get", registry.View{Principal: machine.Principal{ID: "ada", Kind: machine.Agent, Operator: "ops"}, Since: 1_700_000_000_000, Grants: []machine.Grant{{Pattern: "risk.*", Authority: "0.9", Trust: "0.85"}}},
			"agent show ada", `{"id":"ada"}`},
		"acp_get": {"acp.get", json.RawMessage(`{"proposal_id":"` + r1 + `","type":"proposal","domain":"risk.credit","author":"ada","status":"resolved","quorum":2,"payload":{"loan":17},"tally":{"votes_for":"0.6885","votes_against":"0"},
			"responses":[{"participant_id":"bob","response_type":"endorse","confidence":0.85,"domain_authority":0.9,"trust_score":0.9,"weight":0.6885,"reason":null}],"resolution":{"outcome":"approved","trigger":"quorum","decided_at":"2026-01-15T00:00:00Z"}}`),
			"acp get " + r1 + " --stale", `{"proposal_id":"` + r1 + `"}`},
		"acp_list": {"acp.list", json.RawMessage(`{"proposals":[{"proposal_id":"` + r1 + `","type":"proposal","domain":"risk.credit","author":"ada","status":"pending","responses":1,"quorum":2}],"next":"` + r1 + `"}`),
			"acp list --status pending", `{"status":"pending"}`},
		"agora_get": {"agora.get", agora.View{Proposal: agora.Proposal{ID: "deploy-42", ProposerID: "ada", Action: json.RawMessage(`{"type":"deploy"}`), Vetoers: []string{"cyd"}, Quorum: agora.Count(2)}, Status: "vetoed", Needed: 2,
			Tally: agora.Tally{Yes: 1, No: 1, Cast: 2, Registered: 3}, Votes: []agora.Vote{{AgentID: "ada", Choice: "yes"}, {AgentID: "bob", Choice: "no", Reason: "friday"}}, Vetoes: []agora.Veto{{AgentID: "cyd", Reason: "no backup"}},
			Resolution: &agora.Resolution{Outcome: "vetoed", Veto: &agora.Veto{AgentID: "cyd", Reason: "no backup"}}},
			"agora get deploy-42", `{"round_id":"deploy-42"}`},
		"agora_list": {"agora.list", json.RawMessage(`{"rounds":[{"round_id":"deploy-42","proposer_id":"ada","status":"open","tally":{"yes":1,"no":0,"abstain":0,"cast":1,"registered":3}}]}`),
			"agora list --status open", `{"status":"open"}`},
		"agora_dissents": {"agora.dissents", agora.DissentPage{Dissents: []agora.DissentRecord{{RoundID: "deploy-42", Dissent: agora.Dissent{AgentID: "bob", Kind: "no", Reason: "friday"}, Outcome: "approved"}}},
			"agora dissents --agent bob", `{"agent_id":"bob"}`},
		"agent_reputation": {"deliberatic.reputation", deliberation.Reputation{Agent: "bob", Domain: "risk.credit", Known: true, Rating: 1520.5, Rounds: 3, Rho: 1.0625, Calibration: reputation.Metrics{N: 3, Accuracy: ptr(2.0 / 3), Brier: ptr(0.125), ECE: ptr(0.0)}, Updated: 1_700_000_000_000},
			"agent reputation bob --domain risk.credit", `{"agent":"bob","domain":"risk.credit"}`},
		"agent_reputation_start": {"deliberatic.reputation", deliberation.Reputation{Agent: "ada", Rating: 1500, Rho: 1}, "agent reputation", `{"agent":"ada"}`},
		"changes": {"cluster.changes", membership.ChangesAnswer{Changes: []membership.Change{{Change: r1, What: "remove", Subject: n1, Operator: "ops", Approvals: []string{"ops-a", "ops-b"}, Weight: 2, Needed: 3}}},
			"approve", `{}`},
		"round_show":    {"deliberatic.get", view(false), "round show " + r1, `{"round":"` + r1 + `"}`},
		"round_ended":   {"deliberatic.get", view(true), "round show " + r1, `{"round":"` + r1 + `"}`},
		"round_list":    {"deliberatic.list", deliberation.List{Rounds: []deliberation.Listed{{Round: r1, Title: "Which pump?", Phase: deliberation.PhaseVerdict, Positions: 2, Path: deliberation.PathFast}}}, "round list --limit 1", `{"limit":1}`},
		"round_explain": {"deliberatic.explain", explanation(t), "round explain " + r1, `{"round":"` + r1 + `"}`},
	} {
		s.answers[c.query] = c.answer
		golden(t, name, s.ok(strings.Fields(c.line)...))
		if string(s.params) != c.params {
			t.Errorf("%s: asked with %s, want %s", name, s.params, c.params)
		}
		var whole map[string]any
		s.json(&whole, strings.Fields(c.line)...)
	}
}

func ptr(x float64) *float64 { return &x }

// view is a round as deliberatic.get shows it, going on or ended.
func view(ended bool) deliberation.View {
	gap := int64(400_000_000)
	v := deliberation.View{
		Round: &deliberation.Round{ID: r1, Title: "Which pump?", Question: "Which pump replaces\nthe one that leaks?", Options: []json.RawMessage{[]byte(`"pump A"`), []byte(`"pump B"`)}, Domain: "hydraulics", Opener: "ada", Rule: deliberation.Majority, TauNano: 150_000_000,
			Participants: []deliberation.Participant{{ID: "ada", Rho: 1}, {ID: "bob", Rho: 1}}},
		State:   &deliberation.State{Phase: deliberation.PhaseFast, Outcome: &deliberation.Outcome{Winner: a1, GapNano: &gap}},
		Waiting: []string{"bob"},
		Arguments: []deliberation.ArgumentRecord{{Argument: deliberation.Argument{ID: a1, Kind: deliberation.PositionKind, Author: "ada", Evidence: []deliberation.Evidence{{}}}, Content: deliberation.Content{Answer: json.RawMessage(`"pump A"`)}},
			{Argument: deliberation.Argument{ID: a2, Kind: deliberation.ChallengeKind, Author: "bob", Target: a1}, Content: deliberation.Content{Text: "It leaks,\nand often."}}},
	}
	if ended {
		v.State.Phase = deliberation.PhaseVerdict
		v.Verdict = &deliberation.Verdict{Round: r1, Status: deliberation.PhaseVerdict, Winner: a1, Answer: json.RawMessage(`"pump A"`), Path: deliberation.PathConflict, Why: "gap_within_tau", TauNano: 150_000_000, GapNano: &gap,
			Strengths: []deliberation.Strength{{Position: a1, Author: "ada", SigmaNano: 720_000_000}}, Count: &deliberation.Count{Participants: 3, Accepts: 2},
			Certificate: &deliberation.CertificateSummary{View: 0, Signers: 3, Voters: 4, Tolerance: 1}, EvidenceRoot: strings.Repeat("a", 64), DecidedAt: 1_700_000_000_000}
	}
	return v
}

func explanation(t *testing.T) *deliberation.Explanation {
	t.Helper()
	e, err := explainFile([]byte(`{"arguments":[{"id":"a","author":"ada","weight":0.9},{"id":"b","author":"bob","weight":0.5},{"id":"c","author":"bob","weight":0.2}],"attacks":[{"from":"c","to":"a"}]}`))
	if err != nil {
		t.Fatal(err)
	}
	e.Phase, e.Provisional, e.Moderator, e.Waiting = deliberation.PhaseCollecting, true, "cyd", []string{"bob"}
	return e
}

func TestWhatShowPrintsIsExplainedOffline(t *testing.T) {
	s := newStage(t)
	v := view(false)
	v.Round.Method, v.Round.WeightMethod, v.Round.GammaPlus, v.Round.GammaMinus = "fixed-point", "literal", 0.6, 0.8
	v.Arguments[0].Evidence = []deliberation.Evidence{{Value: 0.9, Confidence: 0.2}}
	s.answers["deliberatic.get"] = v
	s.in = s.ok("round", "show", r1, "--json")
	golden(t, "semantics_view", s.ok("semantics", "-"))
}

func TestTheInboxListsWhatIsAsked(t *testing.T) {
	s := newStage(t)
	golden(t, "inbox_empty", s.ok("agent", "inbox"))
	s.b.Ask("ada", machine.Ask{Ask: "vote", Kind: "agora.vote", Subject: "deploy-42", Title: "Vote on round deploy-42 of bob", Schema: json.RawMessage(`{}`)})
	golden(t, "inbox", s.ok("agent", "inbox", "--wait", "1m"))
}

func TestAnExportIsTheCanonicalTextThatVerifies(t *testing.T) {
	s := newStage(t)
	text, root := chain(t)
	s.answers["deliberatic.export"] = json.RawMessage(text)
	if out := s.ok("evidence", "export", r1); out != string(text) {
		t.Errorf("%s\nwant\n%s", out, text)
	}
	golden(t, "evidence_export", s.ok("evidence", "export", r1, "--out", "chain.json"))
	s.ok("evidence", "verify", "chain.json", "--root", root)
	s.answers["deliberatic.export"] = json.RawMessage(strings.Replace(string(text), "pump B", "pump C", 1))
	s.fails(exitRefused, merkle.CodeLeafHash, "evidence", "export", r1)
}

func TestWatchingShowsThePastAndEndsWithTheVerdict(t *testing.T) {
	s := newStage(t)
	s.b.Emit("deliberatic.opened", r1, nil, map[string]any{"round": r1})
	s.b.Emit("deliberatic.opened", "01JD0000000000000000000002", nil, map[string]any{})
	s.b.Emit("deliberatic.positioned", r1, nil, map[string]any{"agent": "ada"})
	looks := 0
	s.b.OnQuery = func(string, string, json.RawMessage, bool) (any, error) {
		if looks++; looks == 1 {
			go func() { // what happens after the first look
				s.b.Emit("deliberatic.confirmed", "01JD0000000000000000000002", nil, map[string]any{})
				s.b.Emit("deliberatic.confirmed", r1, nil, deliberation.Voted{Round: r1, Agent: "bob", Accept: true})
				s.b.Emit("deliberatic.decided", r1, nil, map[string]any{})
				s.b.Emit("deliberatic.rated", r1, nil, map[string]any{})
			}()
			return view(false), nil
		}
		return view(true), nil
	}
	golden(t, "round_watch", s.ok("round", "watch", r1))
	looks = 1 // it has ended before the first look
	golden(t, "round_watch_ended", s.ok("round", "watch", r1))
	lines := strings.Split(strings.TrimSpace(s.ok("round", "watch", r1, "--json")), "\n")
	var types []string
	for _, text := range lines {
		var rec api.Record
		if err := json.Unmarshal([]byte(text), &rec); err != nil || rec.Subject != r1 {
			t.Errorf("%s %v", text, err)
		}
		types = append(types, rec.Type)
	}
	if got := strings.Join(types, " "); got != "deliberatic.opened deliberatic.positioned deliberatic.confirmed deliberatic.decided" {
		t.Errorf("%s", got)
	}
}
