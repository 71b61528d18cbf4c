// Package campaign plays many schedules of package sim at once, on all cores,
// and shrinks what it finds.
package campaign

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deliberd/deliberd/pbft/sim"
)

// Options say what a campaign plays. Seed s plays the plan of s among
// Sizes[s mod len(Sizes)] nodes, from Seed upwards, so that a range of seeds
// and the other options name the same schedules on every machine.
type Options struct {
	Seed      int64
	Schedules int64 // how many that count ([sim.Result.Counts]) must be played at least; 0: as Seeds says
	Seeds     int64 // how many seeds to play, whether they count or not; 0: as Schedules says
	Sizes     []int // default [sim.Sizes]
	Kinds     []sim.Kind
	Excess    int  // liars beyond f
	Genuine   bool // Ed25519 signatures
	Workers   int  // default: one per core
	// Recheck plays one schedule in that many twice and demands equal results;
	// 0 means 1,000.
	Recheck  int64
	Chunk    int64 // seeds that a worker plays at a time; default 256, or less when Schedules is small
	Keep     int   // the campaign stops at that many violations, or as soon as a worker has found as many. Default 1.
	Progress func(Report)
	Every    time.Duration // between calls of Progress; default 10 s
}

// Finding is a schedule that violated something.
type Finding struct {
	Seed      int64         `json:"seed"`
	Nodes     int           `json:"nodes"`
	Played    int64         `json:"played"` // schedules played by then
	Violation sim.Violation `json:"violation"`
	Plan      sim.Plan      `json:"plan"`
}

// Report is what a campaign has done so far. Workers take ranges of seeds in
// turn, so that one which ended early may have played seeds beyond NextSeed too:
// they count in all fields but that one.
type Report struct {
	FirstSeed  int64              `json:"first_seed"`
	NextSeed   int64              `json:"next_seed"` // the lowest from FirstSeed that has not been played
	Played     int64              `json:"played"`
	Schedules  int64              `json:"schedules"` // of two views or more, with a fault
	Views      map[uint64]int64   `json:"views"`     // schedules by the highest view reached
	Nodes      map[int]int64      `json:"nodes"`     // schedules by size
	Adversary  map[sim.Kind]int64 `json:"adversary"` // schedules with a liar of that kind
	Faults     int64              `json:"faults"`
	Messages   int64              `json:"messages"`
	Rechecked  int64              `json:"rechecked"`
	Seconds    float64            `json:"seconds"`
	PerMinute  float64            `json:"schedules_per_minute"`
	Violations []Finding          `json:"violations"`
}

// Run plays until the wanted number of schedules is reached, the context ends
// or enough violations are found.
func Run(ctx context.Context, o Options) (Report, error) {
	return run(ctx, o, func(int64) {})
}

// run is [Run], and tells of each seed that is played.
func run(ctx context.Context, o Options, playing func(seed int64)) (Report, error) {
	if err := o.defaults(); err != nil {
		return Report{}, err
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	c := &campaign{Options: o, playing: playing, cancel: cancel, start: time.Now(), total: newReport(o.Seed), ends: map[int64]int64{}}
	c.next.Store(o.Seed)
	var workers sync.WaitGroup
	for range o.Workers {
		workers.Go(func() { c.work(ctx) })
	}
	over := make(chan struct{})
	go func() { workers.Wait(); close(over) }()
	ticker := time.NewTicker(o.Every)
	defer ticker.Stop()
	for {
		select {
		case <-over:
			return c.report(), nil
		case <-ticker.C:
			if o.Progress != nil {
				o.Progress(c.report())
			}
		}
	}
}

func (o *Options) defaults() error {
	if len(o.Sizes) == 0 {
		o.Sizes = sim.Sizes()
	}
	for _, n := range o.Sizes {
		if err := (sim.Mix{Nodes: n, Kinds: o.Kinds, Excess: o.Excess}).Check(); err != nil {
			return err
		}
	}
	if o.Schedules <= 0 && o.Seeds <= 0 {
		return errors.New("say how many schedules or seeds to play")
	}
	if o.Workers <= 0 {
		o.Workers = runtime.GOMAXPROCS(0)
	}
	if o.Recheck <= 0 {
		o.Recheck = 1000
	}
	if o.Every <= 0 {
		o.Every = 10 * time.Second
	}
	if o.Chunk <= 0 {
		o.Chunk = 256
		if o.Schedules > 0 {
			o.Chunk = min(o.Chunk, max(1, o.Schedules/int64(4*o.Workers)))
		}
	}
	o.Keep = max(o.Keep, 1)
	return nil
}

type campaign struct {
	Options
	playing func(seed int64)
	cancel  context.CancelFunc
	start   time.Time
	next    atomic.Int64
	mu      sync.Mutex
	total   Report
	ends    map[int64]int64 // of the ranges played beyond total.NextSeed, by their first seed
}

func newReport(seed int64) Report {
	return Report{FirstSeed: seed, NextSeed: seed, Views: map[uint64]int64{}, Nodes: map[int]int64{}, Adversary: map[sim.Kind]int64{}, Violations: []Finding{}}
}

func (c *campaign) work(ctx context.Context) {
	players := map[int]*sim.Player{}
	for _, n := range c.Sizes {
		if players[n] == nil {
			players[n] = sim.NewPlayer(sim.NewWorld(n, c.Genuine))
		}
	}
	for ctx.Err() == nil {
		from := c.next.Add(c.Chunk) - c.Chunk
		end := from + c.Chunk
		if c.Seeds > 0 {
			end = min(end, c.Seed+c.Seeds)
		}
		if from >= end {
			return
		}
		part := newReport(from)
		for ; part.NextSeed < end && len(part.Violations) < c.Keep && ctx.Err() == nil; part.NextSeed++ {
			n := c.Sizes[uint64(part.NextSeed)%uint64(len(c.Sizes))]
			c.playOne(&part, players[n], part.NextSeed, n)
		}
		c.add(part)
	}
}

func (c *campaign) playOne(part *Report, player *sim.Player, seed int64, n int) {
	c.playing(seed)
	plan := sim.NewPlan(seed, sim.Mix{Nodes: n, Kinds: c.Kinds, Excess: c.Excess})
	plan.Genuine = c.Genuine
	result := player.Play(plan, false)
	if seed%c.Recheck == 0 {
		part.Rechecked++
		if again := player.Play(plan, false); again.Fingerprint != result.Fingerprint && result.Violation == nil {
			result.Violation = &sim.Violation{Oracle: "determinism", Detail: "played twice, the schedule went two ways"}
		}
	}
	part.Played++
	part.Faults += int64(result.Faults)
	part.Messages += int64(result.Messages)
	if result.Counts() {
		part.Schedules++
		part.Views[result.Views]++
		part.Nodes[n]++
		for _, k := range sim.Kinds() {
			if plan.Has(k) {
				part.Adversary[k]++
			}
		}
	}
	if result.Violation != nil {
		part.Violations = append(part.Violations, Finding{Seed: seed, Nodes: n, Played: part.Played, Violation: *result.Violation, Plan: plan})
	}
}

// add joins what a worker has done to the whole, and ends the campaign when it
// is enough.
func (c *campaign) add(part Report) {
	c.mu.Lock()
	defer c.mu.Unlock()
	t := &c.total
	for i := range part.Violations {
		part.Violations[i].Played += t.Played
	}
	t.Played += part.Played
	t.Schedules += part.Schedules
	t.Faults += part.Faults
	t.Messages += part.Messages
	t.Rechecked += part.Rechecked
	c.ends[part.FirstSeed] = part.NextSeed
	for {
		end, ok := c.ends[t.NextSeed]
		if !ok || end == t.NextSeed { // not played yet, or broken off before its first seed
			break
		}
		delete(c.ends, t.NextSeed)
		t.NextSeed = end
	}
	for k, n := range part.Views {
		t.Views[k] += n
	}
	for k, n := range part.Nodes {
		t.Nodes[k] += n
	}
	for k, n := range part.Adversary {
		t.Adversary[k] += n
	}
	t.Violations = append(t.Violations, part.Violations...)
	slices.SortFunc(t.Violations, func(a, b Finding) int { return cmp.Compare(a.Seed, b.Seed) })
	if c.Schedules > 0 && t.Schedules >= c.Schedules || len(t.Violations) >= c.Keep {
		c.cancel()
	}
}

func (c *campaign) report() Report {
	c.mu.Lock()
	defer c.mu.Unlock()
	out := c.total
	out.Views, out.Nodes, out.Adversary = maps.Clone(out.Views), maps.Clone(out.Nodes), maps.Clone(out.Adversary)
	out.Violations = slices.Clone(out.Violations)
	out.Seconds = time.Since(c.start).Seconds()
	out.PerMinute = float64(out.Schedules) / out.Seconds * 60
	return out
}
