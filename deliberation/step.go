package deliberation

import "github.com/deliberd/deliberd/machine"

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
	ended   *Verdict          // which this step has brought about
	read    memo
	voters  *committees // of the machine
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
	s.round, s.state, s.armed, s.read = r, st, st.Deadline, memo{}
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

// grow counts bytes against a participant's share of the round's bound.
func (s *step) grow(m *Member, n int) error {
	if share := s.round.Share(MaxRoundBytes); m.Bytes+n > share {
		return machine.Refuse(CodeTooMany, "shorten it, or point to it from the evidence's source",
			"each of %d participants may bring %d bytes of texts and evidence", len(s.round.Participants), share).With("limit", share)
	}
	m.Bytes += n
	s.state.Bytes += n
	return nil
}

// store writes the state and keeps the deadline index true.
func (s *step) store() error {
	if s.armed != s.state.Deadline {
		if s.armed != 0 {
			if err := s.Delete(deadlines.Key(s.armed, s.round.ID)); err != nil {
				return err
			}
		}
		if s.state.Deadline != 0 {
			if err := s.Put(deadlines.Key(s.state.Deadline, s.round.ID), []byte{1}); err != nil {
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
		if err := s.saveMember(m); err != nil {
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
		var err error
		if out.Verdict = s.ended; out.Verdict == nil {
			out.Verdict, err = s.verdict(s.round.ID)
		}
		return out, err
	}
	return out, nil
}
