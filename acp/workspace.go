package acp

import (
	"encoding/json"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// Workspace is the shared workspace of §3 in memory, for use without a
// cluster: the caller authenticates, keeps the clock and serializes calls.
// The zero value is ready to use.
type Workspace struct {
	entries map[string]*entry
	order   []string // proposal ids as submitted
}

type entry struct {
	proposal  Proposal
	state     State
	decisions []DecisionEvent
}

// Submission is what an author gives (§4.3).
type Submission struct {
	ProposalID string // ULID
	Type       EntryType
	Domain     string
	Author     string
	Payload    json.RawMessage // an object; nil is {}
	Quorum     uint64          // number of responses, 1 or more
	Policy     QuorumPolicy    // nil: Count{Quorum}
	ExpiresAt  *Time           // nil: never
}

// Submit posts a proposal. An observation or hypothesis resolves at once.
// Refusals: duplicate_proposal, invalid_quorum, invalid_id, invalid_object.
func (w *Workspace) Submit(in Submission, now Time) error {
	if err := CheckID(in.ProposalID); err != nil {
		return err
	}
	if in.Payload == nil {
		in.Payload = json.RawMessage("{}")
	}
	switch {
	case w.entries[in.ProposalID] != nil:
		return duplicateProposal(in.ProposalID)
	case in.Type != Observation && in.Type != Hypothesis && in.Type != ProposalType:
		return invalidObject("type is %.64q", string(in.Type))
	case in.Domain == "" || in.Author == "":
		return invalidObject("domain and author must not be empty")
	case in.Quorum == 0:
		return machine.Refuse(CodeInvalidQuorum, "give 1 or more", "quorum is 0")
	}
	if in.Policy == nil {
		in.Policy = Count{Threshold: in.Quorum}
	}
	e := &entry{
		proposal: Proposal{
			SchemaVersion: SchemaVersion, ProposalID: in.ProposalID, Type: in.Type, Domain: in.Domain, Author: in.Author,
			Payload: slices.Clone(in.Payload), Quorum: in.Quorum, CreatedAt: now, ExpiresAt: in.ExpiresAt,
		},
		state: State{Author: in.Author, Status: Pending, Quorum: in.Policy, ExpiresAt: in.ExpiresAt},
	}
	if w.entries == nil {
		w.entries = map[string]*entry{}
	}
	w.entries[in.ProposalID] = e
	w.order = append(w.order, in.ProposalID)
	if in.Type != ProposalType {
		e.state.AutoResolve(now)
		e.record()
	}
	return nil
}

func duplicateProposal(id string) error {
	return machine.Refuse(CodeDuplicateProposal, "use a fresh ULID", "proposal %s exists", id)
}

// Respond posts a response; its weight and timestamp are set here. It resolves
// an expired proposal first, even when it then refuses the response.
// Refusals: not_found, not_pending, invalid_response_type, self_response, duplicate_response.
func (w *Workspace) Respond(proposalID string, r Response, now Time) error {
	e, err := w.find(proposalID, now)
	if err != nil {
		return err
	}
	again := slices.ContainsFunc(e.proposal.Responses, func(o Response) bool { return o.ParticipantID == r.ParticipantID })
	r.SchemaVersion, r.Timestamp = SchemaVersion, now
	r.Weight = Weight(r.DomainAuthority, r.Confidence, r.TrustScore)
	if err := e.state.Admit(r.ParticipantID, again, r.ResponseType); err != nil {
		return err
	}
	e.proposal.Responses = append(e.proposal.Responses, r)
	if e.state.Count(r.ResponseType, r.Weight, now) {
		e.record()
	}
	return nil
}

// Escalate hands a proposal to a human; policy is the id of the policy that
// asks for it, or "". Refusals: not_found, illegal_transition.
func (w *Workspace) Escalate(proposalID, actor, policy string, now Time) error {
	e, err := w.find(proposalID, now)
	if err != nil {
		return err
	}
	reason := EscalatedByHand
	if policy != "" {
		reason = EscalatedByPolicy
	}
	if err := e.state.Escalate(reason, now); err != nil {
		return err
	}
	d := e.record()
	d.Actor, d.Policy = actor, policy
	return nil
}

// Resolve is a human's decision. Refusals: not_found, illegal_transition, invalid_outcome.
func (w *Workspace) Resolve(proposalID, human string, outcome Outcome, now Time) error {
	e, err := w.find(proposalID, now)
	if err != nil {
		return err
	}
	if err := e.state.Resolve(outcome, now); err != nil {
		return err
	}
	e.record().Actor = human
	return nil
}

// Sweep resolves every pending proposal that has expired at now (§8.3) and
// returns their ids in order of submission.
func (w *Workspace) Sweep(now Time) []string {
	var swept []string
	for _, id := range w.order {
		if e := w.entries[id]; e.state.Settle(now) {
			e.record()
			swept = append(swept, id)
		}
	}
	return swept
}

// Proposal returns a copy of the wire object as it stands.
func (w *Workspace) Proposal(id string) (Proposal, bool) {
	e := w.entries[id]
	if e == nil {
		return Proposal{}, false
	}
	p := e.proposal
	p.Responses = slices.Clone(p.Responses)
	p.Status, p.Resolution = e.state.Status, e.state.Resolution
	return p, true
}

// Decisions returns the proposal's Decision Events, oldest first: one for the
// terminal state and one more when a human has resolved an escalation.
func (w *Workspace) Decisions(id string) []DecisionEvent {
	if e := w.entries[id]; e != nil {
		return slices.Clone(e.decisions)
	}
	return nil
}

// find returns an entry after resolving it if it is late.
func (w *Workspace) find(id string, now Time) (*entry, error) {
	e := w.entries[id]
	if e == nil {
		return nil, notFound(id)
	}
	if e.state.Late(now) && e.state.Settle(now) {
		e.record()
	}
	return e, nil
}

func notFound(id string) error {
	return machine.Refuse(machine.CodeNotFound, "look it up with acp.list", "no proposal %.64q", id)
}

func (e *entry) record() *DecisionEvent {
	d := e.state.Decision(e.proposal.ProposalID, e.proposal.Domain, len(e.decisions))
	if n := len(e.decisions); n > 0 {
		d.Supersedes, d.Policy = e.decisions[n-1].EventID, e.decisions[n-1].Policy
	}
	e.decisions = append(e.decisions, d)
	return &e.decisions[len(e.decisions)-1]
}
