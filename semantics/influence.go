package semantics

import "github.com/deliberd/deliberd/machine"

// Influence tells where differences of strength come from: the graph with
// every edge turned round carries them back to the base strengths. It is
// exact where strengths are linear in the weights: fixed-point with stable
// statuses.
type Influence struct {
	result     *Result
	transposed *Network
}

// Influence turns the result's graph round.
func (r *Result) Influence() (*Influence, error) {
	n := len(r.Arguments)
	var attacks, supports []Link
	for v := range int32(n) {
		for _, u := range r.graph.net.Supporters(v) {
			supports = append(supports, Link{v, u})
		}
		for _, u := range r.graph.net.Attackers(v) {
			attacks = append(attacks, Link{v, u})
		}
	}
	net, err := NewNetwork(n, attacks, supports)
	return &Influence{result: r, transposed: net}, err
}

// On is, for every argument of the result, by how much the strength of one
// grows per unit of its base strength: σ(of), or σ(of) − σ(less) unless less
// is "". It refuses an id that is no argument with missing_argument.
func (i *Influence) On(of, less string) ([]float64, error) {
	unit := make([]float64, len(i.result.Arguments))
	for k, id := range [2]string{of, less} {
		if k == 1 && id == "" {
			break
		}
		v, ok := i.result.graph.index[id]
		if !ok {
			return nil, machine.Refuse(CodeMissingArgument, "name an argument of the graph", "%q is no argument", id)
		}
		unit[v] += float64(1 - 2*k)
	}
	sol, err := i.transposed.Solve(unit, i.result.options)
	if err != nil {
		return nil, err
	}
	return sol.Sigma, nil
}
