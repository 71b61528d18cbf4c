package model

import "testing"

func TestCounts(t *testing.T) {
	for b := range 3 {
		m := &Model{PBFT(2), []int{b}}
		r := m.Explore(false, nil)
		t.Log(b, len(r.States), r.Transitions, r.Violation)
	}
	m := &Model{PBFT(2), []int{0, 2}}
	r := m.Explore(false, nil)
	t.Log(len(r.States), r.Trace(m))
	p := PBFT(2)
	p.Quorum = 2
	m = &Model{p, []int{0}}
	r = m.Explore(false, nil)
	t.Log(len(r.States), r.Trace(m))
}
