package registry

import (
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Registered is the data of registry.registered.
type Registered struct {
	ID       string                `json:"id"`
	KID      string                `json:"kid"`
	Kind     machine.PrincipalKind `json:"kind"`
	Name     string                `json:"name,omitempty"`
	Operator string                `json:"operator"`
}

// Rotated is the data of registry.rotated.
type Rotated struct {
	ID       string `json:"id"`
	KID      string `json:"kid"`
	Previous string `json:"previous,omitempty"` // absent when the key before had been revoked
}

// Revoked is the data of registry.revoked; without KID the whole principal was revoked.
type Revoked struct {
	ID     string `json:"id"`
	KID    string `json:"kid,omitempty"`
	Reason string `json:"reason"`
}

func (s *step) register() (any, []machine.Event, error) {
	b, err := decode[Register](s.action.Body)
	if err != nil {
		return nil, nil, err
	}
	operator, err := s.operator()
	if err != nil {
		return nil, nil, err
	}
	if isPeerID(b.ID) {
		return nil, nil, machine.Refuse(machine.CodeMalformed, "choose another id", "%s is a node's id", b.ID)
	}
	had, err := s.principal(b.ID)
	if err != nil {
		return nil, nil, err
	}
	if had != nil {
		return nil, nil, machine.Refuse(machine.CodeAlreadyExists, "choose another id; ids are never freed", "%s is registered", b.ID)
	}
	key, err := s.newKey(operator.ID, b.ID, b.JWK, b.Proof)
	if err != nil {
		return nil, nil, err
	}
	if err := s.checkElectorate(operator.ID); err != nil {
		return nil, nil, err
	}
	p := &principalRecord{ID: b.ID, Kind: b.Kind, Operator: operator.ID, Name: b.Name, Since: s.ctx.Now}
	if err := s.takeKey(p, key, s.ctx.Now); err != nil {
		return nil, nil, err
	}
	if err := s.count(operator.ID, +1); err != nil {
		return nil, nil, err
	}
	data := Registered{ID: p.ID, KID: p.KID, Kind: p.Kind, Name: p.Name, Operator: p.Operator}
	return data, s.event("registry.registered", p.ID, data, p.ID, p.Operator), nil
}

func (s *step) rotate() (any, []machine.Event, error) {
	b, err := decode[Rotate](s.action.Body)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.changeable(b.ID, true)
	if err != nil {
		return nil, nil, err
	}
	key, err := s.newKey("", b.ID, b.JWK, b.Proof)
	if err != nil {
		return nil, nil, err
	}
	data := Rotated{ID: p.ID, KID: key.KID(), Previous: p.KID}
	if err := s.takeKey(p, key, s.ctx.Now); err != nil {
		return nil, nil, err
	}
	return data, s.event("registry.rotated", p.ID, data, p.ID, p.Operator), nil
}

func (s *step) revoke() (any, []machine.Event, error) {
	b, err := decode[Revoke](s.action.Body)
	if err != nil {
		return nil, nil, err
	}
	p, err := s.changeable(b.ID, true)
	if err != nil {
		return nil, nil, err
	}
	if b.KID != "" {
		err = s.revokeKey(p, b.KID)
	} else {
		err = s.revokePrincipal(p, b.Reason)
	}
	if err != nil {
		return nil, nil, err
	}
	data := Revoked{ID: p.ID, KID: b.KID, Reason: b.Reason}
	return data, s.event("registry.revoked", p.ID, data, p.ID, p.Operator), nil
}

func (s *step) revokeKey(p *principalRecord, kid string) error {
	k, err := s.key(kid)
	if err != nil {
		return err
	}
	switch {
	case k == nil || k.Principal != p.ID:
		return machine.Refuse(machine.CodeNotFound, "registry.get shows its key", "%s has no key %s", p.ID, kid)
	case k.Status == KeyRevoked:
		return machine.Refuse(machine.CodeRevoked, "nothing is left to do", "key %s has been revoked", kid)
	case p.Kind == machine.Operator && p.KID == kid:
		return machine.Refuse(machine.CodeNotAuthorized, "rotate it: the old key stops at once", "an operator's active key cannot be revoked")
	}
	if err := s.endKey(kid, KeyRevoked, s.ctx.Now); err != nil {
		return err
	}
	if p.KID == kid {
		p.KID = ""
	}
	return s.savePrincipal(p)
}

// revokePrincipal ends a principal for ever. Its grants stay on record but it
// is no longer found among their holders.
func (s *step) revokePrincipal(p *principalRecord, reason string) error {
	if p.Kind == machine.Operator {
		return machine.Refuse(machine.CodeNotAuthorized, "rotate the operator's key", "an operator cannot be revoked")
	}
	p.Revoked = &Revocation{At: s.ctx.Now, By: s.action.Actor, Reason: reason}
	if err := s.savePrincipal(p); err != nil {
		return err
	}
	var patterns []string
	err := s.eachGrant(p.ID, func(pattern string, _ grantRecord) (bool, error) {
		patterns = append(patterns, pattern)
		return true, nil
	})
	if err != nil {
		return err
	}
	for _, pattern := range patterns {
		if err := s.tx.Delete([]byte(prefixHolder + pattern + "\x00" + p.ID)); err != nil {
			return err
		}
	}
	return s.count(p.Operator, -1)
}

// operator is the acting operator.
func (s *step) operator() (*principalRecord, error) {
	p, err := s.principal(s.action.Actor)
	if err != nil {
		return nil, err
	}
	if p == nil || p.Kind != machine.Operator {
		return nil, machine.Refuse(machine.CodeNotAuthorized, "have an operator sign it", "%s is no operator", s.action.Actor)
	}
	return p, nil
}

// changeable is the active principal id, if the actor may change it: its
// operator may, and the principal itself where self allows it.
func (s *step) changeable(id string, self bool) (*principalRecord, error) {
	p, err := s.principal(id)
	if err != nil {
		return nil, err
	}
	if p == nil {
		return nil, machine.Refuse(machine.CodeNotFound, "registry.list shows who is", "%s is not registered", id)
	}
	if s.action.Actor != p.Operator && (!self || s.action.Actor != p.ID) {
		return nil, machine.Refuse(machine.CodeNotAuthorized, "have "+p.Operator+" sign it", "%s does not answer for %s", s.action.Actor, id)
	}
	if p.Revoked != nil {
		return nil, machine.Refuse(machine.CodeRevoked, "register a new principal", "%s has been revoked", id)
	}
	return p, nil
}

// newKey checks a key somebody brings: a good one, never seen, and held.
func (s *step) newKey(operator, id string, jwk sign.JWK, proof string) (sign.PublicKey, error) {
	key, err := jwk.Public()
	if err != nil {
		return key, machine.Refuse(CodeBadKey, "make a new key", "jwk: %v", err)
	}
	used, err := s.key(key.KID())
	if err != nil {
		return key, err
	}
	if used != nil {
		return key, machine.Refuse(CodeKeyInUse, "make a new key; keys are never taken twice", "key %s belongs or belonged to a principal", key.KID())
	}
	if err := key.VerifyDetached(sign.TypProof, ProofPayload(s.ctx.Genesis, operator, id, jwk), proof); err != nil {
		return key, machine.Refuse(CodeBadProof, "sign {cluster, id, jwk} (and, to register, the operator) with the new key, typ "+sign.TypProof, "proof: %v", err)
	}
	return key, nil
}

func (s *step) checkElectorate(operator string) error {
	limit, err := s.number(keyLimit)
	if err != nil || limit == 0 {
		return err
	}
	n, err := s.number(prefixCount + operator)
	if err != nil {
		return err
	}
	if n >= limit {
		return machine.Refuse(CodeElectorateLimit, "revoke a principal first",
			"%s answers for %d principals, as many as the genesis allows", operator, n).With("limit", limit)
	}
	return nil
}
