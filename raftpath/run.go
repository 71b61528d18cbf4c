package raftpath

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"time"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	"go.etcd.io/bbolt"

	"github.com/deliberd/deliberd/machine"
)

// run is one run of raft, between a start and a stop.
type run struct {
	p     *Path
	r     *raft.Raft    // set before ready is closed
	ready chan struct{} // raft's goroutines run before NewRaft has returned
	t     *transport
	disk  *disk
	quit  chan struct{}
	idle  chan struct{} // closed when nothing proposed here is under way any more
	wg    sync.WaitGroup
	lead  proposer
}

// raft is raft once it has been made; nil before.
func (x *run) raft() *raft.Raft {
	select {
	case <-x.ready:
		return x.r
	default:
		return nil
	}
}

// disk is the raft folder of one generation.
type disk struct {
	dir   string
	bolt  *raftboltdb.BoltStore
	logs  raft.LogStore // bolt behind the watchdog and a cache
	keys  raft.StableStore
	snaps *raft.FileSnapshotStore
}

// cachedEntries is how many recent entries raft and the sync stream read from memory.
const cachedEntries = 1024

func (p *Path) raftDir(generation uint64) string {
	return filepath.Join(p.cfg.Store.Dir(), fmt.Sprintf("raft-%d", generation))
}

// hasRaft reports whether raft has a folder of this generation here.
func (p *Path) hasRaft(generation uint64) bool {
	_, err := os.Stat(filepath.Join(p.raftDir(generation), "raft.db"))
	return err == nil
}

func (p *Path) openDisk(generation uint64) (*disk, error) {
	dir := p.raftDir(generation)
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	bolt, err := raftboltdb.New(raftboltdb.Options{
		Path:                    filepath.Join(dir, "raft.db"),
		BoltOptions:             &bbolt.Options{Timeout: time.Second, NoFreelistSync: true, FreelistType: bbolt.FreelistMapType},
		MsgpackUseNewTimeFormat: true,
	})
	if err != nil {
		return nil, fmt.Errorf("raft log: %w", err)
	}
	watched := watchedLogs{bolt, p.watch}
	cached, err := raft.NewLogCache(cachedEntries, watched)
	if err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(dir, 1, p.hclog())
	if err != nil {
		return nil, errors.Join(err, bolt.Close())
	}
	return &disk{dir: dir, bolt: bolt, logs: cached, keys: watched, snaps: snaps}, nil
}

func (p *Path) raftConfig() *raft.Config {
	c := raft.DefaultConfig()
	t := p.cfg.Timing
	c.LocalID = raft.ServerID(p.id)
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout, c.CommitTimeout = t.Heartbeat, t.Election, t.Lease, t.CommitTimeout
	c.SnapshotInterval, c.SnapshotThreshold, c.TrailingLogs = t.SnapshotInterval, t.SnapshotThreshold, t.TrailingLogs
	c.NoLegacyTelemetry = true
	c.ShutdownOnRemove = false
	c.Logger = p.hclog()
	return c
}

// Bootstrap makes the first configuration of a generation: the genesis's
// voters, this node among them. It refuses with [CodeBootstrap] where raft has
// run already; every founding voter bootstraps with the same voters.
func (p *Path) Bootstrap(founders []string) error {
	p.life.Lock()
	defer p.life.Unlock()
	if !containsString(founders, p.id) {
		return fmt.Errorf("raftpath: this node %s is not among the founding voters", p.id)
	}
	if p.running() != nil {
		return machine.Refuse(CodeBootstrap, "start without bootstrapping", "raft runs here already")
	}
	d, err := p.openDisk(p.Head().Generation)
	if err != nil {
		return err
	}
	t := newTransport(p.cfg.Host, nil, p.cfg.Timing, d.logs.FirstIndex)
	defer t.shut()
	err = raft.BootstrapCluster(p.raftConfig(), d.logs, d.keys, d.snaps, t, configurationOf(founders))
	if errors.Is(err, raft.ErrCantBootstrap) {
		err = machine.Refuse(CodeBootstrap, "start without bootstrapping", "the folder %s holds raft state already", d.dir)
	}
	return errors.Join(err, d.bolt.Close())
}

// Start runs raft where it has a folder, and else follows the members' log as
// an observer. It may be called again after a restart of the process only.
func (p *Path) Start() error {
	p.life.Lock()
	defer p.life.Unlock()
	p.wg.Go(p.reconcile)
	if !p.hasRaft(p.Head().Generation) {
		p.startFollowing()
		return nil
	}
	return p.startRaft()
}

// startRaft starts raft from its folder; the caller holds life.
func (p *Path) startRaft() error {
	head := p.Head()
	d, err := p.openDisk(head.Generation)
	if err != nil {
		return err
	}
	config := p.raftConfig()
	snapshots, err := d.snaps.List()
	if err != nil {
		return errors.Join(err, d.bolt.Close())
	}
	// The state is at or behind raft's snapshot only where its file was lost.
	config.NoSnapshotRestoreOnStart = len(snapshots) == 0 || head.Index >= snapshots[0].Index
	x := &run{p: p, disk: d, quit: make(chan struct{}), idle: make(chan struct{}), ready: make(chan struct{})}
	x.t = newTransport(p.cfg.Host, p.guardFor(x.raft), p.cfg.Timing, d.logs.FirstIndex)
	x.t.fast = p.cfg.UnsafeFastPath
	x.lead.init(x)
	x.r, err = raft.NewRaft(config, &fsm{p, x}, d.logs, d.keys, d.snaps, x.t)
	if err != nil {
		x.t.shut()
		return errors.Join(fmt.Errorf("start raft: %w", err), d.bolt.Close())
	}
	close(x.ready)
	p.mu.Lock()
	p.run = x
	p.mu.Unlock()
	x.wg.Go(func() {
		defer close(x.idle)
		x.watchLeadership()
	})
	return nil
}

// stopRaft stops raft and everything that waits for it; the caller holds life.
func (p *Path) stopRaft() error {
	p.mu.Lock()
	x := p.run
	p.run = nil
	p.mu.Unlock()
	if x == nil {
		return nil
	}
	close(x.quit)
	select { // raft forgets those who wait for entries it has handed to the state machine
	case <-x.idle:
	case <-time.After(time.Second):
	}
	x.t.shut()
	err := x.r.Shutdown().Error()
	x.wg.Wait()
	return errors.Join(err, x.disk.bolt.Close())
}

// leader is who raft thinks leads; empty when unknown.
func (x *run) leader() string {
	_, id := x.r.LeaderWithID()
	return string(id)
}

// leads reports whether this node leads, and in which term. The term cannot
// have changed between the two readings of it.
func (x *run) leads() (term uint64, ok bool) {
	term = x.r.CurrentTerm()
	ok = x.r.State() == raft.Leader && x.r.CurrentTerm() == term
	return term, ok
}

// lastCommand is the index of the last entry up to index that the state
// machine sees; those between are raft's own. It looks no further back than
// what has been applied.
func (x *run) lastCommand(index uint64) (uint64, error) {
	applied := x.p.Head().Index
	for ; index > applied; index-- {
		var l raft.Log
		if err := x.disk.logs.GetLog(index, &l); err != nil {
			return 0, err
		}
		if l.Type == raft.LogCommand || l.Type == raft.LogConfiguration {
			return index, nil
		}
	}
	return applied, nil
}

// termAt is the term of an entry of the log.
func (x *run) termAt(index uint64) (uint64, error) {
	if head := x.p.Head(); head.Index == index {
		return head.Term, nil
	}
	var l raft.Log
	err := x.disk.logs.GetLog(index, &l)
	return l.Term, err
}
