package embedded_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/demo"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/node/embedded"
	"github.com/deliberd/deliberd/raftpath"
)

func TestMain(m *testing.M) {
	code := m.Run()
	if flag.Lookup("test.bench").Value.String() != "" {
		os.Exit(code) // benchmarks keep their floors until the process ends
	}
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	// go-libp2p's identify keeps a goroutine of a global LRU for the life of a process.
	if err := goleak.Find(goleak.IgnoreTopFunction("github.com/libp2p/go-libp2p/p2p/net/swarm.init.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// quick are timings for tests on a busy machine.
var quick = raftpath.Timing{Heartbeat: 800 * time.Millisecond, Election: 800 * time.Millisecond, Lease: 700 * time.Millisecond}

// short keeps few entries behind frequent snapshots.
func short() raftpath.Timing {
	t := quick
	t.SnapshotInterval, t.SnapshotThreshold, t.TrailingLogs = 200*time.Millisecond, 32, 8
	return t
}

// lab is a cluster of four whose doors keep their addresses, and a cast of
// agents: ada, ben, cyd, dee, eve and the human kim.
type lab struct {
	testing.TB
	ctx  context.Context
	cfg  embedded.Config
	cast map[string]*client.Identity
	*embedded.Cluster
	urls []string // of all nodes, living or not
}

func newLab(t testing.TB, timing raftpath.Timing, tune func(i int, c *node.Config)) *lab {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	l := &lab{TB: t, ctx: ctx, cast: map[string]*client.Identity{}}
	doors := freeAddrs(t, 4)
	for _, addr := range doors {
		l.urls = append(l.urls, "http://"+addr)
	}
	l.cfg = embedded.Config{Dir: t.TempDir(), Timing: timing, BFTTick: 20 * time.Millisecond, Logger: quiet(), Tune: func(i int, c *node.Config) {
		c.HTTP = doors[i]
		if tune != nil {
			tune(i, c)
		}
	}}
	l.open()
	t.Cleanup(func() {
		l.check(l.Close())
		cancel()
	})
	l.must(demo.Cast(ctx, l.Cluster, l.cast))
	return l
}

// open starts the cluster of the folder.
func (l *lab) open() {
	l.Helper()
	c, err := embedded.Start(l.ctx, l.cfg)
	l.must(err)
	l.Cluster = c
}

// quiet drops logs unless DELIBERD_TEST_LOG is set.
func quiet() *slog.Logger {
	if os.Getenv("DELIBERD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// freeAddrs finds loopback addresses that nobody listens on now, where neither
// outgoing connections nor the nodes' own ports are taken from.
func freeAddrs(t testing.TB, n int) []string {
	t.Helper()
	var addrs []string
	for range 1000 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 10000+rand.IntN(10000)))
		if err != nil {
			continue
		}
		defer l.Close()
		if addrs = append(addrs, l.Addr().String()); len(addrs) == n {
			return addrs
		}
	}
	t.Fatal("no free addresses")
	return nil
}

func (l *lab) must(err error) {
	l.Helper()
	if err != nil {
		l.Fatal(err)
	}
}

func (l *lab) check(err error) {
	l.Helper()
	if err != nil {
		l.Error(err)
	}
}

// await waits for a condition.
func (l *lab) await(what string, cond func() bool) {
	l.Helper()
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for !cond() {
		select {
		case <-poll.C:
		case <-l.ctx.Done():
			l.Fatalf("it never came: %s", what)
		}
	}
}

func (l *lab) status(n *node.Node) api.Status {
	l.Helper()
	st, err := n.Status(l.ctx)
	l.must(err)
	return st
}

// as is a client of some doors that acts as one of the cast, or as "operator".
func (l *lab) as(who string, urls ...string) *client.Client {
	l.Helper()
	me := l.cast[who]
	if who == embedded.OperatorID {
		me = l.Operator()
	}
	c, err := client.New(urls, client.As(me))
	l.must(err)
	return c
}

// agree waits until some nodes have one decision log, and returns its head.
func (l *lab) agree(nodes ...*node.Node) (head api.DecisionLog) {
	l.Helper()
	l.await("one decision log", func() bool {
		head = l.status(nodes[0]).DecisionLog
		return !slices.ContainsFunc(nodes[1:], func(n *node.Node) bool { return l.status(n).DecisionLog != head })
	})
	return head
}

// living are the nodes that run.
func (l *lab) living() (nodes []*node.Node) {
	for i := range l.Len() {
		if n := l.Node(i); n != nil {
			nodes = append(nodes, n)
		}
	}
	return nodes
}

// observation is an ACP action that settles at once.
func observation(n int) map[string]any {
	return map[string]any{"type": "observation", "domain": "ops.storage", "payload": map[string]any{"n": n}}
}

// writers are agents that submit observations until they are stopped.
type writers struct {
	l    *lab
	stop chan struct{}
	wg   sync.WaitGroup
	mu   sync.Mutex
	ids  []string // acknowledged
	errs []error
}

// write lets agents write through some doors: until stop, or each `most` times.
func (l *lab) write(most int, urls ...string) *writers {
	w := &writers{l: l, stop: make(chan struct{})}
	for i, who := range []string{"ada", "ben", "cyd", "dee"} {
		at := i % len(urls)
		c := l.as(who, append(slices.Clone(urls[at:]), urls[:at]...)...)
		w.wg.Go(func() { w.run(c, most) })
	}
	return w
}

func (w *writers) run(c *client.Client, most int) {
	for n := 0; n != most; n++ {
		select {
		case <-w.stop:
			return
		default:
		}
		a, err := c.Do(w.l.ctx, "acp.submit", observation(n))
		w.mu.Lock()
		if err == nil {
			w.ids = append(w.ids, a.ActionID)
		} else {
			w.errs = append(w.errs, err)
		}
		w.mu.Unlock()
	}
}

func (w *writers) count() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.ids)
}

// end stops the writers and returns what was acknowledged. Each of their
// writes must have been.
func (w *writers) end() []string {
	w.l.Helper()
	close(w.stop)
	return w.wait()
}

func (w *writers) wait() []string {
	w.l.Helper()
	w.wg.Wait()
	w.l.check(errors.Join(w.errs...))
	return w.ids
}

// holds checks that a node holds each of the proposals once.
func (l *lab) holds(url string, ids []string) {
	l.Helper()
	c, found, after := l.as("kim", url), map[string]int{}, ""
	for {
		params := map[string]any{"limit": acp.MaxPage}
		if after != "" {
			params["after"] = after
		}
		var page acp.Page
		l.must(c.Query(l.ctx, "acp.list", params, &page, client.Stale()))
		for _, row := range page.Proposals {
			found[row.ProposalID]++
		}
		if after = page.Next; after == "" {
			break
		}
	}
	for _, id := range ids {
		if found[id] != 1 {
			l.Errorf("%s was acknowledged and is found %d times at %s", id, found[id], url)
		}
	}
}

// cutLog waits until node i's raft log no longer begins at the beginning.
func (l *lab) cutLog(i int) {
	l.Helper()
	l.await("a raft snapshot", func() bool {
		found, err := filepath.Glob(filepath.Join(l.cfg.Dir, fmt.Sprintf("node%d", i+1), "raft-0", "snapshots", "*", "meta.json"))
		return err == nil && len(found) > 0
	})
}
