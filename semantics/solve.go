package semantics

import (
	"math"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// Solution holds the strengths of indexed arguments.
type Solution struct {
	Sigma     []float64 // strength, never NaN, within ±MaxStrength
	Bound     []float64 // how far Sigma may be from the method's exact answer
	Status    []Status
	Component []int32 // components in topological order, sources first
	Run       Run
	divisor   []float64 // of in-component influence where averaged; nil when nowhere
}

// Run describes one computation.
type Run struct {
	Method     Method  `json:"method"`
	GammaPlus  float64 `json:"gamma_plus"`
	GammaMinus float64 `json:"gamma_minus"`
	Status     Status  `json:"status"` // the worst of any argument
	Components int     `json:"components"`
	Cyclic     int     `json:"cyclic"`      // components with a cycle
	Certified  int     `json:"certified"`   // of these, proven to converge
	Sweeps     int     `json:"sweeps"`      // over components or the graph, all attempts
	Step       float64 `json:"step"`        // the smallest step h that was needed; 1 unless damped
	Residual   float64 `json:"residual"`    // the largest left at the end
	ErrorBound float64 `json:"error_bound"` // the largest Bound
}

// Solve computes the strength of every argument from base b = w·ρ, one value
// per argument, each within ±MaxStrength. It errs with out_of_range on other
// lengths, values and options. It always ends and always has an answer: see
// [Status] for how much the answer is worth.
func (g *Network) Solve(base []float64, o Options) (*Solution, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	if len(base) != g.n {
		return nil, machine.Refuse(machine.CodeOutOfRange, "give one base strength per argument", "%d base strengths for %d arguments", len(base), g.n)
	}
	for i, b := range base {
		if math.IsNaN(b) || math.Abs(b) > MaxStrength {
			return nil, machine.Refuse(machine.CodeOutOfRange, "give finite base strengths", "base of argument %d is %v", i, b)
		}
	}
	s := newSolver(g, base, o)
	switch o.Method {
	case QuadraticEnergy:
		s.energy()
	case Rectified:
		s.rectified()
	case LiteralJacobi:
		s.literal()
	default:
		s.fixedPoint()
	}
	return s.finish(), nil
}

// cell keeps a strength and its error bound side by side: sums over a row
// gather both with one memory access.
type cell struct{ x, bound float64 }

type solver struct {
	net   *Network
	base  []float64
	opt   Options
	comps components
	cells []cell
	out   *Solution
	room  *room
}

func newSolver(g *Network, base []float64, o Options) *solver {
	s := &solver{net: g, base: base, opt: o, comps: g.condense(), cells: make([]cell, g.n)}
	s.out = &Solution{
		Status:    make([]Status, g.n),
		Component: s.comps.of,
		Run:       Run{Method: o.Method, GammaPlus: o.GammaPlus, GammaMinus: o.GammaMinus, Components: len(s.comps.start) - 1, Step: 1},
	}
	return s
}

// fixedPoint is the default pipeline.
func (s *solver) fixedPoint() {
	limit := s.sweepLimit()
	for c := range len(s.comps.start) - 1 {
		members := s.comps.members[s.comps.start[c]:s.comps.start[c+1]]
		if len(members) == 1 && !s.selfEdge(members[0]) {
			s.sum(members[0])
			continue
		}
		s.cycle(int32(c), members, limit)
	}
}

// sum is the exact rule for an argument outside all cycles.
func (s *solver) sum(v int32) {
	g, cells := s.net, s.cells
	from, mid, to := g.off[2*v], g.off[2*v+1], g.off[2*v+2]
	var sup, att, supAbs, attAbs, supBound, attBound float64
	positive := s.opt.Method == Rectified
	for _, u := range g.src[from:mid] {
		x := cells[u].x
		if positive && x < 0 {
			x = 0
		}
		sup += x
		supAbs += math.Abs(x)
		supBound += cells[u].bound
	}
	for _, u := range g.src[mid:to] {
		x := cells[u].x
		if positive && x < 0 {
			x = 0
		}
		att += x
		attAbs += math.Abs(x)
		attBound += cells[u].bound
	}
	plus, minus := s.opt.GammaPlus, s.opt.GammaMinus
	x := s.base[v] + (float64(plus*sup) - float64(minus*att))
	bound := float64(plus*supBound) + float64(minus*attBound)
	size := math.Abs(s.base[v]) + float64(plus*supAbs) + float64(minus*attAbs)
	bound += float64(float64(float64(to-from+3)*unitRoundoff) * size)
	s.set(v, x, bound, Exact)
}

// set records a strength; what leaves the range is held at its edge.
func (s *solver) set(v int32, x, bound float64, status Status) {
	if math.IsNaN(x) {
		x, status = 0, Diverged
	}
	if math.Abs(x) > MaxStrength {
		x, status = math.Copysign(MaxStrength, x), Diverged
	}
	if math.IsNaN(bound) || bound > 2*MaxStrength {
		bound = 2 * MaxStrength
	}
	s.cells[v] = cell{x, bound}
	s.out.Status[v] = status
}

func (s *solver) selfEdge(v int32) bool {
	if !s.net.self {
		return false
	}
	_, sup := slices.BinarySearch(s.net.Supporters(v), v)
	_, att := slices.BinarySearch(s.net.Attackers(v), v)
	return sup || att
}

func (s *solver) finish() *Solution {
	o := s.out
	o.Sigma, o.Bound = make([]float64, s.net.n), make([]float64, s.net.n)
	for v, c := range s.cells {
		o.Sigma[v], o.Bound[v] = c.x, c.bound
		o.Run.ErrorBound = max(o.Run.ErrorBound, c.bound)
		o.Run.Status = max(o.Run.Status, o.Status[v])
	}
	return o
}
