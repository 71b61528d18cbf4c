package campaign

import (
	"context"
	"os"
	"runtime/debug"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/pbft/quorum"
	"github.com/deliberd/deliberd/pbft/sim"
)

func TestMain(m *testing.M) {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(1600)
	}
	goleak.VerifyTestMain(m)
}

func TestNoScheduleViolatesAnything(t *testing.T) {
	schedules := int64(2000)
	if testing.Short() {
		schedules = 500
	}
	r, err := Run(t.Context(), Options{Seed: time.Now().Unix() << 16, Schedules: schedules, Kinds: sim.Kinds(), Recheck: 50})
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("seeds %d to %d: %d schedules, %d faults, %d messages", r.FirstSeed, r.NextSeed-1, r.Schedules, r.Faults, r.Messages)
	for _, f := range r.Violations {
		t.Errorf("%d nodes, seed %d: %v", f.Nodes, f.Seed, f.Violation)
	}
	if r.Rechecked == 0 || r.Schedules < schedules || len(r.Nodes) != len(sim.Sizes()) || len(r.Adversary) != len(sim.Kinds()) {
		t.Errorf("the campaign left something out: %+v", r)
	}
}

// TestWithTooManyLiarsAgreementBreaks is the control: the oracles can fail.
// What two quorums share must be lying, which is f+1 members, but at n = 5,
// where quorums are larger than they need be for n = 4, three.
func TestWithTooManyLiarsAgreementBreaks(t *testing.T) {
	for _, n := range sim.Sizes() {
		oracles := map[string]int{}
		for seed := int64(0); oracles["agreement"] == 0 || oracles["global"] == 0 || oracles["lock"] == 0; seed += 16 {
			if seed > 4000 {
				t.Fatalf("%d nodes with too many liars: only %v in %d seeds", n, oracles, seed)
			}
			r, err := Run(t.Context(), Options{
				Seed: seed, Schedules: 1, Chunk: 16, Keep: 16, Sizes: []int{n}, Kinds: []sim.Kind{sim.DoubleVoter, sim.Equivocating, sim.Twins},
				Excess: 2*quorum.Q(n) - n - quorum.F(n),
			})
			if err != nil {
				t.Fatal(err)
			}
			for _, f := range r.Violations {
				oracles[f.Violation.Oracle]++
			}
		}
		t.Logf("%d nodes: %v", n, oracles)
	}
}

// TestFPlusOneSilentMembersStopEverything is the control of the liveness oracle.
func TestFPlusOneSilentMembersStopEverything(t *testing.T) {
	for _, n := range []int{4, 7} {
		r, err := Run(t.Context(), Options{Seed: 1, Schedules: 1, Chunk: 8, Sizes: []int{n}, Kinds: []sim.Kind{sim.Silent}, Excess: 1})
		if err != nil || len(r.Violations) == 0 || r.Violations[0].Violation.Oracle != "liveness" {
			t.Errorf("%d nodes: %v, %+v", n, err, r.Violations)
		}
	}
}

func TestACampaignEndsWhenItIsTold(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	told := false
	r, err := Run(ctx, Options{Schedules: 1 << 50, Sizes: []int{4}, Every: time.Millisecond, Progress: func(Report) { told = true; cancel() }})
	if err != nil || !told || r.Schedules >= 1<<50 {
		t.Errorf("%v, %+v", err, r)
	}
	r, err = Run(t.Context(), Options{Seed: 7, Seeds: 1000, Sizes: []int{4}, Kinds: []sim.Kind{sim.Twins}})
	if err != nil || r.Played != 1000 || r.NextSeed != 1007 {
		t.Errorf("%v, played %d, next %d", err, r.Played, r.NextSeed)
	}
	for _, o := range []Options{{Seeds: 1, Sizes: []int{99}}, {Sizes: []int{4}}} {
		if _, err := Run(t.Context(), o); err == nil {
			t.Errorf("%+v are taken", o)
		}
	}
}

func TestAllBeforeTheNextSeedHaveBeenPlayedAndThatOneHasNot(t *testing.T) {
	for chunk := range int64(4) {
		for after := 1; after < 400; after += 57 {
			ctx, cancel := context.WithCancel(t.Context())
			var mu sync.Mutex
			played, count := map[int64]int{}, 0
			r, err := run(ctx, Options{Seed: 100, Schedules: 1 << 50, Sizes: []int{4}, Workers: 4, Chunk: 1 + 20*chunk}, func(seed int64) {
				mu.Lock()
				defer mu.Unlock()
				played[seed]++
				if count++; count == after {
					cancel()
				}
			})
			cancel()
			if err != nil {
				t.Fatal(err)
			}
			for seed := int64(100); seed < r.NextSeed; seed++ {
				if played[seed] != 1 {
					t.Fatalf("next is %d, and %d was played %d times", r.NextSeed, seed, played[seed])
				}
			}
			if played[r.NextSeed] != 0 || r.Played != int64(len(played)) || r.FirstSeed != 100 {
				t.Fatalf("%+v, played %d seeds, the next one %d times", r, len(played), played[r.NextSeed])
			}
		}
	}
}

func TestACampaignPlaysLittleMoreThanItIsAskedFor(t *testing.T) {
	r, err := Run(t.Context(), Options{Seed: 1, Schedules: 5, Sizes: []int{4}, Kinds: sim.Kinds(), Workers: 4})
	if err != nil || r.Schedules < 5 || r.Played > 40 {
		t.Errorf("%v, asked for 5 schedules, played %d, %d count", err, r.Played, r.Schedules)
	}
}

func TestAWorkerStopsAtItsFirstViolation(t *testing.T) {
	o := Options{Seed: 1, Seeds: 2000, Sizes: []int{4}, Kinds: []sim.Kind{sim.DoubleVoter, sim.Equivocating}, Excess: 1, Workers: 1}
	r, err := Run(t.Context(), o)
	if err != nil || len(r.Violations) != 1 || r.NextSeed != r.Violations[0].Seed+1 || r.Played != r.Violations[0].Played {
		t.Fatalf("%v, %+v", err, r)
	}
	o.Keep = 3
	more, err := Run(t.Context(), o)
	if err != nil || len(more.Violations) != 3 || more.Violations[0].Seed != r.Violations[0].Seed || more.NextSeed != more.Violations[2].Seed+1 {
		t.Errorf("%v, %+v", err, more)
	}
}

func BenchmarkSchedules(b *testing.B) {
	for _, n := range sim.Sizes() {
		b.Run(string(rune('0'+n/10))+string(rune('0'+n%10)), func(b *testing.B) {
			player := sim.NewPlayer(sim.NewWorld(n, false))
			counted := 0
			seed := int64(0)
			for b.Loop() {
				if r := player.Play(sim.NewPlan(seed, sim.Mix{Nodes: n, Kinds: sim.Kinds()}), false); r.Counts() {
					counted++
				}
				seed++
			}
			b.ReportMetric(float64(counted)/b.Elapsed().Minutes(), "schedules/min/core")
		})
	}
}
