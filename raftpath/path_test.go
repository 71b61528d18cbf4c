package raftpath

import (
	"fmt"
	"sync"
	"testing"
)

func TestAnActionSentToAnyNodeIsAnsweredAndVisibleThere(t *testing.T) {
	c := newCluster(t, 4, quick)
	c.leader()
	for i, x := range c.nodes {
		action := fmt.Sprintf("act %d", i)
		answer, seq := x.submit(action)
		if want := fmt.Sprintf("%s at %d", action, seq); answer != want {
			t.Fatalf("answer %q, want %q", answer, want)
		}
		if got := x.get("a/" + action); got != answer {
			t.Fatalf("node %d reads %q after it was told %q", i, got, answer)
		}
		again, _ := x.submit(action)
		if again != answer {
			t.Fatalf("a retry got %q, first %q", again, answer)
		}
	}
	c.same(c.nodes...)
}

func TestManyClientsAtEveryNodeShareEntries(t *testing.T) {
	c := newCluster(t, 4, quick)
	c.leader()
	const each = 50
	var wg sync.WaitGroup
	for _, x := range c.nodes {
		for j := range each {
			wg.Go(func() { x.submit(fmt.Sprintf("n%d j%d", x.i, j)) })
		}
	}
	wg.Wait()
	c.same(c.nodes...)
	if seq, _ := c.nodes[0].path.Applied(); seq >= 4*each {
		t.Fatalf("%d actions took %d entries: nothing was shared", 4*each, seq)
	}
}
