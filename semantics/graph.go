package semantics

import (
	"math"
	"sort"

	"github.com/deliberd/deliberd/machine"
)

// Codes of refusals, beside machine.CodeOutOfRange and machine.CodeMalformed.
const (
	CodeSelfAttack        = "self_attack"
	CodeSelfSupport       = "self_support"
	CodeMissingArgument   = "missing_argument"
	CodeDuplicateArgument = "duplicate_argument"
)

// Argument is one argument: §2.1's w(a), and ρ(α(a), dom(a)) of its author.
type Argument struct {
	ID     string  `json:"id"`
	Weight float64 `json:"weight"` // w in [0, 1], see [Weight]
	Rho    float64 `json:"rho"`    // ρ in [0.5, 2]
}

// Edge leads from the argument that attacks or supports to its target.
type Edge struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// Graph is an argumentation framework. Arguments and edges may come in any
// order; a repeated edge counts once; a pair may attack and support.
type Graph struct {
	Arguments []Argument `json:"arguments"`
	Attacks   []Edge     `json:"attacks"`
	Supports  []Edge     `json:"supports"`
}

// Range of an author's reputation factor (§6.3).
const (
	MinRho = 0.5
	MaxRho = 2.0
)

// compiled is a checked graph: arguments in ascending order of id.
type compiled struct {
	args  []Argument
	index map[string]int32
	net   *Network
}

// compile checks a graph; it refuses it with out_of_range,
// duplicate_argument, missing_argument, self_attack or self_support.
func compile(g Graph, selfEdges bool) (*compiled, error) {
	c := &compiled{args: append([]Argument(nil), g.Arguments...), index: make(map[string]int32, len(g.Arguments))}
	sort.SliceStable(c.args, func(i, j int) bool { return c.args[i].ID < c.args[j].ID })
	for i, a := range c.args {
		if err := a.check(); err != nil {
			return nil, err
		}
		if i > 0 && c.args[i-1].ID == a.ID {
			return nil, machine.Refuse(CodeDuplicateArgument, "give every argument its own id", "two arguments are called %q", a.ID)
		}
		c.index[a.ID] = int32(i)
	}
	attacks, err := c.links(g.Attacks, "attack", CodeSelfAttack, selfEdges)
	if err != nil {
		return nil, err
	}
	supports, err := c.links(g.Supports, "support", CodeSelfSupport, selfEdges)
	if err != nil {
		return nil, err
	}
	c.net, err = NewNetwork(len(c.args), attacks, supports)
	return c, err
}

func (a Argument) check() error {
	if a.ID == "" {
		return machine.Refuse(machine.CodeOutOfRange, "name the argument", "an argument has no id")
	}
	if math.IsNaN(a.Weight) || a.Weight < 0 || a.Weight > 1 {
		return machine.Refuse(machine.CodeOutOfRange, "give a weight from 0 to 1", "the weight of %q is %v", a.ID, a.Weight)
	}
	if math.IsNaN(a.Rho) || a.Rho < MinRho || a.Rho > MaxRho {
		return machine.Refuse(machine.CodeOutOfRange, "give a reputation factor from 0.5 to 2", "the rho of %q is %v", a.ID, a.Rho)
	}
	return nil
}

func (c *compiled) links(edges []Edge, relation, selfCode string, selfEdges bool) ([]Link, error) {
	links := make([]Link, len(edges))
	for i, e := range edges {
		from, ok := c.index[e.From]
		if !ok {
			return nil, machine.Refuse(CodeMissingArgument, "submit the argument first", "%q should %s %q but does not exist", e.From, relation, e.To)
		}
		to, ok := c.index[e.To]
		if !ok {
			return nil, machine.Refuse(CodeMissingArgument, "submit the argument first", "%q should %s %q, which does not exist", e.From, relation, e.To)
		}
		if from == to && !selfEdges {
			return nil, machine.Refuse(selfCode, "name another target", "%q should %s itself", e.From, relation)
		}
		links[i] = Link{from, to}
	}
	return links, nil
}

func (c *compiled) base() []float64 {
	b := make([]float64, len(c.args))
	for i, a := range c.args {
		b[i] = float64(a.Weight * a.Rho)
	}
	return b
}
