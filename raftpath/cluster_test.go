package raftpath

import (
	"context"
	"crypto/ed25519"
	crand "crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/internal/freeport"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/store"
)

func TestMain(m *testing.M) {
	// go-libp2p's identify keeps a goroutine of a global LRU for the life of a process.
	goleak.VerifyTestMain(m, goleak.IgnoreTopFunction("github.com/libp2p/go-libp2p/p2p/net/swarm.init.func1"))
}

// quick are timings for tests on a busy machine.
var quick = Timing{
	Heartbeat: 600 * time.Millisecond, Election: 600 * time.Millisecond, Lease: 500 * time.Millisecond, CommitTimeout: 20 * time.Millisecond,
	RPC: 3 * time.Second, DiskStall: 5 * time.Second, CatchUp: 5 * time.Second,
	SnapshotInterval: time.Hour, SnapshotThreshold: 1 << 40, TrailingLogs: 10240,
}

// cluster is nodes in this process over real connections on loopback.
type cluster struct {
	t       testing.TB
	dir     string
	genesis string
	timing  Timing
	nodes   []*node
	config  func(*node, *Config) // changes a node's configuration
	mu      sync.Mutex
	members map[string]bool
	addrs   map[string][]string
}

// node is one of them; path is nil while it is down.
type node struct {
	c       *cluster
	i       int
	key     ed25519.PrivateKey
	id      string
	dir     string
	listen  string
	host    *p2p.Host
	store   *store.Store
	ledger  *ledger
	path    *Path
	fatal   atomic.Pointer[error]
	removed atomic.Bool
	refuses sync.Map // peer ids that this node tells that they have been removed
	log     *slog.Logger
}

func newCluster(t testing.TB, n int, timing Timing) *cluster {
	t.Helper()
	if t, ok := t.(*testing.T); ok {
		t.Parallel() // most of a test's time is waiting for elections
	}
	return newClusterWith(t, n, timing, nil)
}

func newClusterWith(t testing.TB, n int, timing Timing, config func(*node, *Config)) *cluster {
	t.Helper()
	c := &cluster{t: t, config: config, dir: t.TempDir(), genesis: strings.Repeat("0a", 32), timing: timing, members: map[string]bool{}, addrs: map[string][]string{}}
	for range n {
		c.add()
	}
	var founders []string
	for _, x := range c.nodes {
		founders = append(founders, x.id)
	}
	for _, x := range c.nodes {
		x.open()
		if err := x.path.Bootstrap(founders); err != nil {
			t.Fatal(err)
		}
	}
	for _, x := range c.nodes {
		x.start()
	}
	t.Cleanup(c.close)
	return c
}

// add makes a member that is not running yet.
func (c *cluster) add() *node {
	_, key, err := ed25519.GenerateKey(crand.Reader)
	if err != nil {
		c.t.Fatal(err)
	}
	i := len(c.nodes)
	x := &node{c: c, i: i, key: key, dir: filepath.Join(c.dir, fmt.Sprint(i)), listen: fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", freeport.Find(c.t))}
	level := slog.LevelError + 4
	if os.Getenv("RAFTPATH_LOG") != "" {
		level = slog.LevelDebug
	}
	x.log = slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: level})).With("node", i)
	host := x.dial()
	x.id, x.listen = host.ID(), host.Addrs()[0]
	c.mu.Lock()
	c.members[x.id] = true
	c.addrs[x.id] = host.Addrs()
	c.mu.Unlock()
	x.host = host
	c.nodes = append(c.nodes, x)
	for _, y := range c.nodes {
		if y.host != nil {
			c.introduce(y)
		}
	}
	return x
}

func (c *cluster) admit(id string) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.members[id]
}

func (x *node) tellsRemoved(id string) bool {
	_, ok := x.refuses.Load(id)
	return ok
}

func (x *node) admit(id string) bool { return !x.tellsRemoved(id) && x.c.admit(id) }

func (c *cluster) introduce(x *node) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id, addrs := range c.addrs {
		if id == x.id {
			continue
		}
		if err := x.host.SetAddrs(id, addrs); err != nil {
			c.t.Fatal(err)
		}
	}
}

func (x *node) dial() *p2p.Host {
	h, err := p2p.New(p2p.Config{Key: x.key, Listen: []string{x.listen}, Genesis: x.c.genesis, Admit: x.admit, Removed: x.tellsRemoved, Logger: x.log, CallTimeout: 5 * time.Second})
	if err != nil {
		x.c.t.Fatal(err)
	}
	return h
}

// open opens the folder and makes the Path, without starting it.
func (x *node) open() {
	x.c.t.Helper()
	if x.host == nil {
		x.host = x.dial()
		x.c.introduce(x)
	}
	var err error
	if x.store, err = store.Open(x.dir); err != nil {
		x.c.t.Fatal(err)
	}
	if err := x.store.Claim(x.id, x.c.genesis); err != nil {
		x.c.t.Fatal(err)
	}
	x.ledger = &ledger{}
	cfg := Config{Host: x.host, Store: x.store, Applier: x.ledger, Encode: encodeEntry, Timing: x.c.timing, Logger: x.log,
		Members:   func() []string { return x.c.ids() },
		OnFatal:   func(err error) { x.fatal.Store(&err) },
		OnRemoved: func() { x.removed.Store(true) },
	}
	if x.c.config != nil {
		x.c.config(x, &cfg)
	}
	if x.path, err = New(cfg); err != nil {
		x.c.t.Fatal(err)
	}
}

func (x *node) start() {
	x.c.t.Helper()
	if x.path == nil {
		x.open()
	}
	if err := x.path.Start(); err != nil {
		x.c.t.Fatal(err)
	}
}

// kill stops a node at once: the connections go first, so that nothing is
// handed over.
func (x *node) kill() {
	x.c.t.Helper()
	if x.path == nil {
		return
	}
	err := errors.Join(x.host.Close(), x.path.Close(), x.store.Close())
	if err != nil {
		x.c.t.Error(err)
	}
	x.host, x.path, x.store = nil, nil, nil
}

func (c *cluster) ids() (out []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for id := range c.members {
		out = append(out, id)
	}
	return out
}

func (c *cluster) close() {
	var wg sync.WaitGroup
	for _, x := range c.nodes {
		wg.Go(func() {
			if x.path == nil {
				if x.host != nil {
					_ = x.host.Close()
				}
				return
			}
			if err := errors.Join(x.path.Close(), x.host.Close(), x.store.Close()); err != nil {
				c.t.Error(err)
			}
		})
	}
	wg.Wait()
}

// patience bounds every wait in this package's tests.
const patience = 90 * time.Second

// eventually waits for a condition.
func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(patience)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited %v for: %s", patience, what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// leader waits for a running node that leads and takes actions.
func (c *cluster) leader() *node {
	c.t.Helper()
	var found *node
	eventually(c.t, "a leader", func() bool {
		for _, x := range c.nodes {
			if x.path == nil {
				continue
			}
			if r := x.path.running(); r != nil {
				if _, ok := r.settled(); ok {
					found = x
					return true
				}
			}
		}
		return false
	})
	return found
}

func (c *cluster) followers() (out []*node) {
	l := c.leader()
	for _, x := range c.nodes {
		if x != l && x.path != nil && x.path.running() != nil {
			out = append(out, x)
		}
	}
	return out
}

func (x *node) submit(action string) (string, uint64) {
	x.c.t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	answer, seq, err := x.path.Submit(ctx, []byte(action))
	if err != nil {
		x.c.t.Fatalf("submit %q at node %d: %v", action, x.i, err)
	}
	return string(answer), seq
}

// get reads from a node's own state.
func (x *node) get(key string) (value string) {
	err := x.store.View(func(tx machine.Tx) error {
		b, err := tx.Get([]byte(key))
		value = string(b)
		return err
	})
	if err != nil {
		x.c.t.Error(err)
	}
	return value
}

// same waits until the given nodes have applied the same, and say so, and
// checks that their whole states are equal.
func (c *cluster) same(nodes ...*node) {
	c.t.Helper()
	eventually(c.t, "all nodes at one position", func() bool {
		var index uint64
		var first store.Sum
		for i, x := range nodes {
			at, sum := x.moment()
			if i == 0 {
				index, first = at, sum
			}
			if at != index || x.path.Head().Index != at {
				return false
			}
			if sum != first {
				c.t.Fatalf("node %d and node %d hold different states at raft index %d", nodes[0].i, x.i, at)
			}
		}
		return true
	})
}

// moment is a node's position and the hash of its state there.
func (x *node) moment() (index uint64, sum store.Sum) {
	x.c.t.Helper()
	s, err := x.store.Snapshot()
	if err != nil {
		x.c.t.Fatal(err)
	}
	defer s.Release()
	err = s.View(func(tx machine.Tx) error {
		head, err := ReadHead(tx)
		index = head.Index
		return err
	})
	if err == nil {
		sum, err = s.Stream(discard{})
	}
	if err != nil {
		x.c.t.Fatal(err)
	}
	return index, sum
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

func code(err error) string {
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return fmt.Sprint(err)
}
