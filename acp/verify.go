package acp

import "github.com/deliberd/deliberd/machine"

// Recount adds up the responses from their three factors. Weights on the wire
// play no part: how they were rounded is not defined.
func (p Proposal) Recount() Tally {
	var t Tally
	for _, r := range p.Responses {
		t = t.Add(r.ResponseType, Weight(r.DomainAuthority, r.Confidence, r.TrustScore))
	}
	return t
}

// Verify judges a proposal received from somebody else: nobody responded
// twice or to himself (§5.3), a status goes with its resolution, and the
// outcome is the one that the responses give. policy nil is Count{Quorum}.
// Refusals: duplicate_response, self_response, inconsistent.
func (p Proposal) Verify(policy QuorumPolicy) error {
	if policy == nil {
		policy = Count{Threshold: p.Quorum}
	}
	seen := make(map[string]bool, len(p.Responses))
	for _, r := range p.Responses {
		if r.ParticipantID == p.Author {
			return machine.Refuse(CodeSelfResponse, "ask for a corrected copy", "the author %.64q responded", p.Author)
		}
		if seen[r.ParticipantID] {
			return machine.Refuse(CodeDuplicateResponse, "ask for a corrected copy", "%.64q responded twice", r.ParticipantID)
		}
		seen[r.ParticipantID] = true
	}
	if (p.Status == Pending) != (p.Resolution == nil) {
		return inconsistent("status %s and the resolution do not go together", p.Status)
	}
	if p.Resolution == nil {
		return nil
	}
	return p.verifyResolution(policy, p.Recount())
}

func (p Proposal) verifyResolution(policy QuorumPolicy, t Tally) error {
	r := p.Resolution
	want := Resolved
	switch r.Outcome {
	case OutcomeEscalated:
		want = Escalated
	case OutcomeExpired:
		want = Expired
	}
	if p.Status != want {
		return inconsistent("outcome %s under status %s", r.Outcome, p.Status)
	}
	outcome := t.Outcome()
	switch {
	case r.Trigger == ByHand || p.Type != ProposalType && r.Trigger == ByQuorum && t.Responses == 0:
		return nil // a human's, a policy's or the entry type's decision
	case r.Trigger == ByQuorum && !policy.IsMet(t):
		return inconsistent("trigger quorum with %d responses", t.Responses)
	case r.Trigger == ByTimeout && (p.ExpiresAt == nil || r.DecidedAt.Before(*p.ExpiresAt)):
		return inconsistent("trigger timeout before expires_at")
	case r.Trigger == ByTimeout && t.Responses == 0:
		outcome = OutcomeExpired
	}
	if r.Outcome != outcome {
		return inconsistent("the responses give %s, not %s", outcome, r.Outcome)
	}
	return nil
}

func inconsistent(format string, args ...any) error {
	return machine.Refuse(CodeInconsistent, "ask for a corrected copy", format, args...)
}
