package deliberation

import (
	"bytes"
	"encoding/json"
	"errors"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Codes of this machine's refusals, besides the shared ones.
const (
	CodeQuorumTooSmall  = "quorum_too_small"  // fewer participants than quorum.minimum
	CodeNotParticipant  = "not_a_participant" // the actor is not of the round's frozen electorate
	CodeNotModerator    = "not_moderator"     // somebody else resolves this round
	CodeNotReviewer     = "not_reviewer"      // neither a reviewer of this round nor an operator
	CodeTooEarly        = "too_early"         // fewer than quorum.minimum participants have acted
	CodeWrongPhase      = "wrong_phase"       // the round does not take this now
	CodeRoundFrozen     = "round_frozen"      // nothing changes after the freeze
	CodeRoundClosed     = "round_closed"      // the round has ended
	CodeNotEnded        = "round_not_ended"   // an outcome is learned from ended rounds only
	CodeSameAnswer      = "same_answer"       // data.support names the position to support instead
	CodePositionExists  = "position_exists"   // one position an agent
	CodeUnknownOption   = "unknown_option"    // the answer is none of the round's options
	CodeMissingArgument = "missing_argument"  // an edge to an argument that is not there
	CodeNotYours        = "not_your_argument" // evidence and cross-references belong to the author
	CodeSelfAttack      = "self_attack"       // nobody attacks his own argument
	CodeSelfSupport     = "self_support"      // nobody supports his own argument
	CodeAlreadyArgued   = "already_argued"    // data.argument names the one that says so already
	CodeTooMany         = "too_many"          // a bound of the round is reached
	CodeTooLarge        = "too_large"         // a text or value beyond its bound
	CodeOtherWinner     = "other_winner"      // data.winner names the one to confirm or reject
	CodeAlreadyVoted    = "already_confirmed" // this winner on this evidence has this participant's word
	CodeExpired         = "expired"           // a standing confirmation that has ended before it begins
	CodeBadCertificate  = "bad_certificate"   // not a certificate of this round's freeze
	CodeNoCheckpoint    = "no_checkpoint"     // the freeze's entry is not complete yet
	CodeNoCommittee     = "no_committee"      // no voters are known for the freeze's epoch
	CodeNotADissent     = "not_a_dissent"     // nobody of this name dissented
	CodeAlreadyLearned  = "already_learned"   // the outcome, or this vindication, is known
)

func tooMany(what string, limit int) *machine.Refusal {
	return machine.Refuse(CodeTooMany, "argue with what is there, or open another round", "at most %d %s", limit, what).With("limit", limit)
}

func tooLarge(what string, limit int) *machine.Refusal {
	return machine.Refuse(CodeTooLarge, "shorten it, or point to it from the evidence's source", "%s is longer than %d bytes", what, limit).With("limit", limit)
}

func malformed(fix, format string, args ...any) *machine.Refusal {
	return machine.Refuse(machine.CodeMalformed, fix, format, args...)
}

func outOfRange(fix, format string, args ...any) *machine.Refusal {
	return machine.Refuse(machine.CodeOutOfRange, fix, format, args...)
}

// action is what a handler gets of a signed action.
type action struct {
	id    string
	actor string
	body  json.RawMessage
}

// decode fills the strict body struct.
func (a *action) decode(into any) error {
	if bytes.Contains(a.body, []byte("null")) && !nullsAllowed(a.body, false) {
		return malformed("leave a member out instead", "null stands where a value should")
	}
	if err := canon.DecodeChecked(a.body, into); err != nil {
		var c *canon.Error
		if errors.As(err, &c) {
			return malformed("compare with the kind's schema", "the body is not of this kind's shape: %s", c.Detail)
		}
		return malformed("compare with the kind's schema", "the body is not of this kind's shape")
	}
	return nil
}

// free are the members that hold any JSON value.
var free = map[string]bool{"answer": true, "answers": true, "options": true, "facts": true, "task": true, "certificate": true}

// nullsAllowed reports whether null stands only inside free members:
// encoding/json would take it for an absent member.
func nullsAllowed(raw json.RawMessage, inside bool) bool {
	switch {
	case inside || len(raw) == 0:
		return true
	case raw[0] == '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return true // the decoder says what is wrong
		}
		for name, v := range members {
			if !nullsAllowed(v, free[name]) {
				return false
			}
		}
		return true
	case raw[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return true
		}
		for _, v := range items {
			if !nullsAllowed(v, false) {
				return false
			}
		}
		return true
	}
	return string(raw) != "null"
}

// step is one change of one round: by an action, by time, or by an event.
type step struct {
	book
	ctx     machine.Ctx
	round   *Round
	state   *State
	events  []machine.Event
	armed   Stamp             // the deadline that the index holds
	graded  *Graded           // semantics of the round as it stands, when this step has computed it
	authors map[string]string // argument id to author, with graded
}

func (s *step) now() Stamp { return s.ctx.Now }

// open points the step at a stored round; not_found when there is none.
func (s *step) open(id string) error {
	r, st, err := s.book.round(id)
	if err != nil {
		return err
	}
	if r == nil {
		return machine.Refuse(machine.CodeNotFound, "list rounds with deliberatic.list", "there is no round %q", id)
	}
	s.round, s.state, s.armed = r, st, st.Deadline
	return nil
}

// enter opens a round for one of its participants in one of the phases given.
func (s *step) enter(a *action, id string, phases ...Phase) error {
	if err := s.open(id); err != nil {
		return err
	}
	if _, ok := s.round.Participant(a.actor); !ok {
		return machine.Refuse(CodeNotParticipant, "the participants were frozen when the round opened", "%s is not a participant of round %s", a.actor, id)
	}
	return s.in(phases...)
}

// in refuses unless the round is in one of the phases.
func (s *step) in(phases ...Phase) error {
	for _, p := range phases {
		if s.state.Phase == p {
			return nil
		}
	}
	id, phase := s.round.ID, s.state.Phase
	switch {
	case phase.Ended():
		return machine.Refuse(CodeRoundClosed, "read its verdict with deliberatic.get", "round %s has ended", id).With("phase", phase)
	case phase == PhaseFrozen || phase == PhaseCertified:
		return machine.Refuse(CodeRoundFrozen, "wait for the verdict", "round %s is frozen: only a certificate ends it", id).With("phase", phase)
	}
	return machine.Refuse(CodeWrongPhase, "deliberatic.get shows the phase; the inbox shows what is asked", "round %s is in phase %s", id, phase).With("phase", phase)
}

func (s *step) emit(typ string, data any) {
	s.events = append(s.events, machine.Event{Type: typ, Subject: s.round.ID, To: s.round.IDs(), Data: data})
}

// move enters a phase that ends by itself after ms milliseconds; 0: never by time.
func (s *step) move(p Phase, ms int64) {
	s.state.Phase, s.state.Final, s.state.Deadline = p, 0, 0
	if ms > 0 {
		s.state.Deadline = s.now() + Stamp(ms)
	}
}

// grow counts bytes against the round's bound.
func (s *step) grow(n int) error {
	if s.state.Bytes+n > MaxRoundBytes {
		return machine.Refuse(CodeTooMany, "shorten it, or point to it from the evidence's source",
			"round %s holds at most %d bytes of texts and evidence", s.round.ID, MaxRoundBytes).With("limit", MaxRoundBytes)
	}
	s.state.Bytes += n
	return nil
}

// store writes the state and keeps the deadline index true.
func (s *step) store() error {
	if s.armed != s.state.Deadline {
		if s.armed != 0 {
			if err := s.Delete(deadlineKey(s.armed, s.round.ID)); err != nil {
				return err
			}
		}
		if s.state.Deadline != 0 {
			if err := s.Put(deadlineKey(s.state.Deadline, s.round.ID), []byte{1}); err != nil {
				return err
			}
		}
		s.armed = s.state.Deadline
	}
	return s.save(key('s', s.round.ID), s.state)
}

// acted records that a participant has done something, and perhaps that it is
// final in this phase. When all are, the phase ends now.
func (s *step) acted(agent string, final bool) error {
	m, err := s.member(s.round.ID, agent)
	if err != nil {
		return err
	}
	changed := false
	if !m.Acted {
		m.Acted, changed = true, true
		s.state.Acted++
	}
	if final && m.Final != s.state.Phase {
		m.Final, changed = s.state.Phase, true
		s.state.Final++
	}
	if changed {
		if err := s.saveMember(s.round.ID, m); err != nil {
			return err
		}
	}
	if s.state.Final == len(s.round.Participants) {
		switch s.state.Phase {
		case PhaseCollecting:
			return s.decide(ClosedAllFinal)
		case PhasePrepare:
			return s.freeze()
		}
	}
	return nil
}

// Answer is what the actions of a round answer: where it stands now and, once
// it has ended, its verdict.
type Answer struct {
	Round    string   `json:"round"`
	Argument string   `json:"argument,omitempty"`
	Phase    Phase    `json:"phase"`
	Deadline Stamp    `json:"deadline_ms,omitempty"`
	Status   string   `json:"status,omitempty"` // "already_decided" for a certificate that came second
	Verdict  *Verdict `json:"verdict,omitempty"`
}

// answer stores the step and says where the round stands.
func (s *step) answer(argument string) (any, error) {
	if err := s.store(); err != nil {
		return nil, err
	}
	out := Answer{Round: s.round.ID, Argument: argument, Phase: s.state.Phase, Deadline: s.state.Deadline}
	if s.state.Phase.Ended() {
		v, err := s.verdict(s.round.ID)
		if err != nil {
			return nil, err
		}
		out.Verdict = v
	}
	return out, nil
}
