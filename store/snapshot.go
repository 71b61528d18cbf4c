package store

import (
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"sync"

	"go.etcd.io/bbolt"

	"github.com/deliberd/deliberd/machine"
)

// Snapshot is one moment of the state, however long it is read. Writers go on
// meanwhile; the file grows by what they change, so release it soon.
type Snapshot struct {
	mu sync.Mutex
	tx *bbolt.Tx
	h  *handle
}

// Snapshot opens a read transaction on the state. The caller releases it.
func (s *Store) Snapshot() (*Snapshot, error) {
	h, err := s.acquire()
	if err != nil {
		return nil, err
	}
	tx, err := h.db.Begin(false)
	if err != nil {
		h.refs.Done()
		return nil, err
	}
	return &Snapshot{tx: tx, h: h}, nil
}

// View runs f on the snapshot.
func (s *Snapshot) View(f func(machine.Tx) error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return errStreamUsed
	}
	return f(boltTx{s.tx.Bucket(bucketState)})
}

// Stream writes the state's canonical stream and returns its hash.
func (s *Snapshot) Stream(w io.Writer) (Sum, error) {
	var sum Sum
	err := s.View(func(tx machine.Tx) error {
		e := newEncoder(w)
		err := tx.Range(nil, nil, func(k, v []byte) (bool, error) { return true, e.pair(k, v) })
		if err != nil {
			return err
		}
		sum, err = e.end()
		return err
	})
	return sum, err
}

// Size is the size of the state's file in bytes: an upper bound of the stream's.
func (s *Snapshot) Size() int64 {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return 0
	}
	return s.tx.Size()
}

// Release ends the read transaction; further calls do nothing.
func (s *Snapshot) Release() {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.tx == nil {
		return
	}
	// A read transaction's rollback cannot fail but for being used twice.
	_ = s.tx.Rollback()
	s.tx = nil
	s.h.refs.Done()
}

// loadBatch is how many pairs one transaction takes while a stream is loaded.
const loadBatch = 20000

// Replace reads a state stream into a fresh file, checks it to the last byte
// and puts it in the place of the state, keeping the local space. On an error
// the old state stays. A stream that is not canonical is refused with
// [CodeBadStream]. Readers go on with the state they have begun to read.
func (s *Store) Replace(r io.Reader) (Sum, error) {
	s.swap.Lock()
	defer s.swap.Unlock()
	path := filepath.Join(s.dir, freshName)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return Sum{}, err
	}
	db, err := openFile(path)
	if err != nil {
		return Sum{}, err
	}
	sum, err := s.fill(db, r)
	if err != nil {
		return Sum{}, errors.Join(err, db.Close(), os.Remove(path))
	}
	return sum, s.install(db, path)
}

// fill loads the stream, copies the local space and makes the file durable.
func (s *Store) fill(db *bbolt.DB, r io.Reader) (Sum, error) {
	db.NoSync = true // nobody relies on the file before the sync below
	load := loader{db: db}
	sum, err := ReadStream(r, load.put)
	if err = errors.Join(err, load.finish(err == nil)); err != nil {
		return Sum{}, err
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		local := boltTx{tx.Bucket(bucketLocal)}
		return s.Local(func(old machine.Tx) error {
			return old.Range(nil, nil, func(k, v []byte) (bool, error) { return true, local.Put(k, v) })
		})
	})
	if err != nil {
		return Sum{}, err
	}
	db.NoSync = false
	return sum, db.Sync()
}

// install renames the fresh file into place and lets the old one go when its
// last reader has finished.
func (s *Store) install(db *bbolt.DB, path string) error {
	if err := os.Rename(path, filepath.Join(s.dir, stateName)); err != nil {
		return errors.Join(err, db.Close())
	}
	if err := syncDir(s.dir); err != nil {
		return errors.Join(err, db.Close())
	}
	s.mu.Lock()
	old := s.cur
	s.cur = &handle{db: db}
	s.mu.Unlock()
	s.old.Go(func() {
		old.refs.Wait()
		_ = old.db.Close() // unlinked: nothing in it is wanted any more
	})
	return nil
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	return errors.Join(ignoreUnsupported(d.Sync()), d.Close())
}

// loader puts ascending pairs into a file, many a transaction.
type loader struct {
	db *bbolt.DB
	tx *bbolt.Tx
	b  boltTx
	n  int
}

func (l *loader) put(k, v []byte) error {
	if l.tx == nil {
		tx, err := l.db.Begin(true)
		if err != nil {
			return err
		}
		l.tx, l.b = tx, boltTx{tx.Bucket(bucketState)}
		l.b.b.FillPercent = 0.9
	}
	if err := l.b.Put(k, v); err != nil {
		return fmt.Errorf("load: %w", err)
	}
	if l.n++; l.n%loadBatch == 0 {
		return l.finish(true)
	}
	return nil
}

func (l *loader) finish(commit bool) error {
	tx := l.tx
	if tx == nil {
		return nil
	}
	l.tx = nil
	if commit {
		return tx.Commit()
	}
	return tx.Rollback()
}
