package bftpath

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

const testGenesis = "00000000000000000000000000000000000000000000000000000000000000ff"

func testKey(i int) ed25519.PrivateKey {
	seed := sha256.Sum256([]byte(fmt.Sprint("key ", i)))
	return ed25519.NewKeyFromSeed(seed[:])
}

func nodeName(i int) string { return fmt.Sprintf("node%03d", i) }

func testCommittee(n int) machine.Committee {
	c := machine.Committee{Epoch: 1}
	for i := range n {
		c.Members = append(c.Members, machine.Member{Node: nodeName(i), Key: [32]byte(testKey(i).Public().(ed25519.PublicKey))})
	}
	return c
}

func testInstance(id string) pbft.Instance {
	return pbft.Instance{Protocol: pbft.Protocol, Genesis: testGenesis, Epoch: 1, Purpose: "deliberatic.verdict", ID: id}
}

func testDigest(id string) pbft.Digest { return sha256.Sum256([]byte("verdict of " + id)) }

// cluster is drivers of one committee, joined by direct calls.
type cluster struct {
	t         testing.TB
	dir       string
	committee machine.Committee
	config    func(i int, cfg *Config)

	mu      sync.Mutex
	drivers []*Driver
	cut     func(from, to int, message []byte) bool // true: lose it
	heard   []map[string]*pbft.Certificate          // by node, instance id
	changed chan struct{}
}

func newCluster(t testing.TB, n int) *cluster {
	c := &cluster{t: t, dir: t.TempDir(), committee: testCommittee(n), drivers: make([]*Driver, n), changed: make(chan struct{}, 1)}
	for range n {
		c.heard = append(c.heard, map[string]*pbft.Certificate{})
	}
	t.Cleanup(func() {
		for i := range n {
			c.stop(i)
		}
	})
	return c
}

func (c *cluster) index(node string) int {
	for i := range c.drivers {
		if nodeName(i) == node {
			return i
		}
	}
	return -1
}

func (c *cluster) journal(i int) string { return filepath.Join(c.dir, fmt.Sprint("journal", i)) }

// start runs node i; create is for its first start.
func (c *cluster) start(i int, create bool) *Driver {
	c.t.Helper()
	cfg := Config{
		Self: nodeName(i), Key: testKey(i), Journal: c.journal(i), Create: create, Tick: 5 * time.Millisecond, Timeout: 40,
		Send: func(peer string, message []byte) { c.send(i, c.index(peer), message) },
		OnCertificate: func(in pbft.Instance, cert *pbft.Certificate) {
			c.mu.Lock()
			c.heard[i][in.ID] = cert
			c.mu.Unlock()
			select {
			case c.changed <- struct{}{}:
			default:
			}
		},
	}
	if c.config != nil {
		c.config(i, &cfg)
	}
	d, err := New(cfg)
	if err != nil {
		c.t.Fatal(err)
	}
	c.mu.Lock()
	c.drivers[i] = d
	c.mu.Unlock()
	return d
}

func (c *cluster) startAll() {
	for i := range c.drivers {
		c.start(i, true)
	}
}

func (c *cluster) stop(i int) {
	c.mu.Lock()
	d := c.drivers[i]
	c.drivers[i] = nil
	c.mu.Unlock()
	if d != nil {
		if err := d.Close(); err != nil {
			c.t.Error(err)
		}
	}
}

func (c *cluster) send(from, to int, message []byte) {
	c.mu.Lock()
	d, cut := c.drivers[to], c.cut
	c.mu.Unlock()
	if d != nil && (cut == nil || !cut(from, to, message)) {
		d.Deliver(nodeName(from), message)
	}
}

func (c *cluster) setCut(cut func(from, to int, message []byte) bool) {
	c.mu.Lock()
	c.cut = cut
	c.mu.Unlock()
}

// open starts an instance at the nodes.
func (c *cluster) open(id string, nodes ...int) {
	c.t.Helper()
	for _, i := range nodes {
		if err := c.drivers[i].StartInstance(testInstance(id), c.committee, testDigest(id)); err != nil {
			c.t.Fatal(err)
		}
	}
}

// hearOthersAccept gives node i the acceptances of all others in view 0, upon
// which it commits.
func (c *cluster) hearOthersAccept(i int, id string) {
	c.t.Helper()
	prepared, err := pbft.NewCommittee(c.committee)
	if err != nil {
		c.t.Fatal(err)
	}
	in := testInstance(id)
	for from := range prepared.N() {
		if from == i {
			continue
		}
		v := pbft.Vote{Key: in.Key(), Phase: pbft.Prepare, Digest: testDigest(id)}
		if prepared.Primary(in.Key(), 0) == from {
			v.Phase = pbft.PrePrepare
		}
		c.drivers[i].Deliver(nodeName(from), pbft.Sign(in.Domain(), from, []pbft.Vote{v}, testKey(from)).Encode())
	}
}

func (c *cluster) decision(node int, id string) *pbft.Certificate {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.heard[node][id]
}

// await waits until cond holds.
func await(t testing.TB, what string, cond func() bool) {
	t.Helper()
	for deadline := time.Now().Add(20 * time.Second); !cond(); time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("timed out: %s", what)
		}
	}
}

// next waits for what a channel delivers.
func next[T any](t testing.TB, what string, ch <-chan T) (v T) {
	t.Helper()
	select {
	case v = <-ch:
	case <-time.After(20 * time.Second):
		t.Fatalf("timed out: %s", what)
	}
	return v
}

// awaitTaken waits until the driver has looked at all that has come in, and
// has done what follows from all but the last of it.
func awaitTaken(t testing.TB, d *Driver) {
	t.Helper()
	await(t, "what came in is looked at", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.inbox) == 0
	})
}

// noTicks stops a driver's clock.
func noTicks(_ int, cfg *Config) {
	cfg.Ticker = func(time.Duration) (<-chan time.Time, func()) { return make(chan time.Time), func() {} }
}

// awaitDecision waits until the nodes have decided and checks the certificates.
func (c *cluster) awaitDecision(id string, nodes ...int) {
	c.t.Helper()
	for _, i := range nodes {
		await(c.t, fmt.Sprintf("node %d decides %s", i, id), func() bool { return c.decision(i, id) != nil })
		cert := c.decision(i, id)
		if err := pbft.VerifyCertificate(c.committee, testInstance(id), testDigest(id), *cert); err != nil {
			c.t.Fatalf("node %d: %v", i, err)
		}
	}
}
