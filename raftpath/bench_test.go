package raftpath

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/deliberd/deliberd/machine"
)

// production timings, but for snapshots, which would disturb the measurement.
func steady() Timing {
	t := DefaultTiming
	t.SnapshotThreshold, t.SnapshotInterval = 1<<40, time.Hour
	return t
}

func median(d []time.Duration) time.Duration {
	s := slices.Sorted(slices.Values(d))
	return s[len(s)/2]
}

func text(n *atomic.Uint64) []byte {
	b := fmt.Appendf(make([]byte, 0, 256), "bench %d ", n.Add(1))
	return b[:256]
}

// BenchmarkSerial sets one client's action against raft.Apply of the same
// entry on the same stores, alternating A B B A: until the leader answers, and
// until all four nodes have applied it. Metrics: medians in µs and ratios to
// bare Apply.
func BenchmarkSerial(b *testing.B) {
	c := newCluster(b, 4, steady())
	l := c.leader()
	var n atomic.Uint64
	var bare, submit, everywhere, follower, followerAll, read []time.Duration
	all := func(seq uint64) {
		for _, x := range c.nodes {
			if err := x.path.WaitApplied(context.Background(), seq); err != nil {
				b.Fatal(err)
			}
		}
	}
	A := func() {
		action := text(&n)
		began := time.Now()
		entry := encodeEntry(0, 0, machine.Stamp(time.Now().UnixMilli()+1000), [][]byte{action})
		f := l.path.running().r.Apply(entry, time.Second)
		if err := f.Error(); err != nil {
			b.Fatal(err)
		}
		bare = append(bare, time.Since(began))
		all(f.Response().(*Outcome).Seq)
	}
	at := func(x *node, took, whole *[]time.Duration) {
		began := time.Now()
		_, seq, err := x.path.Submit(context.Background(), text(&n))
		if err != nil {
			b.Fatal(err)
		}
		*took = append(*took, time.Since(began))
		all(seq)
		*whole = append(*whole, time.Since(began))
	}
	B := func() { at(l, &submit, &everywhere) }
	f := c.followers()[0]
	l.path.cfg.Clock = func() machine.Stamp { return machine.Stamp(time.Now().UnixMilli() + 1000) }
	for b.Loop() {
		A()
		B()
		B()
		A()
		at(f, &follower, &followerAll)
		began := time.Now()
		if err := f.path.ReadIndex(context.Background()); err != nil {
			b.Fatal(err)
		}
		read = append(read, time.Since(began))
	}
	us := func(d []time.Duration) float64 { return float64(median(d).Nanoseconds()) / 1e3 }
	b.ReportMetric(us(bare), "bare-µs")
	b.ReportMetric(us(submit), "leader-µs")
	b.ReportMetric(us(everywhere), "everywhere-µs")
	b.ReportMetric(us(follower), "via-follower-µs")
	b.ReportMetric(us(read), "follower-read-µs")
	b.ReportMetric(us(submit)/us(bare), "leader/bare")
	b.ReportMetric(us(everywhere)/us(bare), "everywhere/bare")
	b.ReportMetric(0, "ns/op")
}

// BenchmarkMany runs 256 clients against the leader, against all nodes, and
// 256 goroutines on bare raft.Apply, in turns. Metrics: actions per second
// and ratios to bare Apply.
func BenchmarkMany(b *testing.B) {
	c := newCluster(b, 4, steady())
	l := c.leader()
	var n atomic.Uint64
	l.path.cfg.Clock = func() machine.Stamp { return 1 << 50 } // bare entries must not go back in time
	run := func(do func(i int, action []byte) error) float64 {
		const span = 700 * time.Millisecond
		var done atomic.Int64
		var wg sync.WaitGroup
		end := time.Now().Add(span)
		for i := range 256 {
			wg.Go(func() {
				for time.Now().Before(end) {
					if err := do(i, text(&n)); err != nil {
						b.Error(err)
						return
					}
					done.Add(1)
				}
			})
		}
		wg.Wait()
		return float64(done.Load()) / span.Seconds()
	}
	bare := func() float64 {
		r := l.path.running().r
		return run(func(_ int, action []byte) error {
			return r.Apply(encodeEntry(0, 0, 1<<50, [][]byte{action}), time.Minute).Error()
		})
	}
	leader := func() float64 {
		return run(func(_ int, action []byte) error { _, _, err := l.path.Submit(context.Background(), action); return err })
	}
	anywhere := func() float64 {
		return run(func(i int, action []byte) error {
			_, _, err := c.nodes[i%4].path.Submit(context.Background(), action)
			return err
		})
	}
	var bares, leaders, anywheres []float64
	for b.Loop() {
		bares = append(bares, bare())
		leaders = append(leaders, leader(), leader())
		bares = append(bares, bare())
		anywheres = append(anywheres, anywhere())
	}
	mid := func(f []float64) float64 { slices.Sort(f); return f[len(f)/2] }
	b.ReportMetric(mid(bares), "bare/s")
	b.ReportMetric(mid(leaders), "leader/s")
	b.ReportMetric(mid(anywheres), "anywhere/s")
	b.ReportMetric(mid(leaders)/mid(bares), "leader/bare")
	b.ReportMetric(0, "ns/op")
}
