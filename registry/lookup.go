package registry

import (
	"fmt"
	"sort"
	"strconv"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Operator is one founding operator, as the genesis names it.
type Operator struct {
	ID   string
	Name string
	JWK  sign.JWK
}

// Limits are what the genesis bounds.
type Limits struct {
	// MaxPrincipalsPerOperator is how many active agents and humans one
	// operator may answer for; 0: no limit.
	MaxPrincipalsPerOperator int
}

// Init writes the founding operators into empty state. It errs on a bad or
// repeated id or key: a genesis that has been checked has none.
func Init(tx machine.Tx, operators []Operator, limits Limits) error {
	s := state{tx}
	for _, o := range operators {
		if !ValidID(o.ID) || isPeerID(o.ID) {
			return fmt.Errorf("registry: %q is no id for an operator", o.ID)
		}
		key, err := o.JWK.Public()
		if err != nil {
			return fmt.Errorf("registry: operator %s: %w", o.ID, err)
		}
		had, err := s.principal(o.ID)
		if err != nil {
			return err
		}
		used, err := s.key(key.KID())
		if err != nil {
			return err
		}
		if had != nil || used != nil {
			return fmt.Errorf("registry: operator %s: the id or the key is taken", o.ID)
		}
		if err := s.takeKey(&principalRecord{ID: o.ID, Kind: machine.Operator, Operator: o.ID, Name: o.Name}, key, 0); err != nil {
			return err
		}
	}
	return tx.Put([]byte(keyLimit), strconv.AppendInt(nil, int64(limits.MaxPrincipalsPerOperator), 10))
}

// Lookup finds an agent, human or operator; ok is false when the id is unknown.
func Lookup(tx machine.Tx, id string) (p machine.Principal, ok bool, err error) {
	return lookup(state{tx}, id)
}

func lookup(s source, id string) (p machine.Principal, ok bool, err error) {
	r, err := s.principal(id)
	if err != nil || r == nil {
		return machine.Principal{}, false, err
	}
	return r.public(), true, nil
}

// KeyStatus is what a key is to a principal.
type KeyStatus string

// The statuses of a key.
const (
	KeyActive           KeyStatus = "active"
	KeyRotated          KeyStatus = "rotated"           // replaced; verifies nothing new
	KeyRevoked          KeyStatus = "revoked"           // the key itself was revoked
	KeyPrincipalRevoked KeyStatus = "principal_revoked" // its principal was revoked
	KeyUnknown          KeyStatus = "unknown_key"       // no key of this principal
	KeyUnknownPrincipal KeyStatus = "unknown_principal"
)

// Refusal is why an action under a key of this status is refused; nil when active.
func (s KeyStatus) Refusal(actor, kid string) *machine.Refusal {
	switch s {
	case KeyActive:
		return nil
	case KeyUnknownPrincipal:
		return machine.Refuse(machine.CodeUnknownActor, "have an operator register it", "%q is not registered", actor)
	case KeyUnknown:
		return machine.Refuse(machine.CodeBadSignature, "sign with the registered key", "%q is not a key of %s", kid, actor)
	case KeyPrincipalRevoked:
		return machine.Refuse(machine.CodeRevoked, "a revoked principal stays revoked; register a new one", "%s has been revoked", actor)
	case KeyRotated:
		return machine.Refuse(machine.CodeRevoked, "sign with the key it was replaced by", "key %s of %s has been replaced", kid, actor)
	}
	return machine.Refuse(machine.CodeRevoked, "have the operator rotate in a new key", "key %s of %s has been revoked", kid, actor)
}

// Key finds the key kid of actor and says whether it may act now. The key is
// returned whenever it is known to be the actor's, for checking old
// signatures; only [KeyActive] verifies a new action.
func Key(tx machine.Tx, actor, kid string) (sign.PublicKey, KeyStatus, error) {
	return findKey(state{tx}, actor, kid)
}

func findKey(s source, actor, kid string) (sign.PublicKey, KeyStatus, error) {
	p, err := s.principal(actor)
	if err != nil {
		return sign.PublicKey{}, "", err
	}
	if p == nil {
		return sign.PublicKey{}, KeyUnknownPrincipal, nil
	}
	k, err := s.key(kid)
	if err != nil {
		return sign.PublicKey{}, "", err
	}
	if k == nil || k.Principal != actor {
		return sign.PublicKey{}, KeyUnknown, nil
	}
	key, err := sign.StoredKey(k.X, kid)
	if err != nil {
		return sign.PublicKey{}, "", fmt.Errorf("registry: key %s is damaged: %w", kid, err)
	}
	if p.Revoked != nil {
		return key, KeyPrincipalRevoked, nil
	}
	return key, k.Status, nil
}

// GrantFor is what an active principal holds in a domain: the grant whose
// pattern covers it most closely. ok is false when there is none.
func GrantFor(tx machine.Tx, principal, domain string) (g machine.Grant, ok bool, err error) {
	return grantFor(state{tx}, principal, domain)
}

func grantFor(s source, principal, domain string) (g machine.Grant, ok bool, err error) {
	if !ValidDomain(domain) {
		return machine.Grant{}, false, nil
	}
	p, err := s.principal(principal)
	if err != nil || p == nil || p.Revoked != nil {
		return machine.Grant{}, false, err
	}
	for _, pattern := range coverings(domain) {
		r, err := s.grantOf(principal, pattern)
		if err != nil {
			return machine.Grant{}, false, err
		}
		if r != nil {
			return machine.Grant{Principal: principal, Pattern: pattern, Authority: r.Authority, Trust: r.Trust}, true, nil
		}
	}
	return machine.Grant{}, false, nil
}

// Holders lists the active principals that hold a grant covering domain,
// ascending. It costs one range per level of the domain.
func Holders(tx machine.Tx, domain string) ([]string, error) {
	if !ValidDomain(domain) {
		return nil, nil
	}
	seen := map[string]bool{}
	var out []string
	for _, pattern := range coverings(domain) {
		err := machine.Each(tx, prefixHolder+pattern+"\x00", "", func(id string, _ []byte) (bool, error) {
			if !seen[id] {
				seen[id] = true
				out = append(out, id)
			}
			return true, nil
		})
		if err != nil {
			return nil, err
		}
	}
	sort.Strings(out)
	return out, nil
}

// isPeerID reports whether an id is a node's: the registry leaves those to membership.
func isPeerID(id string) bool {
	_, err := sign.ParsePeerID(id)
	return err == nil
}
