package semantics

import (
	"sort"
	"testing"
	"time"
)

// lcg is a fixed stream of numbers, so that every run measures one graph.
type lcg uint64

func (r *lcg) next(n int) int {
	*r = *r*6364136223846793005 + 1442695040888963407
	return int(uint64(*r) >> 33 % uint64(n))
}

const (
	benchArguments = 1_000_000
	benchEdges     = 10_000_000
)

// benchLinks draws a random graph; shape decides which way edges lead.
func benchLinks(shape string) (attacks, supports []Link) {
	r := lcg(1)
	for range benchEdges {
		i, j := r.next(benchArguments), r.next(benchArguments)
		if i == j {
			continue
		}
		switch shape {
		case "references": // arguments reference earlier ones: the norm of rounds
			i, j = max(i, j), min(i, j)
		case "shuffled": // acyclic too, but the order is hidden
			if i*7919%benchArguments > j*7919%benchArguments {
				i, j = j, i
			}
		}
		if l := (Link{int32(i), int32(j)}); r.next(2) == 0 {
			attacks = append(attacks, l)
		} else {
			supports = append(supports, l)
		}
	}
	return attacks, supports
}

// floor is the bare sweep over compressed rows with a weight per edge, the
// least that any reading of σ = b + Mσ has to do.
type floor struct {
	off, col   []uint32
	weight     []float64
	base, x, y []float64
}

func newFloor(g *Network, base []float64) *floor {
	f := &floor{base: base, x: append([]float64(nil), base...), y: make([]float64, g.n)}
	f.off = append(f.off, 0)
	for a := range int32(g.n) {
		for _, u := range g.Supporters(a) {
			f.col, f.weight = append(f.col, uint32(u)), append(f.weight, 0.06)
		}
		for _, u := range g.Attackers(a) {
			f.col, f.weight = append(f.col, uint32(u)), append(f.weight, -0.08)
		}
		f.off = append(f.off, uint32(len(f.col)))
	}
	return f
}

func (f *floor) sweep() {
	for i := range f.y {
		s := f.base[i]
		p, q := f.off[i], f.off[i+1]
		c, w := f.col[p:q], f.weight[p:q]
		for j, k := range c {
			s += float64(w[j] * f.x[k])
		}
		f.y[i] = s
	}
	f.x, f.y = f.y, f.x
}

func median(d []time.Duration) float64 {
	sort.Slice(d, func(i, j int) bool { return d[i] < d[j] })
	return float64(d[len(d)/2])
}

func timed(f func()) time.Duration {
	start := time.Now()
	f()
	return time.Since(start)
}

// BenchmarkMillion computes σ for a million arguments and ten million edges
// beside the bare sweep, alternating in the order A B B A. It reports the
// median of one sweep and of a whole run in multiples of the floor.
func BenchmarkMillion(b *testing.B) {
	for _, shape := range []string{"references", "shuffled", "cyclic"} {
		b.Run(shape, func(b *testing.B) {
			attacks, supports := benchLinks(shape)
			build := time.Now()
			g, err := NewNetwork(benchArguments, attacks, supports)
			if err != nil {
				b.Fatal(err)
			}
			built := time.Since(build)
			base := make([]float64, g.n)
			r := lcg(2)
			for i := range base {
				base[i] = float64(r.next(1001)) / 1000
			}
			// Small factors keep the cyclic graph convergent: 10·0.08 < 1.
			o := Options{GammaPlus: 0.06, GammaMinus: 0.08}
			f := newFloor(g, base)
			k := &kernel{n: g.n, off: g.off, src: g.src, c: base, gammaPlus: 0.06, gammaMinus: 0.08, x: append([]float64(nil), base...), y: make([]float64, g.n)}
			var floors, sweeps, runs []time.Duration
			var run Run
			f.sweep()
			k.sweep(1)
			b.ResetTimer()
			for range b.N {
				floors = append(floors, timed(f.sweep))
				sweeps = append(sweeps, timed(func() { k.sweep(1) }), timed(func() { k.sweep(1) }))
				floors = append(floors, timed(f.sweep))
				runs = append(runs, timed(func() {
					s, err := g.Solve(base, o)
					if err != nil {
						b.Fatal(err)
					}
					run = s.Run
				}))
			}
			b.ReportMetric(median(floors)/1e6, "floor-ms")
			b.ReportMetric(median(sweeps)/median(floors), "sweep/floor")
			b.ReportMetric(median(runs)/median(floors), "run/floor")
			b.ReportMetric(float64(run.Sweeps), "sweeps")
			b.ReportMetric(float64(built)/1e6, "build-ms")
		})
	}
}

// BenchmarkRound is a round of ordinary size: 8 positions, 40 challenges.
func BenchmarkRound(b *testing.B) {
	var g Graph
	r := lcg(3)
	for i := range 48 {
		g.Arguments = append(g.Arguments, Argument{string(rune('A' + i)), float64(r.next(1001)) / 1000, 1})
		if i >= 8 {
			e := Edge{g.Arguments[i].ID, g.Arguments[r.next(i)].ID}
			if r.next(2) == 0 {
				g.Attacks = append(g.Attacks, e)
			} else {
				g.Supports = append(g.Supports, e)
			}
		}
	}
	positions := allPositions(g)[:8]
	b.Run("compute", func(b *testing.B) {
		for range b.N {
			if _, err := Compute(g, Options{}); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("smallest turn", func(b *testing.B) {
		res := must(b, g, Options{})
		for range b.N {
			if _, err := res.SmallestTurn(positions, DefaultTau); err != nil {
				b.Fatal(err)
			}
		}
	})
}
