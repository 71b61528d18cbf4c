package bftpath

import (
	"log/slog"
	"path/filepath"
	"testing"

	"github.com/deliberd/deliberd/pbft"
)

// still is a driver whose loop does not run: nothing is taken from its queue.
func still() *Driver {
	d := &Driver{
		cfg: Config{Self: nodeName(0), Key: testKey(0), Timeout: 10, Resend: 5}, log: slog.New(slog.DiscardHandler),
		pub: testCommittee(1).Members[0].Key, wake: make(chan struct{}, 1),
		queued: map[string]*usage{}, committees: map[uint64]*epochCommittee{}, started: map[pbft.Digest]begun{},
	}
	d.loop.init(d)
	return d
}

// frameOf is a frame of one vote by a member, with a proof of a given size.
func frameOf(signer int, id string, proof int) *pbft.Frame {
	in := testInstance(id)
	v := pbft.Vote{Key: in.Key(), View: 1, Phase: pbft.ViewChange}
	if proof > 0 {
		v.Prepared, v.Digest, v.Proof = 1, testDigest(id), make([]byte, proof)
	}
	return pbft.Sign(in.Domain(), signer, []pbft.Vote{v}, testKey(signer))
}

func TestTheQueueOfOnePeerIsBoundedAndLeavesOthersTheirRoom(t *testing.T) {
	for name, c := range map[string]struct {
		proof, most int
	}{"many small messages": {0, maxQueued}, "few large ones": {1 << 19, maxQueuedBytes >> 19}} {
		d := still()
		message := frameOf(1, "x", c.proof).Encode()
		for range c.most + 100 {
			d.Deliver(nodeName(1), message)
		}
		u := d.queued[nodeName(1)]
		if u.count > maxQueued || u.bytes > maxQueuedBytes || len(d.inbox) > c.most {
			t.Errorf("%s: %d messages of %d bytes are queued", name, u.count, u.bytes)
		}
		if d.stats.Dropped < 100 {
			t.Errorf("%s: only %d are dropped", name, d.stats.Dropped)
		}
		before := len(d.inbox)
		d.Deliver(nodeName(2), message)
		if len(d.inbox) != before+1 {
			t.Errorf("%s: one peer's queue takes another's room", name)
		}
	}
}

func TestFramesThatComeEarlyAreBoundedPerSenderInNumberAndBytes(t *testing.T) {
	for name, c := range map[string]struct{ proof, most int }{
		"many small frames": {0, maxEarly}, "few large ones": {1 << 19, maxEarlyBytes >> 19},
	} {
		var e early
		e.init()
		honest := &arrival{peer: nodeName(2), size: 10, frame: frameOf(2, "round", 0)}
		e.keep(honest)
		dropped := 0
		f := frameOf(1, "unknown", c.proof)
		size := len(f.Encode())
		for range c.most + 50 {
			dropped += e.keep(&arrival{peer: nodeName(1), size: size, frame: f})
		}
		list := e.of[nodeName(1)]
		if len(list.frames) > c.most || list.bytes > maxEarlyBytes || dropped < 50 {
			t.Errorf("%s: %d frames of %d bytes are held, %d dropped", name, len(list.frames), list.bytes, dropped)
		}
		if got := e.take(testInstance("round").Key()); len(got) != 1 || got[0] != honest {
			t.Errorf("%s: one sender pushed out another's frame", name)
		}
		e.take(testInstance("unknown").Key())
		if len(list.frames) != 0 || list.bytes != 0 {
			t.Errorf("%s: %d frames, %d bytes are left over", name, len(list.frames), list.bytes)
		}
	}
}

func TestAnUndecidedInstanceIsStoredByItsLastViewAndHighestLock(t *testing.T) {
	in := testInstance("round")
	committee, err := pbft.NewCommittee(testCommittee(4))
	if err != nil {
		t.Fatal(err)
	}
	prepared := func(view uint64) *pbft.Prepared {
		p := &pbft.Prepared{View: view, Digest: testDigest("round")}
		for signer := range 3 {
			v := pbft.Vote{Key: in.Key(), View: view, Phase: pbft.Prepare, Digest: p.Digest}
			if signer == committee.Primary(in.Key(), view) {
				v.Phase = pbft.PrePrepare
			}
			p.Votes = append(p.Votes, pbft.Sign(in.Domain(), signer, []pbft.Vote{v}, testKey(signer)).Proof())
		}
		return p
	}
	var stored pbft.Restored
	const views = 40
	for view := uint64(1); view <= views; view++ {
		change := pbft.Vote{Key: in.Key(), View: view, Phase: pbft.ViewChange}
		if view > 7 {
			p := prepared(7)
			change.Prepared, change.Digest, change.Proof = 8, p.Digest, p.Encode()
		}
		other := pbft.Vote{Key: testInstance("other").Key(), View: 99, Phase: pbft.Commit, Digest: testDigest("other")}
		stored.Frames = append(stored.Frames, pbft.Sign(in.Domain(), 3, []pbft.Vote{other, change}, testKey(3)))
	}
	commit := pbft.Vote{Key: in.Key(), View: 7, Phase: pbft.Commit, Digest: testDigest("round")}
	stored.Frames = append(stored.Frames, pbft.Sign(in.Domain(), 3, []pbft.Vote{commit}, testKey(3)))
	stored.Prepared = []*pbft.Prepared{prepared(2), prepared(7), prepared(5)}
	whole, lean := stored, stored
	prune(&lean, in.Key())
	if len(lean.Frames) != 1 || len(lean.Prepared) != 1 || lean.Prepared[0].View != 7 {
		t.Errorf("%d frames and %d locks are kept", len(lean.Frames), len(lean.Prepared))
	}
	for name, r := range map[string]pbft.Restored{"all of it": whole, "what is kept": lean} {
		e, err := pbft.New(pbft.Config{Instance: in, Committee: committee, Self: 3, Expected: testDigest("round"), Timeout: 1, Doubling: 1, Restored: r})
		if err != nil {
			t.Fatal(name, err)
		}
		if again := e.Ready().Resend; e.View() != views || len(again) != 1 || again[0] != stored.Frames[views-1] {
			t.Errorf("%s: back in view %d with %d frames to send again", name, e.View(), len(again))
		}
		for from := range 2 {
			v, err := committee.Sign(in.Domain(), from, []pbft.Vote{{Key: in.Key(), View: views + 1, Phase: pbft.ViewChange}}, testKey(from))
			if err != nil {
				t.Fatal(err)
			}
			_ = e.Step(v)
		}
		if votes := e.Ready().Votes; len(votes) != 1 || votes[0].Prepared != 8 {
			t.Errorf("%s: the next view change says %+v", name, votes)
		}
	}
}

func TestAJournalTakesMoreThanOneRecordHolds(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, _, err := openJournal(path, testPub, true)
	if err != nil {
		t.Fatal(err)
	}
	j.room = 1000
	var items []item
	for k := range 3 {
		items = append(items, item{itemFrame, make([]byte, 500+k)})
	}
	if n := fitted(items, j.room); n != 1 {
		t.Errorf("%d items of half a record and more share one", n)
	}
	if err := j.append(items); err != nil || j.next != 4 {
		t.Fatalf("the next record is number %d: %v", j.next, err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if j, items, err = openJournal(path, testPub, false); err != nil || len(items) != 3 {
		t.Fatalf("%d items came back: %v", len(items), err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}
