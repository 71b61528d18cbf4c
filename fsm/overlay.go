package fsm

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"sort"

	"github.com/deliberd/deliberd/machine"
)

// overlay holds writes above another Tx until they are flushed or dropped.
type overlay struct {
	base   machine.Tx
	writes map[string][]byte // nil value: deleted
}

func newOverlay(base machine.Tx) *overlay {
	return &overlay{base: base, writes: map[string][]byte{}}
}

func (o *overlay) Get(k []byte) ([]byte, error) {
	if v, ok := o.writes[string(k)]; ok {
		return v, nil
	}
	return o.base.Get(k)
}

func (o *overlay) Put(k, v []byte) error {
	o.writes[string(k)] = append([]byte{}, v...) // never nil: nil means deleted
	return nil
}

func (o *overlay) Delete(k []byte) error {
	o.writes[string(k)] = nil
	return nil
}

// Range merges the pending writes into the base's order.
func (o *overlay) Range(from, to []byte, f func(k, v []byte) (bool, error)) error {
	pending := o.keys(from, to)
	stopped := false
	visit := func(k, v []byte) (bool, error) {
		more, err := f(k, v)
		stopped = !more || err != nil
		return more, err
	}
	before := func(k []byte) (bool, error) { // pending writes below k; nil k: all
		for len(pending) > 0 && (k == nil || pending[0] < string(k)) {
			key := pending[0]
			pending = pending[1:]
			if v := o.writes[key]; v != nil {
				if more, err := visit([]byte(key), v); err != nil || !more {
					return false, err
				}
			}
		}
		return true, nil
	}
	err := o.base.Range(from, to, func(k, v []byte) (bool, error) {
		if more, err := before(k); err != nil || !more {
			return false, err
		}
		if _, shadowed := o.writes[string(k)]; shadowed {
			if len(pending) > 0 && pending[0] == string(k) {
				pending = pending[1:]
				if nv := o.writes[string(k)]; nv != nil {
					return visit(k, nv)
				}
			}
			return true, nil
		}
		return visit(k, v)
	})
	if err != nil || stopped {
		return err
	}
	_, err = before(nil)
	return err
}

// keys lists the pending keys in [from, to), ascending.
func (o *overlay) keys(from, to []byte) []string {
	var keys []string
	for k := range o.writes { // order: sorted below
		if k >= string(from) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	return keys
}

// settle moves everything pending into the overlay below and empties this one.
func (o *overlay) settle() {
	into := o.base.(*overlay).writes
	for k, v := range o.writes { // order: from map to map
		into[k] = v
	}
	clear(o.writes)
}

// drop forgets everything pending.
func (o *overlay) drop() { clear(o.writes) }

// flush writes everything pending into the base, in key order, and commits to
// it: the result is the SHA-256 over each key in order with its value or its
// deletion.
func (o *overlay) flush() ([32]byte, error) {
	h := sha256.New()
	var buf []byte
	for _, k := range o.keys(nil, nil) {
		v := o.writes[k]
		buf = append(binary.AppendUvarint(buf[:0], uint64(len(k))), k...)
		var err error
		if v == nil {
			buf = append(buf, 0)
			err = o.base.Delete([]byte(k))
		} else {
			buf = append(buf, 1)
			buf = binary.AppendUvarint(buf, uint64(len(v)))
			err = o.base.Put([]byte(k), v)
		}
		if err != nil {
			return [32]byte{}, err
		}
		h.Write(buf)
		h.Write(v)
	}
	return [32]byte(h.Sum(nil)), nil
}

// scoped is one machine's view of a Tx: its own keys, without their prefix.
type scoped struct {
	base   machine.Tx
	prefix []byte
	last   []byte // of Get; nobody keeps it
}

// scope is machine i's view.
func (f *FSM) scope(base machine.Tx, i int) *scoped {
	return &scoped{base: base, prefix: f.prefixes[i]}
}

func prefixOf(name string) []byte { return append(append([]byte{nsMachine}, name...), 0) }

func (s *scoped) key(k []byte) []byte {
	return append(append(make([]byte, 0, len(s.prefix)+len(k)), s.prefix...), k...)
}
func (s *scoped) Get(k []byte) ([]byte, error) {
	s.last = append(append(s.last[:0], s.prefix...), k...)
	return s.base.Get(s.last)
}
func (s *scoped) Put(k, v []byte) error { return s.base.Put(s.key(k), v) }
func (s *scoped) Delete(k []byte) error { return s.base.Delete(s.key(k)) }

func (s *scoped) Range(from, to []byte, f func(k, v []byte) (bool, error)) error {
	end := bytes.Clone(s.prefix)
	end[len(end)-1]++ // names end in 0: the next prefix ends in 1
	if to != nil {
		end = s.key(to)
	}
	return s.base.Range(s.key(from), end, func(k, v []byte) (bool, error) { return f(k[len(s.prefix):], v) })
}

// Name spaces of the flat store: the first byte of every key.
const (
	nsMachine    = 'm' // machine name, 0, its key
	nsID         = 'i' // ULID, actor: the first answer
	nsHead       = 'h' // the head, one key
	nsNode       = 'n' // number: nodes of the decision log's tree, see nodeKey
	nsRecord     = 'e' // leaf number: the leaf's text
	nsCheckpoint = 'c' // seq: size and root at the end of that entry
)
