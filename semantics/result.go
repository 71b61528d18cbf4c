package semantics

import "sort"

// Strength is the result for one argument.
type Strength struct {
	ID         string  `json:"id"`
	Weight     float64 `json:"weight"`
	Rho        float64 `json:"rho"`
	Sigma      float64 `json:"-"`           // σ
	Nano       int64   `json:"sigma"`       // σ at 1e-9, half to even: what is published and hashed
	Status     Status  `json:"status"`      // how it was reached
	Component  int     `json:"component"`   // in topological order, sources first
	Negative   bool    `json:"negative"`    // Nano is below 0: defeated beyond its base
	ErrorBound float64 `json:"error_bound"` // how far Sigma may be from the method's exact answer
}

// Result is the strengths of a graph, in ascending order of id.
type Result struct {
	Run
	Arguments []Strength `json:"arguments"`

	graph    *compiled
	solution *Solution
	options  Options
}

// Compute computes the strength of every argument. It refuses bad graphs and
// options with a [*machine.Refusal]: out_of_range, duplicate_argument,
// missing_argument, self_attack, self_support. The result does not depend on
// the order in which arguments and edges are listed.
func Compute(g Graph, o Options) (*Result, error) {
	o, err := o.normal()
	if err != nil {
		return nil, err
	}
	c, err := compile(g, o.SelfEdges)
	if err != nil {
		return nil, err
	}
	return c.compute(c.base(), o)
}

func (c *compiled) compute(base []float64, o Options) (*Result, error) {
	sol, err := c.net.Solve(base, o)
	if err != nil {
		return nil, err
	}
	r := &Result{Run: sol.Run, Arguments: make([]Strength, len(c.args)), graph: c, solution: sol, options: o}
	for i, a := range c.args {
		n := Nano(sol.Sigma[i])
		r.Arguments[i] = Strength{
			ID: a.ID, Weight: a.Weight, Rho: a.Rho,
			Sigma: sol.Sigma[i], Nano: n, Status: sol.Status[i], Component: int(sol.Component[i]),
			Negative: n < 0, ErrorBound: sol.Bound[i],
		}
	}
	return r, nil
}

// Of is the strength of one argument.
func (r *Result) Of(id string) (Strength, bool) {
	i := sort.Search(len(r.Arguments), func(i int) bool { return r.Arguments[i].ID >= id })
	if i == len(r.Arguments) || r.Arguments[i].ID != id {
		return Strength{}, false
	}
	return r.Arguments[i], true
}
