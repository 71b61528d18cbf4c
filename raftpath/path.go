package raftpath

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
)

// Path is one node's end of the ordered log. Its methods are safe for
// concurrent use.
type Path struct {
	cfg  Config
	id   string
	log  *slog.Logger
	ctx  context.Context
	stop context.CancelFunc
	wg   sync.WaitGroup

	applying sync.Mutex // one batch at a time, from raft or from the sync stream
	pos      tracker
	watch    *watchdog

	life sync.Mutex      // one change between raft, catching up and observing at a time
	mu   sync.Mutex      // guards the fields below
	run  *run            // nil: raft does not run here
	gone bool            // a committed configuration left this node out, or enough voters say so
	told map[string]bool // voters that say so
	hint string          // who led when last heard of, while raft does not run here
	dead error           // why this node has stopped applying
	shut bool            // Close has been called
	goal uint64          // raft index an observer's peer had applied when it last said so

	heard  uint64    // highest commit a leader told of, while raft runs here
	behind time.Time // since when this node lacks it; zero: it does not

	target   []string // the voters Reconcile wants; nil: as they are
	targeted chan struct{}
	catching *catchUp
	ending   *raft.Log // the entry an observer's state ends with, if it came while this process ran

	// Guarded by life.
	following context.CancelFunc // ends the observer's loop
	followed  chan struct{}      // closed when it has ended

	forwards forwarder
	reads    readIndexes
}

// New prepares a Path on a store that has been claimed by this host's node.
// It finishes a change of the raft folder that a crash has interrupted.
// Start begins the work.
func New(cfg Config) (*Path, error) {
	if cfg.Host == nil || cfg.Store == nil || cfg.Applier == nil || cfg.Encode == nil {
		return nil, errors.New("raftpath: host, store, applier and encode are needed")
	}
	fill(&cfg)
	if cfg.Timing.Lease > cfg.Timing.Heartbeat {
		return nil, fmt.Errorf("raftpath: the lease %v must not exceed the heartbeat timeout %v", cfg.Timing.Lease, cfg.Timing.Heartbeat)
	}
	p := &Path{cfg: cfg, id: cfg.Host.ID(), log: cfg.Logger.With("part", "raftpath"), targeted: make(chan struct{}, 1)}
	p.ctx, p.stop = context.WithCancel(context.Background())
	p.watch = &watchdog{limit: cfg.Timing.DiskStall,
		late: func(what string, after time.Duration) {
			p.log.Error("disk stalls", "err", stall(what, after))
			p.mute(true)
		},
		over: func() { p.mute(false) }}
	p.forwards.init(p)
	p.reads.init(p)
	if err := p.loadHead(); err != nil {
		return nil, err
	}
	if err := p.finishPlan(); err != nil {
		return nil, err
	}
	cfg.Host.HandleStream(p2p.Raft, p.serveRaft)
	cfg.Host.HandleFrames(p2p.Notice, p.takeNotice)
	cfg.Host.HandleStream(p2p.Sync, p.serveSync)
	cfg.Host.Handle(p2p.Forward, p.serveForward)
	cfg.Host.HandleRemoved(p.hearRemoved)
	return p, nil
}

// fill sets defaults.
func fill(cfg *Config) {
	if cfg.Epoch == nil {
		cfg.Epoch = func() uint64 { return 0 }
	}
	if cfg.Clock == nil {
		cfg.Clock = func() machine.Stamp { return machine.Stamp(time.Now().UnixMilli()) }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	if cfg.Members == nil {
		cfg.Members = func() []string { return nil }
	}
	t, d := &cfg.Timing, DefaultTiming
	for _, f := range []struct{ have, standard *time.Duration }{
		{&t.Heartbeat, &d.Heartbeat}, {&t.Election, &d.Election}, {&t.CommitTimeout, &d.CommitTimeout}, {&t.RPC, &d.RPC},
		{&t.DiskStall, &d.DiskStall}, {&t.CatchUp, &d.CatchUp}, {&t.SnapshotInterval, &d.SnapshotInterval},
	} {
		if *f.have == 0 {
			*f.have = *f.standard
		}
	}
	if t.Lease == 0 {
		t.Lease = min(t.Heartbeat, d.Lease)
	}
	if t.SnapshotThreshold == 0 {
		t.SnapshotThreshold = d.SnapshotThreshold
	}
	if t.TrailingLogs == 0 {
		t.TrailingLogs = d.TrailingLogs
	}
}

// loadHead reads the position from the state.
func (p *Path) loadHead() error {
	return p.cfg.Store.View(func(tx machine.Tx) error {
		head, err := ReadHead(tx)
		if err != nil {
			return err
		}
		seq, stamp, err := p.cfg.Applier.Head(tx)
		if err != nil {
			return err
		}
		p.pos.set(head, seq, stamp)
		p.lags(head.Index) // level again: forget since when it was not
		return nil
	})
}

// Head is raft's position in the state.
func (p *Path) Head() Head {
	h, _, _ := p.pos.get()
	return h
}

// Applied is the number and stamp of the last applied entry.
func (p *Path) Applied() (seq uint64, stamp machine.Stamp) {
	_, seq, stamp = p.pos.get()
	return seq, stamp
}

// WaitApplied returns when entry number seq is applied here, or with ctx's error.
func (p *Path) WaitApplied(ctx context.Context, seq uint64) error { return p.pos.wait(ctx, seq, 0) }

// advance publishes a committed batch.
func (p *Path) advance(head Head, outcomes []Outcome) {
	before, seq, stamp := p.pos.get()
	if n := len(outcomes); n > 0 {
		seq, stamp = outcomes[n-1].Seq, outcomes[n-1].Stamp
	}
	p.pos.set(head, seq, stamp)
	p.lags(head.Index) // level again: forget since when it was not
	if len(outcomes) > 0 && p.cfg.OnApplied != nil {
		p.cfg.OnApplied(outcomes)
	}
	if before.ConfigIndex != head.ConfigIndex {
		p.configured(before, head)
	}
}

// configured hears of a committed configuration.
func (p *Path) configured(before, after Head) {
	was, _ := before.configuration()
	now, err := after.configuration()
	if err != nil || !hasVoter(was, p.id) || hasVoter(now, p.id) {
		return
	}
	p.leave("its log says so", after.ConfigIndex)
}

// Fatal is why this node has stopped applying; nil while it applies.
func (p *Path) Fatal() error {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.dead
}

// fail stops applying for good and silences the node.
func (p *Path) fail(err error) error {
	p.mu.Lock()
	first := p.dead == nil
	if first {
		p.dead = err
	}
	err = p.dead
	p.mu.Unlock()
	if first {
		p.log.Error("this node stops", "err", err)
		p.mute(true)
		if p.cfg.OnFatal != nil {
			go p.cfg.OnFatal(err)
		}
	}
	return halted(err)
}

func halted(err error) error {
	return fmt.Errorf("%w (%w)", machine.Refuse(CodeHalted, "see this node's log; use another node", "this node has stopped after an error of its own"), err)
}

// mute silences raft here, or lets it speak again unless the node has failed.
func (p *Path) mute(on bool) {
	run := p.running()
	if run == nil || (!on && p.Fatal() != nil) {
		return
	}
	run.t.mute(on)
}

func (p *Path) running() *run {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.run
}

// guardFor is the configured guard, or the least one: voters in raft's
// configuration or in the target.
func (p *Path) guardFor(r func() *raft.Raft) guard.Guard {
	if p.cfg.Guard != nil {
		return p.cfg.Guard
	}
	return guard.Voters(func(peer string) bool {
		if raft := r(); raft != nil && hasVoter(raft.GetConfiguration().Configuration(), peer) {
			return true
		}
		p.mu.Lock()
		defer p.mu.Unlock()
		return containsString(p.target, peer)
	})
}

// spawn runs f in a goroutine that Close waits for; false once Close has been called.
func (p *Path) spawn(f func()) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.shut {
		return false
	}
	p.wg.Go(f)
	return true
}

// Close stops everything and waits. Close the Path before its host and store.
func (p *Path) Close() error {
	p.mu.Lock()
	p.shut = true
	p.mu.Unlock()
	p.stop()
	p.life.Lock()
	p.stopFollowing()
	err := p.stopRaft()
	p.life.Unlock() // others may wait for it; they see that the context has ended
	p.wg.Wait()
	return err
}
