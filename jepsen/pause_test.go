//go:build unix

package jepsen

import (
	"errors"
	"flag"
	"fmt"
	"math/rand/v2"
	"os"
	"testing"
	"time"

	"go.uber.org/goleak"
)

var (
	flagPauses  = flag.Int("pauses", 15, "pauses of the leader")
	flagNodes   = flag.Int("nodes", 3, "node processes")
	flagClients = flag.Int("clients", 6, "clients per node")
	flagControl = flag.Duration("control", 0, "how long to look for a divergence with raft's fast path exposed; 0: not at all")
	flagDir     = flag.String("dir", "", "folder for the nodes' data; empty: in memory where there is /dev/shm")
)

func TestMain(m *testing.M) {
	if os.Getenv(nodeEnv) != "" {
		if err := RunNode(os.Stdin, os.Stdout); err != nil {
			fmt.Fprintln(os.Stderr, "node:", err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	goleak.VerifyTestMain(m)
}

func startTest(t *testing.T, fastPath bool) *Cluster {
	t.Helper()
	base := *flagDir
	if base == "" {
		if _, err := os.Stat("/dev/shm"); err == nil {
			base = "/dev/shm"
		}
	}
	dir, err := os.MkdirTemp(base, "jepsen")
	if err != nil {
		t.Fatal(err)
	}
	c, err := StartCluster(dir, *flagNodes, *flagClients, fastPath)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		c.Kill()
		if err := os.RemoveAll(dir); err != nil {
			t.Error(err)
		}
	})
	return c
}

// pauses stops the leader again and again until done says so, and compares
// all nodes after each pause.
func pauses(t *testing.T, c *Cluster, done func(pauses int) bool) (n int, err error) {
	t.Helper()
	between := func(from, to int) time.Duration { return time.Duration(from+rand.IntN(to-from)) * time.Millisecond }
	a := NewAgreement(len(c.Nodes))
	for n = 0; !done(n); {
		time.Sleep(between(200, 300)) // load under this leader
		leader := c.Leader()
		if leader == nil {
			continue
		}
		if err := leader.Pause(); err != nil {
			return n, err
		}
		time.Sleep(between(350, 600)) // another takes over
		if err := leader.Resume(); err != nil {
			return n, err
		}
		n++
		time.Sleep(150 * time.Millisecond)
		if err := compare(c, a); err != nil {
			return n, err
		}
		if n%25 == 0 {
			t.Logf("%d pauses, raft index %d", n, a.Next(0)-1)
		}
	}
	return n, nil
}

func compare(c *Cluster, a *Agreement) error {
	for _, p := range c.Nodes {
		var entries []Applied
		switch err := p.Ask(fmt.Sprint("dump ", a.Next(p.Index)), &entries, 3*time.Second); {
		case errors.Is(err, ErrSilent): // the next comparison has it all
		case err != nil:
			return err
		default:
			if err := a.Show(p.Index, entries); err != nil {
				return err
			}
		}
	}
	return nil
}

func TestLeaderPausesCauseNoDivergence(t *testing.T) {
	c := startTest(t, false)
	n, err := pauses(t, c, func(n int) bool { return n >= *flagPauses })
	if err != nil {
		t.Fatalf("after %d pauses: %v", n, err)
	}
	t.Logf("%d pauses, %d acknowledged writes", n, settle(t, c))
}

// settle stops the load, waits until the nodes are level and checks that
// every acknowledged write is in every state with the answer it got.
func settle(t *testing.T, c *Cluster) (acked int) {
	t.Helper()
	for _, p := range c.Nodes {
		var none any
		if err := p.Ask("quiet", &none, 20*time.Second); err != nil {
			t.Fatal(err)
		}
	}
	for deadline := time.Now().Add(30 * time.Second); ; time.Sleep(50 * time.Millisecond) {
		low, high := uint64(1<<63), uint64(0)
		for _, p := range c.Nodes {
			var s State
			if err := p.Ask("state", &s, 5*time.Second); err != nil {
				t.Fatal(err)
			}
			if s.Fatal != "" {
				t.Fatalf("node %d has stopped: %s", p.Index, s.Fatal)
			}
			low, high = min(low, s.Index), max(high, s.Index)
		}
		if low == high {
			break
		}
		if time.Now().After(deadline) {
			t.Fatalf("the nodes are at %d to %d", low, high)
		}
	}
	for _, p := range c.Nodes {
		var writes map[string]string
		if err := p.Ask("acked", &writes, 20*time.Second); err != nil {
			t.Fatal(err)
		}
		if len(writes) == 0 {
			t.Fatalf("node %d acknowledged nothing: there was no load", p.Index)
		}
		acked += len(writes)
		for _, q := range c.Nodes {
			var state map[string]string
			if err := q.Ask("get", &state, 20*time.Second); err != nil {
				t.Fatal(err)
			}
			for action, answer := range writes {
				if state[action] != answer {
					t.Fatalf("node %d acknowledged %q with %q, node %d holds %q", p.Index, action, answer, q.Index, state[action])
				}
			}
		}
	}
	return acked
}

func TestWithTheFastPathADivergenceIsFound(t *testing.T) {
	if *flagControl == 0 {
		t.Skip("takes minutes: run it with -control 5m")
	}
	began := time.Now()
	var found *Divergence
	for time.Since(began) < *flagControl {
		c := startTest(t, true)
		n, err := pauses(t, c, func(int) bool { return time.Since(began) > *flagControl })
		c.Kill()
		if errors.As(err, &found) {
			t.Logf("found after %v, %d pauses: %v", time.Since(began).Round(time.Second), n, found)
			return
		}
		if err != nil {
			t.Logf("after %d pauses: %v; starting over", n, err)
		}
	}
	t.Fatalf("no divergence in %v: the harness would not see one", *flagControl)
}
