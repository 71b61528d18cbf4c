package raftpath

import (
	"fmt"
	"testing"
)

// A log may end just before the leader's begins, or, once the state has been
// fetched, begin above the leader's newest snapshot. raft's leader goes back
// to that snapshot and looks for a common entry below: it must find one.
func TestAVoterFollowsAgainWhereverItsLogAndTheLeadersMeet(t *testing.T) {
	for name, entries := range map[string]struct{ missed, since int }{
		"it ends where the leader's begins": {3, 0}, "one entry above the snapshot": {30, 1},
		"a few entries above the snapshot": {30, 20}, "further above the snapshot than a message reaches": {30, 200},
	} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, short())
			c.same(c.nodes...)
			leader := c.leader()
			away, other := c.followers()[0], c.followers()[1]
			last := away.path.running().r.LastIndex()
			away.kill()
			for i := range entries.missed {
				leader.submit(fmt.Sprint("missed ", i))
			}
			run := leader.path.running()
			if err := run.r.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
			if first, err := run.disk.logs.FirstIndex(); err != nil || first <= last {
				t.Fatalf("the leader's log begins at %d, the other's ends at %d (%v)", first, last, err)
			}
			for i := range entries.since {
				leader.submit(fmt.Sprint("since the snapshot ", i))
			}
			away.start()
			c.same(away, leader)
			other.kill() // from here on a majority needs the one that was away
			leader.submit("together")
			c.same(away, leader)
			if away.get("a/together") == "" {
				t.Error("it does not hold the last action")
			}
		})
	}
}

func TestANodeThatFellBehindBetweenBeingReadyAndBeingAddedIsAdded(t *testing.T) {
	c := newCluster(t, 3, short())
	x := c.add()
	x.start()
	var ids []string
	for _, y := range c.nodes {
		ids = append(ids, y.id)
	}
	x.path.Reconcile(ids) // the others do not know yet
	eventually(t, "raft to run at the new node", func() bool { return x.path.running() != nil })
	l := c.leader()
	for i := range 30 {
		l.submit(fmt.Sprint("history ", i))
	}
	if err := l.path.running().r.Snapshot().Error(); err != nil {
		t.Fatal(err)
	}
	c.reconcile(c.nodes...)
	eventually(t, "four voters", func() bool { return len(x.voters()) == 4 })
	x.submit("from the fourth")
	c.same(c.nodes...)
}
