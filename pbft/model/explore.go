package model

import (
	"fmt"
	"strings"
)

// Model is the protocol with some members Byzantine.
type Model struct {
	Protocol
	Byzantine []int
}

// IsByzantine reports whether a member is.
func (m *Model) IsByzantine(member int) bool {
	for _, b := range m.Byzantine {
		if b == member {
			return true
		}
	}
	return false
}

// Step is an action of one honest member.
type Step struct {
	Member int
	Action
}

func (s Step) String() string { return fmt.Sprintf("%d: %s", s.Member, s.Action) }

// Castable is every vote that can be received in a state: all that honest
// members have signed, and all that the Byzantine ones can sign so that it is
// not refused. They sign any vote in any slot, also two. But a view change must
// carry the certificate it claims and a new view the view changes it rests on, and
// these take the votes of honest members, which nobody can forge.
func (m *Model) Castable(s *State) *Heard {
	h := &Heard{}
	for i := range N {
		if !m.IsByzantine(i) {
			h.Add(i, s[i])
		}
	}
	for v := range m.Views {
		for _, b := range m.Byzantine {
			h.Committed[v][b] = Both
			h.Accepted[v][b] = Both
		}
	}
	for v := 1; v < m.Views; v++ {
		for _, b := range m.Byzantine {
			h.Changed[v][b] = m.provable(h, v)
		}
	}
	// Last, for a certificate shows only that the primary signed its proposal,
	// not that the proposal was justified.
	for v := 1; v < m.Views; v++ {
		if m.IsByzantine(Primary(v)) {
			h.Accepted[v][Primary(v)] = m.Justified(&h.Changed[v])
		}
	}
	return h
}

// provable are the claims that a view change into a view could prove.
func (m *Model) provable(h *Heard, into int) Claims {
	out := Claims(1)
	for v := range into {
		for _, x := range AllValues {
			if m.Prepared(h, v, x) {
				out |= 1 << ClaimOf(v, x)
			}
		}
	}
	return out
}

// Next appends to out what honest members may do in a state.
func (m *Model) Next(out []Step, s *State) []Step {
	heard := m.Castable(s)
	var actions []Action
	for i := range N {
		if m.IsByzantine(i) {
			continue
		}
		actions = m.Enabled(actions[:0], i, s[i], heard)
		for _, a := range actions {
			out = append(out, Step{i, a})
		}
	}
	return out
}

// Disagreement says how two values can be decided in a state, or nothing.
func (m *Model) Disagreement(s *State) string {
	h := m.Castable(s)
	for v := range m.Views {
		for w := range m.Views {
			if m.Certified(h, v, A) && m.Certified(h, w, B) {
				return fmt.Sprintf("A can be certified in view %d and B in view %d", v, w)
			}
		}
	}
	return ""
}

// Unsafe says what is wrong with a state, or nothing. Beside a disagreement it
// finds what leads to one: two values that can be prepared in one view, and a
// value that can be prepared although another could be decided in an earlier view.
func (m *Model) Unsafe(s *State) string {
	if what := m.Disagreement(s); what != "" {
		return what
	}
	h := m.Castable(s)
	for v := range m.Views {
		if m.Prepared(h, v, A) && m.Prepared(h, v, B) {
			return fmt.Sprintf("A and B can both be prepared in view %d", v)
		}
		for _, x := range AllValues {
			for w := v + 1; w < m.Views; w++ {
				if m.Certified(h, v, x) && m.Prepared(h, w, x.other()) {
					return fmt.Sprintf("%s can be certified in view %d, yet %s can be prepared in view %d", x, v, x.other(), w)
				}
			}
		}
	}
	return ""
}

// Reached is the result of an exploration.
type Reached struct {
	States      []uint64 // codes, in the order in which they were found
	Transitions int
	Violation   string // what is wrong with the last state; empty when nothing ever is
	parent      []int32
}

// Explore finds every state that can be reached, by breadth, and checks each.
// It ends at the first in which check finds something wrong. With mirrored set, a
// state stands also for the one in which A and B have changed places: no rule
// tells them apart. visit, when set, is called with each state and all steps from it.
func (m *Model) Explore(check func(*State) string, mirrored bool, visit func(*State, []Step)) *Reached {
	r := &Reached{}
	seen := newSet()
	add := func(s *State, from int) bool {
		code := s.Code()
		if mirrored {
			other := s.mirror()
			code = min(code, other.Code())
		}
		if !seen.add(code) {
			return true
		}
		r.States, r.parent = append(r.States, code), append(r.parent, int32(from))
		r.Violation = check(s)
		return r.Violation == ""
	}
	if !add(&State{}, -1) {
		return r
	}
	var steps []Step
	for at := 0; at < len(r.States); at++ {
		s := StateOf(r.States[at])
		steps = m.Next(steps[:0], &s)
		r.Transitions += len(steps)
		if visit != nil {
			visit(&s, steps)
		}
		for _, step := range steps {
			next := s
			next[step.Member] = next[step.Member].Do(step.Action)
			if !add(&next, at) {
				return r
			}
		}
	}
	return r
}

// mirror exchanges A and B.
func (s State) mirror() State {
	for i := range s {
		for v := range MaxViews {
			s[i].Accepted[v] = s[i].Accepted[v].other()
			s[i].Committed[v] = s[i].Committed[v].other()
		}
	}
	return s
}

func (x Value) other() Value {
	if x == None {
		return None
	}
	return A + B - x
}

// Trace tells how the last state of an exploration that was not mirrored was
// reached.
func (r *Reached) Trace(m *Model) string {
	var path []State
	for at := len(r.States) - 1; at >= 0; at = int(r.parent[at]) {
		path = append(path, StateOf(r.States[at]))
	}
	var b strings.Builder
	for i := len(path) - 1; i > 0; i-- {
		for _, step := range m.Next(nil, &path[i]) {
			next := path[i]
			next[step.Member] = next[step.Member].Do(step.Action)
			if next == path[i-1] {
				fmt.Fprintln(&b, step)
			}
		}
	}
	b.WriteString(r.Violation)
	return b.String()
}

// set is a set of codes by open addressing; no code is all ones.
type set struct {
	slots []uint64
	n     int
}

func newSet() *set { return &set{slots: emptySlots(1 << 16)} }

func emptySlots(n int) []uint64 {
	s := make([]uint64, n)
	for i := range s {
		s[i] = ^uint64(0)
	}
	return s
}

// add puts a code in and reports whether it was new.
func (s *set) add(code uint64) bool {
	if 4*s.n > 3*len(s.slots) {
		old := s.slots
		s.slots, s.n = emptySlots(2*len(old)), 0
		for _, c := range old {
			if c != ^uint64(0) {
				s.add(c)
			}
		}
	}
	mask := uint64(len(s.slots) - 1)
	for at := code * 0x9e3779b97f4a7c15 >> 20 & mask; ; at = (at + 1) & mask {
		switch s.slots[at] {
		case code:
			return false
		case ^uint64(0):
			s.slots[at] = code
			s.n++
			return true
		}
	}
}
