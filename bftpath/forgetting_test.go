package bftpath

import (
	"bytes"
	"fmt"
	"os"
	"slices"
	"testing"
	"time"

	"github.com/deliberd/deliberd/pbft"
)

// commitsOf is a frame of one member's commits to several instances.
func commitsOf(signer int, ids ...string) []byte {
	var votes []pbft.Vote
	for _, id := range ids {
		votes = append(votes, pbft.Vote{Key: testInstance(id).Key(), Phase: pbft.Commit, Digest: testDigest(id)})
	}
	return pbft.Sign(testInstance(ids[0]).Domain(), signer, votes, testKey(signer)).Encode()
}

func TestWhatIsForgottenReachesTheDiskWhereNothingIsVotedOn(t *testing.T) {
	c := newCluster(t, 4)
	c.config = noTicks
	d := c.start(0, true)
	const rounds = 5000
	for k := range rounds {
		d.Forget(testInstance(fmt.Sprint("round", k)))
	}
	await(t, "all but the last are stored", func() bool {
		text, err := os.ReadFile(c.journal(0))
		if err != nil {
			t.Fatal(err)
		}
		return bytes.Count(text, []byte{itemForgotten, 0, 0, 0, 32}) >= rounds-maxNotes
	})
	awaitTaken(t, d)
	c.stop(0)
	if n := len(d.loop.notes); n > maxNotes {
		t.Errorf("%d notes wait", n)
	}
	stored := 0
	for _, it := range journalItems(t, c.journal(0), 0) {
		if it.kind == itemForgotten {
			stored++
		}
	}
	if stored < rounds-maxNotes {
		t.Errorf("%d of %d are stored", stored, rounds)
	}
}

func TestForgettingAnInstanceKeepsTheEarlyVotesOfOthers(t *testing.T) {
	d, open := paper(t)
	for from := 1; from < 4; from++ {
		d.Deliver(nodeName(from), commitsOf(from, "x", "y"))
	}
	d.loop.work()
	d.Forget(testInstance("x"))
	d.loop.work()
	open("y")
	if s := d.Stats(); s.Decided != 1 {
		t.Errorf("y is not decided by the commits that came early: %+v", s)
	}
}

func TestForgettingTheLastInstanceThatAnEarlyFrameWaitsForDropsIt(t *testing.T) {
	d, open := paper(t)
	d.Deliver(nodeName(1), commitsOf(1, "x", "y", "z"))
	d.loop.work()
	kept := func() int { return len(d.loop.early.of[nodeName(1)].frames) }
	d.Forget(testInstance("x"))
	d.loop.work()
	open("y")
	if kept() != 1 {
		t.Errorf("%d frames wait for the last instance", kept())
	}
	d.Forget(testInstance("z"))
	d.loop.work()
	if bytes := d.loop.early.of[nodeName(1)].bytes; kept() != 0 || bytes != 0 {
		t.Errorf("%d frames, %d bytes are kept", kept(), bytes)
	}
}

func TestAFrameThatIsWantedNowIsKeptForItsInstancesThatHaveNotStarted(t *testing.T) {
	c := newCluster(t, 4)
	c.config = noTicks
	d := c.start(0, true)
	c.open("x", 0)
	for from := 1; from < 4; from++ {
		d.Deliver(nodeName(from), commitsOf(from, "x", "y"))
	}
	c.awaitDecision("x", 0)
	c.open("y", 0)
	c.awaitDecision("y", 0)
}

func TestAFailedDriverSendsNothingForWhatIsForgotten(t *testing.T) {
	c := newCluster(t, 4)
	rec, ticks := &recorder{}, make(chan time.Time)
	failures := make(chan error, 1)
	c.config = func(_ int, cfg *Config) {
		cfg.Timeout, cfg.Resend = 1<<20, 2
		cfg.Send = func(_ string, m []byte) { rec.add(m) }
		cfg.OnFailure = func(err error) { failures <- err }
		cfg.Ticker = func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} }
	}
	d := c.start(0, true)
	c.open("round", 0)
	await(t, "node 0 votes", func() bool { return d.Stats().Votes == 1 })
	if err := d.flusher.journal.file.Close(); err != nil {
		t.Fatal(err)
	}
	c.hearOthersAccept(0, "round")
	next(t, "the driver fails", failures)
	d.Forget(testInstance("round"))
	await(t, "the engine is gone", func() bool { return d.Stats().Undecided == 0 })
	sent := len(rec.frames(t))
	for range 20 {
		ticks <- time.Time{}
	}
	if again := len(rec.frames(t)) - sent; again > 0 {
		t.Errorf("%d frames are sent again", again)
	}
	c.drivers[0] = nil
	_ = d.Close()
	if len(d.loop.notes) > 0 {
		t.Error("a failed driver has something for the disk")
	}
}

// paper is a driver whose loop and disk a test plays.
func paper(t *testing.T) (*Driver, func(id string)) {
	t.Helper()
	d := still()
	d.cfg.Send = func(string, []byte) {}
	d.loop.compact = compactFrom
	d.flusher.work, d.flusher.done = make(chan flight, 1), make(chan error, 1)
	return d, func(id string) {
		t.Helper()
		if err := d.StartInstance(testInstance(id), testCommittee(4), testDigest(id)); err != nil {
			t.Fatal(err)
		}
		d.loop.work()
	}
}

func TestVotesThatWaitAreNotSignedOnceTheirInstanceIsForgotten(t *testing.T) {
	d, open := paper(t)
	open("first")
	<-d.flusher.work
	open("x") // waits behind the write
	open("y")
	d.Forget(testInstance("x"))
	d.loop.work()
	d.loop.landed(nil)
	var signed []pbft.Digest
	for _, v := range votesIn(t, (<-d.flusher.work).items) {
		signed = append(signed, v.Key)
	}
	if want := []pbft.Digest{testInstance("y").Key()}; !slices.Equal(signed, want) {
		t.Errorf("signed for %v, expected %v", signed, want)
	}
	d.loop.landed(nil)
	if err := d.Err(); err != nil || len(d.loop.instances[testInstance("y").Key()].stored.Frames) != 1 {
		t.Errorf("the vote of the other instance did not come back: %v", err)
	}
	open("z")
	<-d.flusher.work
	open("last")
	d.Forget(testInstance("last"))
	d.loop.work()
	d.loop.landed(nil)
	if d.loop.flying != nil || len(d.flusher.work) > 0 {
		t.Error("a flush for forgotten votes alone")
	}
}

func TestCloseWaitsForTheWriteUnderWayAndBeginsNone(t *testing.T) {
	d, open := paper(t)
	open("x")
	<-d.flusher.work
	open("y") // waits behind the write
	d.flusher.done <- nil
	d.loop.end()
	if d.loop.flying != nil || len(d.flusher.work) > 0 {
		t.Error("a write is begun that nobody waits for")
	}
}

func TestInstancesAreThoseStartedAndNotForgotten(t *testing.T) {
	c := newCluster(t, 1)
	d := c.start(0, true)
	for _, id := range []string{"x", "y", "z"} {
		c.open(id, 0)
	}
	d.Forget(testInstance("y"))
	d.Forget(testInstance("never"))
	expect := func(want ...string) {
		t.Helper()
		var got []string
		for _, in := range d.Instances() {
			if in != testInstance(in.ID) {
				t.Errorf("another instance: %+v", in)
			}
			got = append(got, in.ID)
		}
		if slices.Sort(got); !slices.Equal(got, want) {
			t.Errorf("%v, expected %v", got, want)
		}
	}
	expect("x", "z")
	c.awaitDecision("x", 0)
	expect("x", "z") // decided is not forgotten
	for _, in := range d.Instances() {
		d.Forget(in)
	}
	expect()
}

func TestTheGraveyardHoldsTheNewest(t *testing.T) {
	var g graveyard
	key := func(k int) (out pbft.Digest) {
		copy(out[:], fmt.Sprint("key", k))
		return out
	}
	const more = 10
	for k := range maxForgotten + more {
		if !g.add(key(k)) || g.add(key(k)) {
			t.Fatal("a key is new once")
		}
	}
	if len(g.set) != maxForgotten || len(g.order) != maxForgotten {
		t.Errorf("%d keys, %d in order", len(g.set), len(g.order))
	}
	if g.holds(key(more-1)) || !g.holds(key(more)) || !g.holds(key(maxForgotten+more-1)) {
		t.Error("not the newest are held")
	}
}

// lone is a single voter with a small journal that has decided a round.
func lone(t *testing.T) *promising {
	p := &promising{cluster: newCluster(t, 1), t: t, in: testInstance("decided")}
	p.config = func(_ int, cfg *Config) { cfg.compactFrom = 4 << 10 }
	p.start(0, true)
	p.open(p.in.ID, 0)
	p.awaitDecision(p.in.ID, 0)
	return p
}

// stored counts what the journal of a stopped node holds of the decided round.
func (p *promising) stored() (frames, certificates int) {
	p.t.Helper()
	for _, it := range journalItems(p.t, p.journal(0), 0) {
		switch it.kind {
		case itemFrame:
			if f, err := pbft.DecodeFrame(it.data); err != nil || f.Holds(p.in.Key()) {
				frames++
			}
		case itemCertificate:
			if c, err := pbft.DecodeCertificate(it.data); err != nil || c.Instance == p.in {
				certificates++
			}
		}
	}
	return frames, certificates
}

func TestADecisionThatTheNodeHoldsWrongOutlivesRewriting(t *testing.T) {
	p := lone(t)
	p.stop(0)
	d := p.start(0, false)
	if err := d.StartInstance(p.in, p.committee, testDigest("another")); err != nil {
		t.Fatal(err)
	}
	p.fill()
	p.stop(0)
	if _, certificates := p.stored(); certificates != 1 {
		t.Errorf("%d certificates are stored", certificates)
	}
}

func TestAnInstanceMayBeStartedWithTheValueThatWasDecidedAfterAnother(t *testing.T) {
	p := lone(t)
	p.stop(0)
	p.heard[0] = map[string]*pbft.Certificate{}
	d := p.start(0, false)
	start := func(value string) error { return d.StartInstance(p.in, p.committee, testDigest(value)) }
	if err := start("another"); err != nil {
		t.Fatal(err)
	}
	for range 3 * maxEarly {
		d.Deliver(nodeName(1), commitsOf(1, p.in.ID)) // a peer that goes on about it
	}
	await(t, "the instance may be started again", func() bool { return len(d.Instances()) == 0 })
	awaitTaken(t, d)
	if err := start(p.in.ID); err != nil {
		t.Fatal(err)
	}
	p.awaitDecision(p.in.ID, 0)
	if d.Stats().Votes != 0 {
		t.Error("it was voted on again")
	}
	if s := d.Stats(); s.Dropped < maxEarly {
		t.Errorf("frames of an instance that is not started are kept without bound: %+v", s)
	}
}

func TestAnInstanceForgottenBeforeItIsStartedAgainLeavesTheJournal(t *testing.T) {
	p := lone(t)
	p.stop(0)
	d := p.start(0, false)
	d.Forget(p.in)
	p.fill()
	p.stop(0)
	if frames, certificates := p.stored(); frames+certificates != 0 {
		t.Errorf("%d frames and %d certificates are left", frames, certificates)
	}
}

func TestARecalledFrameDoesNotKeepTheWholeFileInMemory(t *testing.T) {
	proof := bytes.Repeat([]byte{7}, 100)
	in := testInstance("x")
	v := pbft.Vote{Key: in.Key(), View: 1, Phase: pbft.ViewChange, Prepared: 1, Digest: testDigest("x"), Proof: proof}
	text := pbft.Sign(in.Domain(), 0, []pbft.Vote{v}, testKey(0)).Encode()
	d := still()
	if err := d.loop.recall([]item{{itemFrame, text}}); err != nil {
		t.Fatal(err)
	}
	clear(text)
	if got := d.loop.recalled[in.Key()].Frames[0].Votes()[0].Proof; !bytes.Equal(got, proof) {
		t.Error("the frame is part of the text that was read")
	}
}

func TestTheFirstProofAgainstAVoterOfEachEpochIsKept(t *testing.T) {
	var d dock
	guilt := func(epoch uint64, signer int) pbft.Guilt {
		in := testInstance("round")
		in.Epoch = epoch
		return pbft.Guilt{Instance: in, ProofA: pbft.Proof{Signer: signer}, ProofB: pbft.Proof{Signer: signer}}
	}
	for epoch := uint64(1); epoch < 3; epoch++ {
		for signer := range 2 {
			if !d.add(guilt(epoch, signer)) || d.add(guilt(epoch, signer)) {
				t.Errorf("epoch %d, voter %d: the first and no other is to be kept", epoch, signer)
			}
		}
	}
	if len(d.proofs) != 4 {
		t.Errorf("%d proofs", len(d.proofs))
	}
}

func TestAPeerGetsBackTheRoomOfWhatWasLookedAt(t *testing.T) {
	d := still()
	message := frameOf(1, "x", 1<<19).Encode()
	const times = 3 * maxQueuedBytes >> 19
	for range times {
		d.Deliver(nodeName(1), message)
		d.loop.work()
	}
	if u := d.queued[nodeName(1)]; u.count != 0 || u.bytes != 0 || d.stats.Received != times {
		t.Errorf("%d messages of %d bytes are counted as queued, %d received", u.count, u.bytes, d.stats.Received)
	}
}

func TestVotesShareAFrameUpToItsBounds(t *testing.T) {
	prepared, err := pbft.NewCommittee(testCommittee(1))
	if err != nil {
		t.Fatal(err)
	}
	in := testInstance("x")
	for name, c := range map[string]struct{ count, proof, fit int }{
		"one":                {1, 0, 1},
		"as many as allowed": {pbft.MaxVotes, 0, pbft.MaxVotes},
		"more":               {pbft.MaxVotes + 1, 0, pbft.MaxVotes},
		"large proofs":       {5, 400 << 10, 2},
		"a very large proof": {2, pbft.MaxFrame - 1000, 1},
	} {
		votes := make([]pbft.Vote, c.count)
		for i := range votes {
			votes[i] = pbft.Vote{Key: in.Key(), View: uint64(i), Phase: pbft.ViewChange, Proof: make([]byte, c.proof)}
		}
		n := fitting(votes)
		if n != c.fit {
			t.Errorf("%s: %d votes share a frame, expected %d", name, n, c.fit)
			continue
		}
		v, err := prepared.Sign(in.Domain(), 0, votes[:n], testKey(0))
		if err != nil {
			t.Fatal(err)
		}
		if size := len(v.Frame().Encode()); size > pbft.MaxFrame {
			t.Errorf("%s: the frame has %d bytes", name, size)
		}
	}
}
