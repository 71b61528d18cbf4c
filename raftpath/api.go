package raftpath

import (
	"log/slog"
	"time"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
	"github.com/deliberd/deliberd/store"
)

// Codes of this package's refusals.
const (
	CodeNoLeader    = "no_leader"      // no leader was found before the time was up; nothing was ordered
	CodeUnavailable = "unavailable"    // the outcome is not known: the action may or may not have been ordered
	CodeNotLeader   = "not_leader"     // the node asked does not lead (any more)
	CodeTooLarge    = "too_large"      // an action above MaxActionBytes
	CodeHalted      = "halted"         // the node has stopped applying after an error of its own
	CodeNotReady    = "not_ready"      // raft is stopped here for the moment
	CodeRemoved     = "removed"        // this node is no longer a voter
	CodeCompacted   = "log_compacted"  // the entries asked for are no longer kept: fetch the state
	CodeDiverged    = "diverged"       // another node computed another decision log
	CodeBootstrap   = "already_begun"  // the folder holds raft state already
	CodeStateBehind = "state_behind"   // the state is older than the raft log's start: fetch it
	CodeBusy        = "too_many_waits" // more actions wait here than the node takes
)

// Limits of batching.
const (
	MaxActionBytes  = 1 << 20 // one action
	MaxBatch        = 512     // actions in one entry
	MaxBatchBytes   = 1 << 20 // bytes of actions in one entry that holds more than one
	maxEntryBytes   = 4 << 20 // an encoded entry; larger ones are refused on the wire
	maxWaiting      = 65536   // actions waiting at one node
	maxAppendBytes  = 6 << 20 // entries in one AppendEntries
	maxEntriesAwire = 1024
)

// Applier is the state machine (package fsm, behind an adapter). Its methods
// may be called for different entries at once, but Apply runs alone.
type Applier interface {
	// Prepare decodes an entry and does what can be done ahead of time,
	// reading the state before the entry's batch. It never fails: what is
	// wrong with an entry is decided in Apply.
	Prepare(tx machine.Tx, entry []byte) any
	// Apply applies a prepared entry inside the batch's transaction. An error
	// is local corruption and stops the node.
	Apply(tx machine.Tx, prepared any) (Outcome, error)
	// Next is the earliest stamp at which time alone has something to do.
	Next(tx machine.Tx) (machine.Stamp, bool, error)
	// Head is the number and stamp of the last applied entry; 0, 0 at first.
	Head(tx machine.Tx) (seq uint64, stamp machine.Stamp, err error)
}

// Checker is an Applier whose Prepare leaves checks that may run in parallel,
// such as one signature an action.
type Checker interface {
	Checks(prepared any) int
	Check(prepared any, i int)
}

// Checkpointer is an Applier that remembers the decision log's head at each
// entry. Followers of the sync stream then stop when theirs differs.
type Checkpointer interface {
	CheckpointAt(tx machine.Tx, seq uint64) (machine.Checkpoint, bool, error)
}

// Outcome is what one entry came to.
type Outcome struct {
	Seq     uint64 // the entry's number
	Stamp   machine.Stamp
	Answers [][]byte // one per action, in order; opaque here
	Events  any      // for OnApplied; opaque here
	// Index and Term are the entry's place in raft's log; raftpath fills them in.
	Index, Term uint64
}

// Encode writes an entry: see package fsm.
type Encode func(generation, epoch uint64, stamp machine.Stamp, actions [][]byte) []byte

// Config is what a Path needs.
type Config struct {
	Host    *p2p.Host
	Store   *store.Store // the raft log lives in its folder
	Applier Applier
	Encode  Encode
	// Epoch is the voter epoch that new entries name; nil: 0.
	Epoch func() uint64
	// Clock is wall time for stamps; nil: the system's.
	Clock func() machine.Stamp
	// Members lists peers to catch up from and to send actions to while this
	// node runs no raft; nil: only those in raft's configuration.
	Members func() []string
	// Founders are whose word counts about this node's removal while its state
	// names no voters yet.
	Founders []string
	// Guard rules over the raft plane; nil: [guard.Voters] of raft's
	// configuration and the target set by Reconcile.
	Guard guard.Guard

	// OnApplied hears the outcomes of each committed batch, in order, after
	// the transaction. The log waits for it.
	OnApplied func([]Outcome)
	// OnProgress hears how far a catch-up is.
	OnProgress func(Progress)
	// OnFatal hears why this node has stopped applying, once. The caller
	// closes the Path and exits.
	OnFatal func(error)
	// OnRemoved hears, once, that this node has been removed: a committed
	// configuration no longer holds it, or enough voters say so.
	OnRemoved func()

	Timing Timing
	Logger *slog.Logger // nil: slog.Default

	// UnsafeFastPath takes heartbeats beside raft's main thread, as raft's own
	// transport does. Nodes then come to disagree about entries: package
	// jepsen sets it to show that it would notice. Nothing else may.
	UnsafeFastPath bool
}

// Timing holds the durations and thresholds of a Path; zero fields take the
// defaults of [DefaultTiming].
type Timing struct {
	Heartbeat     time.Duration // followers call an election after hearing nothing for this long
	Election      time.Duration
	Lease         time.Duration // a leader without a quorum for this long steps down; at most Heartbeat
	CommitTimeout time.Duration // how often a leader repeats its commit index
	RPC           time.Duration // bound of one raft message and its answer
	DiskStall     time.Duration // a log write or apply longer than this silences the node
	CatchUp       time.Duration // bound of one attempt to fetch state without any progress

	SnapshotInterval  time.Duration
	SnapshotThreshold uint64 // entries between snapshots
	TrailingLogs      uint64 // entries kept behind a snapshot, for followers
}

// DefaultTiming suits machines that stall for a second now and then.
var DefaultTiming = Timing{
	Heartbeat: 2 * time.Second, Election: 2 * time.Second, Lease: 2 * time.Second,
	CommitTimeout: 20 * time.Millisecond, RPC: 10 * time.Second, DiskStall: 8 * time.Second, CatchUp: 30 * time.Second,
	SnapshotInterval: 30 * time.Second, SnapshotThreshold: 16384, TrailingLogs: 8192,
}

// Role is what this node is in the raft plane now.
type Role string

// The roles.
const (
	Leader    Role = "leader"
	Follower  Role = "follower"
	Candidate Role = "candidate"
	Observer  Role = "observer" // runs no raft, follows the log
	Stopped   Role = "stopped"
)

// Status is a moment's view.
type Status struct {
	Role       Role
	Leader     string // peer id; empty when unknown
	Term       uint64
	Generation uint64
	Index      uint64 // raft index of the last applied entry
	Seq        uint64 // its number
	Stamp      machine.Stamp
	Voters     []string // raft's configuration, ascending
	CaughtUp   bool     // has a leader, and had applied all it knew of a moment ago
	Removed    bool     // this node has been removed
	Fatal      error
}

// Progress is how far a catch-up is.
type Progress struct {
	From    string // peer id
	Bytes   int64  // state fetched
	Of      int64  // upper bound of its size; 0 unknown
	Index   uint64 // raft index reached
	Target  uint64 // raft index the peer had applied when it last said so
	Done    bool
	Elapsed time.Duration
}

// Head is raft's position in the state, written with it. Its key is "r/head".
type Head struct {
	Generation  uint64
	Index, Term uint64 // of the last applied entry
	Config      []byte // raft's configuration at Index, as raft encodes it
	ConfigIndex uint64
}
