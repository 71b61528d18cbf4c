package deliberation

import "github.com/deliberd/deliberd/machine"

// ArgueBody challenges or supports an earlier argument, position or not.
type ArgueBody struct {
	Round    string         `json:"round"`
	Target   string         `json:"target"`
	Text     string         `json:"text,omitempty"`
	Evidence []EvidenceItem `json:"evidence,omitempty"`
	Final    bool           `json:"final,omitempty"`
}

func (b *ArgueBody) shape() error {
	if err := names(b.Round, b.Target); err != nil {
		return err
	}
	if len(b.Text) > MaxText {
		return tooLarge("text", MaxText)
	}
	_, err := checkEvidence(b.Evidence)
	return err
}

// RelateBody adds an edge from an argument of one's own to any other: a
// cross-reference, which may close a cycle.
type RelateBody struct {
	Round    string   `json:"round"`
	From     string   `json:"from"`
	To       string   `json:"to"`
	Relation Relation `json:"relation"`
	Final    bool     `json:"final,omitempty"`
}

func (b *RelateBody) shape() error {
	if b.Relation != Attack && b.Relation != Support {
		return malformed("use attack or support", "relation %q is unknown", b.Relation)
	}
	return names(b.Round, b.From, b.To)
}

// Related is the data of deliberatic.related.
type Related struct {
	Round          string   `json:"round"`
	From           string   `json:"from"`
	To             string   `json:"to"`
	Relation       Relation `json:"relation"`
	Agent          string   `json:"agent"`
	CrossReference bool     `json:"cross_reference"` // always true
}

func (s *step) challenge(a *action) (any, error) {
	return s.argue(a, ChallengeKind, Attack, "deliberatic.challenged")
}

func (s *step) support(a *action) (any, error) {
	return s.argue(a, SupportKind, Support, "deliberatic.supported")
}

func (s *step) argue(a *action, kind ArgumentKind, rel Relation, event string) (any, error) {
	var body ArgueBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.enter(a, body.Round, PhaseCollecting); err != nil {
		return nil, err
	}
	if body.Target == a.id {
		return nil, selfRefusal(rel)
	}
	if err := s.edge(a, a.id, body.Target, rel); err != nil {
		return nil, err
	}
	m, err := s.member(s.round.ID, a.actor)
	if err != nil {
		return nil, err
	}
	arg := &Argument{ID: a.id, Kind: kind, Author: a.actor, Target: body.Target, At: s.now()}
	if err := s.add(m, arg, &Content{Text: body.Text}, body.Evidence); err != nil {
		return nil, err
	}
	s.emit(event, ArgumentAdded{Round: s.round.ID, Argument: a.id, Agent: a.actor, Target: body.Target})
	if err := s.acted(a.actor, body.Final); err != nil {
		return nil, err
	}
	return s.answer(a.id)
}

// edge checks the target of a new edge and notes that its author has made it.
func (s *step) edge(a *action, from, to string, rel Relation) error {
	target, err := s.argument(s.round.ID, to)
	if err != nil {
		return err
	}
	if target == nil {
		return machine.Refuse(CodeMissingArgument, "deliberatic.get lists the arguments", "there is no argument %q in round %s", to, s.round.ID).With("argument", to)
	}
	if target.Author == a.actor {
		return selfRefusal(rel)
	}
	k := key('u', s.round.ID, to, string(rel), a.actor)
	there, err := s.text(k)
	if err != nil {
		return err
	}
	if there != "" {
		return machine.Refuse(CodeAlreadyArgued, "add evidence to that argument instead", "argument %s of %s says so already", there, a.actor).With("argument", there)
	}
	return s.Put(k, []byte(from))
}

func selfRefusal(rel Relation) *machine.Refusal {
	if rel == Attack {
		return machine.Refuse(CodeSelfAttack, "challenge what others say", "nobody attacks his own argument")
	}
	return machine.Refuse(CodeSelfSupport, "add evidence to the argument instead", "nobody supports his own argument")
}

func (s *step) ownArgument(a *action, id string) (*Argument, error) {
	arg, err := s.argument(s.round.ID, id)
	if err != nil {
		return nil, err
	}
	if arg == nil {
		return nil, machine.Refuse(CodeMissingArgument, "deliberatic.get lists the arguments", "there is no argument %q in round %s", id, s.round.ID).With("argument", id)
	}
	if arg.Author != a.actor {
		return nil, machine.Refuse(CodeNotYours, "support or challenge it with an argument of your own", "argument %s is by %s", id, arg.Author)
	}
	return arg, nil
}

// relate adds a cross-reference. Such edges alone can make the graph cyclic.
func (s *step) relate(a *action) (any, error) {
	var body RelateBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.enter(a, body.Round, PhaseCollecting); err != nil {
		return nil, err
	}
	if body.From == body.To {
		return nil, selfRefusal(body.Relation)
	}
	arg, err := s.ownArgument(a, body.From)
	if err != nil {
		return nil, err
	}
	if err := s.edge(a, arg.ID, body.To, body.Relation); err != nil {
		return nil, err
	}
	if s.state.CrossRefs >= MaxCrossRefs {
		return nil, tooMany("cross-references in one round", MaxCrossRefs)
	}
	m, err := s.member(s.round.ID, a.actor)
	if err != nil {
		return nil, err
	}
	if share := s.round.Share(MaxCrossRefs); m.CrossRefs >= share {
		return nil, tooMany("cross-references of one participant in this round", share)
	}
	if err := s.grow(m, 96); err != nil {
		return nil, err
	}
	m.CrossRefs++
	s.state.CrossRefs++
	arg.Refs = append(arg.Refs, CrossRef{To: body.To, Relation: body.Relation, At: s.now()})
	if err := s.saveArgument(arg); err != nil {
		return nil, err
	}
	if err := s.saveMember(m); err != nil {
		return nil, err
	}
	s.emit("deliberatic.related", Related{Round: s.round.ID, From: body.From, To: body.To, Relation: body.Relation, Agent: a.actor, CrossReference: true})
	if err := s.acted(a.actor, body.Final); err != nil {
		return nil, err
	}
	return s.answer(arg.ID)
}

// DoneBody says that its sender has nothing more to add in this phase.
type DoneBody struct {
	Round string `json:"round"`
}

func (b *DoneBody) shape() error { return names(b.Round) }

// Finished is the data of deliberatic.finished.
type Finished struct {
	Round string `json:"round"`
	Agent string `json:"agent"`
	Phase Phase  `json:"phase"`
}

func (s *step) done(a *action) (any, error) {
	var body DoneBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.enter(a, body.Round, PhaseCollecting, PhasePrepare); err != nil {
		return nil, err
	}
	s.emit("deliberatic.finished", Finished{Round: s.round.ID, Agent: a.actor, Phase: s.state.Phase})
	if err := s.acted(a.actor, true); err != nil {
		return nil, err
	}
	return s.answer("")
}
