package acp

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// DecodeProposal reads a wire Proposal: what Appendix B.1 accepts, with
// date-time asserted, and what the prose adds: ids are ULIDs, times are UTC
// (§12.1), a pending proposal has no resolution, and only a timeout expires.
// Members the schema does not name are allowed and dropped. It does not
// recompute weights and tallies: see [Proposal.Verify].
// Refusals: malformed, invalid_object, invalid_id, invalid_time,
// invalid_number, invalid_quorum, unsupported_version.
func DecodeProposal(raw []byte) (Proposal, error) {
	o := open(raw, "proposal")
	p := Proposal{
		SchemaVersion: o.version(),
		ProposalID:    o.id("proposal_id"),
		Type:          oneOf(o, "type", Observation, Hypothesis, ProposalType),
		Domain:        o.text("domain", 1),
		Author:        o.text("author", 1),
		Payload:       o.object("payload"),
		Status:        oneOf(o, "status", Pending, Resolved, Escalated, Expired),
		Quorum:        o.quorum("quorum"),
		CreatedAt:     o.time("created_at"),
		ExpiresAt:     o.optionalTime("expires_at"),
	}
	for i, item := range o.list("responses") {
		r, err := DecodeResponse(item)
		o.fail(err, "responses[%d]", i)
		p.Responses = append(p.Responses, r)
	}
	if item := o.optional("resolution"); item != nil {
		r, err := DecodeResolution(item)
		o.fail(err, "resolution")
		p.Resolution = &r
	}
	if o.err == nil && p.Status == Pending && p.Resolution != nil {
		o.refuse("a pending proposal has no resolution")
	}
	return p, o.err
}

// DecodeResponse reads a wire Endorsement or Challenge (§12.3, §12.4).
func DecodeResponse(raw []byte) (Response, error) {
	o := open(raw, "response")
	r := Response{
		SchemaVersion:   o.version(),
		ParticipantID:   o.text("participant_id", 0),
		ResponseType:    oneOf(o, "response_type", Endorse, Challenge),
		Confidence:      o.factor("confidence"),
		DomainAuthority: o.factor("domain_authority"),
		TrustScore:      o.factor("trust_score"),
		Weight:          o.derived("weight"),
		Timestamp:       o.time("timestamp"),
	}
	if o.err == nil && !r.Weight.InUnit() {
		o.refuse("weight is outside [0, 1]")
	}
	if o.optional("reason") != nil {
		text := o.text("reason", 0)
		r.Reason = &text
	}
	return r, o.err
}

// DecodeResolution reads a wire Resolution (§12.5).
func DecodeResolution(raw []byte) (Resolution, error) {
	o := open(raw, "resolution")
	return o.resolution(), o.err
}

// DecodeDecisionEvent reads a wire Decision Event (§12.6, Appendix B.2).
func DecodeDecisionEvent(raw []byte) (DecisionEvent, error) {
	o := open(raw, "decision_event")
	r := o.resolution()
	e := DecisionEvent{
		SchemaVersion: SchemaVersion, EventID: o.id("event_id"), EventType: oneOf(o, "event_type", "decision"),
		ProposalID: o.id("proposal_id"), Domain: o.text("domain", 0), Outcome: r.Outcome, Trigger: r.Trigger,
		VotesFor: r.VotesFor, VotesAgainst: r.VotesAgainst, DecidedAt: r.DecidedAt, Auto: r.Auto,
	}
	e.CausedBy, e.Supersedes, e.Escalation, e.Policy = o.extra("caused_by"), o.extra("supersedes"), o.extra("escalation"), o.extra("policy")
	e.Actor, e.ActionID, e.PayloadHash = o.extra("actor"), o.extra("action_id"), o.extra("payload_hash")
	return e, o.err
}

func (o *object) resolution() Resolution {
	r := Resolution{
		SchemaVersion: o.version(),
		Outcome:       oneOf(o, "outcome", Approved, Rejected, OutcomeEscalated, OutcomeExpired),
		Trigger:       oneOf(o, "trigger", ByQuorum, ByTimeout, ByHand),
		VotesFor:      o.derived("votes_for"),
		VotesAgainst:  o.derived("votes_against"),
		DecidedAt:     o.time("decided_at"),
	}
	_ = json.Unmarshal(o.members["auto"], &r.Auto)
	if o.err == nil && r.Outcome == OutcomeExpired && r.Trigger != ByTimeout {
		o.refuse("only a timeout expires a proposal")
	}
	return r
}

func invalidObject(format string, args ...any) error {
	return machine.Refuse(CodeInvalidObject, "see the schemas of Appendix B", format, args...)
}

// object reads the members of one wire object by their exact names; the first
// fault is kept in err. encoding/json alone would also match names that
// differ in case.
type object struct {
	name    string
	members map[string]json.RawMessage
	exact   map[string]string
	err     error
}

func open(raw []byte, name string) *object {
	o := &object{name: name}
	if err := canon.Check(raw); err != nil {
		o.err = machine.Refuse(machine.CodeMalformed, "send one JSON object", "%s: %v", name, err)
		return o
	}
	if err := json.Unmarshal(raw, &o.members); err != nil || o.members == nil {
		o.refuse("not an object")
	}
	if item, ok := o.members["exact"]; ok {
		_ = json.Unmarshal(item, &o.exact) // somebody else's member of that name is no fault
	}
	return o
}

func (o *object) refuse(format string, args ...any) {
	if o.err == nil {
		o.err = invalidObject("%s: %s", o.name, fmt.Sprintf(format, args...))
	}
}

// fail keeps a refusal found further down, saying where.
func (o *object) fail(err error, format string, args ...any) {
	if err == nil || o.err != nil {
		return
	}
	if r, ok := machine.IsRefusal(err); ok {
		err = machine.Refuse(r.Code, r.Fix, "%s.%s: %s", o.name, fmt.Sprintf(format, args...), r.Message)
	}
	o.err = err
}

func (o *object) need(name string) json.RawMessage {
	item, ok := o.members[name]
	if !ok {
		o.refuse("%s is missing", name)
	}
	return item
}

// extra is an extension member; "" when it is absent or no string.
func (o *object) extra(name string) (s string) {
	_ = json.Unmarshal(o.members[name], &s)
	return s
}

// optional is nil when the member is absent or null.
func (o *object) optional(name string) json.RawMessage {
	if item := o.members[name]; string(item) != "null" {
		return item
	}
	return nil
}

func (o *object) text(name string, least int) string {
	var s *string
	if err := json.Unmarshal(o.need(name), &s); err != nil || s == nil || len(*s) < least {
		o.refuse("%s is not a string of %d characters or more", name, least)
		return ""
	}
	return *s
}

func oneOf[T ~string](o *object, name string, allowed ...T) T {
	got := T(o.text(name, 0))
	for _, a := range allowed {
		if got == a {
			return got
		}
	}
	if name == "response_type" {
		o.fail(badResponseType(string(got)), "response_type")
	}
	o.refuse("%s is %.64q", name, string(got))
	return got
}

func (o *object) version() string {
	if got := o.text("schema_version", 0); got != SchemaVersion {
		o.fail(machine.Refuse(CodeVersion, "speak version 1.0", "%.64q", got), "schema_version")
	}
	return SchemaVersion
}

func (o *object) id(name string) string {
	id := o.text(name, 0)
	o.fail(CheckID(id), "%s", name)
	return id
}

func (o *object) object(name string) json.RawMessage {
	item := o.need(name)
	if !bytes.HasPrefix(item, []byte("{")) {
		o.refuse("%s is not an object", name)
	}
	return item
}

func (o *object) list(name string) []json.RawMessage {
	var items []json.RawMessage
	if err := json.Unmarshal(o.need(name), &items); err != nil || items == nil {
		o.refuse("%s is not an array", name)
	}
	return items
}

func (o *object) quorum(name string) uint64 {
	n, err := ParseQuorum(o.need(name))
	o.fail(err, "%s", name)
	return n
}

func (o *object) time(name string) Time {
	t, err := ParseTime(o.text(name, 0))
	o.fail(err, "%s", name)
	return t
}

func (o *object) optionalTime(name string) *Time {
	if o.optional(name) == nil {
		return nil
	}
	t := o.time(name)
	return &t
}

func (o *object) factor(name string) Decimal {
	d := o.decimal(name, MaxLiteral, MaxExponent)
	if !d.InUnit() {
		o.refuse("%s is outside [0, 1]", name)
	}
	return d
}

func (o *object) derived(name string) Decimal {
	d := o.decimal(name, maxDerived, maxDerived)
	if d.Sign() < 0 {
		o.refuse("%s is below 0", name)
	}
	return d
}

// decimal reads a number, and its exact value if the object carries one that
// rounds to the same double.
func (o *object) decimal(name string, maxLen, maxExp int) Decimal {
	item := o.need(name)
	d, err := parseDecimal(string(item), maxLen, maxExp)
	o.fail(err, "%s", name)
	text, ok := o.exact[name]
	if !ok || o.err != nil {
		return d
	}
	exact, err := parseDecimal(text, maxLen, maxExp)
	o.fail(err, "exact.%s", name)
	if err == nil && double(text) != double(string(item)) {
		o.fail(machine.Refuse(CodeInconsistent, "write the nearest double", "exact says %.64s, the number %.64s", text, item), "%s", name)
	}
	return exact
}

func double(literal string) float64 {
	f, _ := strconv.ParseFloat(literal, 64)
	return f
}
