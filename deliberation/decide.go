package deliberation

import (
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/semantics"
)

// Why is the reason for a path: one of package semantics' reasons, or one of these.
type Why string

// Reasons that lead to the conflict path besides the gap.
const (
	WhySupermajority Why = "supermajority_rule"
	WhySilence       Why = "silence"     // no majority spoke before the deadline
	WhyNoMajority    Why = "no_majority" // all spoke, and no majority came about
)

// Who or what ended collecting, besides a moderator's id.
const (
	ClosedAllFinal = "all_final"
	ClosedWindow   = "window"
)

// Budget bounds the iterations of one run inside Apply, in edge updates: some
// ten milliseconds. It is a protocol constant and part of every evidence chain.
const Budget = 20_000_000

// Graded is the GradedSemantics leaf of the evidence chain (§5.1): everything
// the decision rests on. Numbers at 1e-9 are integers.
type Graded struct {
	Method       string           `json:"method"`
	WeightMethod string           `json:"weight_method"`
	GammaPlus    float64          `json:"gamma_plus"`
	GammaMinus   float64          `json:"gamma_minus"`
	EmptyWeight  float64          `json:"empty_weight"`
	Budget       int64            `json:"budget"`
	Status       string           `json:"status"` // the worst of any argument
	Sweeps       int              `json:"sweeps"`
	Arguments    []GradedArgument `json:"arguments"` // ascending by id
	Path         string           `json:"path"`      // fast, conflict or none
	Reason       string           `json:"reason"`
	Winner       string           `json:"winner,omitempty"`
	Second       string           `json:"second,omitempty"`
	GapNano      *int64           `json:"gap_nano"`
	TauNano      int64            `json:"tau_nano"`
	Ranking      []string         `json:"ranking"` // positions, strongest first
}

// GradedArgument is one argument's strength.
type GradedArgument struct {
	ID         string `json:"id"`
	WeightNano int64  `json:"weight_nano"`
	RhoNano    int64  `json:"rho_nano"`
	SigmaNano  int64  `json:"sigma_nano"`
	Status     string `json:"status"`
}

// Outcome is what semantics makes of the round as it stands.
type Outcome struct {
	Winner    string     `json:"winner"`
	Second    string     `json:"second,omitempty"`
	GapNano   *int64     `json:"gap_nano"` // null with one position
	Clear     bool       `json:"clear"`    // the gap rule says fast
	Reason    Why        `json:"reason"`
	Status    string     `json:"status"`
	Strengths []Strength `json:"strengths"` // positions, strongest first
	Hash      string     `json:"hash"`      // SHA-256 over the round's id and the graded semantics
}

// OutcomeBrief is an outcome as events tell it.
type OutcomeBrief struct {
	Winner  string `json:"winner"`
	GapNano *int64 `json:"gap_nano"`
	TauNano int64  `json:"tau_nano"`
	Clear   bool   `json:"clear"`
	Hash    string `json:"outcome_hash"`
}

func (s *step) brief() *OutcomeBrief {
	o := s.state.Outcome
	if o == nil {
		return nil
	}
	return &OutcomeBrief{Winner: o.Winner, GapNano: o.GapNano, TauNano: s.round.TauNano, Clear: o.Clear, Hash: o.Hash}
}

// Evaluated is the data of deliberatic.evaluated: semantics ran and the path is chosen.
type Evaluated struct {
	Round    string        `json:"round"`
	ClosedBy string        `json:"closed_by"`
	Path     Path          `json:"path,omitempty"`
	Why      Why           `json:"why"`
	Outcome  *OutcomeBrief `json:"outcome"`
	Deadline Stamp         `json:"deadline_ms,omitempty"`
}

// decide ends collecting: semantics, then the fast path or the conflict path.
func (s *step) decide(closedBy string) error {
	s.state.ClosedBy = closedBy
	if s.state.Positions == 0 {
		return s.end(&Verdict{Status: PhaseNoVerdict, Reason: ReasonNoPositions})
	}
	if err := s.evaluate(); err != nil {
		return err
	}
	out := s.state.Outcome
	why, fast := out.Reason, out.Clear
	if s.round.Rule == Supermajority {
		why, fast = WhySupermajority, false
	}
	if !fast {
		s.emit("deliberatic.evaluated", Evaluated{Round: s.round.ID, ClosedBy: closedBy, Path: PathConflict, Why: why, Outcome: s.brief()})
		return s.contest(why)
	}
	s.state.Path, s.state.Why = PathFast, why
	s.move(PhaseFast, s.round.Windows.Confirm)
	s.emit("deliberatic.evaluated", Evaluated{Round: s.round.ID, ClosedBy: closedBy, Path: PathFast, Why: why, Outcome: s.brief(), Deadline: s.state.Deadline})
	if err := s.useStanding(); err != nil {
		return err
	}
	return s.tally()
}

// evaluate runs semantics over the round as it stands.
func (s *step) evaluate() error {
	if err := s.regrade(); err != nil {
		return err
	}
	out, err := outcome(s.round.ID, s.graded, s.authors)
	s.state.Outcome = out
	return err
}

// regrade computes the graded semantics of the round as it stands.
func (s *step) regrade() error {
	args, err := s.arguments()
	if err != nil {
		return err
	}
	s.graded, s.authors, err = Grade(s.round, args)
	return corrupt(err)
}

// outcome is what the graded semantics make of a round.
func outcome(round string, g *Graded, authors map[string]string) (*Outcome, error) {
	out := &Outcome{Winner: g.Winner, Second: g.Second, GapNano: g.GapNano, Clear: g.Path == string(semantics.Fast), Reason: Why(g.Reason), Status: g.Status}
	sigma := make(map[string]int64, len(g.Arguments))
	for _, a := range g.Arguments {
		sigma[a.ID] = a.SigmaNano
	}
	for _, id := range g.Ranking {
		out.Strengths = append(out.Strengths, Strength{Position: id, Author: authors[id], SigmaNano: sigma[id]})
	}
	var err error
	out.Hash, err = canon.HexHash(struct {
		Round  string  `json:"round"`
		Graded *Graded `json:"graded_semantics"`
	}{round, g})
	return out, err
}

// Grade computes the semantics of a round and decides its gap rule. authors
// maps argument ids to their authors.
func Grade(r *Round, args []*Argument) (g *Graded, authors map[string]string, err error) {
	result, err := Compute(r, args)
	if err != nil {
		return nil, nil, err
	}
	authors = make(map[string]string, len(args))
	for _, a := range args {
		authors[a.ID] = a.Author
	}
	g, err = grade(r, args, result)
	return g, authors, err
}

// Compute is the graded semantics of a round (§2.2) over its arguments.
func Compute(r *Round, args []*Argument) (*semantics.Result, error) {
	g := semantics.Graph{}
	for _, a := range args {
		items := make([]semantics.Evidence, len(a.Evidence))
		for i, e := range a.Evidence {
			items[i] = semantics.Evidence{Value: e.Value, Confidence: e.Confidence}
		}
		w, err := semantics.Weight(items, semantics.WeightRule(r.WeightMethod), r.EmptyWeight)
		if err != nil {
			return nil, err
		}
		p, _ := r.Participant(a.Author)
		g.Arguments = append(g.Arguments, semantics.Argument{ID: a.ID, Weight: w, Rho: p.Rho})
		if a.Target != "" {
			addEdge(&g, a.ID, a.Target, a.relation())
		}
		for _, ref := range a.Refs {
			addEdge(&g, a.ID, ref.To, ref.Relation)
		}
	}
	return semantics.Compute(g, semantics.Options{Method: semantics.Method(r.Method), GammaPlus: r.GammaPlus, GammaMinus: r.GammaMinus, Budget: Budget})
}

func addEdge(g *semantics.Graph, from, to string, rel Relation) {
	if rel == Attack {
		g.Attacks = append(g.Attacks, semantics.Edge{From: from, To: to})
	} else {
		g.Supports = append(g.Supports, semantics.Edge{From: from, To: to})
	}
}

// relation is what an argument's own edge does.
func (a *Argument) relation() Relation {
	if a.Kind == ChallengeKind {
		return Attack
	}
	return Support
}

// grade decides the gap rule and gathers what the evidence chain keeps of it.
func grade(r *Round, args []*Argument, result *semantics.Result) (*Graded, error) {
	var positions []semantics.Position
	for _, a := range args {
		if a.Kind == PositionKind {
			positions = append(positions, semantics.Position{ID: a.ID})
		}
	}
	d, err := result.Decide(positions, r.TauNano)
	if err != nil {
		return nil, err
	}
	g := &Graded{Method: r.Method, WeightMethod: r.WeightMethod, GammaPlus: r.GammaPlus, GammaMinus: r.GammaMinus, EmptyWeight: r.EmptyWeight,
		Budget: Budget, Status: result.Status.String(), Sweeps: result.Sweeps, Arguments: []GradedArgument{},
		Path: string(d.Path), Reason: string(d.Reason), Winner: d.Winner, Second: d.Second, TauNano: r.TauNano, Ranking: []string{}}
	if d.Second != "" {
		g.GapNano = &d.Gap
	}
	for _, a := range result.Arguments {
		g.Arguments = append(g.Arguments, GradedArgument{ID: a.ID, WeightNano: semantics.Nano(a.Weight), RhoNano: semantics.Nano(a.Rho), SigmaNano: a.Nano, Status: a.Status.String()})
	}
	for _, p := range d.Ranking {
		g.Ranking = append(g.Ranking, p.ID)
	}
	return g, nil
}

// checkMethods refuses unknown methods when the round opens.
func checkMethods(r *Round) error {
	if r.Method == "" {
		r.Method = string(semantics.FixedPoint)
	}
	if r.WeightMethod == "" {
		r.WeightMethod = string(semantics.Literal)
	}
	switch semantics.Method(r.Method) {
	case semantics.FixedPoint, semantics.QuadraticEnergy, semantics.Rectified, semantics.LiteralJacobi:
	default:
		return malformed("use fixed-point, quadratic-energy, rectified or literal-jacobi", "method %q is unknown", r.Method)
	}
	switch semantics.WeightRule(r.WeightMethod) {
	case semantics.Literal, semantics.DiscountedGM:
	default:
		return malformed("use literal or discounted-gm", "weight_method %q is unknown", r.WeightMethod)
	}
	return nil
}

// ResolveBody ends collecting. The moderator sends it (§3.3).
type ResolveBody struct {
	Round string `json:"round"`
}

func (b *ResolveBody) shape() error { return names(b.Round) }

// resolve is the moderator's: it ends collecting once quorum.minimum
// participants have acted, himself counted.
func (s *step) resolve(a *action) (any, error) {
	var body ResolveBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.enter(a, body.Round, PhaseCollecting); err != nil {
		return nil, err
	}
	who, err := s.moderator()
	if err != nil {
		return nil, err
	}
	if who != a.actor {
		return nil, machine.Refuse(CodeNotModerator, "say deliberatic.done when you have nothing to add", "%s moderates round %s now", who, s.round.ID).With("moderator", who)
	}
	m, err := s.member(s.round.ID, a.actor)
	if err != nil {
		return nil, err
	}
	acted := s.state.Acted
	if !m.Acted {
		acted++
	}
	if acted < s.round.Minimum || s.state.Positions == 0 {
		return nil, machine.Refuse(CodeTooEarly, "wait for more participants, or for the window to end",
			"%d participants have acted and there are %d positions; quorum.minimum is %d", acted, s.state.Positions, s.round.Minimum).
			With("acted", acted).With("minimum", s.round.Minimum)
	}
	if err := s.acted(a.actor, false); err != nil {
		return nil, err
	}
	if err := s.decide(a.actor); err != nil {
		return nil, err
	}
	return s.answer("")
}

// moderator is who moderates the round as it stands.
func (s *step) moderator() (string, error) {
	members, err := s.members()
	if err != nil {
		return "", err
	}
	return s.round.Moderator(withPosition(members)), nil
}

func withPosition(members []*Member) func(string) bool {
	has := map[string]bool{}
	for _, m := range members {
		has[m.Agent] = m.Position != ""
	}
	return func(agent string) bool { return has[agent] }
}
