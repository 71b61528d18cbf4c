package bftpath

import (
	"cmp"
	"crypto/ed25519"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"go.etcd.io/bbolt"

	"github.com/deliberd/deliberd/pbft"
)

// bare is the floor: three one-way exchanges among n goroutines, each message
// signed and checked by the standard library, and one fdatasync before commit.
// It has no views, no restart, no batching and believes what it is told.
type bare struct {
	n, q  int
	keys  []ed25519.PrivateKey
	inbox []chan bareMessage
	files []*os.File
	done  chan uint64 // one per node and decision
	quit  sync.WaitGroup
	post  func(from, to int, text []byte) // nil: straight into the inbox
}

type bareMessage struct {
	from int
	text []byte // phase, number, digest, signature
}

func newBare(b testing.TB, n, q int) *bare {
	x := &bare{n: n, q: q, done: make(chan uint64, 1<<12)}
	dir := b.TempDir()
	for i := range n {
		f, err := os.Create(filepath.Join(dir, fmt.Sprint("bare", i)))
		if err != nil {
			b.Fatal(err)
		}
		x.keys = append(x.keys, testKey(i))
		x.inbox = append(x.inbox, make(chan bareMessage, 1<<12))
		x.files = append(x.files, f)
	}
	for i := range n {
		x.quit.Add(1)
		go x.run(i)
	}
	b.Cleanup(func() {
		for i := range n {
			close(x.inbox[i])
		}
		x.quit.Wait()
		for _, f := range x.files {
			_ = f.Close()
		}
	})
	return x
}

func (x *bare) send(from int, phase byte, number uint64, digest []byte) {
	text := append([]byte{phase}, binary.BigEndian.AppendUint64(nil, number)...)
	text = append(text, digest...)
	text = append(text, ed25519.Sign(x.keys[from], text)...)
	for to := range x.n {
		if to != from {
			if x.post != nil {
				x.post(from, to, text)
				continue
			}
			x.inbox[to] <- bareMessage{from, text}
		}
	}
}

type bareState struct {
	prepares, commits  int
	proposed, prepared bool
	digest             []byte
}

func (x *bare) run(i int) {
	defer x.quit.Done()
	states := map[uint64]*bareState{}
	for m := range x.inbox[i] {
		number, digest := binary.BigEndian.Uint64(m.text[1:]), m.text[9:41]
		s := states[number]
		if s == nil {
			s = &bareState{}
			states[number] = s
		}
		if m.from != i && !ed25519.Verify(x.keys[m.from].Public().(ed25519.PublicKey), m.text[:41], m.text[41:]) {
			panic("bad signature")
		}
		switch m.text[0] {
		case 1:
			s.proposed, s.digest = true, digest
			s.prepares++ // the primary's
			if m.from == i {
				x.send(i, 1, number, digest)
			} else {
				s.prepares++
				x.send(i, 2, number, digest)
			}
		case 2:
			s.prepares++
		case 3:
			s.commits++
		}
		if s.proposed && !s.prepared && s.prepares >= x.q {
			s.prepared = true
			if _, err := x.files[i].Write(make([]byte, 512)); err != nil {
				panic(err)
			}
			if err := datasync(x.files[i]); err != nil {
				panic(err)
			}
			s.commits++
			x.send(i, 3, number, s.digest)
		}
		if s.prepared && s.commits == x.q {
			s.commits++ // once
			x.done <- number
		}
	}
}

// begin starts a decision at the primary.
func (x *bare) begin(number uint64) {
	x.inbox[0] <- bareMessage{0, append(append([]byte{1}, binary.BigEndian.AppendUint64(nil, number)...), make([]byte, 32)...)}
}

// decide runs one decision and returns when all n have it.
func (x *bare) decide(number uint64) {
	x.begin(number)
	for range x.n {
		<-x.done
	}
}

// subject is four drivers with real journals.
type subject struct {
	*cluster
	done chan struct{}
	post func(from, to int, message []byte) // nil: straight to the driver
}

func newSubject(b testing.TB, n int) *subject {
	s := &subject{cluster: newCluster(b, n), done: make(chan struct{}, 1<<14)}
	s.config = func(i int, cfg *Config) {
		cfg.Tick, cfg.Timeout = 50*time.Millisecond, 100
		cfg.OnCertificate = func(pbft.Instance, *pbft.Certificate) { s.done <- struct{}{} }
		cfg.Send = func(peer string, message []byte) {
			if s.post != nil {
				s.post(i, s.index(peer), message)
				return
			}
			s.drivers[s.index(peer)].Deliver(nodeName(i), message)
		}
	}
	for i := range n {
		s.start(i, true)
	}
	return s
}

func (s *subject) decide(id string) {
	s.begin(id)
	for range s.drivers {
		<-s.done
	}
}

func (s *subject) begin(id string) {
	in, digest := testInstance(id), testDigest(id)
	for _, d := range s.drivers {
		if err := d.StartInstance(in, s.committee, digest); err != nil {
			s.t.Fatal(err)
		}
	}
}

func (s *subject) forget(id string) {
	for _, d := range s.drivers {
		d.Forget(testInstance(id))
	}
}

func median[T cmp.Ordered](d []T) T {
	slices.Sort(d)
	return d[len(d)/2]
}

// BenchmarkConflictDecision alternates one decision of four drivers with one
// of the floor, in the order A B B A, and reports the ratio of the medians of
// the time until all four have decided.
func BenchmarkConflictDecision(b *testing.B) {
	floor, sub := newBare(b, 4, 3), newSubject(b, 4)
	var floors, subjects []time.Duration
	number := uint64(0)
	measure := func(isFloor bool) {
		number++
		start := time.Now()
		if isFloor {
			floor.decide(number)
			floors = append(floors, time.Since(start))
			return
		}
		id := fmt.Sprint("round", number)
		sub.decide(id)
		subjects = append(subjects, time.Since(start))
		sub.forget(id)
	}
	for b.Loop() {
		for _, isFloor := range []bool{true, false, false, true} {
			measure(isFloor)
		}
	}
	f, s := median(floors), median(subjects)
	b.ReportMetric(float64(f.Microseconds()), "floor-µs")
	b.ReportMetric(float64(s.Microseconds()), "decision-µs")
	b.ReportMetric(float64(s)/float64(f), "ratio")
	b.ReportMetric(0, "ns/op")
}

// inFlight keeps 64 of a number of decisions under way and returns decisions
// per second. Each of four nodes reports each decision.
func inFlight[T any](rounds int, begin func(k int), done <-chan T) float64 {
	const together = 64
	start := time.Now()
	next := 0
	for ; next < together; next++ {
		begin(next)
	}
	for k := range rounds * 4 {
		<-done
		if k%4 == 3 && next < rounds {
			begin(next)
			next++
		}
	}
	return float64(rounds) / time.Since(start).Seconds()
}

// BenchmarkConflictThroughput keeps 64 instances in flight at four drivers and
// at the floor, in the order A B B A, and reports decisions per second of both
// and the ratio of the medians: with direct calls between the nodes, and with
// four libp2p hosts over loopback.
func BenchmarkConflictThroughput(b *testing.B) {
	for _, over := range []string{"calls", "libp2p"} {
		b.Run(over, func(b *testing.B) {
			floor, sub := newBare(b, 4, 3), newSubject(b, 4)
			if over == "libp2p" {
				m := newMesh(b, 4)
				m.carry("floor", func(from, to int, text []byte) { floor.inbox[to] <- bareMessage{from, text} })
				m.carry("subject", func(from, to int, message []byte) { sub.drivers[to].Deliver(nodeName(from), message) })
				floor.post = func(from, to int, text []byte) { m.send("floor", from, to, text) }
				sub.post = func(from, to int, message []byte) { m.send("subject", from, to, message) }
			}
			const rounds = 1024
			var floors, subjects []float64
			number := 0
			for b.Loop() {
				for _, isFloor := range []bool{true, false, false, true} {
					from := number
					number += rounds
					if isFloor {
						floors = append(floors, inFlight(rounds, func(k int) { floor.begin(uint64(from + k)) }, floor.done))
						continue
					}
					subjects = append(subjects, inFlight(rounds, func(k int) { sub.begin(fmt.Sprint("round", from+k)) }, sub.done))
					for k := range rounds {
						sub.forget(fmt.Sprint("round", from+k))
					}
				}
			}
			b.ReportMetric(median(floors), "floor-decisions/s")
			b.ReportMetric(median(subjects), "decisions/s")
			b.ReportMetric(median(subjects)/median(floors), "ratio")
			b.ReportMetric(0, "ns/op")
		})
	}
}

// BenchmarkJournal compares one durable vote in the journal with one in bbolt.
func BenchmarkJournal(b *testing.B) {
	in := testInstance("round")
	frame := pbft.Sign(in.Domain(), 0, []pbft.Vote{{Key: in.Key(), Phase: pbft.Prepare, Digest: testDigest("round")}}, testKey(0)).Encode()
	b.Run("append", func(b *testing.B) {
		j, _, err := openJournal(filepath.Join(b.TempDir(), "journal"), [32]byte{1}, true)
		if err != nil {
			b.Fatal(err)
		}
		defer j.close()
		for b.Loop() {
			if err := j.append([]item{{itemFrame, frame}}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("bbolt", func(b *testing.B) {
		db, err := bbolt.Open(filepath.Join(b.TempDir(), "journal"), 0o600, &bbolt.Options{NoFreelistSync: true})
		if err != nil {
			b.Fatal(err)
		}
		defer db.Close()
		key := uint64(0)
		for b.Loop() {
			err := db.Update(func(tx *bbolt.Tx) error {
				bucket, err := tx.CreateBucketIfNotExists([]byte("frames"))
				if err != nil {
					return err
				}
				key++
				return bucket.Put(binary.BigEndian.AppendUint64(nil, key), frame)
			})
			if err != nil {
				b.Fatal(err)
			}
		}
	})
}
