package acp

import "github.com/deliberd/deliberd/machine"

// Reasons of an escalation (§10.3).
const (
	EscalatedByTie    = "tie"
	EscalatedByHand   = "manual"
	EscalatedByPolicy = "policy"
)

// State is all of a proposal that its resolution depends on. It is the state
// machine of §4.1; [Workspace] and the replicated machine both drive it, each
// with its own way of keeping responses.
type State struct {
	Author     string
	Status     Status
	Quorum     QuorumPolicy
	ExpiresAt  *Time // nil: never
	Tally      Tally
	Resolution *Resolution // nil while pending
	Escalation string      // why it was escalated, "" if it never was
}

// Expired reports whether time has run out: now >= expires_at (§8.1).
func (s *State) Expired(now Time) bool { return s.ExpiresAt != nil && !now.Before(*s.ExpiresAt) }

// Late reports whether a pending proposal should have been resolved by time
// before now: what comes now is too late, even if no sweep ran. At exactly
// expires_at nothing is late yet (§7.4).
func (s *State) Late(now Time) bool {
	return s.Status == Pending && s.ExpiresAt != nil && now.After(*s.ExpiresAt)
}

// Settle resolves a pending proposal whose quorum is met, or else whose time
// has run out (§7.4), and reports whether it did.
func (s *State) Settle(now Time) bool {
	switch {
	case s.Status != Pending:
		return false
	case s.Quorum.IsMet(s.Tally):
		s.close(s.Tally.Outcome(), ByQuorum, now)
	case s.Expired(now) && s.Tally.Responses == 0:
		s.close(OutcomeExpired, ByTimeout, now)
	case s.Expired(now):
		s.close(s.Tally.Outcome(), ByTimeout, now)
	default:
		return false
	}
	return true
}

// Admit refuses a response that must not count (§5.3): not_pending,
// invalid_response_type, self_response, duplicate_response. again says that
// the participant has responded before. The caller has settled first if the
// proposal was [State.Late].
func (s *State) Admit(participant string, again bool, kind ResponseType) error {
	switch {
	case s.Status != Pending:
		return machine.Refuse(CodeNotPending, "respond to pending proposals only", "the proposal is %s", s.Status)
	case kind != Endorse && kind != Challenge:
		return badResponseType(string(kind))
	case participant == s.Author:
		return machine.Refuse(CodeSelfResponse, "let others respond", "%s is the author", participant)
	case again:
		return machine.Refuse(CodeDuplicateResponse, "the first response stands", "%s has responded already", participant)
	}
	return nil
}

// Count adds an admitted response and settles; it reports whether that
// resolved the proposal. One that comes at exactly expires_at counts, and is
// the last: quorum is looked at first, then the time (§7.4).
func (s *State) Count(kind ResponseType, weight Decimal, now Time) bool {
	s.Tally = s.Tally.Add(kind, weight)
	return s.Settle(now)
}

func badResponseType(got string) error {
	return machine.Refuse(CodeInvalidResponseType, "say endorse or challenge", "response_type is %.64q", got)
}

// Escalate hands a pending proposal to a human; the votes so far are kept.
// reason is one of the Escalated… constants. Refusal: illegal_transition.
func (s *State) Escalate(reason string, now Time) error {
	if s.Status != Pending {
		return machine.Refuse(CodeIllegalTransition, "only a pending proposal can be escalated", "the proposal is %s", s.Status)
	}
	s.close(OutcomeEscalated, ByHand, now)
	s.Escalation = reason
	return nil
}

// Resolve is a human's decision on an escalated proposal (§10.2); the votes so
// far are kept. Refusals: illegal_transition, invalid_outcome.
func (s *State) Resolve(outcome Outcome, now Time) error {
	switch {
	case s.Status != Escalated:
		return machine.Refuse(CodeIllegalTransition, "only an escalated proposal is resolved by hand", "the proposal is %s", s.Status)
	case outcome != Approved && outcome != Rejected:
		return badOutcome(outcome)
	}
	s.close(outcome, ByHand, now)
	return nil
}

func badOutcome(got Outcome) error {
	return machine.Refuse(CodeInvalidOutcome, "say approved or rejected", "outcome is %.64q", string(got))
}

// AutoResolve approves an observation or a hypothesis on submission: trigger
// quorum, no votes, marked auto.
func (s *State) AutoResolve(now Time) {
	s.close(Approved, ByQuorum, now)
	s.Resolution.Auto = true
}

func (s *State) close(outcome Outcome, trigger Trigger, now Time) {
	s.Status = Resolved
	switch outcome {
	case OutcomeEscalated:
		s.Status, s.Escalation = Escalated, EscalatedByTie
	case OutcomeExpired:
		s.Status = Expired
	}
	s.Resolution = &Resolution{
		SchemaVersion: SchemaVersion, Outcome: outcome, Trigger: trigger,
		VotesFor: s.Tally.VotesFor, VotesAgainst: s.Tally.VotesAgainst, DecidedAt: now,
	}
}

// Decision is the event that records the state's resolution (§11). n counts
// the proposal's earlier events.
func (s *State) Decision(proposalID, domain string, n int) DecisionEvent {
	r := s.Resolution
	e := DecisionEvent{
		SchemaVersion: SchemaVersion, EventID: EventID(proposalID, n, r.DecidedAt), EventType: "decision",
		ProposalID: proposalID, Domain: domain, Outcome: r.Outcome, Trigger: r.Trigger,
		VotesFor: r.VotesFor, VotesAgainst: r.VotesAgainst, DecidedAt: r.DecidedAt,
		CausedBy: proposalID, Auto: r.Auto, Escalation: s.Escalation,
	}
	return e
}
