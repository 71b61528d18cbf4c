package acp

import (
	"encoding/hex"
	"encoding/json"
	"fmt"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Machine is ACP as a replicated state machine, named "acp". It has no state
// of its own: everything is in its keys.
type Machine struct{}

// New makes the machine.
func New() *Machine { return &Machine{} }

var _ machine.Machine = (*Machine)(nil)

// Name implements machine.Machine.
func (*Machine) Name() string { return "acp" }

// Kinds implements machine.Machine.
func (*Machine) Kinds() []machine.Kind {
	everybody := []machine.PrincipalKind{machine.Agent, machine.Human, machine.Operator}
	return []machine.Kind{
		{Name: "acp.submit", By: everybody, Schema: schema("submit"), Summary: "Post a proposal, an observation or a hypothesis in a domain."},
		{Name: "acp.respond", By: everybody, Schema: schema("respond"), Summary: "Endorse or challenge a pending proposal, once."},
		{Name: "acp.escalate", By: everybody, Schema: schema("escalate"), Summary: "Hand a pending proposal to a human."},
		{Name: "acp.resolve", By: []machine.PrincipalKind{machine.Human}, Schema: schema("resolve"), Summary: "Approve or reject an escalated proposal as a human."},
		{Name: "acp.configure", By: []machine.PrincipalKind{machine.Operator}, Schema: schema("configure"), Summary: "Set how hypotheses resolve and which domains go to a human at once."},
	}
}

// Result is the answer of every kind but acp.configure.
type Result struct {
	ProposalID string         `json:"proposal_id"`
	Status     Status         `json:"status"`
	Responses  uint64         `json:"responses"`
	Weight     string         `json:"weight,omitempty"`   // of the response just counted, exact
	Decision   *DecisionEvent `json:"decision,omitempty"` // when this action brought one about
}

// Apply implements machine.Machine.
func (m *Machine) Apply(tx machine.Tx, ctx machine.Ctx, v machine.Verified) (any, []machine.Event, error) {
	a := v.Action()
	s := store{tx}
	switch a.Kind {
	case "acp.submit":
		return machine.Decoded(s, ctx, a, DecodeSubmit, m.submit)
	case "acp.respond":
		return machine.Decoded(s, ctx, a, DecodeRespond, m.respond)
	case "acp.escalate":
		return machine.Decoded(s, ctx, a, DecodeEscalate, m.escalate)
	case "acp.resolve":
		return machine.Decoded(s, ctx, a, DecodeResolve, m.resolve)
	case "acp.configure":
		return machine.Decoded(s, ctx, a, DecodeConfigure, m.configure)
	}
	return nil, nil, machine.Refuse(machine.CodeUnknownKind, "see the kinds of acp", "%.64q", a.Kind)
}

func (m *Machine) submit(s store, ctx machine.Ctx, a machine.Action, b SubmitBody) (any, []machine.Event, error) {
	if b.ProposalID != "" && b.ProposalID != a.ID {
		return nil, nil, machine.Refuse(machine.CodeMalformed, "leave proposal_id out, or send the action under that id", "the proposal is named by the action, %s", a.ID)
	}
	if known, err := s.has(a.ID); err != nil {
		return nil, nil, err
	} else if known {
		return nil, nil, duplicateProposal(a.ID)
	}
	if _, err := granted(ctx, a.Actor, b.Domain); err != nil {
		return nil, nil, err
	}
	config, err := s.config()
	if err != nil {
		return nil, nil, err
	}
	p, err := newRecord(s, ctx, a, b, config)
	if err != nil {
		return nil, nil, err
	}
	holders, err := ctx.World.Holders(b.Domain)
	if err != nil {
		return nil, nil, err
	}
	events := []machine.Event{{Type: "acp.submitted", Subject: p.ID, To: holders, Data: p.submitted()}}
	if err := s.putPayload(p.ID, b.Payload); err != nil {
		return nil, nil, err
	}
	state, now := p.state(), At(ctx.Now)
	policy := config.escalates(b)
	switch {
	case b.Type == Observation || b.Type == Hypothesis && config.Hypotheses != hypothesesRespond:
		state.AutoResolve(now)
	case policy != "":
		if err := state.Escalate(EscalatedByPolicy, now); err != nil {
			return nil, nil, err
		}
		p.Escalation = &escalation{Policy: policy, By: a.Actor}
	default:
		return Result{ProposalID: p.ID, Status: Pending}, events, s.insert(p)
	}
	if err := s.insert(p); err != nil {
		return nil, nil, err
	}
	decided, err := s.decide(ctx, p, state, a)
	return p.result(""), append(events, decided), err
}

func (m *Machine) respond(s store, ctx machine.Ctx, a machine.Action, b RespondBody) (any, []machine.Event, error) {
	p, err := s.get(b.ProposalID)
	if err != nil {
		return nil, nil, err
	}
	again, err := s.hasResponded(p.ID, a.Actor)
	if err != nil {
		return nil, nil, err
	}
	r := Response{
		SchemaVersion: SchemaVersion, ParticipantID: a.Actor, ResponseType: b.ResponseType,
		Confidence: b.Confidence, Reason: b.Reason, Timestamp: At(ctx.Now),
	}
	// The state machine of §4.1 speaks before the registry: a closed proposal
	// is closed for everybody.
	state := p.state()
	if err := state.Admit(a.Actor, again, b.ResponseType); err != nil {
		return nil, nil, err
	}
	if err := s.weigh(ctx, p, a.Actor, b, &r); err != nil {
		return nil, nil, err
	}
	r.Weight = Weight(r.DomainAuthority, r.Confidence, r.TrustScore)
	settled := state.Count(b.ResponseType, r.Weight, r.Timestamp)
	p.count(state.Tally)
	if err := s.putResponse(p, r, a.ID); err != nil {
		return nil, nil, err
	}
	events := []machine.Event{{Type: "acp.responded", Subject: p.ID, To: []string{p.Author, a.Actor}, Data: responded(p, r, a.ID)}}
	if !settled {
		return p.result(r.Weight.String()), events, s.put(p)
	}
	decided, err := s.decide(ctx, p, state, a)
	return p.result(r.Weight.String()), append(events, decided), err
}

// weigh takes authority and trust from the registry. A claim above the grant
// is refused, one below it lowers what counts.
func (s store) weigh(ctx machine.Ctx, p *record, actor string, b RespondBody, r *Response) error {
	grant, err := granted(ctx, actor, p.Domain)
	if err != nil {
		return err
	}
	if p.Policy == policyUnanimous {
		if ok, err := s.eligible(p.ID, actor); err != nil {
			return err
		} else if !ok {
			return machine.Refuse(CodeNotEligible, "only those who held a grant when it was submitted respond", "%s is not among the participants of %s", actor, p.ID)
		}
	}
	if r.DomainAuthority, err = claim("domain_authority", b.DomainAuthority, grant.Authority); err != nil {
		return err
	}
	r.TrustScore, err = claim("trust_score", b.TrustScore, grant.Trust)
	return err
}

func granted(ctx machine.Ctx, actor, domain string) (machine.Grant, error) {
	grant, ok, err := ctx.World.Grant(actor, domain)
	if err == nil && !ok {
		err = machine.Refuse(machine.CodeNoGrant, "ask an operator for a grant in the domain", "%s holds no grant in %s", actor, domain)
	}
	return grant, err
}

func claim(name string, claimed *Decimal, granted string) (Decimal, error) {
	held, err := ParseDecimal(granted)
	if err != nil || !held.InUnit() {
		return Decimal{}, machine.Refuse("bad_grant", "have an operator grant a decimal in [0, 1] of at most 64 digits", "the grant's %s cannot be used", name)
	}
	if claimed == nil {
		return held, nil
	}
	if claimed.Cmp(held) > 0 {
		return Decimal{}, machine.Refuse(machine.CodeGrantExceeded, "claim at most what is granted, or leave the claim out", "%s %s is above the grant of %s", name, claimed, held).
			With("granted", held.String())
	}
	return *claimed, nil
}

func (m *Machine) escalate(s store, ctx machine.Ctx, a machine.Action, b EscalateBody) (any, []machine.Event, error) {
	p, err := s.get(b.ProposalID)
	if err != nil {
		return nil, nil, err
	}
	if err := mayEscalate(ctx, a.Actor, p); err != nil {
		return nil, nil, err
	}
	reason := EscalatedByHand
	if b.Policy != "" {
		reason = EscalatedByPolicy
	}
	state := p.state()
	if err := state.Escalate(reason, At(ctx.Now)); err != nil {
		return nil, nil, err
	}
	p.Escalation = &escalation{Policy: b.Policy, By: a.Actor, Note: b.Note, Responsible: b.Responsible}
	decided, err := s.decide(ctx, p, state, a)
	return p.result(""), []machine.Event{decided}, err
}

// mayEscalate admits the author, whoever holds a grant in the domain, and operators (§10.1).
func mayEscalate(ctx machine.Ctx, actor string, p *record) error {
	if actor == p.Author {
		return nil
	}
	_, err := granted(ctx, actor, p.Domain)
	if _, refused := machine.IsRefusal(err); !refused {
		return err
	}
	who, ok, lookup := ctx.World.Principal(actor)
	if lookup != nil {
		return lookup
	}
	if ok && who.Kind == machine.Operator {
		return nil
	}
	return err
}

func (m *Machine) resolve(s store, ctx machine.Ctx, a machine.Action, b ResolveBody) (any, []machine.Event, error) {
	p, err := s.get(b.ProposalID)
	if err != nil {
		return nil, nil, err
	}
	if _, err := granted(ctx, a.Actor, p.Domain); err != nil {
		return nil, nil, err
	}
	if a.Actor == p.Author {
		return nil, nil, machine.Refuse(CodeSelfResolution, "let another human with a grant in the domain resolve it", "%s is the author", a.Actor)
	}
	state := p.state()
	if err := state.Resolve(b.Outcome, At(ctx.Now)); err != nil {
		return nil, nil, err
	}
	p.ResolutionNote = b.Note
	decided, err := s.decide(ctx, p, state, a)
	return p.result(""), []machine.Event{decided}, err
}

func (m *Machine) configure(s store, _ machine.Ctx, a machine.Action, b ConfigureBody) (any, []machine.Event, error) {
	c, err := s.config()
	if err != nil {
		return nil, nil, err
	}
	if b.Hypotheses != "" {
		c.Hypotheses = b.Hypotheses
	}
	if b.Escalate != nil {
		c.Escalate = *b.Escalate
	}
	if err := s.putConfig(c); err != nil {
		return nil, nil, err
	}
	return c, []machine.Event{{Type: "acp.configured", Subject: a.Actor, Data: configuredEvent{a.Actor, a.ID, c}}}, nil
}

// Due implements machine.Machine: it resolves what expired before now. What
// expires at now itself waits, since a response stamped now still counts (§7.4).
func (*Machine) Due(tx machine.Tx, ctx machine.Ctx) ([]machine.Event, error) {
	s := store{tx}
	ids, err := expiries.Before(tx, ctx.Now)
	if err != nil {
		return nil, err
	}
	var events []machine.Event
	for _, id := range ids {
		p, err := s.get(id)
		if err != nil {
			return nil, err
		}
		state := p.state()
		if !state.Settle(At(ctx.Now)) {
			return nil, fmt.Errorf("acp: local state is corrupt: proposal %s is in the expiry index but cannot expire", id)
		}
		decided, err := s.decide(ctx, p, state, machine.Action{})
		if err != nil {
			return nil, err
		}
		events = append(events, decided)
	}
	return events, nil
}

// Next implements machine.Machine: one millisecond after the earliest expiry.
func (*Machine) Next(tx machine.Tx) (machine.Stamp, bool, error) {
	at, ok, err := expiries.First(tx)
	return at + 1, ok, err
}

// React implements machine.Machine; ACP hears nobody.
func (*Machine) React(machine.Tx, machine.Ctx, machine.Event) ([]machine.Event, error) {
	return nil, nil
}

func payloadHash(payload json.RawMessage) (string, error) {
	text, err := canon.Canonicalize(payload)
	if err != nil {
		return "", err
	}
	sum := canon.Hash(text)
	return hex.EncodeToString(sum[:]), nil
}
