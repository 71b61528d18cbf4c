package raftpath

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
)

func TestRaftsFastPathForHeartbeatsStaysHidden(t *testing.T) {
	x := &transport{}
	x.SetHeartbeatHandler(func(raft.RPC) { t.Error("the fast path was taken") })
	if x.beat.Load() != nil {
		t.Fatal("the transport keeps raft's fast path for heartbeats (hashicorp/raft issue 695)")
	}
	c := newCluster(t, 3, quick)
	for _, n := range c.nodes {
		if n.path.running().t.beat.Load() != nil {
			t.Fatalf("node %d has raft's fast path", n.i)
		}
	}
}

// ask sends one raw message to a node's raft plane.
func (x *node) ask(to *node, frame []byte) error {
	s, err := x.host.Open(context.Background(), to.id, p2p.Raft)
	if err != nil {
		return err
	}
	defer s.Reset()
	s.SetDeadline(time.Now().Add(patience))
	if err := s.Send(frame); err != nil {
		return err
	}
	b, err := s.Recv()
	if err != nil {
		return err
	}
	_, err = parseReply(b)
	return err
}

// isNoVoterAt sends a message to a node's raft plane until it is answered, and
// checks that it is refused.
func (x *node) isNoVoterAt(to *node, what string, frame []byte) {
	x.c.t.Helper()
	eventually(x.c.t, "an answer to "+what, func() bool {
		err := x.ask(to, frame)
		if err == nil {
			x.c.t.Fatalf("node %d took %s of node %d, which is no voter", to.i, what, x.i)
		}
		return code(err) == guard.CodeNotVoter // else the network was too slow
	})
}

func TestOnlyVotersReachRaft(t *testing.T) {
	c := newCluster(t, 3, quick)
	l := c.leader()
	l.submit("one")
	stranger := c.add() // admitted to the network, no voter
	before := l.path.Status()
	for _, y := range c.nodes[:3] {
		last := y.path.running().r.LastIndex()
		for name, frame := range map[string][]byte{
			"an entry": encodeAppend(&guard.Append{Term: before.Term, Prev: last, PrevTerm: before.Term, Commit: last + 1,
				Entries: []*raft.Log{{Index: last + 1, Term: before.Term, Type: raft.LogCommand, Data: []byte("evil")}}}),
			"a higher term":    encodeAppend(&guard.Append{Term: before.Term + 100}),
			"a vote":           encodeVote(&guard.Vote{Term: before.Term + 100, LastIndex: last + 5, LastTerm: before.Term}),
			"a snapshot offer": offer{term: before.Term, first: last + 100}.encode(),
		} {
			stranger.isNoVoterAt(y, name, frame)
		}
		if err := stranger.ask(y, []byte{99}); err == nil {
			t.Error("an unknown kind of message was answered")
		}
	}
	notice := encodeAppend(&guard.Append{Term: before.Term, Prev: 1, PrevTerm: 1, Commit: 1})
	if err := stranger.host.Send(l.id, p2p.Notice, notice); err != nil {
		t.Fatal(err)
	}
	l.submit("two")
	c.same(c.nodes[:3]...)
	if now := l.path.Status().Term; now >= before.Term+100 {
		t.Fatalf("the term went from %d to %d", before.Term, now)
	}
}

func TestACommitIsAnnouncedAtOnce(t *testing.T) {
	timing := quick
	timing.CommitTimeout = 5 * time.Second // raft alone would tell them then
	c := newCluster(t, 4, timing)
	l := c.leader()
	l.submit("warm")
	var took []time.Duration
	for i := range 30 {
		began := time.Now()
		_, seq := l.submit(string(rune('a' + i)))
		for _, x := range c.nodes {
			ctx, cancel := context.WithTimeout(context.Background(), patience)
			if err := x.path.WaitApplied(ctx, seq); err != nil {
				t.Fatal(err)
			}
			cancel()
		}
		took = append(took, time.Since(began))
	}
	slices.Sort(took)
	if median := took[len(took)/2]; median > time.Second {
		t.Fatalf("half of the commits took %v to show on all nodes: no notice came through", median)
	}
}

func TestANoticeThatOvertakesItsEntryIsKept(t *testing.T) {
	c := newCluster(t, 3, quick)
	l := c.leader()
	l.submit("one")
	c.same(c.nodes...)
	x := c.followers()[0]
	r := x.path.running()
	term, index := l.path.Status().Term, r.r.LastIndex()
	r.t.serial.Lock()
	r.t.notice(r.r, l.id, &guard.Append{Term: term, Prev: index + 1, PrevTerm: term, Commit: index + 1})
	kept := r.t.early != nil
	r.t.serial.Unlock()
	if !kept {
		t.Fatal("it was dropped")
	}
	l.submit("two")
	eventually(t, "its use", func() bool {
		r.t.serial.Lock()
		defer r.t.serial.Unlock()
		return r.t.early == nil
	})
	c.same(c.nodes...)
}

func TestAppendsAreCutToWhatAFrameTakes(t *testing.T) {
	a := &raft.AppendEntriesRequest{Term: 1}
	for i := range 16 {
		a.Entries = append(a.Entries, &raft.Log{Index: uint64(i + 1), Term: 1, Data: make([]byte, 1<<20)})
	}
	x := &transport{guard: guard.Voters(func(string) bool { return true })}
	m, err := x.message("n", a)
	if err != nil || len(m.Entries) == 0 || len(encodeAppend(m)) > p2p.MaxFrame {
		t.Fatalf("%v, %d entries", err, len(m.Entries))
	}
	if len(a.Entries) != len(m.Entries) {
		t.Fatal("raft would believe that all entries went out")
	}
}
