package main

import (
	"encoding/json"
	"io"
	"sort"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/semantics"
)

// graphFile is an argumentation framework as one writes it by hand. Absent
// numbers have the protocol's defaults.
type graphFile struct {
	Arguments    []graphArgument  `json:"arguments"`
	Attacks      []semantics.Edge `json:"attacks"`
	Supports     []semantics.Edge `json:"supports"`
	Positions    []string         `json:"positions"` // what can win; default: what attacks and supports nothing
	Tau          *float64         `json:"tau"`
	GammaPlus    *float64         `json:"gamma_plus"`
	GammaMinus   *float64         `json:"gamma_minus"`
	EmptyWeight  float64          `json:"empty_weight"`
	Method       string           `json:"method"`
	WeightMethod string           `json:"weight_method"`
}

type graphArgument struct {
	ID       string   `json:"id"`
	Author   string   `json:"author"`
	Weight   *float64 `json:"weight"` // or
	Evidence []struct {
		Value float64 `json:"value"`
		Width float64 `json:"width"`
	} `json:"evidence"`
	Rho *float64 `json:"rho"` // default 1
}

func (a *app) semanticsCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "semantics FILE",
		Short: "Compute and explain the strengths of a graph of arguments",
		Long: `Compute and explain the strengths of a graph of arguments, offline. FILE (- for
standard input) is a graph, or what "round show --json" printed:

  {"arguments": [{"id": "a", "weight": 0.9, "rho": 1.2},
                 {"id": "b", "evidence": [{"value": 0.8, "width": 0.2}]},
                 {"id": "c", "weight": 0.5}],
   "attacks":   [{"from": "c", "to": "a"}],
   "positions": ["a", "b"],
   "tau": 0.15}

Without "positions", those that attack and support nothing are the positions.
Further members: supports, gamma_plus, gamma_minus, empty_weight, method
(fixed-point, quadratic-energy, rectified, literal-jacobi) and weight_method
(literal, discounted-gm).`,
		Example: "  deliberd semantics graph.json\n  deliberd round show ROUND --json --as ada | deliberd semantics -",
		Args:    args("FILE"),
		RunE: func(_ *cobra.Command, given []string) error {
			text, err := a.readInput(given[0])
			if err != nil {
				return err
			}
			e, err := explainFile(text)
			if err != nil {
				return err
			}
			return a.show(e, func(w io.Writer) { printExplanation(w, e) })
		},
	}
}

// maxInput is the longest file that the offline checks read.
const maxInput = 64 << 20

// readInput reads a file, or standard input for -.
func (a *app) readInput(path string) ([]byte, error) {
	if path == "-" {
		return io.ReadAll(io.LimitReader(a.in, maxInput+1))
	}
	return readBounded(path, maxInput)
}

func explainFile(text []byte) (*deliberation.Explanation, error) {
	if err := canon.Check(text); err != nil {
		return nil, machine.Refuse(machine.CodeMalformed, "see `deliberd semantics --help` for the format", "The file is no JSON: %v.", err)
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return nil, machine.Refuse(machine.CodeMalformed, "see `deliberd semantics --help` for the format", "The file holds no JSON object.")
	}
	if _, ok := members["round"]; ok {
		return explainView(text)
	}
	var g graphFile
	if err := canon.DecodeChecked(text, &g); err != nil {
		return nil, machine.Refuse(machine.CodeMalformed, "see `deliberd semantics --help` for the format", "The file is no graph: %v.", err)
	}
	return g.explain()
}

// explainView explains a round as the cluster showed it.
func explainView(text []byte) (*deliberation.Explanation, error) {
	var v deliberation.View
	if err := json.Unmarshal(text, &v); err != nil || v.Round == nil || v.State == nil {
		return nil, machine.Refuse(machine.CodeMalformed, "use the output of `deliberd round show ROUND --json`", "The file is no round.")
	}
	args := make([]*deliberation.Argument, len(v.Arguments))
	for i := range v.Arguments {
		args[i] = &v.Arguments[i].Argument
	}
	e, err := deliberation.Explain(v.Round, args)
	if err == nil {
		e.Phase, e.Waiting, e.Moderator = v.State.Phase, v.Waiting, v.Moderator
	}
	return e, err
}

// explain turns the graph into a round whose every argument has an author of
// its own, with the graph's ρ, and whose edges are cross-references.
func (g *graphFile) explain() (*deliberation.Explanation, error) {
	r := &deliberation.Round{Method: g.Method, WeightMethod: g.WeightMethod, EmptyWeight: g.EmptyWeight, TauNano: semantics.DefaultTau,
		GammaPlus: semantics.DefaultGammaPlus, GammaMinus: semantics.DefaultGammaMinus, Rule: deliberation.Majority}
	if r.Method == "" {
		r.Method = string(semantics.FixedPoint)
	}
	if r.WeightMethod == "" {
		r.WeightMethod = string(semantics.Literal)
	}
	for from, to := range map[*float64]*float64{g.GammaPlus: &r.GammaPlus, g.GammaMinus: &r.GammaMinus} {
		if from != nil {
			*to = *from
		}
	}
	if g.Tau != nil {
		if r.TauNano = semantics.Nano(*g.Tau); *g.Tau < 0 {
			return nil, machine.Refuse(machine.CodeOutOfRange, "0.15 is the default", "The tau is %v.", *g.Tau)
		}
	}
	args, err := g.arguments(r)
	if err != nil {
		return nil, err
	}
	e, err := deliberation.Explain(r, args)
	if err != nil {
		return nil, err
	}
	g.nameAuthors(e)
	return e, nil
}

func (g *graphFile) arguments(r *deliberation.Round) ([]*deliberation.Argument, error) {
	byID := map[string]*deliberation.Argument{}
	var out []*deliberation.Argument
	for _, in := range g.Arguments {
		arg, rho, err := in.argument()
		if err != nil {
			return nil, err
		}
		r.Participants = append(r.Participants, deliberation.Participant{ID: arg.Author, Rho: rho})
		byID[arg.ID] = arg
		out = append(out, arg)
	}
	sort.Slice(r.Participants, func(i, j int) bool { return r.Participants[i].ID < r.Participants[j].ID })
	connect := func(edges []semantics.Edge, relation deliberation.Relation, kind deliberation.ArgumentKind) error {
		for _, e := range edges {
			from := byID[e.From]
			if from == nil || byID[e.To] == nil {
				return machine.Refuse(semantics.CodeMissingArgument, "list both in arguments", "The %s of %q by %q names an argument that is not there.", relation, e.To, e.From)
			}
			from.Refs = append(from.Refs, deliberation.CrossRef{To: e.To, Relation: relation})
			from.Kind = kind
		}
		return nil
	}
	if err := connect(g.Supports, deliberation.Support, deliberation.SupportKind); err != nil {
		return nil, err
	}
	if err := connect(g.Attacks, deliberation.Attack, deliberation.ChallengeKind); err != nil {
		return nil, err
	}
	return out, g.positions(out, byID)
}

// positions marks what can win.
func (g *graphFile) positions(args []*deliberation.Argument, byID map[string]*deliberation.Argument) error {
	if g.Positions == nil {
		for _, arg := range args {
			if len(arg.Refs) == 0 {
				arg.Kind = deliberation.PositionKind
			}
		}
		return nil
	}
	for _, arg := range args {
		if arg.Kind == "" {
			arg.Kind = deliberation.SupportKind // of nothing
		}
	}
	for _, id := range g.Positions {
		if byID[id] == nil {
			return machine.Refuse(semantics.CodeMissingArgument, "list it in arguments", "The position %q is no argument.", id)
		}
		byID[id].Kind = deliberation.PositionKind
	}
	return nil
}

func (in graphArgument) argument() (*deliberation.Argument, float64, error) {
	arg := &deliberation.Argument{ID: in.ID, Author: in.ID}
	if in.Weight != nil && in.Evidence != nil {
		return nil, 0, machine.Refuse(machine.CodeMalformed, "give weight or evidence", "The argument %q has both weight and evidence.", in.ID)
	}
	if in.Weight != nil { // one certain item of this value weighs exactly that
		arg.Evidence = []deliberation.Evidence{{Value: *in.Weight}}
	}
	for _, e := range in.Evidence {
		arg.Evidence = append(arg.Evidence, deliberation.Evidence{Value: e.Value, Confidence: e.Width})
	}
	rho := 1.0
	if in.Rho != nil {
		rho = *in.Rho
	}
	if in.ID == "" {
		return nil, 0, machine.Refuse(machine.CodeMalformed, "give every argument an id", "An argument has no id.")
	}
	return arg, rho, nil
}

// nameAuthors puts back the authors that the graph names, and unmarks its
// edges: in a graph, nothing is a cross-reference.
func (g *graphFile) nameAuthors(e *deliberation.Explanation) {
	author := map[string]string{}
	for _, in := range g.Arguments {
		author[in.ID] = in.Author
	}
	for i := range e.Arguments {
		e.Arguments[i].Author = author[e.Arguments[i].ID]
		for j := range e.Arguments[i].Shares {
			e.Arguments[i].Shares[j].CrossReference = false
		}
	}
	for i := range e.Ranking {
		e.Ranking[i].Author = author[e.Ranking[i].Position]
	}
}
