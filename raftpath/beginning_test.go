package raftpath

import (
	"fmt"
	"testing"
)

// A voter that fetched the state holds a log that begins where the state ends,
// which may be far above the leader's newest snapshot: raft's leader goes back
// to its snapshot and would look for a common entry below, for ever.
func TestAVoterWhoseLogBeginsAboveTheLeadersSnapshotFollows(t *testing.T) {
	for name, more := range map[string]int{"one entry above": 1, "a few entries above": 20, "more than a message holds": 200} {
		t.Run(name, func(t *testing.T) {
			c := newCluster(t, 3, short())
			c.same(c.nodes...)
			leader := c.leader()
			away, other := c.followers()[0], c.followers()[1]
			away.kill()
			for i := range 30 {
				leader.submit(fmt.Sprint("history ", i))
			}
			if err := leader.path.running().r.Snapshot().Error(); err != nil {
				t.Fatal(err)
			}
			for i := range more {
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
