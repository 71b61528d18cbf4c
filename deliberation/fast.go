package deliberation

import (
	"encoding/json"
	"regexp"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// Count is how a round's participants have spoken on one winner and one state
// of the evidence.
type Count struct {
	Participants int `json:"participants"`
	Accepts      int `json:"accepts"`
	Rejects      int `json:"rejects"`
}

// MajorityOf is ⌊n/2⌋+1 (§3.1).
func MajorityOf(n int) int { return n/2 + 1 }

// TwoThirdsOf is ⌈2n/3⌉.
func TwoThirdsOf(n int) int { return (2*n + 2) / 3 }

// Ruling is what a count means.
type Ruling string

// The rulings.
const (
	Waiting   Ruling = "waiting"   // some have yet to speak, and it matters
	Confirmed Ruling = "confirmed" // enough confirm
	Rejected  Ruling = "rejected"  // a majority rejects
	Contested Ruling = "contested" // neither can come about any more
)

// Fast is the fast path's rule (§3.1): a majority of all participants commits,
// a majority that rejects is obeyed. When all have spoken without a majority
// the conflict path begins at once.
func (c Count) Fast() Ruling {
	need := MajorityOf(c.Participants)
	switch {
	case c.Accepts >= need:
		return Confirmed
	case c.Rejects >= need:
		return Rejected
	case c.Accepts+c.Rejects >= c.Participants:
		return Contested
	}
	return Waiting
}

// Ratify is the rule of a supermajority: two thirds of all participants
// confirm. It is contested as soon as they cannot any more.
func (c Count) Ratify() Ruling {
	need := TwoThirdsOf(c.Participants)
	switch {
	case c.Accepts >= need:
		return Confirmed
	case c.Rejects >= MajorityOf(c.Participants):
		return Rejected
	case c.Participants-c.Rejects < need:
		return Contested
	}
	return Waiting
}

// ConfirmBody confirms or rejects the proposed winner, or (while collecting)
// leaves a standing confirmation: Winner and Accept, or Standing.
type ConfirmBody struct {
	Round       string        `json:"round"`
	Winner      string        `json:"winner,omitempty"`
	Accept      *bool         `json:"accept,omitempty"`
	OutcomeHash string        `json:"outcome_hash,omitempty"` // binds the word to the outcome that was read
	Standing    *StandingBody `json:"standing,omitempty"`
}

func (b *ConfirmBody) shape() error {
	if err := names(b.Round); err != nil {
		return err
	}
	st := b.Standing
	if st == nil {
		if b.Winner == "" || b.Accept == nil {
			return malformed("give winner and accept, or standing", "the confirmation says neither accept nor standing")
		}
		if b.OutcomeHash != "" && !hexHash.MatchString(b.OutcomeHash) {
			return malformed("give the 64 hex digits that deliberatic.get shows", "outcome_hash is no hash")
		}
		return names(b.Winner)
	}
	if b.Winner != "" || b.Accept != nil || b.OutcomeHash != "" {
		return malformed("give winner and accept, or standing", "a standing confirmation names its winners inside standing")
	}
	if n := len(st.Winners) + len(st.Answers); n == 0 || n > MaxOptions {
		return malformed("name positions or answers", "a standing confirmation names 1 to %d winners and answers", MaxOptions)
	}
	if st.Expires < 1 {
		return malformed("say until when it stands", "a standing confirmation has no expires_ms")
	}
	for _, answer := range st.Answers {
		if _, err := AnswerHash(answer); err != nil {
			return err
		}
	}
	return names(st.Winners...)
}

var hexHash = regexp.MustCompile(`^[0-9a-f]{64}$`)

// StandingBody accepts, until Expires, a clear verdict for one of these
// positions or answers. The signed action binds it to the cluster's genesis
// and to the round.
type StandingBody struct {
	Winners []string          `json:"winners,omitempty"`
	Answers []json.RawMessage `json:"answers,omitempty"`
	Expires Stamp             `json:"expires_ms"`
}

// Voted is the data of deliberatic.confirmed.
type Voted struct {
	Round    string `json:"round"`
	Agent    string `json:"agent"`
	Winner   string `json:"winner,omitempty"`
	Accept   bool   `json:"accept"`
	Standing bool   `json:"standing"`
	Count    *Count `json:"count,omitempty"`
}

func (s *step) confirm(a *action) (any, error) {
	var body ConfirmBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if body.Standing != nil {
		return s.confirmAhead(a, &body)
	}
	if err := s.enter(a, body.Round, s.votingPhases()...); err != nil {
		return nil, err
	}
	if err := s.mayVote(); err != nil {
		return nil, err
	}
	out := s.state.Outcome
	if body.Winner != out.Winner || body.OutcomeHash != "" && body.OutcomeHash != out.Hash {
		return nil, machine.Refuse(CodeOtherWinner, "read the round again and confirm or reject what stands now",
			"round %s proposes %s", s.round.ID, out.Winner).With("winner", out.Winner).With("outcome_hash", out.Hash)
	}
	m, err := s.member(s.round.ID, a.actor)
	if err != nil {
		return nil, err
	}
	if s.speaksTo(m.Vote) {
		return nil, machine.Refuse(CodeAlreadyVoted, "a word once given stands", "%s has spoken on %s", a.actor, out.Winner)
	}
	m.Vote = &Vote{Action: a.id, Winner: out.Winner, Evidence: s.state.Evidence, Accept: *body.Accept, At: s.now()}
	if err := s.saveMember(m); err != nil {
		return nil, err
	}
	count, err := s.count()
	if err != nil {
		return nil, err
	}
	s.emit("deliberatic.confirmed", Voted{Round: s.round.ID, Agent: a.actor, Winner: out.Winner, Accept: *body.Accept, Count: &count})
	if err := s.acted(a.actor, s.state.Phase == PhasePrepare); err != nil {
		return nil, err
	}
	if err := s.tally(); err != nil {
		return nil, err
	}
	return s.answer("")
}

// votingPhases are the phases in which there is a winner to speak on.
func (s *step) votingPhases() []Phase {
	return []Phase{PhaseFast, PhasePrepare, PhaseFrozen, PhaseCertified}
}

// mayVote: after the freeze only a supermajority rule still counts words.
func (s *step) mayVote() error {
	if s.state.Phase == PhaseFrozen && s.round.Rule != Supermajority {
		return s.in(PhaseFast, PhasePrepare)
	}
	return nil
}

// speaksTo reports whether a vote is about the present winner on the present evidence.
func (s *step) speaksTo(v *Vote) bool {
	return v != nil && s.state.Outcome != nil && v.Winner == s.state.Outcome.Winner && v.Evidence == s.state.Evidence
}

// confirmAhead stores a standing confirmation; a later one replaces it.
func (s *step) confirmAhead(a *action, body *ConfirmBody) (any, error) {
	if err := s.enter(a, body.Round, PhaseCollecting); err != nil {
		return nil, err
	}
	st := body.Standing
	if st.Expires <= s.now() {
		return nil, machine.Refuse(CodeExpired, "let it expire later than now", "expires_ms %d is not after %d", st.Expires, s.now())
	}
	keep := &Standing{Action: a.id, Winners: st.Winners, Expires: st.Expires}
	for _, id := range st.Winners {
		arg, err := s.argument(s.round.ID, id)
		if err != nil {
			return nil, err
		}
		if arg == nil || arg.Kind != PositionKind {
			return nil, machine.Refuse(CodeMissingArgument, "name a position of this round, or its answer", "there is no position %q", id).With("argument", id)
		}
	}
	for _, answer := range st.Answers {
		hash, err := AnswerHash(answer)
		if err != nil {
			return nil, err
		}
		keep.Answers = append(keep.Answers, hash)
	}
	m, err := s.member(s.round.ID, a.actor)
	if err != nil {
		return nil, err
	}
	m.Standing = keep
	if err := s.saveMember(m); err != nil {
		return nil, err
	}
	s.emit("deliberatic.confirmed", Voted{Round: s.round.ID, Agent: a.actor, Accept: true, Standing: true})
	if err := s.acted(a.actor, false); err != nil {
		return nil, err
	}
	return s.answer("")
}

// covers reports whether a standing confirmation accepts this winner now.
func (st *Standing) covers(winner, answerHash string, now Stamp) bool {
	return st != nil && now < st.Expires && (slices.Contains(st.Winners, winner) || slices.Contains(st.Answers, answerHash))
}

// useStanding turns the standing confirmations that cover the winner into votes.
func (s *step) useStanding() error {
	out := s.state.Outcome
	arg, err := s.argument(s.round.ID, out.Winner)
	if err != nil {
		return err
	}
	members, err := s.members()
	if err != nil {
		return err
	}
	for _, m := range members {
		if s.speaksTo(m.Vote) || !m.Standing.covers(out.Winner, arg.AnswerHash, s.now()) {
			continue
		}
		m.Vote = &Vote{Action: m.Standing.Action, Winner: out.Winner, Evidence: s.state.Evidence, Accept: true, Standing: true, At: s.now()}
		if err := s.saveMember(m); err != nil {
			return err
		}
	}
	return nil
}

// count counts the words on the present winner and evidence.
func (s *step) count() (Count, error) {
	c := Count{Participants: len(s.round.Participants)}
	members, err := s.members()
	for _, m := range members {
		switch {
		case !s.speaksTo(m.Vote):
		case m.Vote.Accept:
			c.Accepts++
		default:
			c.Rejects++
		}
	}
	return c, err
}

// tally ends the round when the words suffice for it.
func (s *step) tally() error {
	count, err := s.count()
	if err != nil {
		return err
	}
	switch s.state.Phase {
	case PhaseFast:
		switch count.Fast() {
		case Confirmed:
			return s.conclude(PathFast)
		case Rejected:
			return s.rejected(ReasonRejected)
		case Contested:
			return s.contest(WhyNoMajority)
		}
	case PhaseCertified:
		switch count.Ratify() {
		case Confirmed:
			return s.conclude(PathConflict)
		case Rejected:
			return s.rejected(ReasonRejected)
		case Contested:
			return s.rejected(ReasonNoSupermajority)
		}
	}
	return nil
}
