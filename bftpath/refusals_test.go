package bftpath

import (
	"bytes"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

// logged is a log that tests read while it grows.
type logged struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *logged) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

func (l *logged) lines(what string) (out []string) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for line := range strings.Lines(l.text.String()) {
		if strings.Contains(line, what) {
			out = append(out, line)
		}
	}
	return out
}

// commitOf is a member's commit to a value of an instance, signed by key.
func commitOf(signer int, id, value string, key int) []byte {
	in := testInstance(id)
	v := pbft.Vote{Key: in.Key(), Phase: pbft.Commit, Digest: testDigest(value)}
	return pbft.Sign(in.Domain(), signer, []pbft.Vote{v}, testKey(key)).Encode()
}

func TestWhatOnePeerSendsDoesNotFillTheLogOfAnother(t *testing.T) {
	c := newCluster(t, 4)
	log, ticks := &logged{}, make(chan time.Time)
	c.config = func(_ int, cfg *Config) {
		cfg.Tick, cfg.Timeout = 20*time.Second, 1<<20 // three ticks are a minute
		cfg.Log = slog.New(slog.NewTextHandler(log, nil))
		cfg.Ticker = func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} }
	}
	d := c.start(0, true)
	c.open("round", 0)
	in := testInstance("round")
	unjustified := pbft.Vote{Key: in.Key(), View: 1, Phase: pbft.ViewChange, Prepared: 1, Digest: testDigest("round"), Proof: []byte("none")}
	kinds := map[string][]byte{
		"a frame is refused":       commitOf(3, "round", "round", 2),
		"a vote is refused":        pbft.Sign(in.Domain(), 3, []pbft.Vote{unjustified}, testKey(3)).Encode(),
		"a certificate is refused": (&pbft.Certificate{Instance: in, Digest: testDigest("round")}).Encode(),
	}
	send := func(times int) {
		for range times {
			for _, m := range kinds {
				d.Deliver(nodeName(3), m)
			}
		}
		awaitTaken(t, d)
	}
	expect := func(lines int, last string) {
		t.Helper()
		for what := range kinds {
			await(t, what, func() bool { return len(log.lines(what)) >= lines })
			got := log.lines(what)
			if len(got) != lines || !strings.Contains(got[lines-1], last) || !strings.Contains(got[lines-1], nodeName(3)) {
				t.Errorf("%q has %d lines, expected %d, the last with %s: %s", what, len(got), lines, last, got[len(got)-1])
			}
		}
	}
	send(100)
	ticks <- time.Time{}
	ticks <- time.Time{} // all of it is done
	expect(1, "left_out=0")
	ticks <- time.Time{}
	send(1)
	expect(2, "left_out=99")
	d.Deliver(nodeName(2), commitOf(2, "round", "round", 3))
	await(t, "another peer has a line of its own", func() bool { return len(log.lines("peer="+nodeName(2))) == 1 })
}

func TestPeersThatNoCommitteeListsShareOneEntryOfTheLog(t *testing.T) {
	d, log := still(), &logged{}
	d.log = slog.New(slog.NewTextHandler(log, nil))
	if err := d.StartInstance(testInstance("x"), testCommittee(1), testDigest("x")); err != nil {
		t.Fatal(err)
	}
	for k := range 500 {
		d.loop.refuse("it is refused", fmt.Sprint("stranger", k), machine.Refuse(pbft.CodeBadSignature, "", ""))
	}
	d.loop.refuse("it is refused", nodeName(0), machine.Refuse(pbft.CodeBadSignature, "", ""))
	if kinds, lines := len(d.loop.refusals.of), len(log.lines("refused")); kinds != 2 || lines != 2 {
		t.Errorf("%d entries and %d lines", kinds, lines)
	}
}

func TestCertificatesAreTakenFromVotersOnly(t *testing.T) {
	d := still()
	text := (&pbft.Certificate{Instance: testInstance("x"), Digest: testDigest("x")}).Encode()
	d.Deliver(nodeName(1), text) // no committee is known yet
	if err := d.StartInstance(testInstance("x"), testCommittee(4), testDigest("x")); err != nil {
		t.Fatal(err)
	}
	before := len(d.inbox)
	d.Deliver("observer", text)
	if s := d.Stats(); len(d.inbox) != before || s.Dropped != 2 || s.Received != 0 {
		t.Errorf("an observer's certificate is taken: %+v", s)
	}
	d.Deliver(nodeName(3), text)
	if s := d.Stats(); len(d.inbox) != before+1 || s.Dropped != 2 || s.Received != 1 {
		t.Errorf("a voter's certificate is not taken: %+v", s)
	}
}
