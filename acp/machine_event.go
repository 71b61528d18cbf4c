package acp

// Events of the machine. acp.decided carries a [DecisionEvent]; together they
// are the audit log of §14.6: actor, action, proposal, payload hash, and the
// time of the log entry they stand in. Decimals are exact strings.

type submittedEvent struct {
	ProposalID  string    `json:"proposal_id"`
	Type        EntryType `json:"type"`
	Domain      string    `json:"domain"`
	Actor       string    `json:"actor"`
	ActionID    string    `json:"action_id"`
	Quorum      uint64    `json:"quorum"`
	Policy      string    `json:"quorum_policy,omitempty"`
	Threshold   string    `json:"threshold,omitempty"`
	ExpiresAt   *Time     `json:"expires_at"`
	PayloadHash string    `json:"payload_hash"`
}

func (p *record) submitted() submittedEvent {
	e := submittedEvent{
		ProposalID: p.ID, Type: p.Type, Domain: p.Domain, Actor: p.Author, ActionID: p.ID, Quorum: p.Quorum,
		Policy: p.Policy, ExpiresAt: p.state().ExpiresAt, PayloadHash: p.PayloadHash,
	}
	if p.Threshold != nil {
		e.Threshold = p.Threshold.String()
	}
	return e
}

type respondedEvent struct {
	ProposalID      string       `json:"proposal_id"`
	Actor           string       `json:"actor"`
	ActionID        string       `json:"action_id"`
	ResponseType    ResponseType `json:"response_type"`
	Confidence      string       `json:"confidence"`
	DomainAuthority string       `json:"domain_authority"`
	TrustScore      string       `json:"trust_score"`
	Weight          string       `json:"weight"`
	Reason          *string      `json:"reason"`
	Responses       uint64       `json:"responses"`
	PayloadHash     string       `json:"payload_hash"`
}

func responded(p *record, r Response, action string) respondedEvent {
	return respondedEvent{
		ProposalID: p.ID, Actor: r.ParticipantID, ActionID: action, ResponseType: r.ResponseType,
		Confidence: r.Confidence.String(), DomainAuthority: r.DomainAuthority.String(), TrustScore: r.TrustScore.String(),
		Weight: r.Weight.String(), Reason: r.Reason, Responses: p.Responses, PayloadHash: p.PayloadHash,
	}
}

type configuredEvent struct {
	Actor    string `json:"actor"`
	ActionID string `json:"action_id"`
	config
}
