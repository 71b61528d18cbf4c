package fsm

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/transparency-dev/merkle/compact"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Version is the state machine's version, kept in the state and switched by a
// logged action; a node that does not speak the state's version stops.
const Version = 1

// Config assembles a state machine.
type Config struct {
	// Machines in the order in which they react; names are distinct.
	Machines []machine.Machine
	// Directory and Membership answer for the machines with these names.
	Directory      Directory
	DirectoryName  string
	Membership     Membership
	MembershipName string
	// Verify checks one action; nil means [sign.Unverified.Verify]. A node
	// passes one that remembers what its own door has checked already.
	Verify func(sign.Unverified, sign.PublicKey) (sign.Verified, error)
}

// FSM applies entries. What it holds besides its assembly is a copy of what
// is in the Tx and can be found there again: everything else is in the Tx.
type FSM struct {
	machines          []machine.Machine
	prefixes          [][]byte // of their keys
	byName            map[string]int
	kinds             map[string]handler
	queries           map[string]question
	directory         Directory
	membership        Membership
	registry, members int // which machines they are
	verify            func(sign.Unverified, sign.PublicKey) (sign.Verified, error)
	window, future    machine.Stamp
	dumpEvery         uint64
	tail              tail // Apply's own
}

type handler struct {
	machine int
	kind    machine.Kind
}

type question struct {
	machine int
	query   machine.Query
}

// New checks the assembly: distinct names, kinds and queries, each named after its machine.
func New(c Config) (*FSM, error) {
	f := &FSM{
		machines: c.Machines, byName: map[string]int{}, kinds: map[string]handler{}, queries: map[string]question{},
		directory: c.Directory, membership: c.Membership,
		verify: c.Verify, window: DefaultParams.IDWindow, future: DefaultParams.IDFuture, dumpEvery: DefaultParams.DumpEvery,
	}
	if f.verify == nil {
		f.verify = sign.Unverified.Verify
	}
	for i, m := range c.Machines {
		if _, dup := f.byName[m.Name()]; dup {
			return nil, fmt.Errorf("two machines are named %q", m.Name())
		}
		f.byName[m.Name()] = i
		f.prefixes = append(f.prefixes, prefixOf(m.Name()))
		for _, k := range m.Kinds() {
			if _, dup := f.kinds[k.Name]; dup {
				return nil, fmt.Errorf("two machines take kind %q", k.Name)
			}
			f.kinds[k.Name] = handler{i, k}
		}
		for _, q := range m.Queries() {
			_, query := f.queries[q.Name]
			if _, kind := f.kinds[q.Name]; query || kind { // both become methods of one door
				return nil, fmt.Errorf("two things are named %q", q.Name)
			}
			f.queries[q.Name] = question{i, q}
		}
	}
	for name, into := range map[string]*int{c.DirectoryName: &f.registry, c.MembershipName: &f.members} { // order: each its own
		at, ok := f.byName[name]
		if !ok {
			return nil, fmt.Errorf("no machine is named %q", name)
		}
		*into = at
	}
	return f, nil
}

// Params are the protocol constants a genesis fixes.
type Params struct {
	IDWindow  machine.Stamp // ms: how old an action's ULID may be
	IDFuture  machine.Stamp // ms: how far ahead it may be
	DumpEvery uint64        // entries between dumps of the whole state; 0: never
}

// DefaultParams serve a genesis that names none.
var DefaultParams = Params{IDWindow: 3_600_000, IDFuture: 120_000, DumpEvery: 16384}

// SetParams replaces the protocol constants by those of the genesis. The
// caller sets them before the first Apply, alike on every node.
func (f *FSM) SetParams(p Params) {
	f.window, f.future, f.dumpEvery = p.IDWindow, p.IDFuture, p.DumpEvery
}

// Head is where the state machine stands.
type Head struct {
	Version    int           `json:"version"`
	Genesis    string        `json:"genesis"`
	Generation uint64        `json:"generation"`
	Seq        uint64        `json:"seq"`
	Stamp      machine.Stamp `json:"stamp_ms"`
	Size       uint64        `json:"size"` // leaves of the decision log
	Root       string        `json:"root"` // of the decision log, hex
}

var headKey = []byte{nsHead}

// ErrNoGenesis is a state that has not been initialised.
var ErrNoGenesis = errors.New("no_genesis")

// ErrVersion is a state of another state machine version.
var ErrVersion = errors.New("fsm_version_unknown")

// ReadHead reads the head. It errs with [ErrNoGenesis] or [ErrVersion].
func ReadHead(tx machine.Tx) (Head, error) {
	raw, err := tx.Get(headKey)
	if err != nil {
		return Head{}, err
	}
	if raw == nil {
		return Head{}, ErrNoGenesis
	}
	var h Head
	if err := json.Unmarshal(raw, &h); err != nil {
		return Head{}, fmt.Errorf("head: %w", err)
	}
	if h.Version != Version {
		return h, fmt.Errorf("%w: the state has version %d, this build speaks %d", ErrVersion, h.Version, Version)
	}
	return h, nil
}

func writeHead(tx machine.Tx, h Head) error { return tx.Put(headKey, canon.MustMarshal(h)) }

// Init starts a state from nothing: the given functions fill the machines'
// keys from the genesis, and the log gets its first leaf.
func (f *FSM) Init(tx machine.Tx, genesis string, created machine.Stamp, fill map[string]func(machine.Tx) error) error {
	if _, err := ReadHead(tx); !errors.Is(err, ErrNoGenesis) {
		return errors.Join(err, errors.New("the state has a genesis already"))
	}
	top := newOverlay(tx)
	for i, m := range f.machines {
		if init, ok := fill[m.Name()]; ok {
			if err := init(f.scope(top, i)); err != nil {
				return fmt.Errorf("genesis of %s: %w", m.Name(), err)
			}
		}
	}
	writes, err := top.flush()
	if err != nil {
		return err
	}
	h := Head{Version: Version, Genesis: genesis, Stamp: created}
	data := canon.MustMarshal(EntryData{Entry: genesis, Writes: hex.EncodeToString(writes[:])})
	rec := Record{Data: data, Epoch: 1, Genesis: genesis, Stamp: created, Subject: genesis, Type: "genesis"}
	_, err = seal(tx, &h, tree.NewEmptyRange(0), []Record{rec})
	return err
}

// seal appends an entry's records and writes its checkpoint and the new head.
func seal(tx machine.Tx, h *Head, r *compact.Range, records []Record) (root [32]byte, err error) {
	for _, rec := range records {
		if err := appendRecord(tx, r, rec); err != nil {
			return root, err
		}
	}
	if root, err = rootOf(r); err != nil {
		return root, err
	}
	h.Size, h.Root = r.End(), hex.EncodeToString(root[:])
	value := append(seqKey(0, h.Size)[1:], root[:]...)
	if err := tx.Put(seqKey(nsCheckpoint, h.Seq), value); err != nil {
		return root, err
	}
	return root, writeHead(tx, *h)
}
