package registry

import (
	"encoding/json"
	"fmt"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Page sizes of the listing queries.
const (
	DefaultLimit = 100
	MaxLimit     = 500
)

// View is one principal as the queries show it.
type View struct {
	machine.Principal
	JWK     *sign.JWK       `json:"jwk,omitempty"` // the active key; absent when revoked
	Since   machine.Stamp   `json:"since_ms"`
	Revoked *Revocation     `json:"revoked,omitempty"`
	Grants  []machine.Grant `json:"grants,omitempty"` // by pattern; in registry.get only
}

// List is the answer of registry.list, ascending by id.
type List struct {
	Principals []View `json:"principals"`
	Next       string `json:"next,omitempty"` // pass as after for the next page
}

// GrantList is the answer of registry.grants, by principal and pattern.
type GrantList struct {
	Grants []machine.Grant `json:"grants"`
	Next   string          `json:"next,omitempty"`
}

// Queries implements machine.Machine.
func (*Machine) Queries() []machine.Query {
	return []machine.Query{
		{Name: "registry.get", Schema: schemaOf("registry.get"), Summary: "Show one principal, its key and grants.", Run: get},
		{Name: "registry.list", Schema: schemaOf("registry.list"), Summary: "List principals.", Run: list},
		{Name: "registry.grants", Schema: schemaOf("registry.grants"), Summary: "List grants, or who holds what in a domain.", Run: grants},
	}
}

type getParams struct {
	ID string `json:"id"`
}

func (p getParams) shape() *machine.Refusal {
	if !ValidID(p.ID) {
		return machine.Malformed("id is not the id of a principal")
	}
	return nil
}

type listParams struct {
	Kind     machine.PrincipalKind `json:"kind,omitempty"`
	Operator string                `json:"operator,omitempty"`
	Domain   string                `json:"domain,omitempty"`
	After    string                `json:"after,omitempty"`
	Limit    int                   `json:"limit,omitempty"`
}

func (p listParams) shape() *machine.Refusal {
	switch {
	case p.Kind != "" && p.Kind != machine.Agent && p.Kind != machine.Human && p.Kind != machine.Operator:
		return machine.Malformed("kind is none of agent, human, operator")
	case p.Operator != "" && !ValidID(p.Operator):
		return machine.Malformed("operator is not the id of a principal")
	}
	return pageShape(p.Domain, p.After, p.Limit)
}

type grantsParams struct {
	Principal string `json:"principal,omitempty"`
	Domain    string `json:"domain,omitempty"`
	After     string `json:"after,omitempty"`
	Limit     int    `json:"limit,omitempty"`
}

func (p grantsParams) shape() *machine.Refusal {
	if p.Principal != "" && !ValidID(p.Principal) {
		return machine.Malformed("principal is not the id of a principal")
	}
	return pageShape(p.Domain, p.After, p.Limit)
}

func pageShape(domain, after string, limit int) *machine.Refusal {
	switch {
	case domain != "" && !ValidDomain(domain):
		return machine.Malformed("domain is not 1 to 128 characters of A-Z a-z 0-9 . _ -")
	case after != "" && !ValidID(after):
		return machine.Malformed("after is not the id of a principal")
	case limit < 0 || limit > MaxLimit:
		return machine.Malformed("limit is not 1 to 500")
	}
	return nil
}

func get(tx machine.Tx, _ machine.Ctx, _ string, raw json.RawMessage) (any, error) {
	p, err := params[getParams](raw)
	if err != nil {
		return nil, err
	}
	s := state{tx}
	r, err := s.principal(p.ID)
	if err != nil {
		return nil, err
	}
	if r == nil {
		return nil, machine.Refuse(machine.CodeNotFound, "registry.list shows who is", "%s is not registered", p.ID)
	}
	v, err := s.view(r)
	if err != nil {
		return nil, err
	}
	v.Grants, err = s.grantsOf(p.ID)
	return v, err
}

func list(tx machine.Tx, _ machine.Ctx, _ string, raw json.RawMessage) (any, error) {
	p, err := params[listParams](raw)
	if err != nil {
		return nil, err
	}
	s := state{tx}
	out := List{Principals: []View{}}
	err = s.eachPrincipal(p.Domain, p.After, func(r *principalRecord) (bool, error) {
		if p.Kind != "" && r.Kind != p.Kind || p.Operator != "" && r.Operator != p.Operator {
			return true, nil
		}
		if len(out.Principals) == limitOf(p.Limit) {
			out.Next = out.Principals[len(out.Principals)-1].ID
			return false, nil
		}
		v, err := s.view(r)
		out.Principals = append(out.Principals, v)
		return err == nil, err
	})
	return out, err
}

// grants lists the grants of active principals; limit counts principals. With
// a domain it lists the one grant of each that counts there.
func grants(tx machine.Tx, _ machine.Ctx, _ string, raw json.RawMessage) (any, error) {
	p, err := params[grantsParams](raw)
	if err != nil {
		return nil, err
	}
	s := state{tx}
	out := GrantList{Grants: []machine.Grant{}}
	last, seen := "", 0
	err = s.eachPrincipal(p.Domain, p.After, func(r *principalRecord) (bool, error) {
		if p.Principal != "" && r.ID != p.Principal {
			return true, nil
		}
		held, err := s.held(r, p.Domain)
		if err != nil || len(held) == 0 {
			return true, err
		}
		if seen == limitOf(p.Limit) {
			out.Next = last
			return false, nil
		}
		last, seen = r.ID, seen+1
		out.Grants = append(out.Grants, held...)
		return true, nil
	})
	return out, err
}

// held lists what a principal holds: everything, or the grant that counts in a domain.
func (s state) held(r *principalRecord, domain string) ([]machine.Grant, error) {
	if r.Revoked != nil {
		return nil, nil
	}
	if domain == "" {
		return s.grantsOf(r.ID)
	}
	g, ok, err := GrantFor(s.tx, r.ID, domain)
	if err != nil || !ok {
		return nil, err
	}
	return []machine.Grant{g}, nil
}

// eachPrincipal visits principals after an id, ascending: all, or the holders of a domain.
func (s state) eachPrincipal(domain, after string, visit func(*principalRecord) (bool, error)) error {
	if domain == "" {
		return machine.EachRecord(s.tx, prefixPrincipal, after, func(_ string, r *principalRecord) (bool, error) { return visit(r) })
	}
	holders, err := Holders(s.tx, domain)
	if err != nil {
		return err
	}
	for _, id := range holders {
		if id <= after {
			continue
		}
		r, err := s.principal(id)
		if err != nil {
			return err
		}
		if r == nil {
			return fmt.Errorf("registry: holder %s is missing", id)
		}
		if more, err := visit(r); err != nil || !more {
			return err
		}
	}
	return nil
}

func (s state) view(r *principalRecord) (View, error) {
	v := View{Principal: r.public(), Since: r.Since, Revoked: r.Revoked}
	if r.KID == "" || r.Revoked != nil {
		return v, nil
	}
	k, err := s.key(r.KID)
	if err != nil {
		return v, err
	}
	if k == nil {
		return v, fmt.Errorf("registry: key %s is missing", r.KID)
	}
	v.JWK = &sign.JWK{Kty: "OKP", Crv: "Ed25519", X: k.X, KID: r.KID}
	return v, nil
}

func (s state) grantsOf(id string) ([]machine.Grant, error) {
	var out []machine.Grant
	err := s.eachGrant(id, func(pattern string, g grantRecord) (bool, error) {
		out = append(out, machine.Grant{Principal: id, Pattern: pattern, Authority: g.Authority, Trust: g.Trust})
		return true, nil
	})
	return out, err
}

func limitOf(limit int) int {
	if limit == 0 {
		return DefaultLimit
	}
	return limit
}
