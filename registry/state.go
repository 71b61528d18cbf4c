package registry

import (
	"fmt"
	"strconv"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Keys of the machine. Ids and patterns hold no zero byte.
//
//	p/<id>                    principalRecord
//	k/<kid>                   keyRecord, of every key ever taken
//	g/<id>\0<pattern>         grantRecord
//	d/<pattern>\0<id>         empty: who holds a grant under a pattern, active principals only
//	c/<operator>              decimal: how many active agents and humans it answers for
//	limit                     decimal: Limits.MaxPrincipalsPerOperator
const (
	prefixPrincipal = "p/"
	prefixKey       = "k/"
	prefixGrant     = "g/"
	prefixHolder    = "d/"
	prefixCount     = "c/"
	keyLimit        = "limit"
)

type principalRecord struct {
	ID       string                `json:"id"`
	Kind     machine.PrincipalKind `json:"kind"`
	Operator string                `json:"operator"`
	Name     string                `json:"name,omitempty"`
	KID      string                `json:"kid,omitempty"` // of the active key; empty when that was revoked
	Since    machine.Stamp         `json:"since_ms"`
	Revoked  *Revocation           `json:"revoked,omitempty"`
}

// Revocation is when and why a principal was revoked.
type Revocation struct {
	At     machine.Stamp `json:"at_ms"`
	By     string        `json:"by"`
	Reason string        `json:"reason"`
}

func (p *principalRecord) public() machine.Principal {
	return machine.Principal{ID: p.ID, Kind: p.Kind, Operator: p.Operator, Name: p.Name, Active: p.Revoked == nil}
}

type keyRecord struct {
	Principal string        `json:"principal"`
	X         string        `json:"x"`
	Status    KeyStatus     `json:"status"`
	Since     machine.Stamp `json:"since_ms"`
	Ended     machine.Stamp `json:"ended_ms,omitempty"`
}

type grantRecord struct {
	Authority string        `json:"authority"`
	Trust     string        `json:"trust"`
	Since     machine.Stamp `json:"since_ms"`
}

// state reads and writes the machine's records. Its errors are corruption.
type state struct{ tx machine.Tx }

func (s state) save(key string, v any) error { return s.tx.Put([]byte(key), canon.MustMarshal(v)) }

func (s state) principal(id string) (*principalRecord, error) {
	return machine.Load[principalRecord](s.tx, prefixPrincipal+id)
}

func (s state) savePrincipal(p *principalRecord) error { return s.save(prefixPrincipal+p.ID, p) }

func (s state) key(kid string) (*keyRecord, error) {
	return machine.Load[keyRecord](s.tx, prefixKey+kid)
}

func (s state) saveKey(kid string, k *keyRecord) error { return s.save(prefixKey+kid, k) }

func (s state) grantOf(id, pattern string) (*grantRecord, error) {
	return machine.Load[grantRecord](s.tx, grantKey(id, pattern))
}

func grantKey(id, pattern string) string { return prefixGrant + id + "\x00" + pattern }

func (s state) saveGrant(id, pattern string, g *grantRecord) error {
	if err := s.save(grantKey(id, pattern), g); err != nil {
		return err
	}
	return s.tx.Put([]byte(prefixHolder+pattern+"\x00"+id), []byte{})
}

func (s state) dropGrant(id, pattern string) error {
	if err := s.tx.Delete([]byte(grantKey(id, pattern))); err != nil {
		return err
	}
	return s.tx.Delete([]byte(prefixHolder + pattern + "\x00" + id))
}

// eachGrant visits the grants of one principal, by pattern.
func (s state) eachGrant(id string, visit func(pattern string, g grantRecord) (bool, error)) error {
	return machine.EachRecord(s.tx, prefixGrant+id+"\x00", "", func(pattern string, g *grantRecord) (bool, error) {
		return visit(pattern, *g)
	})
}

func (s state) number(key string) (int, error) {
	raw, err := s.tx.Get([]byte(key))
	if err != nil || raw == nil {
		return 0, err
	}
	n, err := strconv.Atoi(string(raw))
	if err != nil {
		return 0, fmt.Errorf("registry: record %q is damaged: %w", key, err)
	}
	return n, nil
}

// count adds to the number of active agents and humans an operator answers for.
func (s state) count(operator string, add int) error {
	n, err := s.number(prefixCount + operator)
	if err != nil {
		return err
	}
	return s.tx.Put([]byte(prefixCount+operator), strconv.AppendInt(nil, int64(n+add), 10))
}

// takeKey makes key the active key of p, retiring the one before, and saves both.
func (s state) takeKey(p *principalRecord, key sign.PublicKey, now machine.Stamp) error {
	if p.KID != "" {
		if err := s.endKey(p.KID, KeyRotated, now); err != nil {
			return err
		}
	}
	p.KID = key.KID()
	if err := s.saveKey(p.KID, &keyRecord{Principal: p.ID, X: key.X(), Status: KeyActive, Since: now}); err != nil {
		return err
	}
	return s.savePrincipal(p)
}

func (s state) endKey(kid string, status KeyStatus, now machine.Stamp) error {
	k, err := s.key(kid)
	if err != nil {
		return err
	}
	if k == nil {
		return fmt.Errorf("registry: key %s is missing", kid)
	}
	k.Status = status
	if k.Ended == 0 {
		k.Ended = now
	}
	return s.saveKey(kid, k)
}
