package semantics

import (
	"math"
	"sort"
)

// Change is a change of one argument's weight that turns a decision.
type Change struct {
	Argument string   `json:"argument"`
	From     float64  `json:"-"`
	To       float64  `json:"-"`
	FromNano int64    `json:"from"` // weights at 1e-9
	ToNano   int64    `json:"to"`
	After    Decision `json:"after"` // what would be decided then
}

// size is the length of the change, at 1e-9.
func (c Change) size() int64 {
	if c.ToNano < c.FromNano {
		return c.FromNano - c.ToNano
	}
	return c.ToNano - c.FromNano
}

// Turn is the answer to "what would turn this decision".
type Turn struct {
	Change *Change `json:"change"` // nil: no change of one weight within 0 … 1 turns it
	// Exhaustive: every argument on which a position depends was considered.
	// Very large graphs are searched from the positions outward.
	Exhaustive bool `json:"exhaustive"`
}

// searchWork bounds a search, in edge updates.
const searchWork = 100_000_000

// SmallestTurn looks for the smallest change of one argument's weight, on the
// 1e-9 grid and within 0 … 1, that gives another winner or path. It refuses
// what [Result.Decide] refuses.
//
// Where strengths are linear in the weights (fixed-point with stable
// statuses) the turning points are solved for; elsewhere the range is scanned
// in eighths and bisected, which may miss a turn that turns back in between.
// Every change returned has been computed and does turn the decision.
func (r *Result) SmallestTurn(positions []Position, tau int64) (Turn, error) {
	return r.smallestTurn(positions, tau, func(a, b Decision) bool { return a.Winner != b.Winner || a.Path != b.Path })
}

// SmallestWinnerTurn is [Result.SmallestTurn] to another winner.
func (r *Result) SmallestWinnerTurn(positions []Position, tau int64) (Turn, error) {
	return r.smallestTurn(positions, tau, func(a, b Decision) bool { return a.Winner != b.Winner })
}

// SmallestPathTurn is [Result.SmallestTurn] to another path.
func (r *Result) SmallestPathTurn(positions []Position, tau int64) (Turn, error) {
	return r.smallestTurn(positions, tau, func(a, b Decision) bool { return a.Path != b.Path })
}

func (r *Result) smallestTurn(positions []Position, tau int64, differ func(a, b Decision) bool) (Turn, error) {
	now, err := r.Decide(positions, tau)
	if err != nil || len(positions) < 2 {
		return Turn{Exhaustive: true}, err
	}
	s := &search{r: r, positions: positions, tau: tau, now: now, differ: differ}
	s.solves = searchWork / int64(max(1, r.graph.net.Edges()+len(r.Arguments)))
	order := r.upstream(positions)
	if r.Method == FixedPoint && r.Status.Stable() {
		return s.linear(order)
	}
	return s.scan(order)
}

// upstream is every argument on which a position depends, nearest first.
func (r *Result) upstream(positions []Position) []int32 {
	seen := make([]bool, len(r.Arguments))
	var order []int32
	visit := func(v int32) {
		if !seen[v] {
			seen[v] = true
			order = append(order, v)
		}
	}
	for _, p := range positions {
		visit(r.graph.index[p.ID])
	}
	for i := 0; i < len(order); i++ {
		v := order[i]
		for _, u := range r.graph.net.src[r.graph.net.off[2*v]:r.graph.net.off[2*v+2]] {
			visit(u)
		}
	}
	return order
}

type search struct {
	r         *Result
	positions []Position
	tau       int64
	now       Decision
	differ    func(a, b Decision) bool // whether a decision is another in what is asked
	solves    int64                    // runs still allowed
	base      []float64
}

// try decides with another weight, at 1e-9, of argument v.
func (s *search) try(v int32, weight int64) (Decision, bool, error) {
	s.solves--
	if s.base == nil {
		s.base = s.r.graph.base()
	}
	old := s.base[v]
	s.base[v] = float64(float64(weight) / NanoPerUnit * s.r.Arguments[v].Rho)
	other, err := s.r.graph.compute(s.base, s.r.options)
	s.base[v] = old
	if err != nil {
		return Decision{}, false, err
	}
	d, err := other.Decide(s.positions, s.tau)
	return d, s.differ(s.now, d), err
}

func (s *search) change(v int32, to int64, after Decision) *Change {
	a := s.r.Arguments[v]
	return &Change{Argument: a.ID, From: a.Weight, To: float64(to) / NanoPerUnit, FromNano: Nano(a.Weight), ToNano: to, After: after}
}

// turning is a weight at which the order or the gap of two positions turns.
type turning struct {
	v    int32
	to   int64 // at 1e-9, just beyond
	size int64
}

// linear solves for the turning points. The transposed system gives, for a
// position p, how much every base strength moves σ(p): one run per position.
func (s *search) linear(order []int32) (Turn, error) {
	exhaustive := true
	slopes, err := s.slopes()
	if err != nil {
		return Turn{}, err
	}
	var all []turning
	for _, v := range order {
		all = s.turnings(all, v, slopes)
	}
	sort.Slice(all, func(i, j int) bool {
		a, b := all[i], all[j]
		if a.size != b.size {
			return a.size < b.size
		}
		if a.v != b.v {
			return a.v < b.v
		}
		return a.to < b.to
	})
	for _, t := range all {
		if s.solves <= 0 {
			exhaustive = false
			break
		}
		d, turned, err := s.try(t.v, t.to)
		if err != nil {
			return Turn{}, err
		}
		if turned {
			return Turn{Change: s.change(t.v, t.to, d), Exhaustive: exhaustive}, nil
		}
	}
	return Turn{Exhaustive: exhaustive}, nil
}

// slopes is, per position, the derivative of its strength by every base strength.
func (s *search) slopes() ([][]float64, error) {
	influence, err := s.r.Influence()
	if err != nil {
		return nil, err
	}
	out := make([][]float64, len(s.positions))
	for i, p := range s.positions {
		if out[i], err = influence.On(p.ID, ""); err != nil {
			return nil, err
		}
		s.solves--
	}
	return out, nil
}

// turnings appends the weights of v at which another position draws level
// with the winner or their gap meets τ, each also a little further on, since
// rounding and error bounds shift the point itself.
func (s *search) turnings(all []turning, v int32, slopes [][]float64) []turning {
	winner := 0
	adjusted := make([]int64, len(s.positions))
	for i, p := range s.positions {
		adjusted[i] = s.r.Arguments[s.r.graph.index[p.ID]].Nano + p.Delta
		if p.ID == s.now.Winner {
			winner = i
		}
	}
	a := s.r.Arguments[v]
	from := Nano(a.Weight)
	for i := range s.positions {
		slope := float64(a.Rho * (slopes[winner][v] - slopes[i][v]))
		if i == winner || math.Abs(slope) < 1e-12 {
			continue
		}
		for _, level := range [2]int64{0, s.tau} {
			exact := float64(level-(adjusted[winner]-adjusted[i])) / slope
			if math.Abs(exact) > 2*NanoPerUnit {
				continue
			}
			for _, further := range [...]float64{0, 1, 2, 4, 1 + 2/math.Abs(slope), 4 + 8/math.Abs(slope)} {
				for _, side := range [2]float64{-1, 1} {
					to := from + int64(math.RoundToEven(exact+float64(side*further)))
					if to >= 0 && to <= NanoPerUnit && to != from {
						all = append(all, turning{v, to, Change{FromNano: from, ToNano: to}.size()})
					}
				}
			}
		}
	}
	return all
}

// scan tries eighths of the range on both sides of each weight and bisects
// the first that turns.
func (s *search) scan(order []int32) (Turn, error) {
	var best *Change
	for _, v := range order {
		if s.solves <= 0 {
			return Turn{Change: best}, nil
		}
		from := Nano(s.r.Arguments[v].Weight)
		for _, end := range [2]int64{0, NanoPerUnit} {
			c, err := s.toward(v, from, end, best)
			if err != nil {
				return Turn{}, err
			}
			if c != nil && (best == nil || c.size() < best.size()) {
				best = c
			}
		}
	}
	return Turn{Change: best, Exhaustive: true}, nil
}

// toward finds the first turn between from and end that is smaller than best.
func (s *search) toward(v int32, from, end int64, best *Change) (*Change, error) {
	const parts = 8
	kept := from
	for part := int64(1); part <= parts && kept != end; part++ {
		to := from + (end-from)/parts*part
		if part == parts {
			to = end
		}
		d, turned, err := s.try(v, to)
		if err != nil {
			return nil, err
		}
		if !turned {
			kept = to
			if best != nil && (Change{FromNano: from, ToNano: to}).size() >= best.size() {
				return nil, nil
			}
			continue
		}
		for to-kept > 1 || kept-to > 1 {
			middle := kept + (to-kept)/2
			dm, turned, err := s.try(v, middle)
			if err != nil {
				return nil, err
			}
			if turned {
				to, d = middle, dm
			} else {
				kept = middle
			}
		}
		return s.change(v, to, d), nil
	}
	return nil, nil
}
