package store

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"sync"
	"time"

	"github.com/gofrs/flock"
	"go.etcd.io/bbolt"
	bolterrors "go.etcd.io/bbolt/errors"

	"github.com/deliberd/deliberd/machine"
)

// Codes of this package's refusals.
const (
	CodeFolderInUse = "folder_in_use" // another process holds the data folder
	CodeWrongNode   = "wrong_node"    // the data folder belongs to another node
	CodeWrongGen    = "wrong_genesis" // the data folder belongs to another cluster
	CodeBadStream   = "bad_state_stream"
)

// Names inside the data folder.
const (
	lockName  = "lock"
	stateName = "state.db"
	freshName = "state.fresh.db" // being loaded; a leftover is removed
)

// Bounds of a key and a value, in bytes. Larger ones could be neither stored nor streamed.
const (
	MaxKey   = 32768
	MaxValue = 64 << 20
)

var (
	bucketState = []byte("state")
	bucketLocal = []byte("local")
)

// lockWait bounds the wait for a lock another process holds.
const lockWait = 200 * time.Millisecond

// mapped is the address space a file is given at first: 4 GiB, or what bbolt
// likes on a 32-bit machine. A writer that outgrows it waits for all readers,
// and a snapshot being streamed is a slow reader.
const mapped = int(^uint(0) >> 31 >> 1 & 1 << 32)

// ErrClosed is returned after Close.
var ErrClosed = errors.New("the store is closed")

// Store is one node's data folder.
type Store struct {
	dir  string
	lock *flock.Flock

	mu     sync.RWMutex // guards cur and closed
	cur    *handle
	closed bool
	swap   sync.Mutex // one Replace at a time, and no Update during one
	old    sync.WaitGroup
}

// handle counts who reads a bbolt file, so that a replaced one is closed once nobody does.
type handle struct {
	db   *bbolt.DB
	refs sync.WaitGroup
}

// Open opens the data folder dir, making it if it is missing. A folder that
// another process holds is refused at once with [CodeFolderInUse].
func Open(dir string) (*Store, error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, fmt.Errorf("data folder: %w", err)
	}
	lock := flock.New(filepath.Join(dir, lockName))
	ok, err := lock.TryLock()
	if err != nil {
		return nil, fmt.Errorf("lock of the data folder: %w", err)
	}
	if !ok {
		return nil, inUse(dir)
	}
	s := &Store{dir: dir, lock: lock}
	if err := os.Remove(filepath.Join(dir, freshName)); err != nil && !errors.Is(err, os.ErrNotExist) {
		return nil, errors.Join(err, lock.Close())
	}
	db, err := openFile(filepath.Join(dir, stateName))
	if errors.Is(err, bolterrors.ErrTimeout) {
		err = inUse(dir)
	}
	if err != nil {
		return nil, errors.Join(err, lock.Close())
	}
	s.cur = &handle{db: db}
	return s, nil
}

func inUse(dir string) error {
	return machine.Refuse(CodeFolderInUse, "stop the other process or choose another folder",
		"the data folder %s is in use by another process", dir)
}

// openFile opens or makes a state file with its two buckets.
func openFile(path string) (*bbolt.DB, error) {
	options := &bbolt.Options{Timeout: lockWait, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType}
	if runtime.GOOS != "windows" && mapped > 0 {
		options.InitialMmapSize = mapped
	}
	db, err := bbolt.Open(path, 0o600, options)
	if err != nil {
		return nil, fmt.Errorf("state file %s: %w", path, err)
	}
	err = db.Update(func(tx *bbolt.Tx) error {
		for _, name := range [][]byte{bucketState, bucketLocal} {
			if _, err := tx.CreateBucketIfNotExists(name); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, errors.Join(err, db.Close())
	}
	return db, nil
}

// Dir is the data folder.
func (s *Store) Dir() string { return s.dir }

// acquire takes the current file; the caller calls refs.Done when it has finished.
func (s *Store) acquire() (*handle, error) {
	s.mu.RLock()
	defer s.mu.RUnlock()
	if s.closed {
		return nil, ErrClosed
	}
	s.cur.refs.Add(1)
	return s.cur, nil
}

// View runs f on one moment of the state. f's Tx errs on writes.
func (s *Store) View(f func(machine.Tx) error) error { return s.view(bucketState, f) }

// Update runs f in one transaction on the state, which is on disk when Update
// returns nil. When f errs nothing is written. f must not call the store.
func (s *Store) Update(f func(machine.Tx) error) error { return s.update(bucketState, f) }

// Local is View on this node's own space.
func (s *Store) Local(f func(machine.Tx) error) error { return s.view(bucketLocal, f) }

// UpdateLocal is Update on this node's own space.
func (s *Store) UpdateLocal(f func(machine.Tx) error) error { return s.update(bucketLocal, f) }

func (s *Store) view(bucket []byte, f func(machine.Tx) error) error {
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.refs.Done()
	return h.db.View(func(tx *bbolt.Tx) error { return f(boltTx{tx.Bucket(bucket)}) })
}

func (s *Store) update(bucket []byte, f func(machine.Tx) error) error {
	s.swap.Lock()
	defer s.swap.Unlock()
	h, err := s.acquire()
	if err != nil {
		return err
	}
	defer h.refs.Done()
	return h.db.Update(func(tx *bbolt.Tx) error { return f(boltTx{tx.Bucket(bucket)}) })
}

// Claim binds the folder to a node and a cluster at first use, and afterwards
// refuses any other: [CodeWrongNode], [CodeWrongGen]. node is a peer id,
// genesis the genesis hash.
func (s *Store) Claim(node, genesis string) error {
	return s.UpdateLocal(func(tx machine.Tx) error {
		for _, c := range []struct{ key, want, code, what, fix string }{
			{"node", node, CodeWrongNode, "node", "use that node's key, or another folder"},
			{"genesis", genesis, CodeWrongGen, "genesis", "use that cluster's genesis, or another folder"},
		} {
			have, err := tx.Get([]byte(c.key))
			if err != nil {
				return err
			}
			if have != nil && string(have) != c.want {
				return machine.Refuse(c.code, c.fix, "the data folder %s belongs to %s %s, not %s", s.dir, c.what, have, c.want)
			}
			if have == nil {
				if err := tx.Put([]byte(c.key), []byte(c.want)); err != nil {
					return err
				}
			}
		}
		return nil
	})
}

// Close waits for readers and the writer, closes the file and frees the folder.
func (s *Store) Close() error {
	s.swap.Lock()
	defer s.swap.Unlock()
	s.mu.Lock()
	if s.closed {
		s.mu.Unlock()
		return nil
	}
	s.closed = true
	s.mu.Unlock()
	s.cur.refs.Wait()
	s.old.Wait()
	return errors.Join(s.cur.db.Close(), s.lock.Close())
}
