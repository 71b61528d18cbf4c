package bftpath

import (
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"time"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

// Errors of a [Driver].
var (
	// ErrClosed is a call after [Driver.Close].
	ErrClosed = errors.New("closed")
	// ErrForgotten is an instance that was forgotten: this key signs nothing for it any more.
	ErrForgotten = errors.New("instance_forgotten")
	// ErrConflict is an instance started before with another digest, or a
	// second, different committee for one epoch.
	ErrConflict = errors.New("instance_conflict")
	// ErrWrongKey is a committee that lists another key for this node.
	ErrWrongKey = errors.New("wrong_key")
)

// Config is what a [Driver] needs. Self, Key, Journal and Send are required.
type Config struct {
	Self    string             // this node's peer id
	Key     ed25519.PrivateKey // signs this node's frames in this epoch, and nowhere else
	Journal string             // path of the file of what Key has signed; apart from the node's data
	// Create makes the journal when it is missing. It is right only the first
	// time that Key is used: without its journal a key must not sign again.
	Create bool

	// Send queues a message for a peer. It must return at once, may drop, and
	// must not change the message.
	Send func(peer string, message []byte)
	// OnCertificate hears each decision, again after a restart. OnGuilt hears
	// the first proof against a voter of an epoch. OnFailure hears once why this driver stopped
	// signing. All are called from the driver's goroutine, must return soon,
	// and may call its methods except Close.
	OnCertificate func(pbft.Instance, *pbft.Certificate)
	OnGuilt       func(pbft.Guilt)
	OnFailure     func(error)

	Tick    time.Duration // length of a tick; 50 ms when 0
	Timeout int           // ticks in view 0; pbft's default when 0
	Resend  int           // ticks between repetitions; pbft's default when 0
	// Ticker replaces the clock in tests: a channel that delivers every d.
	Ticker func(d time.Duration) (ticks <-chan time.Time, stop func())
	Log    *slog.Logger

	compactFrom int64 // smaller in tests
}

// Bounds of what one peer can make a driver hold.
const (
	maxQueued      = 2048    // messages received and not looked at yet
	maxQueuedBytes = 8 << 20 // … and their bytes
	maxEarly       = 1024    // frames for instances not started yet
	maxEarlyBytes  = 4 << 20
)

// Driver runs one node's replicas of all instances of one epoch. Its methods
// are safe for concurrent use and do not block.
type Driver struct {
	cfg Config
	pub [32]byte
	log *slog.Logger

	mu         sync.Mutex
	inbox      []inbound
	queued     map[string]*usage
	committees map[uint64]*epochCommittee
	started    map[pbft.Digest]begun // by instance key
	forgotten  graveyard
	guilty     dock
	closed     bool
	failed     error
	stats      Stats

	wake    chan struct{}
	stop    chan struct{}
	done    chan struct{}
	loop    loop
	flusher flusher
}

// Stats counts what a driver has done since it started.
type Stats struct {
	Received     uint64 // messages taken in
	Dropped      uint64 // messages refused for lack of room or form
	Verified     uint64 // frames whose signature was checked
	Votes        uint64 // votes signed
	Frames       uint64 // frames signed
	Flushes      uint64 // journal writes, each one fdatasync
	Decided      uint64
	Undecided    int   // instances under way
	JournalBytes int64 // stored since the file was last written afresh
}

// epochCommittee is a committee as it was given and prepared.
type epochCommittee struct {
	given    machine.Committee
	prepared *pbft.Committee
	self     int
}

type usage struct{ count, bytes int }

// begun is an instance that was started, and the digest that is right.
type begun struct {
	instance pbft.Instance
	digest   pbft.Digest
}

// inbound is one thing for the loop: a message or a command.
type inbound struct {
	peer  string
	size  int
	frame *pbft.Frame
	cert  *pbft.Certificate

	start  *startCommand
	forget *pbft.Digest
}

type startCommand struct {
	instance  pbft.Instance
	key       pbft.Digest
	digest    pbft.Digest
	committee *epochCommittee
}

// New opens the journal and starts the driver. It errs with [ErrNoJournal],
// [ErrJournalInUse] or [ErrJournalCorrupt].
func New(cfg Config) (*Driver, error) {
	if cfg.Self == "" || len(cfg.Key) != ed25519.PrivateKeySize || cfg.Journal == "" || cfg.Send == nil {
		return nil, errors.New("bftpath: Self, Key, Journal and Send are required")
	}
	if cfg.Tick <= 0 {
		cfg.Tick = 50 * time.Millisecond
	}
	if cfg.compactFrom <= 0 {
		cfg.compactFrom = compactFrom
	}
	if cfg.Ticker == nil {
		cfg.Ticker = systemTicker
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	d := &Driver{
		cfg: cfg, pub: [32]byte(cfg.Key.Public().(ed25519.PublicKey)), log: cfg.Log,
		queued: map[string]*usage{}, committees: map[uint64]*epochCommittee{}, started: map[pbft.Digest]begun{},
		wake: make(chan struct{}, 1), stop: make(chan struct{}), done: make(chan struct{}),
	}
	journal, items, err := openJournal(cfg.Journal, d.pub, cfg.Create)
	if err != nil {
		return nil, err
	}
	d.loop.init(d)
	if err := d.loop.recall(items); err != nil {
		_ = journal.close()
		return nil, err
	}
	d.flusher.start(journal)
	go d.run()
	return d, nil
}

func systemTicker(d time.Duration) (<-chan time.Time, func()) {
	t := time.NewTicker(d)
	return t.C, t.Stop
}

// StartInstance begins to decide digest for the instance among the voters of
// its epoch. It may be called again with the same arguments. It errs with a
// refusal on a malformed instance or committee, and with [ErrConflict],
// [ErrForgotten], [ErrWrongKey], [ErrClosed] or why the driver stopped.
func (d *Driver) StartInstance(instance pbft.Instance, committee machine.Committee, digest [32]byte) error {
	if err := instance.Check(); err != nil {
		return err
	}
	if digest == [32]byte{} {
		return machine.Refuse(pbft.CodeMalformed, "", "the zero digest cannot be decided")
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if err := d.usable(); err != nil {
		return err
	}
	c, err := d.committee(instance.Epoch, committee)
	if err != nil {
		return err
	}
	key := instance.Key()
	if d.forgotten.holds(key) {
		return fmt.Errorf("%w: %s %s", ErrForgotten, instance.Purpose, instance.ID)
	}
	if before, ok := d.started[key]; ok {
		if before.digest != digest {
			return fmt.Errorf("%w: %s %s was started with digest %s, now %s", ErrConflict, instance.Purpose, instance.ID, before.digest, pbft.Digest(digest))
		}
		return nil
	}
	d.started[key] = begun{instance, digest}
	d.push(inbound{start: &startCommand{instance, key, digest, c}})
	return nil
}

// committee prepares the voters of an epoch once. Called with mu held.
func (d *Driver) committee(epoch uint64, given machine.Committee) (*epochCommittee, error) {
	if given.Epoch != epoch {
		return nil, machine.Refuse(pbft.CodeBadCommittee, "give the voters of the instance's epoch", "epoch %d, the instance's is %d", given.Epoch, epoch)
	}
	if have, ok := d.committees[epoch]; ok {
		if !sameMembers(have.given, given) {
			return nil, fmt.Errorf("%w: another committee for epoch %d", ErrConflict, epoch)
		}
		return have, nil
	}
	prepared, err := pbft.NewCommittee(given)
	if err != nil {
		return nil, err
	}
	self := prepared.Index(d.cfg.Self)
	if self != pbft.Observer && prepared.Key(self) != d.pub {
		return nil, fmt.Errorf("%w: epoch %d lists another key for %s", ErrWrongKey, epoch, d.cfg.Self)
	}
	given.Members = append([]machine.Member(nil), given.Members...)
	d.committees[epoch] = &epochCommittee{given, prepared, self}
	return d.committees[epoch], nil
}

func sameMembers(a, b machine.Committee) bool {
	if len(a.Members) != len(b.Members) {
		return false
	}
	for i := range a.Members {
		if a.Members[i] != b.Members[i] {
			return false
		}
	}
	return true
}

// Instances are those started and not forgotten, in no order: the caller
// forgets those that its state says have ended.
func (d *Driver) Instances() []pbft.Instance {
	d.mu.Lock()
	defer d.mu.Unlock()
	out := make([]pbft.Instance, 0, len(d.started))
	for _, s := range d.started {
		out = append(out, s.instance)
	}
	return out
}

// Forget drops a finished instance: nothing is signed, answered or sent again
// for it any more. What is on its way to the disk by then is sent once it is
// there. A driver that has stopped signing forgets until it is restarted.
func (d *Driver) Forget(instance pbft.Instance) {
	key := instance.Key()
	d.mu.Lock()
	defer d.mu.Unlock()
	if !d.closed && d.forgotten.add(key) {
		delete(d.started, key)
		d.push(inbound{forget: &key})
	}
}

// member reports whether a committee known here lists the peer. Called with mu held.
func (d *Driver) member(peer string) bool {
	for _, c := range d.committees {
		if c.prepared.Index(peer) != pbft.Observer {
			return true
		}
	}
	return false
}

// Deliver takes a message from a peer, whom the transport has authenticated,
// and keeps its bytes. Messages beyond the peer's bounds are dropped, as are
// certificates of peers that are no voters: those answer nobody.
func (d *Driver) Deliver(peer string, message []byte) {
	frame, cert, err := pbft.Decode(message)
	d.mu.Lock()
	defer d.mu.Unlock()
	u := d.queued[peer]
	if u == nil {
		u = &usage{}
		d.queued[peer] = u
	}
	if err != nil || d.usable() != nil || cert != nil && !d.member(peer) || u.count >= maxQueued || u.bytes+len(message) > maxQueuedBytes {
		d.stats.Dropped++
		return
	}
	u.count++
	u.bytes += len(message)
	d.stats.Received++
	d.push(inbound{peer: peer, size: len(message), frame: frame, cert: cert})
}

// push queues for the loop and wakes it. Called with mu held.
func (d *Driver) push(in inbound) {
	d.inbox = append(d.inbox, in)
	d.poke()
}

func (d *Driver) poke() {
	select {
	case d.wake <- struct{}{}:
	default:
	}
}

func (d *Driver) usable() error {
	if d.closed {
		return ErrClosed
	}
	return d.failed
}

// Err is why the driver stopped signing, or nil.
func (d *Driver) Err() error {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.failed
}

// Guilt are the proofs held against voters: of each epoch the first for each,
// in the order in which they came, those of earlier runs among them.
func (d *Driver) Guilt() []pbft.Guilt {
	d.mu.Lock()
	defer d.mu.Unlock()
	return slices.Clone(d.guilty.proofs)
}

// Stats is a snapshot of the driver's counters.
func (d *Driver) Stats() Stats {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.stats
}

// Close stops the driver and waits for it. What was signed is stored.
func (d *Driver) Close() error {
	d.mu.Lock()
	first := !d.closed
	d.closed = true
	d.mu.Unlock()
	if first {
		close(d.stop)
	}
	<-d.done
	return d.flusher.close(first)
}
