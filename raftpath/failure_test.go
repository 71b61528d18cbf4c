package raftpath

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deliberd/deliberd/machine"
)

// load submits from several clients at each given node until stop, and keeps
// what was acknowledged.
type load struct {
	stop  chan struct{}
	wg    sync.WaitGroup
	mu    sync.Mutex
	acked map[string]string
}

func (c *cluster) load(clients int, nodes ...*node) *load {
	l := &load{stop: make(chan struct{}), acked: map[string]string{}}
	for _, x := range nodes {
		path := x.path
		for j := range clients {
			l.wg.Go(func() {
				for n := 0; ; n++ {
					select {
					case <-l.stop:
						return
					default:
					}
					action := fmt.Sprintf("load %d %d %d", x.i, j, n)
					ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
					answer, _, err := path.Submit(ctx, []byte(action))
					cancel()
					if err == nil {
						l.mu.Lock()
						l.acked[action] = string(answer)
						l.mu.Unlock()
					} else if path.ctx.Err() != nil {
						return
					}
				}
			})
		}
	}
	return l
}

func (l *load) count() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.acked)
}

func (l *load) end() map[string]string {
	close(l.stop)
	l.wg.Wait()
	return l.acked
}

func TestAcknowledgedActionsOutliveTheLeader(t *testing.T) {
	c := newCluster(t, 4, quick)
	old := c.leader()
	l := c.load(4, c.followers()...)
	eventually(t, "some load", func() bool { return l.count() > 50 })
	old.kill()
	before := l.count()
	eventually(t, "load under the next leader", func() bool { return l.count() > before+50 })
	acked := l.end()
	old.start()
	c.same(c.nodes...)
	for action, answer := range acked {
		for _, x := range c.nodes {
			if got := x.get("a/" + action); got != answer {
				t.Fatalf("node %d holds %q for %q, acknowledged was %q", x.i, got, action, answer)
			}
		}
	}
}

func TestARestartAppliesNothingTwice(t *testing.T) {
	c := newCluster(t, 3, quick)
	for i := range 20 {
		c.leader().submit(fmt.Sprint("act ", i))
	}
	c.same(c.nodes...)
	for _, x := range c.nodes {
		x.kill()
	}
	before := map[*node]uint64{}
	for _, x := range c.nodes {
		x.open()
		before[x] = x.entries()
		x.start()
	}
	c.leader().submit("after")
	c.same(c.nodes...)
	for _, x := range c.nodes {
		x.appliedOnce(before[x], 1)
	}
}

// appliedOnce checks that a node has applied each entry since a number once,
// and how many new actions were in them. A change of leader may order an
// action again, in an entry that then changes nothing.
func (x *node) appliedOnce(since uint64, actions int64) {
	x.c.t.Helper()
	entries, fresh, now := uint64(x.ledger.applied.Load()), x.ledger.fresh.Load(), x.entries()
	if entries != now-since || fresh != actions {
		x.c.t.Fatalf("node %d applied %d entries with %d new actions, want %d, while it went from entry %d to %d", x.i, entries, fresh, actions, since, now)
	}
}

func TestAMinorityNeitherAcknowledgesNorAnswersReads(t *testing.T) {
	c := newCluster(t, 4, quick)
	old := c.leader()
	old.submit("before")
	others := c.followers()
	for _, x := range others {
		old.host.Cut(x.id)
		x.host.Cut(old.id)
	}
	ctx, cancel := context.WithTimeout(context.Background(), 3*time.Second)
	defer cancel()
	var wg sync.WaitGroup
	wg.Go(func() {
		if _, _, err := old.path.Submit(ctx, []byte("lost")); code(err) != CodeUnavailable && code(err) != CodeNoLeader {
			t.Errorf("a write at the cut-off leader: %v", err)
		}
	})
	wg.Go(func() {
		if err := old.path.ReadIndex(ctx); code(err) != CodeNoLeader {
			t.Errorf("a read at the cut-off leader: %v", err)
		}
	})
	answer, _ := others[0].submit("during")
	wg.Wait()
	if got := old.get("a/during"); got != "" {
		t.Fatalf("the cut-off node reads %q", got)
	}
	for _, x := range others {
		old.host.Heal(x.id)
		x.host.Heal(old.id)
	}
	ctx, cancel = context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := old.path.ReadIndex(ctx); err != nil {
		t.Fatal(err)
	}
	if got := old.get("a/during"); got != answer {
		t.Fatalf("after the cut has healed a read gives %q, want %q", got, answer)
	}
	c.same(c.nodes...)
}

func TestAReadSeesEveryWriteAcknowledgedBeforeIt(t *testing.T) {
	c := newCluster(t, 4, quick)
	c.leader()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	for i := range 40 {
		writer, other := c.nodes[i%4], c.nodes[(i+1+i/4)%4]
		action := fmt.Sprint("w", i)
		answer, _ := writer.submit(action)
		if err := other.path.ReadIndex(ctx); err != nil {
			t.Fatal(err)
		}
		if got := other.get("a/" + action); got != answer {
			t.Fatalf("node %d reads %q after node %d was told %q", other.i, got, writer.i, answer)
		}
	}
}

func TestReadsWriteNothingToTheLog(t *testing.T) {
	c := newCluster(t, 3, quick)
	l := c.leader()
	l.submit("one")
	c.same(c.nodes...)
	last := l.entries()
	var wg sync.WaitGroup
	for i := range 60 {
		wg.Go(func() {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			defer cancel()
			if err := c.nodes[i%3].path.ReadIndex(ctx); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	c.same(c.nodes...)
	if now := l.entries(); now != last {
		t.Fatalf("the log grew from %d entries to %d", last, now)
	}
}

func TestTimeAloneIsProposedByTheLeader(t *testing.T) {
	c := newCluster(t, 3, quick)
	x := c.followers()[0]
	at := time.Now().Add(300 * time.Millisecond).UnixMilli()
	x.submit(fmt.Sprint("due ", at))
	eventually(t, "the tick on every node", func() bool {
		for _, x := range c.nodes {
			if x.get("m/fired") == "" {
				return false
			}
		}
		return true
	})
	if fired := int64(u64([]byte(x.get("m/fired")))); fired < at || fired > at+2000 {
		t.Fatalf("due at %d, fired at %d", at, fired)
	}
	c.same(c.nodes...)
}

func TestWhatFellDueWithoutALeaderIsProposedByTheNext(t *testing.T) {
	c := newCluster(t, 3, quick)
	c.leader().submit(fmt.Sprint("due ", time.Now().Add(600*time.Millisecond).UnixMilli()))
	c.same(c.nodes...)
	for _, x := range c.nodes {
		x.kill()
	}
	time.Sleep(600 * time.Millisecond) // the moment passes while nobody runs
	for _, x := range c.nodes {
		x.start()
	}
	eventually(t, "the overdue tick", func() bool { return c.nodes[0].get("m/fired") != "" })
}

func TestStampsNeverGoBackUnderAWrongClock(t *testing.T) {
	clocks := make([]atomic.Int64, 3)
	cl := newClusterWith(t, 3, quick, func(x *node, cfg *Config) {
		cfg.Clock = func() machine.Stamp { return machine.Stamp(time.Now().UnixMilli() + clocks[x.i].Load()) }
	})
	first := cl.leader()
	clocks[first.i].Store(3_600_000)
	first.submit("an hour ahead")
	_, ahead := first.path.Applied()
	first.kill()
	second := cl.leader()
	second.submit("behind")
	if _, stamp := second.path.Applied(); stamp < ahead {
		t.Fatalf("stamp %d after %d", stamp, ahead)
	}
}

func TestALeaderWithAHungDiskLosesItsPlace(t *testing.T) {
	timing := quick
	timing.DiskStall = 300 * time.Millisecond
	c := newCluster(t, 4, timing)
	old := c.leader()
	old.submit("before")
	end := old.path.watch.begin("write that hangs")
	old.ledger.stall.Store(int64(4 * time.Second))
	others := c.followers()
	eventually(t, "another leader", func() bool {
		for _, x := range others {
			if r := x.path.running(); r != nil {
				if _, ok := r.leads(); ok {
					return true
				}
			}
		}
		return false
	})
	others[0].submit("during")
	old.ledger.stall.Store(0)
	end()
	eventually(t, "the disk's return", func() bool { return !old.path.running().t.muted.Load() })
	c.same(c.nodes...)
}

func TestAnErrorOfTheStateMachineStopsItsNodeOnly(t *testing.T) {
	c := newCluster(t, 4, quick)
	c.leader()
	bad := c.followers()[0]
	seq, _ := bad.path.Applied()
	bad.ledger.fail.Store(true)
	c.leader().submit("goes on")
	eventually(t, "OnFatal", func() bool { return bad.fatal.Load() != nil })
	ctx, cancel := context.WithTimeout(context.Background(), 5*time.Second)
	defer cancel()
	if _, _, err := bad.path.Submit(ctx, []byte("x")); code(err) != CodeHalted {
		t.Fatalf("a write at the stopped node: %v", err)
	}
	if err := bad.path.ReadIndex(ctx); code(err) != CodeHalted {
		t.Fatalf("a read at the stopped node: %v", err)
	}
	if now, _ := bad.path.Applied(); now != seq {
		t.Fatalf("the stopped node moved from %d to %d", seq, now)
	}
	bad.kill()
	bad.start() // the page is fine again
	c.same(c.nodes...)
}

func TestALostStateFileComesBackFromTheSnapshot(t *testing.T) {
	c := newCluster(t, 3, quick)
	for i := range 10 {
		c.leader().submit(fmt.Sprint("a", i))
	}
	c.same(c.nodes...)
	x := c.nodes[1]
	if err := x.path.running().r.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	c.leader().submit("later")
	x.kill()
	if err := os.Remove(filepath.Join(x.dir, "state.db")); err != nil {
		t.Fatal(err)
	}
	x.start()
	c.same(c.nodes...)
}

func TestASecondBootstrapIsRefused(t *testing.T) {
	c := newCluster(t, 1, quick)
	x := c.leader()
	if err := x.path.Bootstrap([]string{x.id}); code(err) != CodeBootstrap {
		t.Fatalf("while raft runs: %v", err)
	}
	x.kill()
	x.open()
	if err := x.path.Bootstrap([]string{x.id}); code(err) != CodeBootstrap {
		t.Fatalf("on a used folder: %v", err)
	}
	x.start()
	x.submit("alone")
}

func TestAnOversizedActionIsRefused(t *testing.T) {
	c := newCluster(t, 1, quick)
	x := c.leader()
	if _, _, err := x.path.Submit(context.Background(), make([]byte, MaxActionBytes+1)); code(err) != CodeTooLarge {
		t.Fatalf("got %v", err)
	}
	big := make([]byte, MaxActionBytes)
	if _, _, err := x.path.Submit(context.Background(), big[:30000]); err != nil {
		t.Fatal(err)
	}
}

func TestWithoutAMajorityASubmitEndsWithItsContext(t *testing.T) {
	c := newCluster(t, 3, quick)
	x := c.leader()
	for _, y := range c.followers() {
		y.kill()
	}
	eventually(t, "the leader's step down", func() bool { _, ok := x.path.running().leads(); return !ok })
	ctx, cancel := context.WithTimeout(context.Background(), 500*time.Millisecond)
	defer cancel()
	_, _, err := x.path.Submit(ctx, []byte("x"))
	if code(err) != CodeNoLeader {
		t.Fatalf("got %v, want %s", err, CodeNoLeader)
	}
	var refusal *machine.Refusal
	if !errors.As(err, &refusal) || refusal.Fix == "" {
		t.Fatalf("the error does not say what to do: %v", err)
	}
}
