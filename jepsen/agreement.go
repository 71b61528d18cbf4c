package jepsen

import "fmt"

// Divergence is two nodes that applied different entries at one raft index.
type Divergence struct {
	A, B  int
	First Applied // what A applied
	Other Applied // what B applied
}

func (d *Divergence) Error() string {
	return fmt.Sprintf("raft index %d: node %d applied term %d, entry %s; node %d applied term %d, entry %s",
		d.First.Index, d.A, d.First.Term, d.First.Hash, d.B, d.Other.Term, d.Other.Hash)
}

// Agreement compares what nodes applied, index by index. It forgets indexes
// that every node has shown.
type Agreement struct {
	seen map[uint64]sighting
	next []uint64 // the first index each node has not shown yet
}

type sighting struct {
	node int
	Applied
}

// NewAgreement is for nodes 0 to n-1.
func NewAgreement(n int) *Agreement {
	a := &Agreement{seen: map[uint64]sighting{}, next: make([]uint64, n)}
	for i := range a.next {
		a.next[i] = 1
	}
	return a
}

// Next is the first index a node has not shown yet.
func (a *Agreement) Next(node int) uint64 { return a.next[node] }

// Show takes a node's entries from Next on, ascending. It returns a
// [Divergence] when another node has shown something else.
func (a *Agreement) Show(node int, entries []Applied) error {
	for _, e := range entries {
		if e.Index < a.next[node] {
			return fmt.Errorf("node %d applied raft index %d again or out of order", node, e.Index)
		}
		if s, ok := a.seen[e.Index]; ok && s.Applied != e {
			return &Divergence{s.node, node, s.Applied, e}
		} else if !ok {
			a.seen[e.Index] = sighting{node, e}
		}
		a.next[node] = e.Index + 1
	}
	low := a.next[0]
	for _, n := range a.next {
		low = min(low, n)
	}
	for index := range a.seen {
		if index < low {
			delete(a.seen, index)
		}
	}
	return nil
}
