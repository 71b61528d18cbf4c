package bftpath

import (
	"fmt"
	"sync"
	"testing"

	"github.com/deliberd/deliberd/pbft"
)

// saysTwice has a member commit to two values of an instance, in a frame each.
func (c *cluster) saysTwice(to, liar int, id string) {
	c.t.Helper()
	in := testInstance(id)
	for _, value := range []string{id, "another"} {
		v := pbft.Vote{Key: in.Key(), Phase: pbft.Commit, Digest: testDigest(value)}
		c.drivers[to].Deliver(nodeName(liar), pbft.Sign(in.Domain(), liar, []pbft.Vote{v}, testKey(liar)).Encode())
	}
}

func (c *cluster) expectGuilty(at int, liars ...int) {
	c.t.Helper()
	prepared, err := pbft.NewCommittee(c.committee)
	if err != nil {
		c.t.Fatal(err)
	}
	held := c.drivers[at].Guilt()
	if len(held) != len(liars) {
		c.t.Fatalf("%d proofs are held, expected %d", len(held), len(liars))
	}
	for i, g := range held {
		if err := g.Verify(prepared); err != nil || g.Signer() != liars[i] {
			c.t.Errorf("a proof against member %d, expected %d: %v", g.Signer(), liars[i], err)
		}
	}
}

func TestAProofOfGuiltIsOnTheDiskAtOnce(t *testing.T) {
	c := newCluster(t, 4)
	c.config = func(_ int, cfg *Config) { cfg.Timeout = 1 << 20 } // it casts no further vote
	c.start(0, true)
	c.open("round", 0)
	await(t, "node 0 votes", func() bool { return c.drivers[0].Stats().Flushes == 1 })
	c.saysTwice(0, 3, "round")
	await(t, "the proof is stored", func() bool {
		for _, it := range journalItems(t, c.journal(0), 0) {
			if it.kind == itemGuilt {
				return true
			}
		}
		return false
	})
	c.expectGuilty(0, 3)
}

func TestProofsOfGuiltOutliveRestartsAndRewritingOneForEachVoter(t *testing.T) {
	p := newPromising(t)
	var mu sync.Mutex
	var told []int
	before := p.config
	p.config = func(i int, cfg *Config) {
		before(i, cfg)
		cfg.OnGuilt = func(g pbft.Guilt) {
			mu.Lock()
			defer mu.Unlock()
			told = append(told, g.Signer())
		}
	}
	p.restart()
	p.open("one", 0)
	p.saysTwice(0, 3, "one")
	await(t, "the first proof", func() bool { return len(p.drivers[0].Guilt()) == 1 })
	p.open("two", 0)
	p.saysTwice(0, 3, "two") // held already
	p.saysTwice(0, 1, "two")
	await(t, "the second proof", func() bool { return len(p.drivers[0].Guilt()) == 2 })
	p.expectGuilty(0, 3, 1)
	p.drivers[0].Forget(testInstance("one"))
	for range 2 {
		p.fill()
		p.restart()
		p.expectGuilty(0, 3, 1)
		p.open("two", 0)
		p.saysTwice(0, 1, "two") // the engine is new and reports it once more
		await(t, "both votes are looked at", func() bool { return p.drivers[0].Stats().Verified == 2 })
	}
	p.stop(0)
	mu.Lock()
	defer mu.Unlock()
	if fmt.Sprint(told) != "[3 1]" {
		t.Errorf("heard of %v", told)
	}
}
