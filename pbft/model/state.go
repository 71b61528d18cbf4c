package model

import "fmt"

// N is the number of members. Member v is the primary of view v.
const N = 4

// MaxViews is the largest bound on views.
const MaxViews = 3

// Value is what a vote names.
type Value uint8

// The values; None stands where no vote has been cast.
const (
	None Value = iota
	A
	B
)

// AllValues are the values that can be decided.
var AllValues = [...]Value{A, B}

func (x Value) String() string { return [...]string{"nothing", "A", "B"}[x] }

// Values is a set of values, bit x−1 for value x.
type Values uint8

// Both is the set of all values.
const Both Values = 3

// Only is the set of one value, empty for None.
func Only(x Value) Values {
	if x == None {
		return 0
	}
	return 1 << (x - 1)
}

// Has reports whether x is in the set.
func (s Values) Has(x Value) bool { return s&Only(x) != 0 }

// Claim is what a view change says about the past: 0 for nothing prepared, or
// a view and a value prepared in it. Claims of later views are greater.
type Claim uint8

// ClaimOf is the claim that x was prepared in a view.
func ClaimOf(view int, x Value) Claim { return Claim(2*view) + Claim(x) }

// View is the view that a claim is about; it means nothing for 0.
func (c Claim) View() int { return int(c-1) / 2 }

// Value is the claimed value, None for 0.
func (c Claim) Value() Value {
	if c == 0 {
		return None
	}
	return Value(c-1)%2 + 1
}

func (c Claim) String() string {
	if c == 0 {
		return "nothing prepared"
	}
	return fmt.Sprintf("%s prepared in view %d", c.Value(), c.View())
}

// Claims is a set of claims, bit c for claim c.
type Claims uint8

// Has reports whether c is in the set.
func (s Claims) Has(c Claim) bool { return s&(1<<c) != 0 }

// Member is all that an honest member has ever signed: one vote per slot at
// most. It is also what the member has on disk, and all that it must remember.
type Member struct {
	Accepted  [MaxViews]Value // by view: its pre-prepare as primary, else its prepare
	Committed [MaxViews]Value // by view
	Changed   [MaxViews]bool  // by view: a view change into it
}

// View is the view that the member takes part in: the highest it has voted in.
func (m Member) View() int {
	for v := MaxViews - 1; v > 0; v-- {
		if m.Accepted[v] != None || m.Changed[v] {
			return v
		}
	}
	return 0
}

// Claim is what a view change of the member into a view says: its latest
// commit below that view. Whoever commits holds the prepared certificate, and
// whoever has changed into a view votes no more below it, so this can be told
// from the votes at any later time.
func (m Member) Claim(into int) Claim {
	for v := into - 1; v >= 0; v-- {
		if m.Committed[v] != None {
			return ClaimOf(v, m.Committed[v])
		}
	}
	return 0
}

// bitsPerMember is the size of a member's code.
const bitsPerMember = 5 * MaxViews

// Code is the member as a number below 1<<15.
func (m Member) Code() uint64 {
	c := uint64(0)
	for v := range MaxViews {
		c = c<<2 | uint64(m.Accepted[v])
		c = c<<2 | uint64(m.Committed[v])
		c <<= 1
		if m.Changed[v] {
			c |= 1
		}
	}
	return c
}

// MemberOf is the inverse of Code.
func MemberOf(c uint64) (m Member) {
	for v := MaxViews - 1; v >= 0; v-- {
		m.Changed[v] = c&1 == 1
		m.Committed[v] = Value(c >> 1 & 3)
		m.Accepted[v] = Value(c >> 3 & 3)
		c >>= 5
	}
	return m
}

// State is the global state: the votes of all honest members. A Byzantine
// member's entry stays empty, for it may have signed anything at all, and the
// network needs no entry: a vote that was cast may arrive anywhere at any later
// time, any number of times, or never.
type State [N]Member

// Code is the state as a number.
func (s *State) Code() uint64 {
	c := uint64(0)
	for i := range s {
		c = c<<bitsPerMember | s[i].Code()
	}
	return c
}

// StateOf is the inverse of Code.
func StateOf(c uint64) (s State) {
	for i := N - 1; i >= 0; i-- {
		s[i] = MemberOf(c & (1<<bitsPerMember - 1))
		c >>= bitsPerMember
	}
	return s
}
