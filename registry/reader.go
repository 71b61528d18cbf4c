package registry

import (
	"bytes"
	"sync"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Reader answers as the functions of the same names do, and remembers the
// records that it has decoded: every action asks for the same few of its
// sender. A record with the same bytes says the same, so what is remembered
// never goes stale. The zero value is ready; it is safe for concurrent use.
type Reader struct {
	principals memo[principalRecord]
	keys       memo[keyRecord]
	grants     memo[grantRecord]
}

// Lookup is [Lookup].
func (r *Reader) Lookup(tx machine.Tx, id string) (machine.Principal, bool, error) {
	return lookup(remembering{r, tx}, id)
}

// Key is [Key].
func (r *Reader) Key(tx machine.Tx, actor, kid string) (sign.PublicKey, KeyStatus, error) {
	return findKey(remembering{r, tx}, actor, kid)
}

// GrantFor is [GrantFor].
func (r *Reader) GrantFor(tx machine.Tx, principal, domain string) (machine.Grant, bool, error) {
	return grantFor(remembering{r, tx}, principal, domain)
}

// source gives records to read, not to change; nil for one that is absent.
type source interface {
	principal(id string) (*principalRecord, error)
	key(kid string) (*keyRecord, error)
	grantOf(id, pattern string) (*grantRecord, error)
}

// remembering is a source over a Tx and what a Reader remembers.
type remembering struct {
	r  *Reader
	tx machine.Tx
}

func (s remembering) principal(id string) (*principalRecord, error) {
	return s.r.principals.load(s.tx, prefixPrincipal+id)
}

func (s remembering) key(kid string) (*keyRecord, error) {
	return s.r.keys.load(s.tx, prefixKey+kid)
}

func (s remembering) grantOf(id, pattern string) (*grantRecord, error) {
	return s.r.grants.load(s.tx, grantKey(id, pattern))
}

// maxRemembered bounds a memo. A full one starts afresh.
const maxRemembered = 4096

// memo is records by their keys, each with the bytes it was decoded from.
type memo[T any] struct {
	mu   sync.Mutex
	seen map[string]decoded[T]
}

type decoded[T any] struct {
	text []byte
	v    *T
}

func (m *memo[T]) load(tx machine.Tx, key string) (*T, error) {
	text, err := tx.Get([]byte(key))
	if err != nil || text == nil {
		return nil, err
	}
	m.mu.Lock()
	known := m.seen[key]
	m.mu.Unlock()
	if known.v != nil && bytes.Equal(known.text, text) {
		return known.v, nil
	}
	v, err := machine.Load[T](tx, key)
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.seen == nil || len(m.seen) >= maxRemembered {
		m.seen = map[string]decoded[T]{}
	}
	m.seen[key] = decoded[T]{bytes.Clone(text), v}
	return v, nil
}
