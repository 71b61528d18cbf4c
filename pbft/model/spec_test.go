package model

import (
	"strings"
	"testing"
)

// seats are the relevant places of a Byzantine member among views: the primary
// of each view, and the last member, who is primary of none.
func seats(views int) (out []int) {
	for b := range views {
		out = append(out, b)
	}
	if views < N {
		out = append(out, N-1)
	}
	return out
}

func TestWithOneByzantineMemberEveryStateIsSafe(t *testing.T) {
	for views, want := range map[int][]int{2: {8356, 8428, 2932}, 3: {310488, 320772, 274914, 109510}} {
		for i, b := range seats(views) {
			m := &Model{PBFT(views), []int{b}}
			r := m.Explore(m.Unsafe, views == 3, nil)
			if r.Violation != "" {
				t.Fatalf("byzantine %d: %s", b, r.Violation)
			}
			t.Logf("%d views, byzantine %d: %d states, %d transitions", views, b, len(r.States), r.Transitions)
			if len(r.States) != want[i] {
				t.Errorf("%d views, byzantine %d: %d states, doc.go says %d", views, b, len(r.States), want[i])
			}
		}
	}
}

// TestExplorationReachesWhatItShould guards against rules that allow too little.
func TestExplorationReachesWhatItShould(t *testing.T) {
	m := &Model{PBFT(3), []int{0}}
	found := map[string]bool{}
	see := func(what string, is bool) { found[what] = found[what] || is }
	m.Explore(m.Unsafe, true, func(s *State, _ []Step) {
		h := m.Castable(s)
		for _, x := range AllValues {
			see("decided in view 0", m.Certified(h, 0, x))
			see("decided in view 1", m.Certified(h, 1, x))
			see("decided in view 2", m.Certified(h, 2, x))
			see("decided in views 0 and 2", m.Certified(h, 0, x) && m.Certified(h, 2, x))
			see("prepared in view 0, then another value in view 1", m.Prepared(h, 0, x) && m.Prepared(h, 1, x.other()))
			see("committed to another value than accepted", s[3].Accepted[0] == x && s[3].Committed[0] == x.other())
			see("followed without a view change", s[3].Accepted[1] == x && !s[3].Changed[1])
		}
	})
	for _, what := range []string{
		"decided in view 0", "decided in view 1", "decided in view 2", "decided in views 0 and 2",
		"prepared in view 0, then another value in view 1", "committed to another value than accepted", "followed without a view change",
	} {
		if !found[what] {
			t.Errorf("never: %s", what)
		}
	}
}

// TestTwoByzantineMembersBreakAgreement is a control: the model can see a fork.
func TestTwoByzantineMembersBreakAgreement(t *testing.T) {
	for a := range N {
		for b := range a {
			m := &Model{PBFT(2), []int{b, a}}
			r := m.Explore(m.Disagreement, false, nil)
			if r.Violation == "" {
				t.Errorf("byzantine %d and %d: no disagreement in %d states", b, a, len(r.States))
			}
			t.Logf("byzantine %d and %d:\n%s", b, a, r.Trace(m))
		}
	}
}

func TestQuorumsOfTwoBreakAgreement(t *testing.T) {
	for _, b := range seats(2) {
		p := PBFT(2)
		p.Quorum = 2
		m := &Model{p, []int{b}}
		r := m.Explore(m.Disagreement, false, nil)
		if r.Violation == "" {
			t.Errorf("byzantine %d: no disagreement in %d states", b, len(r.States))
		}
		t.Logf("byzantine %d:\n%s", b, r.Trace(m))
	}
}

func TestATraceTellsHowAStateIsReached(t *testing.T) {
	m := &Model{PBFT(2), []int{0, 1}}
	r := m.Explore(m.Disagreement, false, nil)
	want := `2: prepare(0, A)
2: commit(0, A)
3: prepare(0, B)
3: commit(0, B)
A can be certified in view 0 and B in view 0`
	if got := r.Trace(m); strings.TrimSpace(got) != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestCodesAreInverse(t *testing.T) {
	m := &Model{PBFT(3), []int{3}}
	n := 0
	m.Explore(m.Unsafe, true, func(s *State, _ []Step) {
		n++
		if n%100 != 0 {
			return
		}
		if StateOf(s.Code()) != *s || s.mirror().mirror() != *s {
			t.Fatalf("%v is not what its code says", *s)
		}
		h := m.Castable(s)
		for me := range N {
			back := unpack(me, h.pack(me))
			for v := range MaxViews {
				back.Accepted[v][me], back.Committed[v][me], back.Changed[v][me] = h.Accepted[v][me], h.Committed[v][me], h.Changed[v][me]
			}
			if *back != *h {
				t.Fatalf("%d hears %+v, unpacked %+v", me, *h, *back)
			}
		}
	})
}
