package semantics

import "math"

// Relation is what an edge does.
type Relation string

// The relations.
const (
	Attack  Relation = "attack"
	Support Relation = "support"
)

// Share is what one edge adds to a strength.
type Share struct {
	From     string   `json:"from"`
	Relation Relation `json:"relation"`
	Sigma    float64  `json:"-"`     // the addition, negative when it lowers the strength
	Nano     int64    `json:"share"` // Sigma at 1e-9
}

// Explanation takes a strength apart: Base and all shares add up to Sigma, up
// to the run's residual.
type Explanation struct {
	Strength
	Base   float64 `json:"-"`
	Nano   int64   `json:"base"` // w·ρ at 1e-9
	Shares []Share `json:"shares"`
}

// Explain takes the strength of one argument apart, supports before attacks,
// each by id.
//
// The fixed-point, literal and rectified methods are sums and have natural
// shares: ±γ times the source's strength, divided where the component was
// averaged. Quadratic energy is not a sum: its move away from the base is
// split in proportion to what each edge adds to the energy.
func (r *Result) Explain(id string) (Explanation, bool) {
	v, ok := r.graph.index[id]
	if !ok {
		return Explanation{}, false
	}
	a := r.Arguments[v]
	e := Explanation{Strength: a, Base: float64(a.Weight * a.Rho), Shares: []Share{}}
	e.Nano = Nano(e.Base)
	for _, u := range r.graph.net.Supporters(v) {
		e.Shares = append(e.Shares, r.share(u, v, Support))
	}
	for _, u := range r.graph.net.Attackers(v) {
		e.Shares = append(e.Shares, r.share(u, v, Attack))
	}
	if r.Method == QuadraticEnergy {
		splitEnergy(&e)
	}
	for i, s := range e.Shares {
		e.Shares[i].Nano = Nano(s.Sigma)
	}
	return e, true
}

func (r *Result) share(u, v int32, rel Relation) Share {
	x := r.Arguments[u].Sigma
	if r.Method == Rectified {
		x = max(0, x)
	}
	factor := r.GammaPlus
	if rel == Attack {
		factor = -r.GammaMinus
	}
	x = float64(factor * x)
	if d := r.solution.divisor; d != nil && d[v] > 0 && r.solution.Component[u] == r.solution.Component[v] {
		x /= d[v]
	}
	return Share{From: r.Arguments[u].ID, Relation: rel, Sigma: x}
}

// splitEnergy turns additions to the energy into additions to the strength.
func splitEnergy(e *Explanation) {
	total := 0.0
	for _, s := range e.Shares {
		total += s.Sigma
	}
	if math.Abs(total) < 1e-12 { // support and attack cancel: nobody moved it
		for i := range e.Shares {
			e.Shares[i].Sigma = 0
		}
		return
	}
	moved := e.Strength.Sigma - e.Base
	for i, s := range e.Shares {
		e.Shares[i].Sigma = float64(moved * (s.Sigma / total))
	}
}
