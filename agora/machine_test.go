package agora_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

type m = map[string]any

func newBench(t testing.TB) *machinetest.Bench {
	b := machinetest.New(t, agora.New())
	b.Add(machine.Agent, "p", "a", "b", "c", "outsider")
	b.Add(machine.Human, "s", "u")
	b.Add(machine.Operator, "op")
	b.Add(machine.Node, "node")
	return b
}

// propose opens a round of p with voters a, b, c, vetoers s, u and a quorum of 2.
func propose(b *machinetest.Bench, extra m) agora.Result {
	b.T.Helper()
	var r agora.Result
	decode(b.T, b.Must("p", "agora.propose", with(extra)), &r)
	return r
}

func with(extra m) m {
	body := m{
		"action": m{"type": "deploy"}, "voters": []string{"a", "b", "c"}, "vetoers": []string{"s", "u"},
		"quorum": m{"type": "count", "value": 2},
	}
	for k, v := range extra {
		body[k] = v
	}
	return body
}

func vote(b *machinetest.Bench, who, id string, choice agora.Choice) agora.Result {
	b.T.Helper()
	var r agora.Result
	decode(b.T, b.Must(who, "agora.vote", m{"round_id": id, "choice": choice}), &r)
	return r
}

func evaluate(b *machinetest.Bench, who, id string) agora.Result {
	b.T.Helper()
	var r agora.Result
	decode(b.T, b.Must(who, "agora.evaluate", m{"round_id": id}), &r)
	return r
}

func decode(t testing.TB, raw json.RawMessage, v any) {
	t.Helper()
	if err := json.Unmarshal(raw, v); err != nil {
		t.Fatal(err)
	}
}

func see(b *machinetest.Bench, id string) agora.View {
	b.T.Helper()
	var v agora.View
	if err := b.Query("agora.get", "a", m{"round_id": id}, &v); err != nil {
		b.T.Fatal(err)
	}
	return v
}

func TestTheReadmesFirstExampleApproves(t *testing.T) {
	b := machinetest.New(t, agora.New())
	b.Add(machine.Agent, "planner-agent", "reviewer-agent", "ops-agent")
	for name, value := range map[string]any{"number": 2.0 / 3, "text": "2/3", "object": m{"num": 2, "den": 3}} {
		id := "deploy-2026-09-15 " + name
		b.Must("planner-agent", "agora.propose", m{
			"id": id, "action": m{"type": "deploy", "service": "checkout-api", "version": "4.2.0"},
			"voters": []string{"planner-agent", "reviewer-agent", "ops-agent"}, "quorum": m{"type": "fraction", "value": value},
		})
		vote(b, "planner-agent", id, agora.Yes)
		if r := evaluate(b, "planner-agent", id); r.Resolution != nil || r.Status != "open" {
			t.Fatalf("one of three: %+v", r)
		}
		if r := vote(b, "reviewer-agent", id, agora.Yes); r.Resolution != nil {
			t.Fatalf("a vote resolved: %+v", r)
		}
		r := evaluate(b, "ops-agent", id)
		if r.Status != "approved" || r.Tally != (agora.Tally{Yes: 2, Cast: 2, Registered: 3}) || r.Resolution.ResolvedAt != int64(b.Now) {
			t.Fatalf("%s: %+v", name, r)
		}
	}
}

func TestTheReadmesSecondExampleIsVetoed(t *testing.T) {
	b := machinetest.New(t, agora.New())
	b.Add(machine.Agent, "cleanup-agent", "ops-agent", "safety-agent")
	id := "delete-prod-bucket"
	b.Must("cleanup-agent", "agora.propose", m{
		"id": id, "action": m{"type": "delete", "resource": "s3://prod-user-uploads"},
		"voters": []string{"cleanup-agent", "ops-agent"}, "vetoers": []string{"safety-agent"}, "quorum": m{"type": "count", "value": 2},
	})
	vote(b, "cleanup-agent", id, agora.Yes)
	vote(b, "ops-agent", id, agora.Yes)
	b.Must("safety-agent", "agora.veto", m{"round_id": id, "reason": "no confirmed backup exists for this bucket"})
	r := evaluate(b, "safety-agent", id)
	if r.Status != "vetoed" || r.Resolution.Veto.AgentID != "safety-agent" || r.Tally.Yes != 2 {
		t.Fatalf("%+v", r)
	}
	v := see(b, id)
	want := agora.Dissent{AgentID: "safety-agent", Kind: "veto", Reason: "no confirmed backup exists for this bucket"}
	if v.Status != "vetoed" || len(v.Resolution.Dissent) != 1 || v.Resolution.Dissent[0] != want {
		t.Fatalf("%+v", v.Resolution)
	}
}

func TestAProposalIsRefused(t *testing.T) {
	b := newBench(t)
	many := make([]string, agora.MaxVoters+1)
	for i := range many {
		many[i] = fmt.Sprint("v", i)
	}
	b.World.Principals["gone"] = machine.Principal{ID: "gone", Kind: machine.Agent}
	for code, bodies := range map[string][]m{
		agora.CodeInvalidProposal: {
			{"voters": []string{}}, {"voters": []string{"a", "a"}}, {"voters": []any{"a", m{"id": "a", "weight": 2}}}, {"voters": []string{"nobody"}}, {"voters": []string{"node"}},
			{"voters": []string{"gone"}}, {"vetoers": []string{"nobody"}}, {"vetoers": []string{"s", "s"}}, {"vetoers": []string{""}}, {"voters": many}, {"vetoers": many[:101]},
			{"quorum": m{"type": "count", "value": 4}}, {"quorum": m{"type": "count", "value": 0}}, {"quorum": m{"type": "count", "value": 1.5}}, {"quorum": m{"type": "count", "value": "2"}},
			{"quorum": m{"type": "count", "value": -1}}, {"quorum": m{"type": "fraction", "value": 1.0000001}}, {"quorum": m{"type": "fraction", "value": 0}}, {"quorum": m{"type": "fraction", "value": "4/3"}},
			{"quorum": m{"type": "fraction", "value": "2 / 3"}}, {"quorum": m{"type": "fraction", "value": "2"}}, {"quorum": m{"type": "fraction", "value": "0/3"}}, {"quorum": m{"type": "fraction", "value": "1/0"}},
			{"quorum": m{"type": "fraction", "value": m{"num": 1}}}, {"quorum": m{"type": "fraction", "value": m{"num": 1, "den": 2, "x": 3}}}, {"quorum": m{"type": "fraction", "value": true}},
			{"quorum": m{"type": "fraction"}}, {"quorum": m{"type": "consensus", "value": 1}}, {"quorum": 2}, {"quorum": m{"type": "count", "value": 2, "x": 1}},
		},
		machine.CodeMalformed: {
			{"action": "deploy"}, {"action": nil}, {"id": ""}, {"id": "a\x00b"}, {"id": strings.Repeat("x", 129)}, {"voters": []any{m{"id": "a", "weight": 0}}}, {"voters": []any{m{"id": "a", "weight": 1_000_001}}},
			{"voters": []any{m{"id": "a", "power": 1}}}, {"voters": []any{m{"weight": 1}}}, {"voters": []any{1}}, {"voters": []any{""}}, {"voters": []any{nil}}, {"quorum": nil}, {"extra": 1}, {"deadline_ms": nil},
			{"deadline_ms": int64(b.Now) + 5, "deadline_in_ms": 5}, {"auto_evaluate": 1},
		},
		machine.CodeOutOfRange: {{"deadline_ms": int64(b.Now)}, {"deadline_ms": 1}, {"deadline_ms": 0}, {"deadline_in_ms": 0}, {"deadline_in_ms": 1.5}, {"deadline_in_ms": 315360000001}},
	} {
		for _, extra := range bodies {
			b.Refused(code, "p", "agora.propose", with(extra))
		}
	}
	propose(b, m{"id": "taken"})
	b.Refused(machine.CodeAlreadyExists, "a", "agora.propose", with(m{"id": "taken"}))
	b.Refused(machine.CodeUnknownKind, "a", "agora.withdraw", m{})
}

func TestVotesAndVetoesAreRefused(t *testing.T) {
	b := newBench(t)
	id := propose(b, nil).RoundID
	for code, bodies := range map[string][]m{
		agora.CodeInvalidChoice: {{"choice": "maybe"}, {"choice": "Yes"}, {"choice": ""}, {}},
		machine.CodeMalformed:   {{"choice": "no", "reason": 1}, {"choice": "no", "reason": nil}, {"choice": "no", "reason": strings.Repeat("x", 1025)}, {"choice": "no", "weight": 2}, {"choice": 1}},
	} {
		for _, body := range bodies {
			body["round_id"] = id
			b.Refused(code, "a", "agora.vote", body)
		}
	}
	b.Refused(machine.CodeMalformed, "a", "agora.vote", m{"choice": "yes"})
	b.Refused(machine.CodeNotFound, "a", "agora.vote", m{"round_id": "other", "choice": "yes"})
	b.Refused(machine.CodeNotFound, "s", "agora.veto", m{"round_id": "other", "reason": "r"})
	b.Refused(machine.CodeNotFound, "s", "agora.evaluate", m{"round_id": "other"})
	b.Refused(machine.CodeMalformed, "s", "agora.evaluate", m{})
	b.Refused(machine.CodeMalformed, "s", "agora.veto", m{"round_id": id, "reason": nil})
	b.Refused(machine.CodeMalformed, "s", "agora.veto", m{"round_id": id, "reason": strings.Repeat("x", 1025)})
	for _, who := range []string{"p", "s", "outsider", "A"} {
		b.Refused(agora.CodeNotAVoter, who, "agora.vote", m{"round_id": id, "choice": "yes"})
	}
	for _, who := range []string{"p", "a"} {
		b.Refused(agora.CodeNotAVetoer, who, "agora.veto", m{"round_id": id, "reason": "r"})
	}
	for _, reason := range []string{"", " ", "\t\n", "\u00a0\u2003", "\u200b\u200d\u2060", "\u3164", "\u2800", "\ufe0f", "\u0301"} {
		b.Refused(agora.CodeReasonRequired, "s", "agora.veto", m{"round_id": id, "reason": reason})
	}
	b.Refused(agora.CodeReasonRequired, "s", "agora.veto", m{"round_id": id})
	b.Refused(machine.CodeNotAuthorized, "outsider", "agora.evaluate", m{"round_id": id})
	vote(b, "a", id, agora.Yes)
	vote(b, "b", id, agora.No)
	if r := evaluate(b, "op", id); r.Status != "rejected" {
		t.Fatalf("a tie: %+v", r)
	}
	b.Refused(agora.CodeResolved, "c", "agora.vote", m{"round_id": id, "choice": "yes"})
	b.Refused(agora.CodeResolved, "s", "agora.veto", m{"round_id": id, "reason": "late"})
}

func TestAResolutionStands(t *testing.T) {
	b := newBench(t)
	id := propose(b, m{"deadline_in_ms": 1000}).RoundID
	vote(b, "a", id, agora.Yes)
	vote(b, "b", id, agora.Abstain)
	first := evaluate(b, "p", id)
	events := len(b.Events)
	b.Advance(10_000)
	for _, who := range []string{"p", "a", "s", "op"} {
		if again := evaluate(b, who, id); again.Status != "approved" || again.Resolution.ResolvedAt != first.Resolution.ResolvedAt {
			t.Fatalf("%+v, then %+v", first, again)
		}
	}
	if len(b.Events) != events {
		t.Fatalf("events after the resolution: %+v", b.Events[events:])
	}
}

func TestTheDeadlineResolvesByItself(t *testing.T) {
	b := newBench(t)
	id := propose(b, m{"deadline_in_ms": 1000}).RoundID
	vetoed := propose(b, m{"deadline_ms": int64(b.Now) + 1000}).RoundID
	vote(b, "a", id, agora.Yes)
	vote(b, "b", id, agora.Yes) // quorum, but nobody evaluates
	b.Must("s", "agora.veto", m{"round_id": vetoed, "reason": "unsafe"})
	if next, ok, _ := b.Machine.Next(b.Tx); !ok || next != b.Now+1000 {
		t.Fatalf("next tick at %d", next)
	}
	b.Advance(999)
	if v := see(b, id); v.Status != "open" {
		t.Fatalf("too early: %+v", v)
	}
	b.Now++
	b.Refused(agora.CodeResolved, "c", "agora.vote", m{"round_id": id, "choice": "no"})
	if v := see(b, id); v.Status != "timed_out" || v.Resolution.Tally != (agora.Tally{Yes: 2, Cast: 2, Registered: 3}) || v.Resolution.ResolvedAt != int64(b.Now) {
		t.Fatalf("%+v", v.Resolution)
	}
	if v := see(b, vetoed); v.Status != "vetoed" {
		t.Fatalf("a veto comes before the timeout: %+v", v.Resolution)
	}
	if _, ok, _ := b.Machine.Next(b.Tx); ok {
		t.Fatal("something is still scheduled")
	}
}

func TestARoundMayEvaluateItself(t *testing.T) {
	b := newBench(t)
	id := propose(b, m{"auto_evaluate": true}).RoundID
	vote(b, "a", id, agora.Yes)
	if r := vote(b, "b", id, agora.Yes); r.Status != "approved" || r.Resolution == nil {
		t.Fatalf("%+v", r)
	}
	id = propose(b, m{"auto_evaluate": true}).RoundID
	var r agora.Result
	decode(t, b.Must("s", "agora.veto", m{"round_id": id, "reason": "no"}), &r)
	if r.Status != "vetoed" {
		t.Fatalf("%+v", r)
	}
}

func TestTheLastVoteOfAnAgentAndTheFirstVetoCount(t *testing.T) {
	b := newBench(t)
	id := propose(b, nil).RoundID
	vote(b, "a", id, agora.Yes)
	if r := vote(b, "a", id, agora.No); r.Tally != (agora.Tally{No: 1, Cast: 1, Registered: 3}) {
		t.Fatalf("%+v", r.Tally)
	}
	b.Must("u", "agora.veto", m{"round_id": id, "reason": "first"})
	b.Must("s", "agora.veto", m{"round_id": id, "reason": "second"})
	events := len(b.Events)
	b.Must("u", "agora.veto", m{"round_id": id, "reason": "again"})
	if len(b.Events) != events {
		t.Fatal("a repeated veto is an event")
	}
	evaluate(b, "u", id)
	v := see(b, id)
	if v.Resolution.Veto.Reason != "first" || !slices.Equal(v.Vetoes, []agora.Veto{{AgentID: "u", Reason: "first"}, {AgentID: "s", Reason: "second"}}) {
		t.Fatalf("%+v, %+v", v.Resolution.Veto, v.Vetoes)
	}
}

func TestWeightsDecideButDoNotMakeTheQuorum(t *testing.T) {
	b := newBench(t)
	id := propose(b, m{"voters": []any{m{"id": "a", "weight": 5}, "b", m{"id": "c"}}}).RoundID
	vote(b, "a", id, agora.No)
	if r := evaluate(b, "p", id); r.Resolution != nil {
		t.Fatalf("one heavy voter made the quorum: %+v", r)
	}
	vote(b, "b", id, agora.Yes)
	vote(b, "c", id, agora.Yes)
	r := evaluate(b, "p", id)
	if r.Status != "rejected" || *r.Tally.Weighted != (agora.Weights{Yes: 2, No: 5}) || r.Tally.Yes != 2 || r.Tally.No != 1 {
		t.Fatalf("%+v", r)
	}
}

func TestTheDissentLogIsReadByRoundAndByAgent(t *testing.T) {
	b := newBench(t)
	one := propose(b, m{"id": "one"}).RoundID
	b.Must("a", "agora.vote", m{"round_id": one, "choice": "yes"})
	b.Must("b", "agora.vote", m{"round_id": one, "choice": "abstain", "reason": "not my field"})
	b.Must("c", "agora.vote", m{"round_id": one, "choice": "no", "reason": "too risky"})
	b.Must("s", "agora.veto", m{"round_id": one, "reason": "no backup"})
	evaluate(b, "p", one)
	b.Advance(5)
	two := propose(b, m{"id": "two", "deadline_in_ms": 5}).RoundID
	vote(b, "c", two, agora.No)
	b.Advance(5)
	read := func(params m) (out []string) {
		for {
			var page agora.DissentPage
			if err := b.Query("agora.dissents", "outsider", params, &page); err != nil {
				t.Fatal(err)
			}
			for _, d := range page.Dissents {
				out = append(out, fmt.Sprintf("%s %s %s %s %q", d.RoundID, d.Outcome, d.AgentID, d.Kind, d.Reason))
			}
			if page.Next == "" {
				return out
			}
			params["after"] = page.Next
		}
	}
	for _, limit := range []int{1, 2, 50} {
		got := read(m{"round_id": one, "limit": limit})
		want := []string{`one vetoed s veto "no backup"`, `one vetoed b abstain "not my field"`, `one vetoed c no "too risky"`}
		if !slices.Equal(got, want) {
			t.Errorf("by round: %v", got)
		}
		got = read(m{"agent_id": "c", "limit": limit})
		if want = []string{`one vetoed c no "too risky"`, `two timed_out c no ""`}; !slices.Equal(got, want) {
			t.Errorf("by agent: %v", got)
		}
	}
	if got := read(m{"agent_id": "a"}); got != nil {
		t.Errorf("who went along: %v", got)
	}
	for _, bad := range []m{{}, {"round_id": "one", "agent_id": "a"}, {"round_id": "one", "after": "zz"}, {"round_id": "a\x00b"}} {
		if err := b.Query("agora.dissents", "a", bad, nil); refusal(err) != machine.CodeMalformed {
			t.Errorf("%v: %v", bad, err)
		}
	}
	if err := b.Query("agora.dissents", "a", m{"round_id": "one", "limit": 501}, nil); refusal(err) != machine.CodeOutOfRange {
		t.Errorf("a large page: %v", err)
	}
}

func refusal(err error) string {
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return fmt.Sprint(err)
}

func TestAsksAreForThoseWhoHaveNotActed(t *testing.T) {
	b := newBench(t)
	never := propose(b, m{"id": "never"}).RoundID
	soon := propose(b, m{"id": "soon", "deadline_in_ms": 1000, "vetoers": []string{"a"}}).RoundID
	deadline := int64(b.Now) + 1000
	asks := func(who string) (out []string) {
		got, err := b.Machine.Asks(b.Tx, b.Ctx(), who)
		if err != nil {
			t.Fatal(err)
		}
		for _, a := range got {
			if _, err := canon.Marshal(a); err != nil || !json.Valid(a.Schema) || a.Ask != "vote" {
				t.Fatalf("%+v: %v", a, err)
			}
			out = append(out, fmt.Sprintf("%s %s %d", a.Kind, a.Subject, a.Deadline))
		}
		return out
	}
	want := func(who string, lines ...string) {
		t.Helper()
		if got := asks(who); !slices.Equal(got, lines) {
			t.Fatalf("%s is asked %v, want %v", who, got, lines)
		}
	}
	voteSoon, vetoSoon := fmt.Sprint("agora.vote soon ", deadline), fmt.Sprint("agora.veto soon ", deadline)
	want("a", voteSoon, vetoSoon, "agora.vote never 0")
	want("s", "agora.veto never 0")
	want("p")
	vote(b, "a", soon, agora.Yes)
	want("a", vetoSoon, "agora.vote never 0")
	b.Must("a", "agora.veto", m{"round_id": soon, "reason": "r"})
	want("a", "agora.vote never 0")
	vote(b, "a", never, agora.Yes)
	vote(b, "b", never, agora.Yes)
	want("c", voteSoon, "agora.vote never 0")
	evaluate(b, "a", never)
	want("c", voteSoon)
	want("s")
	b.Advance(1000)
	want("c")
}

func TestListsPageByIDAndFilter(t *testing.T) {
	b := newBench(t)
	for _, id := range []string{"r1", "r10", "r2", "r3"} {
		propose(b, m{"id": id})
	}
	vote(b, "a", "r2", agora.No)
	vote(b, "b", "r2", agora.No)
	evaluate(b, "a", "r2")
	list := func(params m) (ids []string) {
		for {
			var page agora.Page
			if err := b.Query("agora.list", "a", params, &page); err != nil {
				t.Fatal(err)
			}
			for _, row := range page.Rounds {
				ids = append(ids, row.RoundID+" "+row.Status)
			}
			if page.Next == "" {
				return ids
			}
			params["after"] = page.Next
		}
	}
	if got := list(m{"limit": 1}); !slices.Equal(got, []string{"r1 open", "r10 open", "r2 rejected", "r3 open"}) {
		t.Errorf("all: %v", got)
	}
	if got := list(m{"limit": 2, "status": "open"}); !slices.Equal(got, []string{"r1 open", "r10 open", "r3 open"}) {
		t.Errorf("open: %v", got)
	}
	if got := list(m{"status": "rejected"}); !slices.Equal(got, []string{"r2 rejected"}) {
		t.Errorf("rejected: %v", got)
	}
	for want, params := range map[string]m{machine.CodeOutOfRange: {"limit": 0}, machine.CodeMalformed: {"status": "pending"}} {
		if err := b.Query("agora.list", "a", params, nil); refusal(err) != want {
			t.Errorf("%v: %v, want %s", params, err, want)
		}
	}
	if err := b.Query("agora.get", "a", m{"round_id": "r4"}, nil); refusal(err) != machine.CodeNotFound {
		t.Errorf("an unknown round: %v", err)
	}
}

func TestEventsSayWhoDidWhat(t *testing.T) {
	b := newBench(t)
	id := propose(b, nil).RoundID
	b.Must("a", "agora.vote", m{"round_id": id, "choice": "no", "reason": "why not"})
	b.Must("s", "agora.veto", m{"round_id": id, "reason": "unsafe"})
	evaluate(b, "p", id)
	want := []string{"agora.proposed", "agora.voted", "agora.vetoed", "agora.resolved"}
	if len(b.Events) != len(want) {
		t.Fatalf("%d events", len(b.Events))
	}
	for i, e := range b.Events {
		text, err := canon.Marshal(e.Data)
		if err != nil || e.Type != want[i] || e.Subject != id {
			t.Fatalf("event %d: %s about %s (%v)", i, e.Type, e.Subject, err)
		}
		var data map[string]any
		decode(t, text, &data)
		if data["action_id"] == nil || data["actor"] == nil {
			t.Errorf("%s: %s", e.Type, text)
		}
	}
	if to := b.Events[3].To; !slices.Equal(to, []string{"a", "b", "c", "p", "s", "u"}) {
		t.Errorf("the resolution goes to %v", to)
	}
}
