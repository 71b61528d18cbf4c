package agora

import (
	"slices"
	"strings"

	"github.com/deliberd/deliberd/machine"
)

// State is a round for keeping: what [FromState] needs to go on with it.
type State struct {
	Proposal   Proposal    `json:"proposal"`
	Votes      []Vote      `json:"votes"`  // by agent
	Vetoes     []Veto      `json:"vetoes"` // as they came
	Resolution *Resolution `json:"resolution,omitempty"`
}

// ToState is the round for keeping; it shares nothing that changes.
func (r *Round) ToState() State {
	s := State{Proposal: r.proposal, Votes: []Vote{}, Vetoes: append([]Veto{}, r.vetoes...), Resolution: r.ballot.Resolution}
	for _, v := range r.votes { // order: sorted below
		s.Votes = append(s.Votes, v)
	}
	slices.SortFunc(s.Votes, func(a, b Vote) int { return strings.Compare(a.AgentID, b.AgentID) })
	return s
}

// FromState restores a round. It refuses with invalid_proposal, not_a_voter,
// not_a_vetoer and so on what the round would not have taken, so that a state
// from elsewhere cannot hold what no round could reach.
func FromState(s State) (*Round, error) {
	r, err := Propose(s.Proposal)
	if err != nil {
		return nil, err
	}
	for _, v := range s.Votes {
		if err := r.CastVote(v); err != nil {
			return nil, err
		}
	}
	for _, v := range s.Vetoes {
		if err := r.CastVeto(v); err != nil {
			return nil, err
		}
	}
	if s.Resolution == nil {
		return r, nil
	}
	got := r.Evaluate(s.Resolution.ResolvedAt)
	if got == nil || got.Outcome != s.Resolution.Outcome {
		return nil, machine.Refuse(CodeInvalidProposal, "restore what ToState gave", "the votes do not give the outcome %.16q", string(s.Resolution.Outcome))
	}
	return r, nil
}

// Store keeps rounds.
type Store interface {
	Save(State) error
	// Load reports false when there is no such round.
	Load(id string) (State, bool, error)
	Delete(id string) error
	// ListIDs lists all ids, ascending.
	ListIDs() ([]string, error)
}

// MemoryStore is a [Store] for tests and single processes. The zero value is
// ready to use; it is not safe for concurrent use.
type MemoryStore struct{ rounds map[string]State }

// Save implements Store.
func (m *MemoryStore) Save(s State) error {
	if m.rounds == nil {
		m.rounds = map[string]State{}
	}
	m.rounds[s.Proposal.ID] = s
	return nil
}

// Load implements Store.
func (m *MemoryStore) Load(id string) (State, bool, error) {
	s, ok := m.rounds[id]
	return s, ok, nil
}

// Delete implements Store.
func (m *MemoryStore) Delete(id string) error {
	delete(m.rounds, id)
	return nil
}

// ListIDs implements Store.
func (m *MemoryStore) ListIDs() ([]string, error) {
	ids := make([]string, 0, len(m.rounds))
	for id := range m.rounds { // order: sorted below
		ids = append(ids, id)
	}
	slices.Sort(ids)
	return ids, nil
}
