package agora

import (
	"fmt"
	"slices"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Machine is Agora as a replicated state machine, named "agora". It has no
// state of its own: everything is in its keys.
type Machine struct{}

// New makes the machine.
func New() *Machine { return &Machine{} }

var _ machine.Machine = (*Machine)(nil)

// Name implements machine.Machine.
func (*Machine) Name() string { return "agora" }

// Kinds implements machine.Machine.
func (*Machine) Kinds() []machine.Kind {
	by := []machine.PrincipalKind{machine.Agent, machine.Human, machine.Operator}
	return []machine.Kind{
		{Name: "agora.propose", By: by, Schema: schema("propose"), Summary: "Open a round on an action, with voters, vetoers, a quorum and perhaps a deadline."},
		{Name: "agora.vote", By: by, Schema: schema("vote"), Summary: "Vote yes, no or abstain; the last vote counts."},
		{Name: "agora.veto", By: by, Schema: schema("veto"), Summary: "Stop a round, with a reason, whatever the tally."},
		{Name: "agora.evaluate", By: by, Schema: schema("evaluate"), Summary: "Resolve a round if a veto, its deadline or its quorum applies."},
	}
}

// Result is the answer of every kind. Its resolution lists who dissented;
// agora.get and agora.dissents say why.
type Result struct {
	RoundID    string      `json:"round_id"`
	Status     string      `json:"status"` // open, or the outcome
	Tally      Tally       `json:"tally"`
	Resolution *Resolution `json:"resolution"` // null while open
}

// Apply implements machine.Machine.
func (m *Machine) Apply(tx machine.Tx, ctx machine.Ctx, v machine.Verified) (any, []machine.Event, error) {
	a := v.Action()
	s := store{tx}
	switch a.Kind {
	case "agora.propose":
		return machine.Decoded(s, ctx, a, DecodePropose, m.propose)
	case "agora.vote":
		return machine.Decoded(s, ctx, a, DecodeVote, m.vote)
	case "agora.veto":
		return machine.Decoded(s, ctx, a, DecodeVeto, m.veto)
	case "agora.evaluate":
		return machine.Decoded(s, ctx, a, DecodeEvaluate, m.evaluate)
	}
	return nil, nil, machine.Refuse(machine.CodeUnknownKind, "see the kinds of agora", "%.64q", a.Kind)
}

func (m *Machine) propose(s store, ctx machine.Ctx, a machine.Action, b ProposeBody) (any, []machine.Event, error) {
	id := b.ID
	if id == "" {
		id = a.ID
	}
	if known, err := s.has(id); err != nil {
		return nil, nil, err
	} else if known {
		return nil, nil, machine.Refuse(machine.CodeAlreadyExists, "give the round another id", "there is a round %q", id)
	}
	r := &record{ID: id, Proposer: a.Actor, Created: ctx.Now, ActionID: a.ID, Auto: b.AutoEvaluate, Voters: len(b.Voters), Vetoers: len(b.Vetoers)}
	deadline := b.DeadlineMS
	if b.DeadlineInMS != 0 {
		deadline = int64(ctx.Now) + b.DeadlineInMS
	}
	p := Proposal{ID: id, ProposerID: a.Actor, Action: b.Action, Voters: b.Voters, Vetoers: b.Vetoers, Quorum: b.Quorum}
	if deadline != 0 {
		if deadline <= int64(ctx.Now) {
			return nil, nil, machine.Refuse(machine.CodeOutOfRange, "give a time that is still to come", "the deadline is %d, it is %d now", deadline, ctx.Now)
		}
		p.Deadline = &deadline
	}
	var err error
	if r.Ballot, err = NewBallot(p); err != nil {
		return nil, nil, err
	}
	if r.ActionHash, err = canon.HexHash(b.Action); err != nil {
		return nil, nil, err
	}
	if err := known(ctx, b.Voters, b.Vetoers); err != nil {
		return nil, nil, err
	}
	if err := s.insert(r, p); err != nil {
		return nil, nil, err
	}
	return r.result(), []machine.Event{{Type: "agora.proposed", Subject: id, To: electorate(a.Actor, b.Voters, b.Vetoers), Data: proposed(r, p)}}, nil
}

// known refuses voters and vetoers who are not registered or not active.
func known(ctx machine.Ctx, voters []Voter, vetoers []string) error {
	for _, id := range electorate("", voters, vetoers) {
		who, ok, err := ctx.World.Principal(id)
		if err != nil {
			return err
		}
		if !ok || !who.Active || who.Kind == machine.Node {
			refusal := machine.Refuse(CodeInvalidProposal, "name registered agents, humans or operators", "%.64q is not an active principal", id)
			return refusal.With("principal", id)
		}
	}
	return nil
}

// electorate lists everybody concerned once, ascending.
func electorate(proposer string, voters []Voter, vetoers []string) []string {
	all := slices.Clone(vetoers)
	for _, v := range voters {
		all = append(all, v.ID)
	}
	if proposer != "" {
		all = append(all, proposer)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

func (m *Machine) vote(s store, ctx machine.Ctx, a machine.Action, b VoteBody) (any, []machine.Event, error) {
	r, err := s.open(b.RoundID)
	if err != nil {
		return nil, nil, err
	}
	seat, err := s.seat(r.ID, a.Actor)
	if err != nil {
		return nil, nil, err
	}
	if seat == nil {
		return nil, nil, notAVoter(a.Actor)
	}
	before := seat.Choice
	r.Ballot.Cast(before, b.Choice, seat.Weight)
	seat.Choice, seat.Reason, seat.ActionID = b.Choice, b.Reason, a.ID
	if err := s.putSeat(r.ID, a.Actor, seat); err != nil {
		return nil, nil, err
	}
	event := machine.Event{Type: "agora.voted", Subject: r.ID, To: []string{r.Proposer, a.Actor}, Data: votedEvent{
		RoundID: r.ID, Actor: a.Actor, ActionID: a.ID, Choice: b.Choice, Before: before, Reason: b.Reason, Tally: r.Ballot.Tally,
	}}
	return s.settle(ctx, r, a, event)
}

func (m *Machine) veto(s store, ctx machine.Ctx, a machine.Action, b VetoBody) (any, []machine.Event, error) {
	r, err := s.open(b.RoundID)
	if err != nil {
		return nil, nil, err
	}
	seat, err := s.vetoSeat(r.ID, a.Actor)
	if err != nil {
		return nil, nil, err
	}
	if seat == nil {
		return nil, nil, notAVetoer(a.Actor)
	}
	if seat.N != 0 { // the first stands
		return r.result(), nil, nil
	}
	r.Vetoes++
	*seat = vetoSeat{N: r.Vetoes, Reason: b.Reason, ActionID: a.ID}
	if r.Ballot.Veto == nil {
		r.Ballot.Veto = &Veto{AgentID: a.Actor, Reason: b.Reason}
	}
	if err := s.putVeto(r.ID, a.Actor, seat); err != nil {
		return nil, nil, err
	}
	event := machine.Event{Type: "agora.vetoed", Subject: r.ID, To: []string{r.Proposer, a.Actor}, Data: vetoedEvent{
		RoundID: r.ID, Actor: a.Actor, ActionID: a.ID, Reason: b.Reason,
	}}
	return s.settle(ctx, r, a, event)
}

// settle writes a changed round; one that evaluates itself resolves if it can.
func (s store) settle(ctx machine.Ctx, r *record, a machine.Action, event machine.Event) (any, []machine.Event, error) {
	if !r.Auto || !r.Ballot.Evaluate(int64(ctx.Now)) {
		return r.result(), []machine.Event{event}, s.put(r)
	}
	resolved, err := s.resolve(r, a)
	return r.result(), []machine.Event{event, resolved}, err
}

func (m *Machine) evaluate(s store, ctx machine.Ctx, a machine.Action, b EvaluateBody) (any, []machine.Event, error) {
	r, err := s.get(b.RoundID)
	if err != nil {
		return nil, nil, err
	}
	if err := s.mayEvaluate(ctx, r, a.Actor); err != nil {
		return nil, nil, err
	}
	if !r.Ballot.Evaluate(int64(ctx.Now)) {
		return r.result(), nil, nil // still open, or the same resolution as ever
	}
	resolved, err := s.resolve(r, a)
	return r.result(), []machine.Event{resolved}, err
}

// mayEvaluate admits the proposer, voters, vetoers and operators.
func (s store) mayEvaluate(ctx machine.Ctx, r *record, actor string) error {
	if actor == r.Proposer {
		return nil
	}
	voter, err := s.seat(r.ID, actor)
	if err != nil || voter != nil {
		return err
	}
	vetoer, err := s.vetoSeat(r.ID, actor)
	if err != nil || vetoer != nil {
		return err
	}
	who, ok, err := ctx.World.Principal(actor)
	if err != nil || ok && who.Kind == machine.Operator {
		return err
	}
	return machine.Refuse(machine.CodeNotAuthorized, "ask its proposer, a voter, a vetoer or an operator", "%s has no part in round %q", actor, r.ID)
}

// Due implements machine.Machine: it evaluates the rounds whose deadline has come.
func (*Machine) Due(tx machine.Tx, ctx machine.Ctx) ([]machine.Event, error) {
	s := store{tx}
	ids, err := deadlines.Before(tx, ctx.Now+1)
	if err != nil {
		return nil, err
	}
	var events []machine.Event
	for _, id := range ids {
		r, err := s.get(id)
		if err != nil {
			return nil, err
		}
		if !r.Ballot.Evaluate(int64(ctx.Now)) {
			return nil, fmt.Errorf("agora: local state is corrupt: round %q is in the deadline index but does not resolve", id)
		}
		resolved, err := s.resolve(r, machine.Action{})
		if err != nil {
			return nil, err
		}
		events = append(events, resolved)
	}
	return events, nil
}

// Next implements machine.Machine: the earliest deadline.
func (*Machine) Next(tx machine.Tx) (machine.Stamp, bool, error) { return deadlines.First(tx) }

// React implements machine.Machine; Agora hears nobody.
func (*Machine) React(machine.Tx, machine.Ctx, machine.Event) ([]machine.Event, error) {
	return nil, nil
}
