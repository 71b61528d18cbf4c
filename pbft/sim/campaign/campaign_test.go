package campaign

import (
	"encoding/json"
	"flag"
	"testing"

	"github.com/deliberd/deliberd/pbft/sim"
)

var (
	seed      = flag.Int64("seed", 1, "first seed")
	nodes     = flag.Int("nodes", 0, "committee size; 0 for all")
	schedules = flag.Int64("schedules", 3000, "schedules")
)

func TestNoScheduleViolatesAnything(t *testing.T) {
	var sizes []int
	if *nodes > 0 {
		sizes = []int{*nodes}
	}
	r, err := Run(t.Context(), Options{Sizes: sizes, Seed: *seed, Schedules: *schedules, Kinds: sim.Kinds()})
	if err != nil {
		t.Fatal(err)
	}
	b, _ := json.MarshalIndent(r, "", " ")
	t.Log(string(b))
	for _, f := range r.Violations {
		t.Log(sim.NewPlayer(sim.NewWorld(f.Nodes, false)).Play(f.Plan, true).Transcript)
		t.Errorf("seed %d: %v", f.Seed, f.Violation)
	}
}

func TestWithOneLiarTooManyAgreementBreaks(t *testing.T) {
	for _, n := range sim.Sizes() {
		r, err := Run(t.Context(), Options{Seed: 1, Schedules: 20_000, Sizes: []int{n}, Kinds: sim.Kinds(), Excess: 1, Keep: 5})
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range r.Violations {
			t.Logf("n=%d after %d: seed %d %v", n, f.Played, f.Seed, f.Violation)
		}
		if len(r.Violations) == 0 {
			t.Errorf("%d nodes with one liar too many: nothing was found in %d schedules", n, r.Schedules)
		}
	}
}
