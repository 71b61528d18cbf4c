package acp

import (
	"encoding/json"
)

// SchemaVersion is the only schema_version of this revision (§12.1, §18.4).
const SchemaVersion = "1.0"

// EntryType is what a proposal is (§4.2).
type EntryType string

// The entry types. An observation is a fact somebody saw, a hypothesis a
// belief offered for others to use: both resolve on submission. Only a
// proposal takes the full lifecycle.
const (
	Observation  EntryType = "observation"
	Hypothesis   EntryType = "hypothesis"
	ProposalType EntryType = "proposal"
)

// ResponseType is for or against (§5.1).
type ResponseType string

// The response types. There is no third.
const (
	Endorse   ResponseType = "endorse"
	Challenge ResponseType = "challenge"
)

// Status is where a proposal stands (§4.1).
type Status string

// The statuses. Resolved, Escalated and Expired take no responses; only
// Escalated can still move, to Resolved, by a human.
const (
	Pending   Status = "pending"
	Resolved  Status = "resolved"
	Escalated Status = "escalated"
	Expired   Status = "expired"
)

// Outcome is what was determined (§6.3, §8.2).
type Outcome string

// The outcomes.
const (
	Approved         Outcome = "approved"
	Rejected         Outcome = "rejected"
	OutcomeEscalated Outcome = "escalated"
	OutcomeExpired   Outcome = "expired"
)

// Trigger is what caused a resolution.
type Trigger string

// The triggers. Escalation by a policy carries Manual too: the RFC has no
// trigger of its own for it.
const (
	ByQuorum  Trigger = "quorum"
	ByTimeout Trigger = "timeout"
	ByHand    Trigger = "manual"
)

// Proposal is the wire object of §12.2 and Appendix B.1.
type Proposal struct {
	SchemaVersion string          `json:"schema_version"`
	ProposalID    string          `json:"proposal_id"`
	Type          EntryType       `json:"type"`
	Domain        string          `json:"domain"`
	Author        string          `json:"author"`
	Payload       json.RawMessage `json:"payload"` // an object; never changes
	Status        Status          `json:"status"`
	Responses     []Response      `json:"responses"` // in order of arrival, which means nothing
	Quorum        uint64          `json:"quorum"`
	CreatedAt     Time            `json:"created_at"`
	ExpiresAt     *Time           `json:"expires_at"` // nil: never by time (§8.4)
	Resolution    *Resolution     `json:"resolution"` // nil while pending
}

// Response is the wire object of §12.3 and §12.4. The three factors and the
// weight are in [0, 1].
type Response struct {
	SchemaVersion   string       `json:"schema_version"`
	ParticipantID   string       `json:"participant_id"`
	ResponseType    ResponseType `json:"response_type"`
	Confidence      Decimal      `json:"confidence"`
	DomainAuthority Decimal      `json:"domain_authority"`
	TrustScore      Decimal      `json:"trust_score"`
	Weight          Decimal      `json:"weight"` // recomputed by every reader, never trusted
	Reason          *string      `json:"reason"`
	Timestamp       Time         `json:"timestamp"`
}

// Resolution is the wire object of §12.5.
type Resolution struct {
	SchemaVersion string  `json:"schema_version"`
	Outcome       Outcome `json:"outcome"`
	Trigger       Trigger `json:"trigger"`
	VotesFor      Decimal `json:"votes_for"`
	VotesAgainst  Decimal `json:"votes_against"`
	DecidedAt     Time    `json:"decided_at"`
	Auto          bool    `json:"auto,omitempty"` // extension: an observation or hypothesis, resolved on submission
}

// DecisionEvent is the wire object of §12.6 and Appendix B.2, with its causal
// lineage (§11.3) and what the audit log wants (§14.6).
type DecisionEvent struct {
	SchemaVersion string  `json:"schema_version"`
	EventID       string  `json:"event_id"`
	EventType     string  `json:"event_type"` // "decision"
	ProposalID    string  `json:"proposal_id"`
	Domain        string  `json:"domain"`
	Outcome       Outcome `json:"outcome"`
	Trigger       Trigger `json:"trigger"`
	VotesFor      Decimal `json:"votes_for"`
	VotesAgainst  Decimal `json:"votes_against"`
	DecidedAt     Time    `json:"decided_at"`

	CausedBy    string `json:"caused_by"`              // the proposal
	Supersedes  string `json:"supersedes,omitempty"`   // event_id of the escalation that a human resolved
	Auto        bool   `json:"auto,omitempty"`         // as in Resolution
	Escalation  string `json:"escalation,omitempty"`   // why it was escalated: tie, manual, policy (§10.3)
	Policy      string `json:"policy,omitempty"`       // id of the policy that escalated it
	Actor       string `json:"actor,omitempty"`        // who escalated or resolved by hand
	ActionID    string `json:"action_id,omitempty"`    // id of the signed action that brought the decision about; absent when time did
	PayloadHash string `json:"payload_hash,omitempty"` // hex SHA-256 of the payload's canonical JSON
}

// Float fields are JSON numbers on the wire (§12.1), and canonical JSON
// writes a number as the nearest double. Objects therefore also carry a
// member "exact" with every decimal as a string; readers that know it take
// the value from there.

type exactResponse struct {
	Confidence      string `json:"confidence"`
	DomainAuthority string `json:"domain_authority"`
	TrustScore      string `json:"trust_score"`
	Weight          string `json:"weight"`
}

type exactVotes struct {
	VotesFor     string `json:"votes_for"`
	VotesAgainst string `json:"votes_against"`
}

// MarshalJSON writes the wire object with its exact decimals.
func (r Response) MarshalJSON() ([]byte, error) {
	type plain Response
	return json.Marshal(struct {
		plain
		Exact exactResponse `json:"exact"`
	}{plain(r), exactResponse{r.Confidence.String(), r.DomainAuthority.String(), r.TrustScore.String(), r.Weight.String()}})
}

// MarshalJSON writes the wire object with its exact decimals.
func (r Resolution) MarshalJSON() ([]byte, error) {
	type plain Resolution
	return json.Marshal(struct {
		plain
		Exact exactVotes `json:"exact"`
	}{plain(r), exactVotes{r.VotesFor.String(), r.VotesAgainst.String()}})
}

// MarshalJSON writes the wire object with its exact decimals.
func (e DecisionEvent) MarshalJSON() ([]byte, error) {
	type plain DecisionEvent
	return json.Marshal(struct {
		plain
		Exact exactVotes `json:"exact"`
	}{plain(e), exactVotes{e.VotesFor.String(), e.VotesAgainst.String()}})
}

// MarshalJSON writes the wire object; no responses are an empty array.
func (p Proposal) MarshalJSON() ([]byte, error) {
	type plain Proposal
	if p.Responses == nil {
		p.Responses = []Response{}
	}
	return json.Marshal(plain(p))
}
