package raftpath

import (
	"context"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
)

// history writes n actions and cuts every log right behind them.
func (c *cluster) history(n int) {
	c.t.Helper()
	l := c.leader()
	for i := range n {
		l.submit(fmt.Sprint("history ", i))
	}
	c.same(c.nodes...)
	for _, x := range c.nodes {
		if err := x.path.running().r.Snapshot().Error(); err != nil {
			c.t.Fatal(err)
		}
		if first, err := x.path.running().disk.logs.FirstIndex(); err != nil || first < uint64(n)/2 {
			c.t.Fatalf("the log of node %d begins at %d (%v): it was not cut", x.i, first, err)
		}
	}
}

// short keeps three entries behind a snapshot.
func short() Timing {
	t := quick
	t.TrailingLogs = 3
	return t
}

// reconcile tells every running node who the voters shall be.
func (c *cluster) reconcile(voters ...*node) {
	var ids []string
	for _, x := range voters {
		ids = append(ids, x.id)
	}
	for _, x := range c.nodes {
		if x.path != nil {
			x.path.Reconcile(ids)
		}
	}
}

func (x *node) voters() []string { return x.path.Status().Voters }

func TestAnObserverFollowsALogThatWasCut(t *testing.T) {
	c := newCluster(t, 3, short())
	c.history(30)
	var seen []Progress
	c.config = func(x *node, cfg *Config) { cfg.OnProgress = func(p Progress) { seen = append(seen, p) } }
	x := c.add()
	x.start()
	c.same(c.nodes...)
	if s := x.path.Status(); s.Role != Observer {
		t.Fatalf("role %s", s.Role)
	}
	c.leader().submit("later")
	c.same(c.nodes...)
	answer, _ := x.submit("from the observer")
	if got := x.get("a/from the observer"); got != answer {
		t.Fatalf("the observer reads %q after it was told %q", got, answer)
	}
	if err := x.path.ReadIndex(t.Context()); err != nil {
		t.Fatal(err)
	}
	x.path.stopFollowing()
	if len(seen) == 0 || seen[0].From == "" || !slices.ContainsFunc(seen, func(p Progress) bool { return p.Bytes > 0 && p.Of >= p.Bytes }) ||
		!slices.ContainsFunc(seen, func(p Progress) bool { return p.Done }) {
		t.Fatalf("no progress was shown: %+v", seen)
	}
}

func TestAnObserverMovesOnWhenItsServerDies(t *testing.T) {
	c := newCluster(t, 4, quick)
	c.leader().submit("one")
	x := c.add()
	x.start()
	c.same(c.nodes...)
	for _, y := range c.nodes[:2] {
		y.kill()
		c.nodes[2].submit(fmt.Sprint("after ", y.i))
		c.same(c.nodes[2], x)
		y.start()
		c.leader()
	}
	x.kill()
	x.open()
	before := x.entries()
	c.leader().submit("while it is down")
	x.start()
	c.same(c.nodes...)
	x.appliedOnce(before, 1)
}

// entries is how many are in a node's state.
func (x *node) entries() uint64 { return u64([]byte(x.get("m/head"))) }

func TestAStateOlderThanOnesOwnIsNotTaken(t *testing.T) {
	c := newCluster(t, 4, quick)
	l := c.leader()
	l.submit("one")
	x := c.add()
	x.start()
	c.same(c.nodes...)
	behind := c.followers()[0]
	for _, y := range c.nodes {
		if y != behind {
			y.host.Cut(behind.id)
		}
	}
	c.leader().submit("two")
	c.same(c.without(behind)...)
	x.path.stopFollowing()
	x.host.Heal(behind.id)
	at := x.path.Head()
	level := func(p Progress) bool { return p.Done }
	if _, err := x.path.fetchFrom(t.Context(), behind.id, level); code(err) != CodeNotReady {
		t.Fatalf("a node behind served one ahead: %v", err)
	}
	// One that serves all the same is not believed.
	older, err := behind.path.lastEntryHere()
	if err != nil || older.Index >= at.Index {
		t.Fatalf("%+v, %v", older, err)
	}
	behind.host.HandleStream(p2p.Sync, func(_ context.Context, s *p2p.Stream) error {
		if _, err := s.Recv(); err != nil {
			return err
		}
		if err := s.Send(stateHeader{size: 1, last: older}.encode()); err != nil {
			return err
		}
		_, err := s.Recv()
		return err
	})
	if _, err := x.path.fetchFrom(t.Context(), behind.id, level); code(err) != CodeNotReady {
		t.Fatalf("an older state was taken: %v", err)
	}
	if now := x.path.Head(); now.Index != at.Index || x.get("a/two") == "" {
		t.Fatalf("the state went back from raft index %d to %d", at.Index, now.Index)
	}
	behind.host.HandleStream(p2p.Sync, behind.path.serveSync)
	for _, y := range c.nodes {
		y.host.Heal(behind.id)
	}
	eventually(t, "it to be level again", func() bool {
		_, err := x.path.fetchFrom(t.Context(), behind.id, level)
		return err == nil
	})
}

// lastEntryHere is the log entry a voter's own state ends with.
func (p *Path) lastEntryHere() (*raft.Log, error) {
	l := new(raft.Log)
	return l, p.running().disk.logs.GetLog(p.Head().Index, l)
}

func TestAnObserverStopsWhenItsDecisionLogDiffers(t *testing.T) {
	c := newCluster(t, 3, quick)
	c.leader().submit("one")
	x := c.add()
	x.start()
	c.same(c.nodes...)
	at := x.path.Head().Index
	x.ledger.lie.Store(true)
	c.leader().submit("two")
	eventually(t, "the stop", func() bool { return x.fatal.Load() != nil })
	if err := *x.fatal.Load(); code(err) != CodeDiverged {
		t.Fatalf("stopped by %v", err)
	}
	if now := x.path.Head().Index; now != at {
		t.Fatalf("the differing entry was kept: raft index %d after %d", now, at)
	}
}

func TestAFifthNodeBecomesAVoterOfAClusterWithACutLog(t *testing.T) {
	c := newCluster(t, 4, short())
	c.history(30)
	x := c.add()
	x.start()
	l := c.load(2, c.nodes[:4]...)
	c.reconcile(c.nodes...)
	eventually(t, "five voters everywhere", func() bool {
		for _, y := range c.nodes {
			if len(y.voters()) != 5 {
				return false
			}
		}
		return true
	})
	l.end()
	if s := x.path.Status(); s.Role != Follower && s.Role != Leader {
		t.Fatalf("role %s", s.Role)
	}
	x.submit("from the fifth")
	c.same(c.nodes...)
	// Its vote counts: without two of the old ones three of five decide.
	c.nodes[0].kill()
	c.nodes[1].kill()
	c.leader().submit("three of five")
	x.kill()
	x.start()
	x.submit("after its restart")
	c.same(c.nodes[2], c.nodes[3], x)
}

func TestReplacingAVoterAddsBeforeItRemoves(t *testing.T) {
	c := newCluster(t, 3, quick)
	c.leader().submit("one")
	x := c.add()
	x.start()
	gone := c.nodes[0]
	c.reconcile(c.nodes[1], c.nodes[2], x)
	want := []string{c.nodes[1].id, c.nodes[2].id, x.id}
	slices.Sort(want)
	smallest := 3
	eventually(t, "the new voters", func() bool {
		v := c.nodes[1].voters()
		smallest = min(smallest, len(v))
		return slices.Equal(v, want)
	})
	if smallest < 3 {
		t.Fatalf("there were %d voters on the way", smallest)
	}
	gone.kill()
	x.submit("two")
	c.same(c.nodes[1], c.nodes[2], x)
}

func TestAVoterBehindACutLogFetchesStateAndGoesOn(t *testing.T) {
	c := newCluster(t, 4, short())
	c.leader().submit("one")
	c.same(c.nodes...)
	x := c.followers()[0]
	x.kill()
	rest := slices.DeleteFunc(slices.Clone(c.nodes), func(y *node) bool { return y == x })
	l := c.leader()
	for i := range 30 {
		l.submit(fmt.Sprint("missed ", i))
	}
	c.same(rest...)
	for _, y := range rest {
		if err := y.path.running().r.Snapshot().Error(); err != nil {
			t.Fatal(err)
		}
	}
	x.start()
	c.same(c.nodes...)
	if n := x.ledger.applied.Load(); n > 4 {
		t.Fatalf("%d entries were applied one by one: the log was not cut", n)
	}
	x.submit("back")
	// It votes with a log that begins in the middle.
	c.leader().kill()
	c.leader().submit("next leader")
	x.kill()
	x.start()
	x.submit("after a restart")
}

// TestAnInterruptedInstallIsFinishedAtTheNextStart crashes, so to speak,
// between writing the plan down and every step of carrying it out.
func TestAnInterruptedInstallIsFinishedAtTheNextStart(t *testing.T) {
	c := newCluster(t, 3, quick)
	for i := range 10 {
		c.leader().submit(fmt.Sprint("a", i))
	}
	c.same(c.nodes...)
	x := c.nodes[0]
	head := x.path.Head()
	var last raft.Log
	if err := x.path.running().disk.logs.GetLog(head.Index, &last); err != nil {
		t.Fatal(err)
	}
	for step := range 3 {
		x.kill()
		x.open()
		d, err := x.path.openDisk(0)
		if err != nil {
			t.Fatal(err)
		}
		p := plan{last: &last, config: head.Config, configAt: head.ConfigIndex}
		if err := x.store.UpdateLocal(func(tx machine.Tx) error { return tx.Put(planKey, p.encode()) }); err != nil {
			t.Fatal(err)
		}
		first, _ := d.bolt.FirstIndex()
		end, _ := d.bolt.LastIndex()
		switch step {
		case 1: // the log is gone, the snapshot is not there yet
			err = d.logs.DeleteRange(first, end)
		case 2: // the snapshot is there, the log is half gone
			if err = x.path.snapshotAt(p, d); err == nil {
				err = d.logs.DeleteRange(first, head.Index)
			}
		}
		if err != nil {
			t.Fatal(err)
		}
		if err := d.bolt.Close(); err != nil {
			t.Fatal(err)
		}
		x.kill()
		x.start()
		x.submit(fmt.Sprint("after step ", step))
		c.same(c.nodes...)
	}
}

func TestASnapshotIsTakenRightAfterAMembershipChange(t *testing.T) {
	c := newCluster(t, 3, quick)
	c.leader().submit("one")
	x := c.add()
	x.start()
	c.reconcile(c.nodes...)
	eventually(t, "four voters", func() bool { return len(x.voters()) == 4 && len(c.nodes[0].voters()) == 4 })
	c.same(c.nodes...)
	for _, y := range c.nodes {
		if err := y.path.running().r.Snapshot().Error(); err != nil {
			t.Fatalf("node %d: %v", y.i, err)
		}
	}
	x.kill()
	x.start()
	x.submit("two")
	c.same(c.nodes...)
	if len(x.voters()) != 4 {
		t.Fatalf("voters %v", x.voters())
	}
}

func TestAnObserverStaysOneUntilItIsNamedAVoter(t *testing.T) {
	c := newCluster(t, 3, quick)
	c.leader().submit("one")
	x := c.add()
	x.start()
	c.same(c.nodes...)
	if x.path.running() != nil {
		t.Fatal("an observer runs raft")
	}
	time.Sleep(2 * quick.Heartbeat) // nothing must happen: there is nothing to wait for
	if s := x.path.Status(); s.Role != Observer || len(s.Voters) != 3 {
		t.Fatalf("%+v", s)
	}
}

func TestANodeThatWasAwayAcceptsALeaderItHasNeverHeardOf(t *testing.T) {
	c := newCluster(t, 3, quick)
	c.leader().submit("one")
	c.same(c.nodes...)
	away := c.followers()[0]
	away.kill()
	x := c.add()
	x.start()
	c.reconcile(c.nodes...)
	eventually(t, "four voters", func() bool { return len(x.voters()) == 4 })
	for l := c.leader(); l != x; l = c.leader() { // until the new one leads
		l.kill()
		l.start()
	}
	x.submit("two")
	away.start()
	eventually(t, "what it missed", func() bool { return away.get("a/two") != "" })
	c.same(c.nodes...)
}
