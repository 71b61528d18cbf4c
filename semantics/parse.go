package semantics

import (
	"encoding/json"
	"math"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Problem is a graph to compute and a decision to take: the JSON file of
// `deliberd semantics`.
//
//	{
//	  "arguments": [
//	    {"id": "p", "weight": 0.8, "rho": 1.2},
//	    {"id": "q", "evidence": [{"value": 0.9, "confidence": 0.2}]}
//	  ],
//	  "attacks": [["p", "q"]],
//	  "supports": [],
//	  "positions": [{"id": "p", "delta": 0.05}, {"id": "q"}],
//	  "tau": 0.15,
//	  "method": "fixed-point", "gamma_plus": 0.6, "gamma_minus": 0.8, "epsilon": 0.001,
//	  "weight_rule": "literal", "empty_weight": 0
//	}
//
// Only arguments is required. An argument has a weight or evidence; its rho is
// 1 unless given. Edges are pairs [from, to]. Without positions every argument
// is one.
type Problem struct {
	Graph     Graph
	Options   Options
	Positions []Position
	Tau       int64 // at 1e-9
}

type problemJSON struct {
	Arguments   []argumentJSON `json:"arguments"`
	Attacks     []pairJSON     `json:"attacks"`
	Supports    []pairJSON     `json:"supports"`
	Positions   []positionJSON `json:"positions"`
	Tau         *float64       `json:"tau"`
	Method      Method         `json:"method"`
	GammaPlus   *float64       `json:"gamma_plus"`
	GammaMinus  *float64       `json:"gamma_minus"`
	Epsilon     *float64       `json:"epsilon"`
	WeightRule  WeightRule     `json:"weight_rule"`
	EmptyWeight float64        `json:"empty_weight"`
}

type argumentJSON struct {
	ID       string      `json:"id"`
	Weight   *float64    `json:"weight"`
	Evidence *[]Evidence `json:"evidence"`
	Rho      *float64    `json:"rho"`
}

type positionJSON struct {
	ID    string  `json:"id"`
	Delta float64 `json:"delta"`
}

// pairJSON is an edge: exactly two strings.
type pairJSON []string

// Parse reads a problem strictly: unknown and repeated members, other types
// and numbers out of range are refused with malformed or out_of_range, and the
// graph is checked as by [Compute].
func Parse(text []byte) (*Problem, error) {
	var in problemJSON
	if err := canon.Decode(text, &in); err != nil {
		return nil, malformed("%v", err)
	}
	if in.Arguments == nil {
		return nil, malformed(`there is no "arguments"`)
	}
	p := &Problem{Options: Options{Method: in.Method}, Tau: DefaultTau}
	for _, f := range []struct {
		name string
		from *float64
		to   *float64
	}{{"gamma_plus", in.GammaPlus, &p.Options.GammaPlus}, {"gamma_minus", in.GammaMinus, &p.Options.GammaMinus}, {"epsilon", in.Epsilon, &p.Options.Epsilon}} {
		if f.from == nil {
			continue
		}
		if *f.from == 0 { // to Options 0 means the default; in a file it is a mistake
			return nil, machine.Refuse(machine.CodeOutOfRange, "give a number above 0 and below 1", "%s is 0", f.name)
		}
		*f.to = *f.from
	}
	for _, a := range in.Arguments {
		arg, err := a.argument(in.WeightRule, in.EmptyWeight)
		if err != nil {
			return nil, err
		}
		p.Graph.Arguments = append(p.Graph.Arguments, arg)
	}
	var err error
	if p.Graph.Attacks, err = edges(in.Attacks); err != nil {
		return nil, err
	}
	if p.Graph.Supports, err = edges(in.Supports); err != nil {
		return nil, err
	}
	if err := p.decision(in); err != nil {
		return nil, err
	}
	return p, p.check()
}

func malformed(format string, args ...any) error {
	return machine.Refuse(machine.CodeMalformed, `give {"arguments": [{"id", "weight" or "evidence", "rho"}], "attacks": [[from, to]], "supports": [[from, to]]}`, format, args...)
}

func (a argumentJSON) argument(rule WeightRule, empty float64) (Argument, error) {
	out := Argument{ID: a.ID, Rho: 1}
	if a.Rho != nil {
		out.Rho = *a.Rho
	}
	switch {
	case a.Weight != nil && a.Evidence != nil, a.Weight == nil && a.Evidence == nil:
		return out, malformed("argument %q needs either a weight or evidence", a.ID)
	case a.Weight != nil:
		out.Weight = *a.Weight
		return out, nil
	}
	var err error
	out.Weight, err = Weight(*a.Evidence, rule, empty)
	return out, err
}

func edges(pairs []pairJSON) ([]Edge, error) {
	out := make([]Edge, 0, len(pairs))
	for _, p := range pairs {
		if len(p) != 2 {
			return nil, malformed("an edge has %d ends", len(p))
		}
		out = append(out, Edge{p[0], p[1]})
	}
	return out, nil
}

func (p *Problem) decision(in problemJSON) error {
	if in.Tau != nil {
		if math.Abs(*in.Tau) > MaxStrength || *in.Tau < 0 {
			return machine.Refuse(machine.CodeOutOfRange, "give τ as a number from 0", "tau is %v", *in.Tau)
		}
		p.Tau = Nano(*in.Tau)
	}
	if in.Positions == nil {
		for _, a := range in.Arguments {
			p.Positions = append(p.Positions, Position{ID: a.ID})
		}
		return nil
	}
	for _, q := range in.Positions {
		if math.Abs(q.Delta) > MaxStrength {
			return machine.Refuse(machine.CodeOutOfRange, "give a smaller delta", "the delta of %q is %v", q.ID, q.Delta)
		}
		p.Positions = append(p.Positions, Position{ID: q.ID, Delta: Nano(q.Delta)})
	}
	return nil
}

// check refuses here what Compute and Decide would refuse later.
func (p *Problem) check() error {
	if _, err := p.Options.normal(); err != nil {
		return err
	}
	c, err := compile(p.Graph, p.Options.SelfEdges)
	if err != nil {
		return err
	}
	_, err = (&Result{graph: c, Arguments: make([]Strength, len(c.args))}).Candidates(p.Positions)
	return err
}

// Answer is the result of a problem.
type Answer struct {
	Result   *Result  `json:"result"`
	Decision Decision `json:"decision"`
}

// Solve computes the strengths and decides.
func (p *Problem) Solve() (*Answer, error) {
	r, err := Compute(p.Graph, p.Options)
	if err != nil {
		return nil, err
	}
	d, err := r.Decide(p.Positions, p.Tau)
	if err != nil {
		return nil, err
	}
	return &Answer{Result: r, Decision: d}, nil
}

var _ json.Marshaler = Answer{}

// MarshalJSON adds every argument's explanation.
func (a Answer) MarshalJSON() ([]byte, error) {
	out := struct {
		Run       Run           `json:"run"`
		Arguments []Explanation `json:"arguments"`
		Decision  Decision      `json:"decision"`
	}{Run: a.Result.Run, Arguments: []Explanation{}, Decision: a.Decision}
	for _, s := range a.Result.Arguments {
		e, _ := a.Result.Explain(s.ID)
		out.Arguments = append(out.Arguments, e)
	}
	return json.Marshal(out)
}
