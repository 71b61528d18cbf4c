package deliberation

import (
	"embed"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/deliberd/deliberd/machine"
)

// Name is the machine's name and the first word of its kinds.
const Name = "deliberatic"

//go:embed schema/*.json
var schemas embed.FS

func schema(name string) json.RawMessage { return machine.MustSchema(schemas, name) }

// Machine is the round as a replicated machine. It holds no state of its own:
// voters are keys made ready, which can be done again.
type Machine struct {
	kinds    []machine.Kind
	handlers map[string]func(*step, *action) (any, error)
	voters   committees
}

// New makes the machine.
func New() *Machine {
	m := &Machine{handlers: map[string]func(*step, *action) (any, error){}}
	voices := []machine.PrincipalKind{machine.Agent, machine.Human}
	people := []machine.PrincipalKind{machine.Human, machine.Operator}
	for _, k := range []struct {
		verb, summary string
		by            []machine.PrincipalKind
		handle        func(*step, *action) (any, error)
	}{
		{"open", "Open a round: a question, its participants and its rules", []machine.PrincipalKind{machine.Agent, machine.Human, machine.Operator}, (*step).openRound},
		{"position", "State a position: an answer with reasons, facts and evidence", voices, (*step).position},
		{"challenge", "Attack an argument", voices, (*step).challenge},
		{"support", "Support an argument", voices, (*step).support},
		{"relate", "Add a cross-reference from an argument of one's own to another", voices, (*step).relate},
		{"evidence", "Add evidence to an argument of one's own", voices, (*step).addEvidence},
		{"done", "Say that one has nothing to add in this phase", voices, (*step).done},
		{"resolve", "End collecting, as the moderator", voices, (*step).resolve},
		{"confirm", "Confirm or reject the proposed winner, or leave a standing confirmation", voices, (*step).confirm},
		{"certify", "Hand in the voters' certificate of a frozen round", []machine.PrincipalKind{machine.Node}, (*step).certify},
		{"review", "Decide an escalated round", people, (*step).review},
		{"outcome", "Tell what turned out right, so that the round is learned from", people, (*step).learn},
	} {
		m.kinds = append(m.kinds, machine.Kind{Name: Name + "." + k.verb, By: k.by, Schema: schema(k.verb), Summary: k.summary})
		m.handlers[Name+"."+k.verb] = k.handle
	}
	return m
}

// Name implements machine.Machine.
func (m *Machine) Name() string { return Name }

// Kinds implements machine.Machine.
func (m *Machine) Kinds() []machine.Kind { return m.kinds }

// Apply implements machine.Machine. The answer is an [Answer].
func (m *Machine) Apply(tx machine.Tx, ctx machine.Ctx, v machine.Verified) (any, []machine.Event, error) {
	act := v.Action()
	handle, ok := m.handlers[act.Kind]
	if !ok {
		return nil, nil, machine.Refuse(machine.CodeUnknownKind, "", "%s is no kind of this machine", act.Kind)
	}
	s := &step{book: book{tx}, ctx: ctx, voters: &m.voters}
	answer, err := handle(s, &action{id: act.ID, actor: act.Actor, body: act.Body})
	if err != nil {
		return nil, nil, err
	}
	return answer, s.events, nil
}

// Next implements machine.Machine.
func (m *Machine) Next(tx machine.Tx) (Stamp, bool, error) { return deadlines.First(tx) }

// Due implements machine.Machine: it ends the phases whose windows are over,
// earliest first, and acts in place of silent moderators (§3.3).
func (m *Machine) Due(tx machine.Tx, ctx machine.Ctx) ([]machine.Event, error) {
	rounds, err := deadlines.Before(tx, ctx.Now+1)
	var events []machine.Event
	for _, id := range rounds {
		if err != nil {
			break
		}
		s := &step{book: book{tx}, ctx: ctx}
		err = s.expire(id)
		events = append(events, s.events...)
	}
	return events, err
}

// expire ends the phase whose window is over.
func (s *step) expire(id string) error {
	if err := s.openStored(id); err != nil {
		return err
	}
	var err error
	switch s.state.Phase {
	case PhaseCollecting:
		err = s.decide(ClosedWindow)
	case PhaseFast:
		err = s.contest(WhySilence)
	case PhasePrepare:
		err = s.freeze()
	case PhaseCertified:
		err = s.rejected(ReasonNoSupermajority)
	case PhaseReview:
		err = s.end(&Verdict{Status: PhaseNoVerdict, Reason: ReasonReviewExpired})
	default:
		err = fmt.Errorf("deliberation: round %s has a deadline in phase %s", id, s.state.Phase)
	}
	if err != nil {
		return corrupt(err)
	}
	return s.store()
}

// EpochEvent is the type of membership's event that begins a voter epoch.
// Its subject is the number of the epoch.
const EpochEvent = "cluster.voters_changed"

// React implements machine.Machine: a new voter epoch freezes the undecided
// frozen rounds again, since the voters of the old one sign no more.
func (m *Machine) React(tx machine.Tx, ctx machine.Ctx, e machine.Event) ([]machine.Event, error) {
	if e.Type != EpochEvent {
		return nil, nil
	}
	epoch, err := strconv.ParseUint(e.Subject, 10, 64)
	if err != nil {
		return nil, fmt.Errorf("deliberation: %s names no epoch: %w", e.Type, err)
	}
	ctx.Epoch = epoch
	frozen, err := Frozen(tx)
	if err != nil {
		return nil, err
	}
	var events []machine.Event
	for _, f := range frozen {
		s := &step{book: book{tx}, ctx: ctx}
		if err := s.openStored(f.Round); err != nil {
			return nil, err
		}
		if err := s.refreeze(); err != nil {
			return nil, err
		}
		if err := s.store(); err != nil {
			return nil, err
		}
		events = append(events, s.events...)
	}
	return events, nil
}

var _ machine.Machine = (*Machine)(nil)

// openStored points the step at a round that an index names.
func (s *step) openStored(id string) error { return corrupt(s.open(id)) }

// corrupt turns a refusal that stored state should have made impossible into
// a plain error, which stops the node.
func corrupt(err error) error {
	if r, ok := machine.IsRefusal(err); ok {
		return fmt.Errorf("deliberation: stored state is refused: %s", r.Code)
	}
	return err
}
