package deliberation

import (
	"cmp"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// AskContext is what one needs to know to answer an ask of a round.
type AskContext struct {
	Question     string            `json:"question,omitempty"`
	Domain       string            `json:"domain,omitempty"`
	Options      []any             `json:"options,omitempty"`
	Positions    []PositionSummary `json:"positions,omitempty"`
	Winner       string            `json:"winner,omitempty"` // the position to confirm or reject
	OutcomeHash  string            `json:"outcome_hash,omitempty"`
	GapNano      *int64            `json:"gap_nano,omitempty"`
	TauNano      int64             `json:"tau_nano,omitempty"`
	Reason       string            `json:"reason,omitempty"` // why a human is asked
	OwnArguments []string          `json:"own_arguments,omitempty"`
}

// PositionSummary is one position in an ask's context.
type PositionSummary struct {
	ID     string `json:"id"`
	Author string `json:"author"`
	Answer any    `json:"answer"`
	Text   string `json:"text,omitempty"` // its first 1,000 characters
}

// Asks implements machine.Machine. What is asked: "position" (state one),
// "argue" (answer others, or say done), "resolve" (of the moderator),
// "confirm", "evidence" (in the conflict path's window) and "review".
func (m *Machine) Asks(tx machine.Tx, ctx machine.Ctx, principal string) ([]machine.Ask, error) {
	b := book{tx}
	ids, err := b.roundsOf(principal, ctx)
	if err != nil {
		return nil, err
	}
	var out []machine.Ask
	for _, id := range ids {
		s := &step{book: b, ctx: ctx}
		if err := s.openStored(id); err != nil {
			return nil, err
		}
		asks, err := s.asks(principal)
		if err != nil {
			return nil, err
		}
		out = append(out, asks...)
	}
	slices.SortStableFunc(out, func(a, b machine.Ask) int {
		return cmp.Or(machine.CompareDeadlines(a.Deadline, b.Deadline), cmp.Compare(a.Subject, b.Subject))
	})
	return out, nil
}

// roundsOf lists the rounds in which a principal may be asked something; an
// operator may review any escalated round.
func (b book) roundsOf(principal string, ctx machine.Ctx) ([]string, error) {
	var ids []string
	add := func(rest string, _ []byte) (bool, error) { ids = append(ids, rest); return true, nil }
	if err := machine.Each(b.Tx, key('o', principal, "\x00"), "", add); err != nil {
		return nil, err
	}
	p, ok, err := ctx.World.Principal(principal)
	if err != nil || !ok || p.Kind != machine.Operator {
		return ids, err
	}
	return ids, machine.Each(b.Tx, key('w'), "", add)
}

func (s *step) asks(principal string) ([]machine.Ask, error) {
	p, _ := s.round.Participant(principal)
	m, err := s.member(s.round.ID, principal)
	if err != nil {
		return nil, err
	}
	var out []machine.Ask
	ask := func(what, verb string) error {
		c, err := s.askContext(what, principal)
		out = append(out, machine.Ask{Ask: what, Kind: Name + "." + verb, Subject: s.round.ID, Title: s.round.Title, Deadline: s.state.Deadline, Schema: schema(verb), Context: c})
		return err
	}
	in := p.ID != ""
	switch s.state.Phase {
	case PhaseCollecting:
		switch {
		case !in || m.Final == PhaseCollecting:
		case m.Position == "":
			err = ask("position", "position")
		default:
			err = ask("argue", "done")
		}
		if err == nil && in {
			err = s.askModerator(principal, m, ask)
		}
	case PhaseFast, PhaseCertified:
		if in && !s.speaksTo(m.Vote) {
			err = ask("confirm", "confirm")
		}
	case PhaseFrozen:
		if in && !s.speaksTo(m.Vote) && s.round.Rule == Supermajority {
			err = ask("confirm", "confirm")
		}
	case PhasePrepare:
		if in && m.Final != PhasePrepare {
			err = ask("evidence", "evidence")
		}
	case PhaseReview:
		if s.mayReview(principal) == nil {
			err = ask("review", "review")
		}
	}
	return out, err
}

// askModerator asks the moderator once it may resolve.
func (s *step) askModerator(principal string, m *Member, ask func(string, string) error) error {
	acted := s.state.Acted
	if !m.Acted {
		acted++
	}
	if acted < s.round.Minimum || s.state.Positions == 0 {
		return nil
	}
	who, err := s.moderator()
	if err != nil || who != principal {
		return err
	}
	return ask("resolve", "resolve")
}

// summaryLength is how much of a position's text an ask shows.
const summaryLength = 1000

func (s *step) askContext(what, principal string) (*AskContext, error) {
	c := &AskContext{Question: s.round.Question, Domain: s.round.Domain, TauNano: s.round.TauNano, Reason: s.state.Reason}
	if what == "position" {
		for _, o := range s.round.Options {
			c.Options = append(c.Options, o)
		}
	}
	if out := s.state.Outcome; out != nil {
		c.Winner, c.OutcomeHash, c.GapNano = out.Winner, out.Hash, out.GapNano
	}
	args, err := s.arguments()
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		if a.Author == principal {
			c.OwnArguments = append(c.OwnArguments, a.ID)
		}
		if a.Kind != PositionKind {
			continue
		}
		content, err := s.content(s.round.ID, a.ID)
		if err != nil {
			return nil, err
		}
		c.Positions = append(c.Positions, PositionSummary{ID: a.ID, Author: a.Author, Answer: content.Answer, Text: head(content.Text, summaryLength)})
	}
	return c, nil
}

// head is the first n characters of a text.
func head(text string, n int) string {
	for i := range text {
		if n == 0 {
			return text[:i]
		}
		n--
	}
	return text
}
