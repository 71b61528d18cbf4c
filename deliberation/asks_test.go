package deliberation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
)

// asked lists what a principal is asked as "ask kind".
func (r *rig) asked(principal string) []string {
	r.t.Helper()
	asks, err := r.Machine.Asks(r.Tx, r.Ctx(), principal)
	if err != nil {
		r.t.Fatal(err)
	}
	var out []string
	for _, a := range asks {
		if !json.Valid(a.Schema) || a.Title != "Lend?" {
			r.t.Fatalf("ask %s %q", a.Ask, a.Title)
		}
		out = append(out, a.Ask+" "+strings.TrimPrefix(a.Kind, "deliberatic."))
	}
	return out
}

func (r *rig) asks(principal string, want ...string) {
	r.t.Helper()
	if got := r.asked(principal); !slices.Equal(got, want) {
		r.t.Fatalf("%s is asked %q, want %q", principal, got, want)
	}
}

func TestEverybodyIsAskedWhatTheirPhaseWants(t *testing.T) {
	r := newRig(t)
	r.asks("ann")
	round := r.open(nil)
	r.asks("ann", "position position")
	r.asks("eve")
	r.position("ann", round, "yes", 0.8)
	r.asks("ann", "argue done")
	r.position("bob", round, "no", 0.7)
	r.done(round, "bob")
	r.asks("bob")
	r.asks("cid", "position position", "resolve resolve") // the moderator, once three have acted
	r.asks("dan", "position position")
	r.done(round, "ann", "cid", "dan")
	r.phase(round, deliberation.PhasePrepare)
	r.asks("dan", "evidence evidence")
	r.done(round, "dan")
	r.asks("dan")
	r.done(round, "ann", "bob", "cid")
	r.asks("ann") // frozen: only the voters act
	r.certify(round)
	r.asks("ann")

	r = newRig(t)
	round, winner, _ := r.clear(nil)
	r.asks("ann", "confirm confirm")
	r.confirm("ann", round, winner, true)
	r.asks("ann")
	asks, err := r.Machine.Asks(r.Tx, r.Ctx(), "bob")
	if err != nil {
		t.Fatal(err)
	}
	c := asks[0].Context.(*deliberation.AskContext)
	if c.Winner != winner || len(c.Positions) != 2 || *c.GapNano != 600_000_000 || len(c.OutcomeHash) != 64 || asks[0].Deadline != r.Now+1000 || asks[0].Subject != round {
		t.Fatalf("deadline %d context %+v", asks[0].Deadline, c)
	}
}

func TestASupermajorityAsksForConfirmationsOfTheFrozenOutcome(t *testing.T) {
	r := newRig(t)
	round, winner, _ := r.clear(obj{"rule": "supermajority"})
	r.done(round, agents...)
	r.asks("ann", "confirm confirm")
	r.confirm("ann", round, winner, true)
	r.asks("ann")
	r.certify(round)
	r.asks("bob", "confirm confirm")
}

func TestReviewersAndOperatorsAreAskedToReview(t *testing.T) {
	r := newRig(t)
	round, winner, _ := r.clear(obj{"on_rejected": "human", "reviewers": []string{"zoe"}})
	r.asks("zoe")
	r.asks("op")
	for _, id := range []string{"bob", "cid", "dan"} {
		r.confirm(id, round, winner, false)
	}
	r.asks("zoe", "review review")
	r.asks("op", "review review")
	r.asks("ann")
	r.do("zoe", "review", obj{"round": round})
	r.asks("zoe")
	r.asks("op")
}

func TestAsksAreOrderedByDeadlineThenSubject(t *testing.T) {
	r := newRig(t)
	late := r.open(obj{"windows": obj{"collect_ms": 9000}})
	soon := r.open(nil)
	also := r.open(nil)
	asks, err := r.Machine.Asks(r.Tx, r.Ctx(), "ann")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, a := range asks {
		got = append(got, a.Subject)
	}
	want := []string{min(soon, also), max(soon, also), late}
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
}

func TestTheViewNamesWhoHasNotActed(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	r.position("ann", round, "yes", 0.9)
	r.done(round, "ann", "cid")
	if v := r.view(round); fmt.Sprint(v.Waiting) != "[bob dan]" || v.Moderator != "bob" || v.Verdict != nil {
		t.Fatalf("waiting %v moderator %s", v.Waiting, v.Moderator)
	}
	r.done(round, "bob")
	a := r.done(round, "dan")
	if a.Phase != deliberation.PhaseFast {
		t.Fatal(a.Phase)
	}
	if v := r.view(round); fmt.Sprint(v.Waiting) != "[ann bob cid dan]" {
		t.Fatalf("waiting %v", v.Waiting)
	}
}

func TestRoundsAreListedInPages(t *testing.T) {
	r := newRig(t)
	var want []string
	for range 5 {
		r.Advance(1)
		want = append(want, r.open(nil))
	}
	r.done(want[2], agents...)
	list := func(p obj) deliberation.List {
		t.Helper()
		var l deliberation.List
		if err := r.Query("deliberatic.list", "zoe", p, &l); err != nil {
			t.Fatal(err)
		}
		return l
	}
	var got []string
	for after := ""; ; {
		p := obj{"limit": 2}
		if after != "" {
			p["after"] = after
		}
		l := list(p)
		for _, x := range l.Rounds {
			got = append(got, x.Round)
		}
		if after = l.Next; after == "" {
			break
		}
	}
	if !slices.Equal(got, want) {
		t.Fatalf("%v, want %v", got, want)
	}
	if l := list(obj{"phase": "no_verdict"}); len(l.Rounds) != 1 || l.Rounds[0].Round != want[2] {
		t.Fatalf("%+v", l)
	}
	if l := list(obj{"domain": "law"}); len(l.Rounds) != 0 {
		t.Fatalf("%+v", l)
	}
	for _, p := range []obj{{"limit": 1001}, {"limit": -1}, {"x": 1}} {
		if err := r.Query("deliberatic.list", "zoe", p, nil); err == nil {
			t.Errorf("%v is accepted", p)
		}
	}
}
