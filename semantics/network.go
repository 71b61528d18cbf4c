package semantics

import (
	"math"

	"github.com/deliberd/deliberd/machine"
)

// Link is an edge between indexed arguments.
type Link struct{ From, To int32 }

// Network is the edges of a graph whose arguments are 0 … n−1, in compressed
// rows. It is immutable and holds no weights: one network serves many runs.
//
// Row 2a holds the supporters of argument a and row 2a+1 its attackers, each
// ascending, so every sum is taken in the same order everywhere.
type Network struct {
	n     int
	off   []int32 // 2n+1 row starts
	src   []int32
	order direction
	self  bool // some argument influences itself
}

// direction tells whether indices already are a topological order.
type direction int8

const (
	unordered  direction = iota
	ascending            // every edge leads to a larger index
	descending           // every edge leads to a smaller index: arguments reference earlier ones
)

// NewNetwork builds a network of n arguments. Edges are sets: repeated links
// count once, and a pair may be in both relations. It errs with
// missing_argument when a link leaves 0 … n−1 and with out_of_range beyond
// 2^30 arguments or 2^31 − 1 links.
func NewNetwork(n int, attacks, supports []Link) (*Network, error) {
	total := len(attacks) + len(supports)
	if n < 0 || n > 1<<30 || total > math.MaxInt32 {
		return nil, machine.Refuse(machine.CodeOutOfRange, "split the graph", "%d arguments and %d edges", n, total)
	}
	for _, list := range [2][]Link{supports, attacks} {
		for _, l := range list {
			if l.From < 0 || int(l.From) >= n || l.To < 0 || int(l.To) >= n {
				return nil, machine.Refuse(CodeMissingArgument, "add the argument first", "edge %d → %d in a graph of %d arguments", l.From, l.To, n)
			}
		}
	}
	g := &Network{n: n}
	g.fill(bySource(n, supports, attacks))
	g.dedupe()
	g.findOrder()
	return g, nil
}

// entry is an edge on its way into its row.
type entry struct{ from, row int32 }

// bySource sorts edges by source in linear time.
func bySource(n int, supports, attacks []Link) []entry {
	at := make([]int32, n+1)
	for _, list := range [2][]Link{supports, attacks} {
		for _, l := range list {
			at[l.From+1]++
		}
	}
	for i := range n {
		at[i+1] += at[i]
	}
	sorted := make([]entry, len(supports)+len(attacks))
	for rel, list := range [2][]Link{supports, attacks} {
		for _, l := range list {
			sorted[at[l.From]] = entry{l.From, 2*l.To + int32(rel)}
			at[l.From]++
		}
	}
	return sorted
}

// fill spreads edges, sorted by source, over their rows.
func (g *Network) fill(sorted []entry) {
	g.off = make([]int32, 2*g.n+1)
	for _, e := range sorted {
		g.off[e.row+1]++
	}
	for i := range 2 * g.n {
		g.off[i+1] += g.off[i]
	}
	at := append([]int32(nil), g.off...)
	g.src = make([]int32, len(sorted))
	for _, e := range sorted {
		g.src[at[e.row]] = e.from
		at[e.row]++
	}
}

// dedupe drops repeated sources from each (sorted) row, in place.
func (g *Network) dedupe() {
	w, from := int32(0), int32(0)
	for row := range 2 * g.n {
		to := g.off[row+1]
		start := w
		for k := from; k < to; k++ {
			if w == start || g.src[w-1] != g.src[k] {
				g.src[w] = g.src[k]
				w++
			}
		}
		g.off[row], from = start, to
	}
	g.off[2*g.n] = w
	g.src = g.src[:w]
}

func (g *Network) findOrder() {
	up, down := true, true
	for a := range int32(g.n) {
		for _, s := range g.src[g.off[2*a]:g.off[2*a+2]] {
			up = up && s < a
			down = down && s > a
			g.self = g.self || s == a
		}
	}
	switch {
	case up:
		g.order = ascending
	case down:
		g.order = descending
	}
}

// Len is the number of arguments.
func (g *Network) Len() int { return g.n }

// Edges is the number of distinct edges.
func (g *Network) Edges() int { return len(g.src) }

// Supporters of argument a, ascending. The slice belongs to the network.
func (g *Network) Supporters(a int32) []int32 { return g.src[g.off[2*a]:g.off[2*a+1]] }

// Attackers of argument a, ascending. The slice belongs to the network.
func (g *Network) Attackers(a int32) []int32 { return g.src[g.off[2*a+1]:g.off[2*a+2]] }
