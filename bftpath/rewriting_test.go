package bftpath

import (
	"bytes"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/deliberd/deliberd/pbft"
)

// promising is node 0 of four, alone: it has committed to an instance that
// nobody decides.
type promising struct {
	*cluster
	t        *testing.T
	in       pbft.Instance
	ticks    chan time.Time
	rec      *recorder // what it has sent since its last start
	promised [][]byte  // its frames for the instance
	filled   int
}

func newPromising(t *testing.T) *promising {
	p := &promising{cluster: newCluster(t, 4), t: t, in: testInstance("undecided"), ticks: make(chan time.Time), rec: &recorder{}}
	p.config = func(_ int, cfg *Config) {
		rec := p.rec
		cfg.Timeout, cfg.compactFrom = 3, 4<<10
		cfg.Send = func(_ string, m []byte) { rec.add(m) }
		cfg.Ticker = func(time.Duration) (<-chan time.Time, func()) { return p.ticks, func() {} }
	}
	d := p.start(0, true)
	p.open(p.in.ID, 0)
	p.hearOthersAccept(0, p.in.ID)
	await(t, "node 0 accepts and commits", func() bool { return d.Stats().Votes == 2 })
	p.promised = p.rec.frames(t)
	return p
}

// restart comes back from the journal alone.
func (p *promising) restart() {
	p.t.Helper()
	p.stop(0)
	p.rec = &recorder{}
	p.start(0, false)
}

// fill begins and forgets other instances until the journal is written afresh.
func (p *promising) fill() {
	p.t.Helper()
	d := p.drivers[0]
	before := p.stat()
	for k := 0; os.SameFile(before, p.stat()); k++ {
		if k == 200 {
			p.t.Fatalf("the journal is not rewritten: %+v", d.Stats())
		}
		id := fmt.Sprint("filler", p.filled)
		p.filled++
		votes := d.Stats().Votes
		p.open(id, 0)
		await(p.t, "a vote for "+id, func() bool { return d.Stats().Votes > votes })
		d.Forget(testInstance(id))
	}
}

func (p *promising) stat() os.FileInfo {
	p.t.Helper()
	info, err := os.Stat(p.journal(0))
	if err != nil {
		p.t.Fatal(err)
	}
	return info
}

// expectStored stops the node and looks for its promises in the journal.
func (p *promising) expectStored() {
	p.t.Helper()
	p.stop(0)
	key, locks := p.in.Key(), 0
	items := journalItems(p.t, p.journal(0), 0)
	for _, want := range p.promised {
		if !holds(items, itemFrame, want) {
			p.t.Error("a frame with votes of the undecided instance is gone")
		}
	}
	for _, it := range items {
		if it.kind != itemPrepared || !bytes.HasPrefix(it.data, key[:]) {
			continue
		}
		lock, err := pbft.DecodePrepared(it.data[len(key):])
		if err != nil || lock.Digest != testDigest(p.in.ID) {
			p.t.Errorf("the lock is %+v: %v", lock, err)
		}
		locks++
	}
	if locks != 1 {
		p.t.Errorf("the journal holds %d locks of the undecided instance", locks)
	}
}

func holds(items []item, kind byte, data []byte) bool {
	for _, it := range items {
		if it.kind == kind && bytes.Equal(it.data, data) {
			return true
		}
	}
	return false
}

// expectKept starts the instance again: the stored commit is sent again, and
// the lock is claimed in the next view change.
func (p *promising) expectKept() {
	p.t.Helper()
	p.rec = &recorder{}
	d := p.start(0, false)
	p.open(p.in.ID, 0)
	await(p.t, "the stored commit is sent again", func() bool { return d.Err() != nil || votesOf(p.t, p.rec, pbft.Commit) > 0 })
	for range 3 {
		p.ticks <- time.Time{}
	}
	await(p.t, "view 0 is left", func() bool { return d.Err() != nil || votesOf(p.t, p.rec, pbft.ViewChange) == 3 })
	if err := d.Err(); err != nil {
		p.t.Fatal(err)
	}
	sent := p.rec.frames(p.t)
	last, err := pbft.DecodeFrame(sent[len(sent)-1])
	if err != nil {
		p.t.Fatal(err)
	}
	if v := last.Votes()[0]; v.Prepared != 1 || v.Digest != testDigest(p.in.ID) {
		p.t.Errorf("the view change claims %+v", v)
	}
}

func TestRewritingTheJournalKeepsTheVotesAndTheLockOfAnUndecidedInstance(t *testing.T) {
	p := newPromising(t)
	p.fill()
	p.expectStored()
	p.expectKept()
}

func TestRewritingTheJournalKeepsWhatItHoldsOfAnInstanceNotStartedAgain(t *testing.T) {
	p := newPromising(t)
	p.restart()
	for range 2 { // what a rewriting kept, the next one keeps too
		p.fill()
		p.expectStored()
		p.restart()
	}
	p.stop(0)
	p.expectKept()
}
