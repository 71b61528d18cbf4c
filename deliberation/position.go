package deliberation

import (
	"encoding/json"

	"github.com/deliberd/deliberd/machine"
)

// PositionBody states a position: the one answer an agent stands for.
type PositionBody struct {
	Round       string          `json:"round"`
	Answer      json.RawMessage `json:"answer"`          // any JSON value; equal canonical JSON is an equal answer
	Text        string          `json:"text,omitempty"`  // reasoning, at most 64 KiB
	Facts       json.RawMessage `json:"facts,omitempty"` // declared facts, an object, for the constitution
	Evidence    []EvidenceItem  `json:"evidence,omitempty"`
	Probability *float64        `json:"probability,omitempty"` // that the answer is right, [0, 1] (§6.2)
	Final       bool            `json:"final,omitempty"`       // nothing more to say while collecting
}

func (b *PositionBody) shape() error {
	if err := names(b.Round); err != nil {
		return err
	}
	if _, err := AnswerHash(b.Answer); err != nil {
		return err
	}
	if len(b.Text) > MaxText {
		return tooLarge("text", MaxText)
	}
	if b.Probability != nil && !isUnit(*b.Probability) {
		return outOfRange("give the chance that the answer is right", "probability is not in [0, 1]")
	}
	if err := object(b.Facts, "facts"); err != nil {
		return err
	}
	_, err := checkEvidence(b.Evidence)
	return err
}

// ArgumentAdded is the data of deliberatic.positioned, .challenged and .supported.
type ArgumentAdded struct {
	Round    string          `json:"round"`
	Argument string          `json:"argument"`
	Agent    string          `json:"agent"`
	Target   string          `json:"target,omitempty"`
	Answer   json.RawMessage `json:"answer,omitempty"`
}

// position takes one position an agent; an equal answer is refused with the
// position to support instead, since two would make the gap 0.
func (s *step) position(a *action) (any, error) {
	var body PositionBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.enter(a, body.Round, PhaseCollecting); err != nil {
		return nil, err
	}
	m, err := s.member(s.round.ID, a.actor)
	if err != nil {
		return nil, err
	}
	if m.Position != "" {
		return nil, machine.Refuse(CodePositionExists, "add evidence to it, or challenge others", "%s has position %s in this round", a.actor, m.Position).With("position", m.Position)
	}
	hash, err := s.fresh(body.Answer)
	if err != nil {
		return nil, err
	}
	arg := &Argument{ID: a.id, Kind: PositionKind, Author: a.actor, AnswerHash: hash, Probability: body.Probability, At: s.now()}
	content := &Content{Answer: body.Answer, Text: body.Text, Facts: body.Facts}
	m.Position = a.id
	if err := s.add(m, arg, content, body.Evidence); err != nil {
		return nil, err
	}
	if err := s.Put(key('h', s.round.ID, hash), []byte(a.id)); err != nil {
		return nil, err
	}
	s.state.Positions++
	s.emit("deliberatic.positioned", ArgumentAdded{Round: s.round.ID, Argument: a.id, Agent: a.actor, Answer: body.Answer})
	if err := s.acted(a.actor, body.Final); err != nil {
		return nil, err
	}
	return s.answer(a.id)
}

// fresh refuses an answer outside the options and one that is there already.
func (s *step) fresh(answer json.RawMessage) (string, error) {
	hash, err := AnswerHash(answer)
	if err != nil {
		return "", err
	}
	allowed := len(s.round.Options) == 0
	for _, o := range s.round.Options {
		h, err := AnswerHash(o)
		if err != nil {
			return "", err
		}
		allowed = allowed || h == hash
	}
	if !allowed {
		return "", machine.Refuse(CodeUnknownOption, "answer with one of the options", "the round has %d options and this is none", len(s.round.Options)).With("options", s.round.Options)
	}
	same, err := s.text(key('h', s.round.ID, hash))
	if err != nil {
		return "", err
	}
	if same != "" {
		return "", machine.Refuse(CodeSameAnswer, "support that position instead", "position %s gives the same answer", same).With("support", same)
	}
	return hash, nil
}

// add stores a new argument with its content and counts it.
func (s *step) add(m *Member, arg *Argument, content *Content, evidence []EvidenceItem) error {
	if s.state.Arguments >= MaxArguments {
		return tooMany("arguments in one round", MaxArguments)
	}
	if share := s.round.Share(MaxArguments); m.Arguments >= share {
		return tooMany("arguments of one participant in this round", share)
	}
	if there, err := s.argument(s.round.ID, arg.ID); err != nil || there != nil {
		if err != nil {
			return err
		}
		return machine.Refuse(machine.CodeAlreadyExists, "make a new id", "argument %s is there already", arg.ID)
	}
	var err error
	if arg.Evidence, err = checkEvidence(evidence); err != nil {
		return err
	}
	if err := s.grow(m, len(content.Text)+len(content.Answer)+len(content.Facts)+evidenceBytes(arg.Evidence)+256); err != nil {
		return err
	}
	m.Arguments++
	s.state.Arguments++
	s.state.Evidence += len(arg.Evidence)
	if err := s.saveMember(m); err != nil {
		return err
	}
	if err := s.saveArgument(arg); err != nil {
		return err
	}
	return s.save(key('b', s.round.ID, arg.ID), content)
}
