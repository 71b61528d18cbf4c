package membership

import "github.com/deliberd/deliberd/machine"

// Name is the machine's name and the first word of its kinds.
const Name = "cluster"

// FSMVersion1 is the state machine's version that a genesis starts with.
const FSMVersion1 = 1

// The kinds of action.
const (
	KindInvite  = "cluster.invite"
	KindApprove = "cluster.approve"
	KindJoin    = "cluster.join"
	KindReady   = "cluster.ready"
	KindRemove  = "cluster.remove"
	KindAddress = "cluster.address"
)

// Codes of this machine's refusals, besides those of package machine.
const (
	CodeBadGenesis        = "bad_genesis"        // not a genesis, or one that contradicts itself
	CodeGenesisUnsigned   = "genesis_unsigned"   // an operator's signature is missing
	CodeWrongGenesis      = "wrong_genesis"      // made for another cluster
	CodeBadInvitation     = "bad_invitation"     // not the text of an invitation
	CodeInvitationUnknown = "invitation_unknown" // nobody has invited with this key
	CodeInvitationExpired = "invitation_expired"
	CodeInvitationUsed    = "invitation_used"
	CodeInvitationPending = "invitation_pending" // approvals are missing
	CodeAlreadyMember     = "already_member"
	CodeAlreadyApproved   = "already_approved"
	CodeNotMember         = "not_member"
	CodeRemoved           = "removed" // the node has been removed and never returns under its id
	CodeKeyInUse          = "key_in_use"
	CodeBadKey            = "bad_key"
	CodeLastVoter         = "last_voter"
	CodeTooManyVoters     = "too_many_voters"
	CodeChangePending     = "change_pending" // the same change waits for approvals
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
	node := []machine.PrincipalKind{machine.Node}
	return []machine.Kind{
		{Name: KindInvite, By: operator, Schema: schemaOf(KindInvite), Summary: "Invite a node as voter or observer."},
		{Name: KindApprove, By: operator, Schema: schemaOf(KindApprove), Summary: "Approve a change of the voters."},
		{Name: KindJoin, By: node, Strangers: true, Schema: schemaOf(KindJoin), Summary: "Join by an invitation."},
		{Name: KindReady, By: node, Schema: schemaOf(KindReady), Summary: "Become a voter after catching up."},
		{Name: KindRemove, By: operator, Schema: schemaOf(KindRemove), Summary: "Remove a node for ever."},
		{Name: KindAddress, By: node, Schema: schemaOf(KindAddress), Summary: "Publish a node's addresses."},
	}
}

// Apply implements machine.Machine.
func (*Machine) Apply(tx machine.Tx, ctx machine.Ctx, v machine.Verified) (any, []machine.Event, error) {
	s := &step{state: state{tx}, ctx: ctx, action: v.Action()}
	if s.action.Cluster != ctx.Genesis {
		return nil, nil, machine.Refuse(CodeWrongGenesis, "use an invitation to this cluster", "made for cluster %s, this is %s", s.action.Cluster, ctx.Genesis)
	}
	var answer any
	var err error
	switch s.action.Kind {
	case KindInvite:
		answer, err = s.invite()
	case KindApprove:
		answer, err = s.approve()
	case KindJoin:
		answer, err = s.join()
	case KindReady:
		answer, err = s.ready()
	case KindRemove:
		answer, err = s.remove()
	case KindAddress:
		answer, err = s.address()
	default:
		err = machine.Refuse(machine.CodeUnknownKind, "see the list of kinds", "membership has no kind %q", s.action.Kind)
	}
	if err != nil {
		return nil, nil, err
	}
	return answer, s.events, nil
}

// Due implements machine.Machine: invitations and pending changes expire.
func (*Machine) Due(tx machine.Tx, ctx machine.Ctx) ([]machine.Event, error) {
	s := &step{state: state{tx}, ctx: ctx}
	err := s.expire()
	return s.events, err
}

// Next implements machine.Machine.
func (*Machine) Next(tx machine.Tx) (machine.Stamp, bool, error) { return state{tx}.nextExpiry() }

// React implements machine.Machine: no other machine's event matters here.
func (*Machine) React(machine.Tx, machine.Ctx, machine.Event) ([]machine.Event, error) {
	return nil, nil
}

// Asks implements machine.Machine: operators who stand for voters are asked
// to review the changes they have not approved.
func (*Machine) Asks(tx machine.Tx, _ machine.Ctx, principal string) ([]machine.Ask, error) {
	return state{tx}.asks(principal)
}

// step is one action, or one passing of time, being applied.
type step struct {
	state
	ctx    machine.Ctx
	action machine.Action
	events []machine.Event
}

// emit adds an event; without to it concerns everybody.
func (s *step) emit(kind, subject string, data any, to ...string) {
	s.events = append(s.events, machine.Event{Type: kind, Subject: subject, To: to, Data: data})
}
