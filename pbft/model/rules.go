package model

import "fmt"

// Protocol is what the rules depend on: how many members make a quorum, how
// many are needed to pull others into a view, and how many views there are.
type Protocol struct {
	Quorum int
	Faults int // f: a view is joined when f+1 members have reached it
	Views  int // at most MaxViews
}

// PBFT is the protocol of four members, one of whom may be Byzantine.
func PBFT(views int) Protocol { return Protocol{Quorum: 3, Faults: 1, Views: views} }

// Primary is the member that proposes in a view.
func Primary(view int) int { return view }

// Heard is a set of votes, by view and member: what one member has received,
// or all that could be received in a state. An honest member has one vote in a
// slot; a Byzantine one may be heard to say several things.
type Heard struct {
	Accepted  [MaxViews][N]Values // pre-prepares of the primary, prepares of the others
	Committed [MaxViews][N]Values
	Changed   [MaxViews][N]Claims
}

// Add hears all that an honest member has signed.
func (h *Heard) Add(who int, m Member) {
	for v := range MaxViews {
		h.Accepted[v][who] |= Only(m.Accepted[v])
		h.Committed[v][who] |= Only(m.Committed[v])
		if m.Changed[v] {
			h.Changed[v][who] |= 1 << m.Claim(v)
		}
	}
}

// count is the number of members of whom x has been heard.
func count(votes *[N]Values, x Value) int {
	n := 0
	for _, s := range votes {
		if s.Has(x) {
			n++
		}
	}
	return n
}

// Prepared reports whether a quorum accepted x in a view: a prepared
// certificate can be put together.
func (p Protocol) Prepared(h *Heard, view int, x Value) bool {
	return count(&h.Accepted[view], x) >= p.Quorum
}

// Certified reports whether a quorum committed to x in a view: x is decided for
// whoever sees it.
func (p Protocol) Certified(h *Heard, view int, x Value) bool {
	return count(&h.Committed[view], x) >= p.Quorum
}

// Justified is what the primary of a view above 0 may propose, given the view
// changes into it: the value claimed in the highest view by some quorum of
// them, or anything when a quorum claims nothing.
func (p Protocol) Justified(changes *[N]Claims) Values {
	out := Values(0)
	for c := Claim(0); c <= ClaimOf(MaxViews-1, B); c++ {
		if p.highest(changes, c) {
			if c == 0 {
				return Both
			}
			out |= Only(c.Value())
		}
	}
	return out
}

// highest reports whether c is the highest claim in some quorum of view changes.
func (p Protocol) highest(changes *[N]Claims, c Claim) bool {
	notAbove := Claims(1) // claims of the view of c and of the views below it
	if c > 0 {
		notAbove = 1<<(ClaimOf(c.View(), B)+1) - 1
	}
	claimed, n := false, 0
	for _, said := range changes {
		claimed = claimed || said.Has(c)
		if said&notAbove != 0 {
			n++
		}
	}
	return claimed && n >= p.Quorum
}

// reached is the number of members who have shown that they are in a view or
// beyond it.
func (p Protocol) reached(h *Heard, view int) int {
	n := 0
	for m := range N {
		for v := view; v < p.Views; v++ {
			if h.Accepted[v][m] != 0 || h.Committed[v][m] != 0 || h.Changed[v][m] != 0 {
				n++
				break
			}
		}
	}
	return n
}

// Joinable reports whether f+1 members reached a view: one of them is honest,
// so a member below it goes along and does not wait for its own timer.
func (p Protocol) Joinable(h *Heard, view int) bool { return p.reached(h, view) > p.Faults }

// TimerRuns reports whether the timer of a view runs: in view 0 always, later
// once a quorum has reached the view, so that nobody runs ahead of the others. A
// new view shows a quorum by itself.
func (p Protocol) TimerRuns(h *Heard, view int) bool {
	return view == 0 || p.reached(h, view) >= p.Quorum || h.Accepted[view][Primary(view)] != 0
}

// Kind is the kind of an action.
type Kind uint8

// The actions of an honest member.
const (
	PrePrepare Kind = 1 + iota
	Prepare
	Commit
	ViewChange
)

// Action is one vote cast by an honest member.
type Action struct {
	Kind  Kind
	View  int   // for a view change, the view entered
	Value Value // None for a view change
}

func (a Action) String() string {
	name := [...]string{"", "pre-prepare", "prepare", "commit", "view-change"}[a.Kind]
	if a.Kind == ViewChange {
		return fmt.Sprintf("%s(%d)", name, a.View)
	}
	return fmt.Sprintf("%s(%d, %s)", name, a.View, a.Value)
}

// Do is the member after an action.
func (m Member) Do(a Action) Member {
	switch a.Kind {
	case PrePrepare, Prepare:
		m.Accepted[a.View] = a.Value
	case Commit:
		m.Committed[a.View] = a.Value
	case ViewChange:
		m.Changed[a.View] = true
	}
	return m
}

// Enabled appends to out every action that a member may take, given what it has
// signed and what it has heard, its own votes among it. This is the protocol.
func (p Protocol) Enabled(out []Action, me int, own Member, heard *Heard) []Action {
	now := own.View()
	for _, x := range AllValues {
		for v := now; v < p.Views; v++ {
			if p.mayPrePrepare(me, own, heard, v, x) {
				out = append(out, Action{PrePrepare, v, x})
			}
			if p.mayPrepare(me, own, heard, v, x) {
				out = append(out, Action{Prepare, v, x})
			}
		}
		if p.mayCommit(own, heard, now, x) {
			out = append(out, Action{Commit, now, x})
		}
	}
	// A member may leave its view at any time: that its timer has ended, or that
	// f+1 others left, concerns progress only. It never returns to a lower view.
	for v := now + 1; v < p.Views; v++ {
		out = append(out, Action{Kind: ViewChange, View: v})
	}
	return out
}

// mayPrePrepare: the primary of a view proposes once, in view 0 what it likes,
// later only what a quorum of view changes justifies. It enters its own view by
// a view change.
func (p Protocol) mayPrePrepare(me int, own Member, heard *Heard, v int, x Value) bool {
	if me != Primary(v) || own.View() != v || own.Accepted[v] != None {
		return false
	}
	return v == 0 || p.Justified(&heard.Changed[v]).Has(x)
}

// mayPrepare: any other member accepts, once in a view, what it heard the
// primary propose. A proposal of a later view carries the proof that the view
// is open, so it may be followed without a view change. The pre-prepares
// heard for views above 0 are justified ones: others do not count as heard.
func (p Protocol) mayPrepare(me int, own Member, heard *Heard, v int, x Value) bool {
	return me != Primary(v) && own.View() <= v && own.Accepted[v] == None && heard.Accepted[v][Primary(v)].Has(x)
}

// mayCommit: who holds q acceptances of one value, made in the view it takes
// part in, commits to it, once. It need not be the value that it accepted
// itself: when the primary lied, three others may outvote it. But it has
// accepted something: with four members, q acceptances without its own hold the
// primary's, which it would have accepted.
func (p Protocol) mayCommit(own Member, heard *Heard, v int, x Value) bool {
	return own.View() == v && own.Accepted[v] != None && own.Committed[v] == None && p.Prepared(heard, v, x)
}
