package deliberation_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
)

func TestTheGapIsComparedWithTauAsIntegers(t *testing.T) {
	for _, c := range []struct {
		name          string
		first, second float64
		tau           any
		want          deliberation.Phase
		why           deliberation.Why
	}{
		{"a gap of exactly tau is not above it", 0.65, 0.5, 0.15, deliberation.PhasePrepare, "gap_within_tau"},
		{"one billionth more is", 0.650000001, 0.5, 0.15, deliberation.PhaseFast, "gap_above_tau"},
		{"equal strengths at tau 0", 0.5, 0.5, 0, deliberation.PhasePrepare, "gap_within_tau"},
		{"a larger tau", 0.9, 0.3, 0.6, deliberation.PhasePrepare, "gap_within_tau"},
	} {
		t.Run(c.name, func(t *testing.T) {
			r := newRig(t)
			round := r.open(obj{"tau": c.tau})
			r.position("ann", round, "yes", c.first)
			r.position("bob", round, "no", c.second)
			r.done(round, agents...)
			st := r.view(round).State
			if st.Phase != c.want || st.Why != c.why {
				t.Fatalf("%s because of %s", st.Phase, st.Why)
			}
		})
	}
}

func TestOnePositionIsClearAndNoneIsNoVerdict(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	winner := r.position("ann", round, "yes", 0.1)
	r.done(round, agents...)
	st := r.view(round).State
	if st.Phase != deliberation.PhaseFast || st.Why != "single_survivor" || st.Outcome.Winner != winner || st.Outcome.GapNano != nil {
		t.Fatalf("state %+v", st)
	}
	r = newRig(t)
	round = r.open(nil)
	v := r.done(round, agents...).Verdict
	if v == nil || v.Reason != "no_positions" || v.Status != deliberation.PhaseNoVerdict || len(v.EvidenceRoot) != 64 || v.Count != nil {
		t.Fatalf("verdict %+v", v)
	}
}

func TestAnUnstableComponentTakesTheConflictPath(t *testing.T) {
	r := newRig(t)
	round := r.open(obj{"gamma_plus": 0.99})
	top := r.position("ann", round, "yes", 1)
	r.position("bob", round, "no", 0.1)
	sup := func(actor, target string) string {
		return r.do(actor, "support", obj{"round": round, "target": target, "evidence": evidence(1, 0)}).Argument
	}
	c, d := sup("cid", top), sup("dan", top)
	// Three arguments that support each other: the printed rule has no finite answer.
	for _, e := range [][3]string{{"cid", c, d}, {"dan", d, c}, {"ann", top, c}, {"ann", top, d}} {
		r.do(e[0], "relate", obj{"round": round, "from": e[1], "to": e[2], "relation": "support"})
	}
	r.done(round, agents...)
	st := r.view(round).State
	if st.Phase != deliberation.PhasePrepare || st.Why != "unstable_component" || st.Outcome.Status != "averaged" {
		t.Fatalf("state %+v outcome %+v", st, st.Outcome)
	}
}

func TestTheModeratorIsTheHighestRatedAgentWithoutAPosition(t *testing.T) {
	people := func(ratings map[string]int64) *deliberation.Round {
		r := &deliberation.Round{ID: "01ARZ3NDEKTSV4RRFFQ69G5FAV"}
		for _, id := range agents {
			r.Participants = append(r.Participants, deliberation.Participant{ID: id, DomainMicro: ratings[id]})
		}
		return r
	}
	has := func(ids ...string) func(string) bool {
		return func(id string) bool { return slices.Contains(ids, id) }
	}
	r := people(map[string]int64{"ann": 1300, "bob": 1500, "cid": 1500, "dan": 1200})
	if got := r.Moderator(has()); got != "bob" {
		t.Errorf("of equals the lowest id moderates, got %s", got)
	}
	if got := r.Moderator(has("bob")); got != "cid" {
		t.Errorf("got %s", got)
	}
	if got := r.Moderator(has("bob", "cid")); got != "ann" {
		t.Errorf("got %s", got)
	}
	order := slices.Clone(agents)
	slices.SortFunc(order, func(a, b string) int {
		x, y := sha256.Sum256([]byte(r.ID+a)), sha256.Sum256([]byte(r.ID+b))
		return bytes.Compare(x[:], y[:])
	})
	if got := r.Rotation(); !slices.Equal(got, order) {
		t.Errorf("rotation %v, want %v", got, order)
	}
	if got := r.Moderator(has(agents...)); got != order[0] {
		t.Errorf("with a position each the rotation begins with %s, got %s", order[0], got)
	}
}

func TestTheModeratorResolvesOnceEnoughHaveActed(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	r.refused("too_early", "ann", "resolve", obj{"round": round}) // ann moderates: all equal, lowest id
	r.position("ann", round, "yes", 0.9)
	if m := r.view(round).Moderator; m != "bob" {
		t.Fatalf("moderator %s", m)
	}
	r.refused("not_moderator", "cid", "resolve", obj{"round": round})
	r.refused("too_early", "bob", "resolve", obj{"round": round}) // ann and bob are two of three
	r.position("dan", round, "no", 0.2)
	a := r.do("bob", "resolve", obj{"round": round})
	if a.Phase != deliberation.PhaseFast || r.view(round).State.ClosedBy != "bob" {
		t.Fatalf("answer %+v", a)
	}
	r.refused("wrong_phase", "bob", "resolve", obj{"round": round})
}

func TestTheNodeActsInPlaceOfASilentModerator(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	r.position("ann", round, "yes", 0.9)
	r.position("bob", round, "no", 0.2)
	r.Advance(999)
	r.phase(round, deliberation.PhaseCollecting)
	r.Advance(1)
	st := r.view(round).State
	if st.Phase != deliberation.PhaseFast || st.ClosedBy != "window" || st.Deadline != r.Now+1000 {
		t.Fatalf("state %+v", st)
	}
}

func TestNextIsTheEarliestDeadlineAndNothingMore(t *testing.T) {
	r := newRig(t)
	next := func() (machine.Stamp, bool) {
		at, ok, err := r.Machine.Next(r.Tx)
		if err != nil {
			t.Fatal(err)
		}
		return at, ok
	}
	if _, ok := next(); ok {
		t.Fatal("an empty machine has something due")
	}
	slow := r.open(obj{"windows": obj{"collect_ms": 5000}})
	fast := r.open(nil)
	if at, _ := next(); at != r.Now+1000 {
		t.Fatalf("next %d", at)
	}
	if v := r.done(fast, agents...).Verdict; v == nil {
		t.Fatal("no verdict")
	}
	if at, _ := next(); at != r.Now+5000 {
		t.Fatalf("next %d", at)
	}
	r.Advance(5000)
	if _, ok := next(); ok {
		t.Fatal("something is due after all has ended")
	}
	r.phase(slow, deliberation.PhaseNoVerdict)
}

func TestManyRoundsFallDueTogether(t *testing.T) {
	r := newRig(t)
	var rounds []string
	for range 5 {
		round := r.open(nil)
		r.position("ann", round, "yes", 0.9)
		rounds = append(rounds, round)
	}
	r.Advance(100_000) // the deadlines passed long ago; the next windows begin now
	for _, round := range rounds {
		if st := r.view(round).State; st.Phase != deliberation.PhaseFast || st.Deadline != r.Now+1000 {
			t.Fatalf("state %+v", st)
		}
	}
}

func TestTheElectorateIsFrozenAtOpening(t *testing.T) {
	r := newRig(t)
	r.Grant("hal", "risk", "1", "1")
	r.Grant("op", "risk", "1", "1") // operators and nodes have no voice
	round := r.open(nil)
	r.Grant("eve", "risk", "1", "1")
	r.refused("not_a_participant", "eve", "position", obj{"round": round, "answer": 1})
	want := []string{"ann", "bob", "cid", "dan", "hal"}
	var opened deliberation.Opened
	raw, err := json.Marshal(r.Events[0].Data)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &opened); err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(opened.Participants, want) {
		t.Fatalf("participants %v", opened.Participants)
	}
}

func TestARoundWithoutADomainNamesItsParticipants(t *testing.T) {
	r := newRig(t)
	round := r.open(obj{"domain": nil, "participants": []string{"eve", "ann", "zoe"}})
	if got := r.view(round).Round; got.Domain != "" || strings.Join(got.IDs(), " ") != "ann eve zoe" {
		t.Fatalf("round %+v", got)
	}
}
