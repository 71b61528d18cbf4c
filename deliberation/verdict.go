package deliberation

import (
	"encoding/json"

	"github.com/deliberd/deliberd/machine"
)

// Path is how a verdict came about.
type Path string

// The paths.
const (
	PathFast     Path = "fast"     // a clear winner, confirmed by the participants
	PathConflict Path = "conflict" // a certificate of the cluster's voters
	PathReview   Path = "review"   // a human, after the participants did not carry the winner
)

// Reasons of a round that ends without a verdict.
const (
	ReasonNoPositions     = "no_positions"
	ReasonRejected        = "rejected"           // a majority rejected the winner
	ReasonNoSupermajority = "no_supermajority"   // two thirds did not confirm it
	ReasonReviewRejected  = "rejected_by_review" // the human upheld the rejection
	ReasonReviewExpired   = "review_expired"
)

// Verdict is how a round ended. It is part of the evidence chain (§5.1), all
// but EvidenceRoot.
type Verdict struct {
	Round        string              `json:"round"`
	Status       Phase               `json:"status"`           // verdict or no_verdict
	Reason       string              `json:"reason,omitempty"` // why there is no verdict
	Winner       string              `json:"winner,omitempty"` // position id
	Author       string              `json:"author,omitempty"`
	Answer       json.RawMessage     `json:"answer,omitempty"`
	Path         Path                `json:"path,omitempty"` // without a verdict: the path it was on
	Why          Why                 `json:"why,omitempty"`  // why this path
	TauNano      int64               `json:"tau_nano"`
	GapNano      *int64              `json:"gap_nano"`  // null with fewer than two positions
	Strengths    []Strength          `json:"strengths"` // positions, strongest first
	Count        *Count              `json:"confirmations,omitempty"`
	Certificate  *CertificateSummary `json:"certificate"`
	Dissents     []Dissent           `json:"dissents"`
	ClosedBy     string              `json:"closed_by"` // the moderator, "all_final" or "window"
	Reviewer     string              `json:"reviewer,omitempty"`
	DecidedAt    Stamp               `json:"decided_ms"`
	EvidenceRoot string              `json:"evidence_root,omitempty"`
}

// Strength is a position's acceptability.
type Strength struct {
	Position  string `json:"position"`
	Author    string `json:"author"`
	SigmaNano int64  `json:"sigma_nano"` // σ in 1e-9, half to even
}

// Escalated is the data of deliberatic.escalated.
type Escalated struct {
	Round     string   `json:"round"`
	Reason    string   `json:"reason"`
	Winner    string   `json:"winner"`
	Reviewers []string `json:"reviewers"`
	Deadline  Stamp    `json:"deadline_ms"`
}

// conclude ends the round with the outcome's winner.
func (s *step) conclude(path Path) error {
	return s.end(&Verdict{Status: PhaseVerdict, Winner: s.state.Outcome.Winner, Path: path})
}

// rejected obeys the participants: no verdict, or a human decides.
func (s *step) rejected(reason string) error {
	if s.round.OnRejected != EndHuman {
		return s.end(&Verdict{Status: PhaseNoVerdict, Reason: reason})
	}
	s.state.Reason = reason
	s.move(PhaseReview, s.round.Windows.Review)
	for _, id := range s.round.Reviewers {
		if err := s.Put(key('o', id, "\x00", s.round.ID), []byte{1}); err != nil {
			return err
		}
	}
	if err := s.Put(key('w', s.round.ID), []byte{1}); err != nil {
		return err
	}
	s.emit("deliberatic.escalated", Escalated{Round: s.round.ID, Reason: reason, Winner: s.state.Outcome.Winner, Reviewers: s.round.Reviewers, Deadline: s.state.Deadline})
	last := &s.events[len(s.events)-1]
	last.To = append(last.To, s.round.Reviewers...)
	return nil
}

// ReviewBody decides an escalated round: a position wins, or nothing does.
type ReviewBody struct {
	Round  string `json:"round"`
	Winner string `json:"winner,omitempty"` // position id; empty: the rejection stands
	Reason string `json:"reason,omitempty"`
}

func (b *ReviewBody) shape() error {
	if len(b.Reason) > MaxText {
		return tooLarge("reason", MaxText)
	}
	if len(b.Winner) > maxID {
		return names(b.Winner)
	}
	return names(b.Round)
}

// Reviewed is the data of deliberatic.reviewed.
type Reviewed struct {
	Round    string `json:"round"`
	Reviewer string `json:"reviewer"`
	Winner   string `json:"winner,omitempty"`
	Reason   string `json:"reason,omitempty"`
}

func (s *step) review(a *action) (any, error) {
	var body ReviewBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.open(body.Round); err != nil {
		return nil, err
	}
	if err := s.mayReview(a.actor); err != nil {
		return nil, err
	}
	if err := s.in(PhaseReview); err != nil {
		return nil, err
	}
	v := &Verdict{Status: PhaseNoVerdict, Reason: ReasonReviewRejected, Reviewer: a.actor}
	if body.Winner != "" {
		arg, err := s.argument(s.round.ID, body.Winner)
		if err != nil {
			return nil, err
		}
		if arg == nil || arg.Kind != PositionKind {
			return nil, machine.Refuse(CodeMissingArgument, "name a position, or none to let the rejection stand", "there is no position %q in round %s", body.Winner, s.round.ID).With("argument", body.Winner)
		}
		v = &Verdict{Status: PhaseVerdict, Winner: arg.ID, Path: PathReview, Reviewer: a.actor}
	}
	s.emit("deliberatic.reviewed", Reviewed{Round: s.round.ID, Reviewer: a.actor, Winner: body.Winner, Reason: body.Reason})
	if err := s.end(v); err != nil {
		return nil, err
	}
	return s.answer("")
}

func (s *step) mayReview(actor string) error {
	for _, id := range s.round.Reviewers {
		if id == actor {
			return nil
		}
	}
	p, ok, err := s.ctx.World.Principal(actor)
	if err != nil || ok && p.Kind == machine.Operator {
		return err
	}
	return machine.Refuse(CodeNotReviewer, "a reviewer of the round or an operator decides", "%s does not review round %s", actor, s.round.ID)
}

// end fills in a verdict, seals the evidence chain and moves the ratings. It
// is the one place where a round ends.
func (s *step) end(v *Verdict) error {
	v.Round, v.Why, v.TauNano, v.ClosedBy, v.DecidedAt = s.round.ID, s.state.Why, s.round.TauNano, s.state.ClosedBy, s.now()
	if v.Path == "" {
		v.Path = s.state.Path
	}
	v.Certificate, v.Strengths, v.Dissents = s.state.Certificate, []Strength{}, []Dissent{}
	if out := s.state.Outcome; out != nil {
		v.GapNano, v.Strengths = out.GapNano, out.Strengths
		count, err := s.count()
		if err != nil {
			return err
		}
		v.Count = &count
	}
	scores, err := s.judge(v)
	if err != nil {
		return err
	}
	if v.Winner != "" {
		c, err := s.content(s.round.ID, v.Winner)
		if err != nil {
			return err
		}
		v.Answer = c.Answer
	}
	s.move(v.Status, 0)
	if err := s.seal(v); err != nil {
		return err
	}
	if err := s.save(key('v', s.round.ID), v); err != nil {
		return err
	}
	s.ended = v
	if err := s.dismiss(); err != nil {
		return err
	}
	s.emit("deliberatic.decided", v)
	return s.rate(scores)
}

// dismiss takes the round off everybody's inbox and off the frozen list.
func (s *step) dismiss() error {
	for _, ids := range [][]string{s.round.IDs(), s.round.Reviewers} {
		for _, id := range ids {
			if err := s.Delete(key('o', id, "\x00", s.round.ID)); err != nil {
				return err
			}
		}
	}
	if err := s.Delete(key('w', s.round.ID)); err != nil {
		return err
	}
	return s.Delete(key('f', s.round.ID))
}
