package agora

// Events of the machine. action_id is the signed action that did it; the
// proposed action goes by its hash.

type proposedEvent struct {
	RoundID      string   `json:"round_id"`
	Actor        string   `json:"actor"`
	ActionID     string   `json:"action_id"`
	ActionHash   string   `json:"action_hash"` // hex SHA-256 of the action's canonical JSON
	Voters       []Voter  `json:"voters"`
	Vetoers      []string `json:"vetoers"`
	Quorum       Quorum   `json:"quorum"`
	DeadlineMS   *int64   `json:"deadline_ms,omitempty"`
	AutoEvaluate bool     `json:"auto_evaluate"`
}

func proposed(r *record, p Proposal) proposedEvent {
	return proposedEvent{
		RoundID: r.ID, Actor: r.Proposer, ActionID: r.ActionID, ActionHash: r.ActionHash, Voters: p.Voters,
		Vetoers: append([]string{}, p.Vetoers...), Quorum: p.Quorum, DeadlineMS: p.Deadline, AutoEvaluate: r.Auto,
	}
}

type votedEvent struct {
	RoundID  string `json:"round_id"`
	Actor    string `json:"actor"`
	ActionID string `json:"action_id"`
	Choice   Choice `json:"choice"`
	Before   Choice `json:"before,omitempty"` // the vote it replaces
	Reason   string `json:"reason,omitempty"`
	Tally    Tally  `json:"tally"`
}

type vetoedEvent struct {
	RoundID  string `json:"round_id"`
	Actor    string `json:"actor"`
	ActionID string `json:"action_id"`
	Reason   string `json:"reason"`
}

// resolvedEvent names the dissenters; their reasons stand in agora.voted and
// agora.vetoed.
type resolvedEvent struct {
	RoundID    string     `json:"round_id"`
	Resolution Resolution `json:"resolution"`
	ActionHash string     `json:"action_hash"`
	Actor      string     `json:"actor,omitempty"`     // absent when the deadline did it
	ActionID   string     `json:"action_id,omitempty"` // likewise
}
