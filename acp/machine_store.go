package acp

import (
	"encoding/json"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// Keys of the machine. A domain and a participant end before the next NUL, which neither can hold.
//
//	c                              configuration
//	p/ID                           record of a proposal
//	y/ID                           its payload
//	r/ID NUL PARTICIPANT           one response
//	g/ID NUL PARTICIPANT           a participant of a unanimous quorum
//	s/STATUS NUL ID                proposals by status
//	n/DOMAIN NUL ID                proposals by domain
//	t/STATUS NUL DOMAIN NUL ID     proposals by both
//	x/STAMP(8, big endian) ID      pending proposals that expire
type store struct{ tx machine.Tx }

const (
	nul      = "\x00"
	expiries = machine.Schedule("x/")
)

// record is what the machine keeps of a proposal besides payload and responses.
type record struct {
	ID             string          `json:"id"` // also the id of the action that submitted it
	Type           EntryType       `json:"type"`
	Domain         string          `json:"domain"`
	Author         string          `json:"author"`
	Status         Status          `json:"status"`
	Quorum         uint64          `json:"quorum"`
	Policy         string          `json:"policy,omitempty"` // "" count, else weighted or unanimous
	Threshold      *Decimal        `json:"threshold,omitempty"`
	Created        machine.Stamp   `json:"created"`
	Expires        machine.Stamp   `json:"expires,omitempty"` // 0: never
	PayloadHash    string          `json:"payload_hash"`
	Responses      uint64          `json:"responses"`
	VotesFor       Decimal         `json:"votes_for"`
	VotesAgainst   Decimal         `json:"votes_against"`
	Escalation     *escalation     `json:"escalation,omitempty"`
	ResolutionNote string          `json:"resolution_note,omitempty"`
	Decisions      []DecisionEvent `json:"decisions,omitempty"`
}

// escalation is the metadata of §10.3.
type escalation struct {
	Reason      string        `json:"reason"` // tie, manual, policy
	At          machine.Stamp `json:"at_ms"`
	Policy      string        `json:"policy,omitempty"`
	By          string        `json:"by,omitempty"`
	Note        string        `json:"note,omitempty"`
	Responsible string        `json:"responsible,omitempty"`
}

// keptResponse is a response with its place in the order of arrival.
type keptResponse struct {
	N        uint64   `json:"n"`
	ActionID string   `json:"action_id"`
	Response Response `json:"response"`
}

// config is what operators have set.
type config struct {
	Hypotheses string       `json:"hypotheses"`
	Escalate   []PolicyRule `json:"escalate"`
}

// How hypotheses resolve: on submission, or with one response.
const (
	hypothesesAuto    = "auto"
	hypothesesRespond = "respond"
)

// escalates names the policy that wants a human for this submission, or "".
func (c config) escalates(b SubmitBody) string {
	if b.Type != ProposalType {
		return ""
	}
	for _, rule := range c.Escalate {
		if rule.covers(b.Domain) {
			return rule.Policy
		}
	}
	return b.EscalatePolicy
}

// newRecord makes the record of a submission and, for a unanimous quorum,
// fixes its participants.
func newRecord(s store, ctx machine.Ctx, a machine.Action, b SubmitBody, c config) (*record, error) {
	hash, err := payloadHash(b.Payload)
	if err != nil {
		return nil, err
	}
	p := &record{
		ID: a.ID, Type: b.Type, Domain: b.Domain, Author: a.Actor, Status: Pending,
		Quorum: max(1, b.Quorum), Created: ctx.Now, PayloadHash: hash,
	}
	if b.QuorumPolicy != nil {
		p.Policy, p.Threshold = b.QuorumPolicy.Type, b.QuorumPolicy.Threshold
	}
	switch {
	case b.ExpiresAt != nil:
		p.Expires = b.ExpiresAt.Stamp()
	case b.ExpiresInMS != 0:
		p.Expires = ctx.Now + machine.Stamp(b.ExpiresInMS)
	}
	if b.ExpiresAt != nil && p.Expires <= ctx.Now || int64(p.Expires) > maxExpiresAt {
		return nil, machine.Refuse(machine.CodeOutOfRange, "give a time that is still to come", "expires_at is %s, it is %s now", At(p.Expires), At(ctx.Now))
	}
	switch {
	case b.Type == Observation, b.Type == Hypothesis && c.Hypotheses != hypothesesRespond:
		p.Policy, p.Threshold, p.Expires = "", nil, 0 // resolves now
	case b.Type == Hypothesis:
		p.Policy, p.Threshold, p.Quorum = "", nil, 1
	case p.Policy == policyUnanimous:
		return p, s.fixParticipants(ctx, p)
	}
	return p, nil
}

func (s store) fixParticipants(ctx machine.Ctx, p *record) error {
	holders, err := ctx.World.Holders(p.Domain)
	if err != nil {
		return err
	}
	quorum, err := NewUnanimous(holders, p.Author)
	if err != nil {
		return err
	}
	p.Quorum = quorum.Eligible
	for _, id := range holders {
		if id != p.Author {
			if err := s.tx.Put([]byte("g/"+p.ID+nul+id), []byte{1}); err != nil {
				return err
			}
		}
	}
	return nil
}

// state is the record as the library's state machine sees it.
func (p *record) state() *State {
	s := &State{
		Author: p.Author, Status: p.Status, Quorum: Count{Threshold: p.Quorum},
		Tally: Tally{Responses: p.Responses, VotesFor: p.VotesFor, VotesAgainst: p.VotesAgainst},
	}
	if p.Policy == policyWeighted {
		s.Quorum = Weighted{Threshold: *p.Threshold}
	}
	if p.Expires != 0 {
		at := At(p.Expires)
		s.ExpiresAt = &at
	}
	if p.Escalation != nil {
		s.Escalation = p.Escalation.Reason
	}
	return s
}

func (p *record) count(t Tally) {
	p.Responses, p.VotesFor, p.VotesAgainst = t.Responses, t.VotesFor, t.VotesAgainst
}

func (p *record) result(weight string) Result {
	r := Result{ProposalID: p.ID, Status: p.Status, Responses: p.Responses, Weight: weight}
	if n := len(p.Decisions); n > 0 {
		r.Decision = &p.Decisions[n-1]
	}
	return r
}

// decide records a resolution that the state machine has made: the Decision
// Event, the new status in record and indexes. a is the action that brought
// it about, empty when time did.
func (s store) decide(ctx machine.Ctx, p *record, state *State, a machine.Action) (machine.Event, error) {
	d := state.Decision(p.ID, p.Domain, len(p.Decisions))
	d.ActionID, d.PayloadHash = a.ID, p.PayloadHash
	if d.Trigger == ByHand {
		d.Actor = a.Actor
	}
	if n := len(p.Decisions); n > 0 {
		d.Supersedes = p.Decisions[n-1].EventID
	}
	if state.Status == Escalated {
		if p.Escalation == nil {
			p.Escalation = &escalation{}
		}
		p.Escalation.Reason, p.Escalation.At = state.Escalation, ctx.Now
	}
	if p.Escalation != nil {
		d.Policy = p.Escalation.Policy
	}
	p.Decisions = append(p.Decisions, d)
	if err := s.move(p, state.Status); err != nil {
		return machine.Event{}, err
	}
	to, err := s.concerned(ctx, p)
	return machine.Event{Type: "acp.decided", Subject: p.ID, To: to, Data: d}, err
}

// concerned lists who hears of a decision: author, responders, and for an
// escalation the humans who may resolve it.
func (s store) concerned(ctx machine.Ctx, p *record) ([]string, error) {
	to := []string{p.Author}
	err := machine.Each(s.tx, "r/"+p.ID+nul, "", func(participant string, _ []byte) (bool, error) {
		to = append(to, participant)
		return true, nil
	})
	if err == nil && p.Status == Escalated {
		var holders []string
		if holders, err = ctx.World.Holders(p.Domain); err != nil {
			return nil, err
		}
		for _, id := range holders {
			who, ok, err := ctx.World.Principal(id)
			if err != nil {
				return nil, err
			}
			if ok && who.Kind == machine.Human {
				to = append(to, id)
			}
		}
	}
	slices.Sort(to)
	return slices.Compact(to), err
}

// insert writes a new pending proposal and its index entries.
func (s store) insert(p *record) error {
	if err := s.tx.Put([]byte("n/"+p.Domain+nul+p.ID), []byte{1}); err != nil {
		return err
	}
	if err := s.index(p); err != nil {
		return err
	}
	if p.Expires != 0 {
		if err := s.tx.Put(expiries.Key(p.Expires, p.ID), []byte{1}); err != nil {
			return err
		}
	}
	return s.put(p)
}

// move changes a proposal's status. Whatever leaves pending can no longer expire.
func (s store) move(p *record, to Status) error {
	for _, k := range p.statusKeys() {
		if err := s.tx.Delete(k); err != nil {
			return err
		}
	}
	if p.Status == Pending && p.Expires != 0 {
		if err := s.tx.Delete(expiries.Key(p.Expires, p.ID)); err != nil {
			return err
		}
	}
	p.Status = to
	if err := s.index(p); err != nil {
		return err
	}
	return s.put(p)
}

func (s store) index(p *record) error {
	for _, k := range p.statusKeys() {
		if err := s.tx.Put(k, []byte{1}); err != nil {
			return err
		}
	}
	return nil
}

func (p *record) statusKeys() [][]byte {
	return [][]byte{
		[]byte("s/" + string(p.Status) + nul + p.ID),
		[]byte("t/" + string(p.Status) + nul + p.Domain + nul + p.ID),
	}
}

func (s store) has(id string) (bool, error) { return machine.Has(s.tx, "p/"+id) }

// get refuses with not_found.
func (s store) get(id string) (*record, error) {
	p, err := machine.Load[record](s.tx, "p/"+id)
	if err == nil && p == nil {
		err = notFound(id)
	}
	return p, err
}

func (s store) put(p *record) error { return machine.Save(s.tx, "p/"+p.ID, p) }

func (s store) putPayload(id string, payload json.RawMessage) error {
	return s.tx.Put([]byte("y/"+id), payload)
}

func (s store) payload(id string) (json.RawMessage, error) {
	v, err := s.tx.Get([]byte("y/" + id))
	return slices.Clone(v), err
}

func (s store) hasResponded(id, participant string) (bool, error) {
	return machine.Has(s.tx, "r/"+id+nul+participant)
}

func (s store) putResponse(p *record, r Response, action string) error {
	return machine.Save(s.tx, "r/"+p.ID+nul+r.ParticipantID, keptResponse{N: p.Responses, ActionID: action, Response: r})
}

func (s store) eligible(id, participant string) (bool, error) {
	return machine.Has(s.tx, "g/"+id+nul+participant)
}

func (s store) config() (config, error) {
	c := config{Hypotheses: hypothesesAuto, Escalate: []PolicyRule{}}
	_, err := machine.Read(s.tx, "c", &c)
	return c, err
}

func (s store) putConfig(c config) error { return machine.Save(s.tx, "c", c) }
