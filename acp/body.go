package acp

import (
	"encoding/json"
	"strings"
	"unicode/utf8"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Bounds of what an action may carry.
const (
	MaxDomain    = 128                               // characters of a domain
	MaxReason    = 4096                              // characters of a reason or note
	MaxName      = 128                               // characters of a policy id or of who is responsible
	MaxExpiresIn = 10 * 365 * 24 * 60 * 60 * 1000    // ms, ten years
	maxExpiresAt = int64(253402300799) * 1000        // ms, the end of the year 9999
	fixSchema    = "see the body schema of the kind" // what to do about a malformed body
)

// Quorum policies that an action may name; count is the default and has no name.
const (
	policyWeighted  = "weighted"
	policyUnanimous = "unanimous"
)

// SubmitBody is the body of acp.submit.
type SubmitBody struct {
	ProposalID     string          `json:"proposal_id,omitempty"` // "": the action's id serves
	Type           EntryType       `json:"type"`
	Domain         string          `json:"domain"`
	Payload        json.RawMessage `json:"payload"`
	Quorum         uint64          `json:"quorum,omitempty"`        // responses; 0: not given
	QuorumPolicy   *PolicyBody     `json:"quorum_policy,omitempty"` // instead of Quorum
	ExpiresAt      *Time           `json:"expires_at,omitempty"`
	ExpiresInMS    int64           `json:"expires_in_ms,omitempty"`   // instead of ExpiresAt; 0: not given
	EscalatePolicy string          `json:"escalate_policy,omitempty"` // id of the policy that wants a human at once
}

// PolicyBody names a quorum policy other than count.
type PolicyBody struct {
	Type      string   `json:"type"`                // weighted or unanimous
	Threshold *Decimal `json:"threshold,omitempty"` // of a weighted quorum
}

// DecodeSubmit reads the body of acp.submit. Refusals: malformed,
// invalid_quorum, invalid_number, invalid_time, invalid_id, out_of_range.
func DecodeSubmit(body json.RawMessage) (SubmitBody, error) {
	var raw struct {
		ProposalID   *string         `json:"proposal_id"`
		Type         EntryType       `json:"type"`
		Domain       string          `json:"domain"`
		Payload      json.RawMessage `json:"payload"`
		Quorum       json.RawMessage `json:"quorum"`
		QuorumPolicy *struct {
			Type      string          `json:"type"`
			Threshold json.RawMessage `json:"threshold"`
		} `json:"quorum_policy"`
		ExpiresAt      *string         `json:"expires_at"`
		ExpiresInMS    json.RawMessage `json:"expires_in_ms"`
		EscalatePolicy *string         `json:"escalate_policy"`
	}
	if err := machine.DecodeBody(body, &raw); err != nil {
		return SubmitBody{}, err
	}
	out := SubmitBody{Type: raw.Type, Domain: raw.Domain, Payload: raw.Payload}
	switch {
	case raw.Type != Observation && raw.Type != Hypothesis && raw.Type != ProposalType:
		return out, malformed("type is %.64q; say observation, hypothesis or proposal", string(raw.Type))
	case len(raw.Payload) == 0 || raw.Payload[0] != '{':
		return out, malformed("payload is not an object")
	case raw.ExpiresAt != nil && raw.ExpiresInMS != nil:
		return out, malformed("expires_at and expires_in_ms exclude each other")
	}
	if err := checkDomain(raw.Domain); err != nil {
		return out, err
	}
	if raw.ProposalID != nil {
		out.ProposalID = *raw.ProposalID
		if err := CheckID(out.ProposalID); err != nil {
			return out, err
		}
	}
	if raw.EscalatePolicy != nil {
		out.EscalatePolicy = *raw.EscalatePolicy
		if err := checkName("escalate_policy", out.EscalatePolicy); err != nil {
			return out, err
		}
	}
	if raw.QuorumPolicy != nil {
		if raw.Quorum != nil {
			return out, machine.Refuse(CodeInvalidQuorum, "leave quorum out: the policy sets it", "quorum and quorum_policy exclude each other")
		}
		if err := out.setPolicy(raw.QuorumPolicy.Type, raw.QuorumPolicy.Threshold); err != nil {
			return out, err
		}
	} else if err := out.setQuorum(raw.Quorum); err != nil {
		return out, err
	}
	return out, out.setExpiry(raw.ExpiresAt, raw.ExpiresInMS)
}

func (b *SubmitBody) setQuorum(raw json.RawMessage) (err error) {
	if raw == nil && b.Type != ProposalType {
		return nil
	}
	b.Quorum, err = ParseQuorum(raw)
	return err
}

func (b *SubmitBody) setPolicy(name string, threshold json.RawMessage) error {
	b.QuorumPolicy = &PolicyBody{Type: name}
	switch name {
	case policyUnanimous:
		if threshold != nil {
			return machine.Refuse(CodeInvalidQuorum, "leave the threshold out", "a unanimous quorum has no threshold")
		}
		return nil
	case policyWeighted:
		least, err := ParseDecimal(string(threshold))
		if err == nil {
			_, err = NewWeighted(least)
		}
		b.QuorumPolicy.Threshold = &least
		if err != nil {
			return machine.Refuse(CodeInvalidQuorum, "give a threshold above 0 as a number", "a weighted quorum of %.64q", threshold)
		}
		return nil
	}
	return machine.Refuse(CodeInvalidQuorum, "say weighted or unanimous, or give a quorum by count", "no quorum policy %.64q", name)
}

func (b *SubmitBody) setExpiry(at *string, in json.RawMessage) error {
	if at != nil {
		t, err := ParseTime(*at)
		if err != nil {
			return err
		}
		b.ExpiresAt = &t
	}
	if in != nil {
		n, err := canon.Integer(in)
		if err != nil || n == 0 || n > MaxExpiresIn {
			return machine.Refuse(machine.CodeOutOfRange, "give whole milliseconds, 1 to ten years", "expires_in_ms is %.64s", in)
		}
		b.ExpiresInMS = int64(n)
	}
	return nil
}

// RespondBody is the body of acp.respond. The numbers are in [0, 1].
type RespondBody struct {
	ProposalID      string       `json:"proposal_id"`
	ResponseType    ResponseType `json:"response_type"`
	Confidence      Decimal      `json:"confidence"`
	Reason          *string      `json:"reason,omitempty"`
	DomainAuthority *Decimal     `json:"domain_authority,omitempty"` // a claim at or below the grant; nil: as granted
	TrustScore      *Decimal     `json:"trust_score,omitempty"`      // likewise
}

// DecodeRespond reads the body of acp.respond. Refusals: malformed,
// invalid_id, invalid_response_type, invalid_number, out_of_range.
func DecodeRespond(body json.RawMessage) (RespondBody, error) {
	var raw struct {
		ProposalID      string          `json:"proposal_id"`
		ResponseType    ResponseType    `json:"response_type"`
		Confidence      json.RawMessage `json:"confidence"`
		Reason          *string         `json:"reason"`
		DomainAuthority json.RawMessage `json:"domain_authority"`
		TrustScore      json.RawMessage `json:"trust_score"`
	}
	if err := machine.DecodeBody(body, &raw); err != nil {
		return RespondBody{}, err
	}
	out := RespondBody{ProposalID: raw.ProposalID, ResponseType: raw.ResponseType, Reason: raw.Reason}
	if err := CheckID(raw.ProposalID); err != nil {
		return out, err
	}
	if raw.ResponseType != Endorse && raw.ResponseType != Challenge {
		return out, badResponseType(string(raw.ResponseType))
	}
	if raw.Confidence == nil {
		return out, malformed("confidence is missing")
	}
	if raw.Reason != nil && utf8.RuneCountInString(*raw.Reason) > MaxReason {
		return out, malformed("reason is longer than %d characters", MaxReason)
	}
	confidence, err := unit("confidence", raw.Confidence)
	if err != nil {
		return out, err
	}
	out.Confidence = *confidence
	if out.DomainAuthority, err = unit("domain_authority", raw.DomainAuthority); err != nil {
		return out, err
	}
	out.TrustScore, err = unit("trust_score", raw.TrustScore)
	return out, err
}

func unit(name string, raw json.RawMessage) (*Decimal, error) {
	if raw == nil {
		return nil, nil
	}
	d, err := ParseDecimal(string(raw))
	if err != nil {
		return nil, err
	}
	if !d.InUnit() {
		return nil, machine.Refuse(machine.CodeOutOfRange, "give a number in [0, 1]", "%s is %.64s", name, raw)
	}
	return &d, nil
}

// EscalateBody is the body of acp.escalate.
type EscalateBody struct {
	ProposalID  string `json:"proposal_id"`
	Policy      string `json:"policy,omitempty"` // id of the policy that asks for it; "" when a person or agent does
	Note        string `json:"note,omitempty"`
	Responsible string `json:"responsible,omitempty"` // which human or team shall resolve it (§10.3)
}

// DecodeEscalate reads the body of acp.escalate. Refusals: malformed, invalid_id.
func DecodeEscalate(body json.RawMessage) (EscalateBody, error) {
	var raw struct {
		ProposalID  string  `json:"proposal_id"`
		Policy      *string `json:"policy"`
		Note        string  `json:"note"`
		Responsible *string `json:"responsible"`
	}
	if err := machine.DecodeBody(body, &raw); err != nil {
		return EscalateBody{}, err
	}
	out := EscalateBody{ProposalID: raw.ProposalID, Note: raw.Note}
	if err := CheckID(raw.ProposalID); err != nil {
		return out, err
	}
	if raw.Policy != nil {
		out.Policy = *raw.Policy
		if err := checkName("policy", out.Policy); err != nil {
			return out, err
		}
	}
	if raw.Responsible != nil {
		out.Responsible = *raw.Responsible
		if err := checkName("responsible", out.Responsible); err != nil {
			return out, err
		}
	}
	return out, checkNote(raw.Note)
}

// ResolveBody is the body of acp.resolve.
type ResolveBody struct {
	ProposalID string  `json:"proposal_id"`
	Outcome    Outcome `json:"outcome"` // approved or rejected
	Note       string  `json:"note,omitempty"`
}

// DecodeResolve reads the body of acp.resolve. Refusals: malformed,
// invalid_id, invalid_outcome.
func DecodeResolve(body json.RawMessage) (ResolveBody, error) {
	var out ResolveBody
	if err := machine.DecodeBody(body, &out); err != nil {
		return ResolveBody{}, err
	}
	if err := CheckID(out.ProposalID); err != nil {
		return out, err
	}
	if out.Outcome != Approved && out.Outcome != Rejected {
		return out, badOutcome(out.Outcome)
	}
	return out, checkNote(out.Note)
}

func malformed(format string, args ...any) error {
	return machine.Refuse(machine.CodeMalformed, fixSchema, format, args...)
}

// checkDomain takes 1 to MaxDomain characters of [A-Za-z0-9._-], as grants do.
func checkDomain(domain string) error {
	if len(domain) == 0 || len(domain) > MaxDomain {
		return malformed("domain has %d characters, 1 to %d are accepted", len(domain), MaxDomain)
	}
	for i := range len(domain) {
		c := domain[i]
		if !(c >= 'A' && c <= 'Z' || c >= 'a' && c <= 'z' || c >= '0' && c <= '9' || strings.IndexByte("._-", c) >= 0) {
			return malformed("domain %.64q holds more than letters, digits, point, dash and underscore", domain)
		}
	}
	return nil
}

func checkName(field, name string) error {
	if n := utf8.RuneCountInString(name); n == 0 || n > MaxName {
		return malformed("%s has %d characters, 1 to %d are accepted", field, n, MaxName)
	}
	return nil
}

func checkNote(note string) error {
	if utf8.RuneCountInString(note) > MaxReason {
		return malformed("note is longer than %d characters", MaxReason)
	}
	return nil
}

// ConfigureBody is the body of acp.configure: what is given replaces
// what was set before.
type ConfigureBody struct {
	Hypotheses string        `json:"hypotheses,omitempty"` // "auto" or "respond"; "" leaves it
	Escalate   *[]PolicyRule `json:"escalate,omitempty"`   // nil leaves them
}

// PolicyRule escalates every proposal in a domain before anybody votes (§10.1).
type PolicyRule struct {
	Policy string `json:"policy"` // id, kept with the escalation
	Domain string `json:"domain"` // a domain, or "risk.*" for risk and all below it
}

// MaxRules is the most policy rules a cluster keeps.
const MaxRules = 100

// DecodeConfigure reads the body of acp.configure. Refusal: malformed.
func DecodeConfigure(body json.RawMessage) (ConfigureBody, error) {
	var raw struct {
		Hypotheses *string       `json:"hypotheses"`
		Escalate   *[]PolicyRule `json:"escalate"`
	}
	if err := machine.DecodeBody(body, &raw); err != nil {
		return ConfigureBody{}, err
	}
	out := ConfigureBody{Escalate: raw.Escalate}
	if raw.Hypotheses != nil {
		out.Hypotheses = *raw.Hypotheses
		if out.Hypotheses != hypothesesAuto && out.Hypotheses != hypothesesRespond {
			return out, malformed("hypotheses is %.64q; say auto or respond", out.Hypotheses)
		}
	}
	if raw.Escalate == nil {
		return out, nil
	}
	if len(*raw.Escalate) > MaxRules {
		return out, malformed("%d rules, at most %d are kept", len(*raw.Escalate), MaxRules)
	}
	for _, rule := range *raw.Escalate {
		if err := checkName("policy", rule.Policy); err != nil {
			return out, err
		}
		if err := checkDomain(strings.TrimSuffix(rule.Domain, ".*")); err != nil {
			return out, err
		}
	}
	return out, nil
}

// covers reports whether the rule speaks of a domain.
func (r PolicyRule) covers(domain string) bool {
	stem, all := strings.CutSuffix(r.Domain, ".*")
	return domain == stem || all && strings.HasPrefix(domain, stem+".")
}
