package store

import (
	"bytes"
	"fmt"

	"go.etcd.io/bbolt"

	"github.com/deliberd/deliberd/machine"
)

// boltTx is machine.Tx on one bucket of a bbolt transaction.
type boltTx struct{ b *bbolt.Bucket }

var _ machine.Tx = boltTx{}

func (t boltTx) Get(k []byte) ([]byte, error) {
	c := t.b.Cursor()
	found, v := c.Seek(k)
	if found == nil || !bytes.Equal(found, k) {
		return nil, nil
	}
	if v == nil {
		return []byte{}, nil
	}
	return v, nil
}

// Put copies v: bbolt keeps the slice until the transaction commits.
func (t boltTx) Put(k, v []byte) error {
	if len(k) == 0 || len(k) > MaxKey {
		return fmt.Errorf("a key has 1 to %d bytes, got %d", MaxKey, len(k))
	}
	if len(v) > MaxValue {
		return fmt.Errorf("a value has at most %d bytes, got %d", MaxValue, len(v))
	}
	return t.b.Put(k, append(make([]byte, 0, len(v)), v...))
}

func (t boltTx) Delete(k []byte) error { return t.b.Delete(k) }

func (t boltTx) Range(from, to []byte, f func(k, v []byte) (bool, error)) error {
	c := t.b.Cursor()
	k, v := c.Seek(from)
	for ; k != nil; k, v = c.Next() {
		if to != nil && bytes.Compare(k, to) >= 0 {
			return nil
		}
		if v == nil {
			v = []byte{}
		}
		if more, err := f(k, v); err != nil || !more {
			return err
		}
	}
	return nil
}
