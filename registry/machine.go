package registry

import (
	"github.com/deliberd/deliberd/machine"
)

// Name is the machine's name and the first word of its kinds.
const Name = "registry"

// The kinds of action.
const (
	KindRegister = "registry.register"
	KindRotate   = "registry.rotate"
	KindRevoke   = "registry.revoke"
	KindGrant    = "registry.grant"
	KindUngrant  = "registry.ungrant"
)

// Codes of this machine's refusals, besides those of package machine.
const (
	CodeBadKey          = "bad_key"          // a public key that is no canonical point of large order, or has another kid
	CodeBadProof        = "bad_proof"        // the proof does not verify under the new key
	CodeKeyInUse        = "key_in_use"       // some principal has or had this key
	CodeElectorateLimit = "electorate_limit" // the operator answers for as many principals as the genesis allows
)

// Machine implements machine.Machine. It keeps nothing outside its keys.
type Machine struct{}

// New makes the machine.
func New() *Machine { return &Machine{} }

// Name implements machine.Machine.
func (*Machine) Name() string { return Name }

// Kinds implements machine.Machine.
func (*Machine) Kinds() []machine.Kind {
	operator := []machine.PrincipalKind{machine.Operator}
	anybody := []machine.PrincipalKind{machine.Agent, machine.Human, machine.Operator}
	return []machine.Kind{
		{Name: KindRegister, By: operator, Schema: schemaOf(KindRegister), Summary: "Register an agent or a human with its key."},
		{Name: KindRotate, By: anybody, Schema: schemaOf(KindRotate), Summary: "Replace a principal's key; the old one stops at once."},
		{Name: KindRevoke, By: anybody, Schema: schemaOf(KindRevoke), Summary: "Revoke a key, or a principal for ever."},
		{Name: KindGrant, By: operator, Schema: schemaOf(KindGrant), Summary: "Grant authority and trust in a domain."},
		{Name: KindUngrant, By: operator, Schema: schemaOf(KindUngrant), Summary: "Take a grant back."},
	}
}

// Apply implements machine.Machine.
func (*Machine) Apply(tx machine.Tx, ctx machine.Ctx, v machine.Verified) (any, []machine.Event, error) {
	a := v.Action()
	s := step{state: state{tx}, ctx: ctx, action: a}
	switch a.Kind {
	case KindRegister:
		return s.register()
	case KindRotate:
		return s.rotate()
	case KindRevoke:
		return s.revoke()
	case KindGrant:
		return s.grant()
	case KindUngrant:
		return s.ungrant()
	}
	return nil, nil, machine.Refuse(machine.CodeUnknownKind, "see the list of kinds", "the registry has no kind %q", a.Kind)
}

// Due implements machine.Machine: nothing here ends by time alone.
func (*Machine) Due(machine.Tx, machine.Ctx) ([]machine.Event, error) { return nil, nil }

// Next implements machine.Machine: nothing is ever scheduled.
func (*Machine) Next(machine.Tx) (machine.Stamp, bool, error) { return 0, false, nil }

// React implements machine.Machine: no other machine's event matters here.
func (*Machine) React(machine.Tx, machine.Ctx, machine.Event) ([]machine.Event, error) {
	return nil, nil
}

// Asks implements machine.Machine: the registry asks nobody anything.
func (*Machine) Asks(machine.Tx, machine.Ctx, string) ([]machine.Ask, error) { return nil, nil }

// step is one action being applied.
type step struct {
	state
	ctx    machine.Ctx
	action machine.Action
}

func (s *step) event(kind, subject string, data any, to ...string) []machine.Event {
	return []machine.Event{{Type: kind, Subject: subject, To: to, Data: data}}
}
