// Command probe plays simulated schedules until one violates an oracle, and
// prints what it found as a line of JSON. Command mutants builds it over each
// mutant of the engine.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"runtime"
	"sync"
	"time"

	"github.com/deliberd/deliberd/pbft/sim"
)

// Bounds of what a broken engine may take before that itself is the finding.
const (
	longest = 10 * time.Second // for one schedule, which takes a millisecond
	largest = 1 << 30          // bytes of heap
)

// found is the line that is printed.
type found struct {
	Runs      int    `json:"runs"`      // schedules played
	Schedules int    `json:"schedules"` // of them, those with two views and a fault
	Oracle    string `json:"oracle,omitempty"`
	Detail    string `json:"detail,omitempty"`
	Seed      int64  `json:"seed"`
}

// probe is what the player and its watchman share.
type probe struct {
	mu    sync.Mutex
	found found
	since time.Time // the schedule under way began
}

func main() {
	base := flag.Int64("base-seed", 0, "first seed")
	budget := flag.Int("budget", 200_000, "schedules at most")
	limit := flag.Duration("time", 10*time.Minute, "time at most")
	flag.Parse()
	p := &probe{since: time.Now()}
	go p.watch()
	p.play(*base, *budget, time.Now().Add(*limit))
	p.end("", "")
}

// play plays the schedules of the seeds from base upwards, as campaigns do.
func (p *probe) play(base int64, budget int, deadline time.Time) {
	sizes := sim.Sizes()
	players := make([]*sim.Player, len(sizes))
	for i, n := range sizes {
		players[i] = sim.NewPlayer(sim.NewWorld(n, false))
	}
	for seed := base; seed < base+int64(budget) && time.Now().Before(deadline); seed++ {
		i := int(uint64(seed) % uint64(len(sizes)))
		p.begin(seed)
		result := players[i].Play(sim.NewPlan(seed, sim.Mix{Nodes: sizes[i], Kinds: sim.Kinds()}), false)
		p.played(result.Counts())
		if v := result.Violation; v != nil {
			p.end(v.Oracle, v.String())
		}
	}
}

func (p *probe) begin(seed int64) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.found.Seed, p.since = seed, time.Now()
	p.found.Runs++
}

func (p *probe) played(counts bool) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if counts {
		p.found.Schedules++
	}
}

// watch ends the program when a schedule does not end or eats the memory.
func (p *probe) watch() {
	for range time.Tick(time.Second) {
		p.mu.Lock()
		since := p.since
		p.mu.Unlock()
		if time.Since(since) > longest {
			p.end("hang", fmt.Sprintf("the schedule has not ended after %s", longest))
		}
		var m runtime.MemStats
		if runtime.ReadMemStats(&m); m.HeapAlloc > largest {
			p.end("memory", fmt.Sprintf("the schedule has taken %d bytes", m.HeapAlloc))
		}
	}
}

// end prints what was found and ends the program.
func (p *probe) end(oracle, detail string) {
	p.mu.Lock() // for good: nobody else ends it too
	p.found.Oracle, p.found.Detail = oracle, detail
	line, err := json.Marshal(p.found)
	if err != nil {
		fmt.Fprintln(os.Stderr, "probe:", err)
		os.Exit(2)
	}
	fmt.Println(string(line))
	os.Exit(0)
}
