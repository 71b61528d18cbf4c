package raftpath

import (
	"fmt"
	"slices"
	"testing"

	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
)

// without are the nodes but one.
func (c *cluster) without(gone *node) []*node {
	return slices.DeleteFunc(slices.Clone(c.nodes), func(x *node) bool { return x == gone })
}

// remove has the rest vote a node out, and waits until they have.
func (c *cluster) remove(gone *node) (rest []*node) {
	c.t.Helper()
	rest = c.without(gone)
	c.reconcile(rest...)
	eventually(c.t, "its removal", func() bool {
		return !slices.ContainsFunc(rest, func(x *node) bool { return slices.Contains(x.voters(), gone.id) })
	})
	return rest
}

func (x *node) learns() {
	x.c.t.Helper()
	eventually(x.c.t, "the removed node's news", func() bool { return x.removed.Load() && x.path.Status().Removed })
}

func TestARemovedNodeStopsAndTheRestGoOn(t *testing.T) {
	for _, leads := range []bool{false, true} {
		t.Run(fmt.Sprintf("leader=%v", leads), func(t *testing.T) {
			c := newCluster(t, 4, quick)
			gone := c.leader()
			if !leads {
				gone = c.followers()[0]
			}
			gone.submit("one")
			rest := c.remove(gone)
			rest[0].submit("three")
			c.same(rest...)
			gone.learns()
			gone.kill()
			gone.start()
			rest[1].submit("the removed one is back")
			term := rest[0].path.Status().Term
			for _, x := range rest {
				for name, frame := range map[string][]byte{
					"a vote":           encodeVote(&guard.Vote{Term: term + 100, LastIndex: 1 << 20, LastTerm: term + 99}),
					"a question first": encodeVote(&guard.Vote{Term: term + 100, LastIndex: 1 << 20, LastTerm: term + 99, Pre: true}),
					"a heartbeat":      encodeAppend(&guard.Append{Term: term + 100}),
				} {
					gone.isNoVoterAt(x, name, frame)
				}
			}
			rest[1].submit("and changes nothing")
			if now := rest[0].path.Status().Term; now >= term+100 {
				t.Fatalf("the removed node raised the term from %d to %d", term, now)
			}
		})
	}
}

func TestANodeRemovedWhileItWasDownLearnsItFromTheOthers(t *testing.T) {
	for _, refused := range []bool{false, true} {
		t.Run(fmt.Sprintf("refused=%v", refused), func(t *testing.T) {
			c := newCluster(t, 4, quick)
			c.leader().submit("one")
			c.same(c.nodes...)
			gone := c.followers()[0]
			gone.kill()
			rest := c.remove(gone)
			if refused { // as a node does a while after the removal
				for _, x := range rest {
					x.refuses.Store(gone.id, true)
				}
			}
			gone.start()
			gone.learns()
			rest[0].submit("two")
			c.same(rest...)
		})
	}
}

func TestAVoterThatMissedItsRemovalHearsOfIt(t *testing.T) {
	c := newCluster(t, 4, quick)
	c.leader().submit("one")
	c.same(c.nodes...)
	gone := c.followers()[0]
	rest := c.without(gone)
	for _, x := range rest { // neither the entry nor the notice comes through
		x.host.Cut(gone.id)
	}
	c.remove(gone)
	for _, x := range rest {
		x.host.Heal(gone.id)
	}
	gone.learns()
}

func TestOneLiarCannotStopAVoter(t *testing.T) {
	c := newCluster(t, 4, quick)
	l := c.leader()
	l.submit("one")
	c.same(c.nodes...)
	followers := c.followers()
	x, liar, second := followers[0], followers[1], followers[2]
	asked := func(y *node) {
		t.Helper()
		y.refuses.Store(x.id, true)
		eventually(t, "the refusal", func() bool {
			y.host.Refresh() // ends the connection from before
			_, err := x.host.Call(t.Context(), y.id, p2p.Forward, []byte{askStanding})
			return code(err) == p2p.CodeRemoved
		})
	}
	for range 3 { // saying it again adds nothing
		asked(liar)
	}
	x.path.hearRemoved("somebody who is no voter")
	x.path.hearRemoved(x.id)
	x.submit("two")
	if x.removed.Load() || x.path.Status().Removed {
		t.Fatal("one voter's word has removed another")
	}
	asked(second)
	x.learns()
}

func TestRemovalIsBelievedOfMoreThanMayLie(t *testing.T) {
	for _, c := range []struct{ voters, voter, observer int }{
		{1, 0, 1}, {2, 1, 2}, {3, 2, 2}, {4, 2, 2}, {5, 2, 2}, {6, 2, 2}, {7, 3, 3}, {10, 4, 4},
	} {
		var ids []string
		for i := range c.voters {
			ids = append(ids, fmt.Sprint("v", i))
		}
		if got := enoughWords(ids, "v0"); got != c.voter {
			t.Errorf("a voter of %d believes %d, want %d", c.voters, got, c.voter)
		}
		if got := enoughWords(ids, "o"); got != c.observer {
			t.Errorf("an observer of %d voters believes %d, want %d", c.voters, got, c.observer)
		}
	}
}
