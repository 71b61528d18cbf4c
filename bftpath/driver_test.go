package bftpath

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

func TestFourNodesDecideManyInstancesWithFewFlushes(t *testing.T) {
	c := newCluster(t, 4)
	c.startAll()
	const rounds = 200
	for k := range rounds {
		c.open(fmt.Sprint("round", k), 0, 1, 2, 3)
	}
	for k := range rounds {
		c.awaitDecision(fmt.Sprint("round", k), 0, 1, 2, 3)
	}
	for i := range 4 {
		s := c.drivers[i].Stats()
		if s.Decided != rounds || s.Undecided != 0 {
			t.Errorf("node %d: %+v", i, s)
		}
		if s.Flushes*2 > s.Votes {
			t.Errorf("node %d: %d flushes for %d votes: nothing is batched", i, s.Flushes, s.Votes)
		}
	}
}

func TestOneTwoAndThreeNodesDecide(t *testing.T) {
	for n := 1; n <= 3; n++ {
		c := newCluster(t, n)
		c.startAll()
		for i := range n {
			c.open("round", i)
		}
		for i := range n {
			c.awaitDecision("round", i)
		}
	}
}

func TestANodeThatStartsTheInstanceLateUsesWhatCameEarly(t *testing.T) {
	c := newCluster(t, 4)
	c.startAll()
	c.open("round", 0, 1)
	await(t, "the votes reach node 2", func() bool { return c.drivers[2].Stats().Received >= 2 })
	if c.decision(0, "round") != nil {
		t.Fatal("two of four decided")
	}
	c.open("round", 2)
	c.awaitDecision("round", 0, 1, 2)
}

func TestALatePeerIsAnsweredWithTheCertificate(t *testing.T) {
	c := newCluster(t, 4)
	c.setCut(func(_, to int, _ []byte) bool { return to == 3 })
	c.startAll()
	c.open("round", 0, 1, 2)
	c.awaitDecision("round", 0, 1, 2)
	c.setCut(nil)
	c.open("round", 3)
	c.awaitDecision("round", 3)
}

func TestAViewChangeDecidesWhenThePrepareQuorumWasLost(t *testing.T) {
	c := newCluster(t, 4)
	var lost atomic.Int64
	c.setCut(func(_, _ int, message []byte) bool { // nothing of view 0 arrives
		f, _, err := pbft.Decode(message)
		if err == nil && f != nil && f.Votes()[0].View == 0 {
			lost.Add(1)
			return true
		}
		return false
	})
	c.startAll()
	c.open("round", 0, 1, 2, 3)
	c.awaitDecision("round", 0, 1, 2, 3)
	if cert := c.decision(0, "round"); cert.View == 0 || lost.Load() == 0 {
		t.Errorf("decided in view %d with %d messages lost", cert.View, lost.Load())
	}
}

// recorder keeps every message a node sends.
type recorder struct {
	mu   sync.Mutex
	sent [][]byte
}

func (r *recorder) add(m []byte) {
	r.mu.Lock()
	r.sent = append(r.sent, bytes.Clone(m))
	r.mu.Unlock()
}

func (r *recorder) frames(t *testing.T) (out [][]byte) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, m := range r.sent {
		if f, _, err := pbft.Decode(m); err != nil {
			t.Fatal(err)
		} else if f != nil {
			out = append(out, m)
		}
	}
	return out
}

func TestARestartedNodeSendsTheStoredFramesAgainAndKeepsItsPromises(t *testing.T) {
	c := newCluster(t, 4)
	var before, after recorder
	rec := &before
	c.config = func(i int, cfg *Config) {
		cfg.Timeout = 1_000_000 // views stay out of it, however slow the machine
		if i == 0 {
			send, r := cfg.Send, rec
			cfg.Send = func(peer string, m []byte) { r.add(m); send(peer, m) }
		}
	}
	c.setCut(func(_, _ int, m []byte) bool { // node 0 commits, but no commit is heard
		f, _, err := pbft.Decode(m)
		return err == nil && f != nil && f.Votes()[0].Phase == pbft.Commit
	})
	for i := range 3 {
		c.start(i, true)
	}
	c.open("round", 0, 1, 2)
	await(t, "node 0 commits", func() bool { return votesOf(t, &before, pbft.Commit) > 0 })
	c.stop(0)
	rec = &after
	c.setCut(func(_, to int, _ []byte) bool { return to == 0 }) // it knows only what it stored
	c.start(0, false)
	c.open("round", 0)
	await(t, "the stored commit is sent again", func() bool { return votesOf(t, &after, pbft.Commit) > 0 })
	c.setCut(nil)
	c.awaitDecision("round", 0, 1, 2)
	stored := map[string]bool{}
	for _, m := range before.frames(t) {
		stored[string(m)] = true
	}
	if again := after.frames(t)[0]; !stored[string(again)] {
		t.Error("the first frame after the restart is not a stored one")
	}
	oneVotePerSlot(t, c.journal(0), 0)
}

func votesOf(t *testing.T, r *recorder, phase pbft.Phase) (n int) {
	for _, m := range r.frames(t) {
		f, _ := pbft.DecodeFrame(m)
		for _, v := range f.Votes() {
			if v.Phase == phase {
				n++
			}
		}
	}
	return n
}

// journalItems are what a node's journal holds, in order.
func journalItems(t *testing.T, path string, node int) []item {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	salt, ok := readHeader(text, testCommittee(node + 1).Members[node].Key)
	if !ok {
		t.Fatal("no journal")
	}
	items, _, _, err := parse(salt, text)
	if err != nil {
		t.Fatal(err)
	}
	return items
}

// oneVotePerSlot reads a journal and demands that it holds no two different
// votes for one slot.
func oneVotePerSlot(t *testing.T, path string, node int) {
	t.Helper()
	said := map[string]pbft.Vote{}
	for _, v := range votesIn(t, journalItems(t, path, node)) {
		slot := fmt.Sprint(v.Key, v.View, v.Phase)
		if o, ok := said[slot]; ok && o.Hash() != v.Hash() {
			t.Errorf("two votes for one slot: %+v and %+v", o, v)
		}
		said[slot] = v
	}
	if len(said) == 0 {
		t.Error("the journal holds no vote")
	}
}

// votesIn are the votes of the frames among items, in order.
func votesIn(t *testing.T, items []item) (votes []pbft.Vote) {
	t.Helper()
	for _, it := range items {
		if it.kind != itemFrame {
			continue
		}
		f, err := pbft.DecodeFrame(it.data)
		if err != nil {
			t.Fatal(err)
		}
		votes = append(votes, f.Votes()...)
	}
	return votes
}

func TestAFailedWriteEndsSigningAndNothingUnstoredIsSent(t *testing.T) {
	c := newCluster(t, 4)
	var rec recorder
	failures := make(chan error, 4)
	c.config = func(_ int, cfg *Config) {
		cfg.Send = func(_ string, m []byte) { rec.add(m) }
		cfg.OnFailure = func(err error) { failures <- err }
	}
	d := c.start(0, true)
	if err := d.flusher.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	c.open("round", 0)
	err := next(t, "OnFailure hears of the failed write", failures)
	if !errors.Is(err, os.ErrClosed) || d.Err() == nil {
		t.Fatalf("failure %v, Err %v", err, d.Err())
	}
	if err := d.StartInstance(testInstance("next"), c.committee, testDigest("next")); err == nil {
		t.Error("a failed driver takes another instance")
	}
	if len(rec.frames(t)) > 0 {
		t.Error("a vote was sent that is not stored")
	}
	c.drivers[0] = nil
	if err := d.Close(); err == nil {
		t.Error("closing a closed file went well")
	}
}

func TestAFailedWriteStopsEveryInstanceOfTheEpoch(t *testing.T) {
	c := newCluster(t, 4)
	var rec recorder
	failures, ticks := make(chan error, 4), make(chan time.Time)
	c.config = func(_ int, cfg *Config) {
		cfg.Timeout, cfg.Resend = 3, 2
		cfg.Send = func(_ string, m []byte) { rec.add(m) }
		cfg.OnFailure = func(err error) { failures <- err }
		cfg.Ticker = func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} }
	}
	d := c.start(0, true)
	c.open("a", 0)
	c.open("b", 0)
	await(t, "both first votes are stored and sent", func() bool { return d.Stats().Votes == 2 })
	stored := map[string]bool{}
	for _, m := range rec.frames(t) {
		stored[string(m)] = true
	}
	if err := d.flusher.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	c.hearOthersAccept(0, "a")
	next(t, "OnFailure hears of the failed write", failures)
	c.hearOthersAccept(0, "b")
	for range 20 { // timers end, and frames are repeated
		ticks <- time.Time{}
	}
	for _, m := range rec.frames(t) {
		if !stored[string(m)] {
			t.Error("after a failed write something is sent that is not stored")
		}
	}
	if s := d.Stats(); s.Votes != 2 || s.Decided != 0 {
		t.Errorf("after a failed write: %+v", s)
	}
	if err := d.StartInstance(testInstance("c"), c.committee, testDigest("c")); !errors.Is(err, os.ErrClosed) {
		t.Errorf("another instance is taken: %v", err)
	}
	c.drivers[0] = nil
	_ = d.Close()
	oneVotePerSlot(t, c.journal(0), 0)
}

func TestAProofOfGuiltIsHandedOutOnceAndTheRoundGoesOn(t *testing.T) {
	c := newCluster(t, 4)
	var mu sync.Mutex
	var guilt []pbft.Guilt
	c.config = func(_ int, cfg *Config) {
		cfg.OnGuilt = func(g pbft.Guilt) {
			mu.Lock()
			defer mu.Unlock()
			guilt = append(guilt, g)
		}
	}
	for i := range 3 {
		c.start(i, true)
	}
	c.open("round", 0)
	in := testInstance("round")
	for _, value := range []string{"round", "x", "y", "z"} { // node 3 says four things in one slot, to node 0
		v := pbft.Vote{Key: in.Key(), Phase: pbft.Commit, Digest: testDigest(value)}
		c.drivers[0].Deliver(nodeName(3), pbft.Sign(in.Domain(), 3, []pbft.Vote{v}, testKey(3)).Encode())
	}
	c.open("round", 1, 2)
	c.awaitDecision("round", 0, 1, 2)
	mu.Lock()
	defer mu.Unlock()
	prepared, err := pbft.NewCommittee(c.committee)
	if err != nil {
		t.Fatal(err)
	}
	if len(guilt) != 1 || guilt[0].Signer() != 3 || guilt[0].Verify(prepared) != nil {
		t.Errorf("guilt: %+v", guilt)
	}
}

func TestADecisionStandsWhenTheNodeComesToHoldAnotherValueRight(t *testing.T) {
	c := newCluster(t, 1)
	c.start(0, true)
	c.open("round", 0)
	c.awaitDecision("round", 0)
	c.stop(0)
	c.heard[0] = map[string]*pbft.Certificate{}
	d := c.start(0, false)
	if err := d.StartInstance(testInstance("round"), c.committee, testDigest("another")); err != nil {
		t.Fatal(err)
	}
	c.open("next", 0)
	c.awaitDecision("next", 0)
	if err := d.Err(); err != nil || c.decision(0, "round") != nil {
		t.Errorf("the driver stopped with %v, or told of a decision that the node holds wrong", err)
	}
	c.stop(0)
	c.start(0, false)
	c.open("round", 0)
	c.awaitDecision("round", 0)
}

func TestForgottenInstancesNeverStartAgain(t *testing.T) {
	c := newCluster(t, 1)
	c.start(0, true)
	c.open("round", 0)
	c.awaitDecision("round", 0)
	c.drivers[0].Forget(testInstance("round"))
	again := func() error {
		return c.drivers[0].StartInstance(testInstance("round"), c.committee, testDigest("round"))
	}
	if err := again(); !errors.Is(err, ErrForgotten) {
		t.Errorf("started again: %v", err)
	}
	c.stop(0)
	c.start(0, false)
	if err := again(); !errors.Is(err, ErrForgotten) {
		t.Errorf("started again after a restart: %v", err)
	}
}

func TestStartingIsIdempotentAndRefusesContradictions(t *testing.T) {
	c := newCluster(t, 1)
	d := c.start(0, true)
	c.open("round", 0)
	c.open("round", 0)
	if err := d.StartInstance(testInstance("round"), c.committee, testDigest("other")); !errors.Is(err, ErrConflict) {
		t.Errorf("another digest: %v", err)
	}
	if err := d.StartInstance(testInstance("second"), testCommittee(2), testDigest("second")); !errors.Is(err, ErrConflict) {
		t.Errorf("another committee: %v", err)
	}
	late := testInstance("third")
	late.Epoch = 2
	if err := d.StartInstance(late, c.committee, testDigest("third")); code(err) != pbft.CodeBadCommittee {
		t.Errorf("a committee of another epoch: %v", err)
	}
	if err := d.StartInstance(pbft.Instance{}, c.committee, testDigest("x")); code(err) != pbft.CodeMalformed {
		t.Errorf("an empty instance: %v", err)
	}
	if err := d.StartInstance(testInstance("zero"), c.committee, [32]byte{}); code(err) != pbft.CodeMalformed {
		t.Errorf("the zero digest: %v", err)
	}
	other := testCommittee(1)
	other.Epoch, late.Epoch = 2, 2
	other.Members[0].Key = testCommittee(2).Members[1].Key
	if err := d.StartInstance(late, other, testDigest("third")); !errors.Is(err, ErrWrongKey) {
		t.Errorf("a committee with another key for this node: %v", err)
	}
	c.awaitDecision("round", 0)
	c.stop(0)
	if err := d.StartInstance(testInstance("late"), c.committee, testDigest("late")); !errors.Is(err, ErrClosed) {
		t.Errorf("after Close: %v", err)
	}
}

func code(err error) string {
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return ""
}

func TestDecisionsAreReportedAgainAfterARestart(t *testing.T) {
	c := newCluster(t, 1)
	c.start(0, true)
	c.open("round", 0)
	c.awaitDecision("round", 0)
	first := c.decision(0, "round")
	c.stop(0)
	c.heard[0] = map[string]*pbft.Certificate{}
	c.start(0, false)
	c.open("round", 0)
	c.awaitDecision("round", 0)
	if !bytes.Equal(first.Encode(), c.decision(0, "round").Encode()) {
		t.Error("another certificate after the restart")
	}
}

func TestFramesOfOthersAreNotTakenFromAPeer(t *testing.T) {
	c := newCluster(t, 4)
	d := c.start(0, true)
	c.open("round", 0)
	in := testInstance("round")
	for signer := 1; signer < 4; signer++ {
		phase := pbft.Prepare
		prepared, err := pbft.NewCommittee(c.committee)
		if err != nil {
			t.Fatal(err)
		}
		if prepared.Primary(in.Key(), 0) == signer {
			phase = pbft.PrePrepare
		}
		vote := pbft.Vote{Key: in.Key(), Phase: phase, Digest: testDigest("round")}
		frame := pbft.Sign(in.Domain(), signer, []pbft.Vote{vote}, testKey(signer))
		d.Deliver(nodeName(signer%3+1), frame.Encode())
	}
	c.open("after", 0) // whose vote shows that the loop is done with them
	await(t, "they are looked at", func() bool { return d.Stats().Votes >= 2 })
	if s := d.Stats(); s.Verified != 0 || s.Votes > 2 {
		t.Errorf("relayed frames were verified or caused a commit: %+v", s)
	}
}

func TestWhatOnePeerCanMakeADriverHoldIsBounded(t *testing.T) {
	c := newCluster(t, 4)
	d := c.start(0, true)
	for k := range 3 * maxEarly {
		in := testInstance(fmt.Sprint("unknown", k))
		frame := pbft.Sign(in.Domain(), 1, []pbft.Vote{{Key: in.Key(), Phase: pbft.Prepare, Digest: testDigest("x")}}, testKey(1))
		d.Deliver(nodeName(1), frame.Encode())
	}
	await(t, "they are looked at", func() bool {
		d.mu.Lock()
		defer d.mu.Unlock()
		return len(d.inbox) == 0
	})
	d.Deliver(nodeName(2), []byte("garbage"))
	c.stop(0)
	if list := d.loop.early.of[nodeName(1)]; len(list.frames) > maxEarly || list.bytes > maxEarlyBytes {
		t.Errorf("%d frames, %d bytes held", len(list.frames), list.bytes)
	}
	if s := d.Stats(); s.Dropped < maxEarly {
		t.Errorf("only %d dropped", s.Dropped)
	}
}
