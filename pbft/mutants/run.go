package main

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
)

// Result is what became of a mutant.
type Result struct {
	Mutant    string `json:"mutant"`
	Breaks    string `json:"breaks"`
	Unseen    string `json:"unseen,omitempty"`
	Detector  string `json:"detector,omitempty"`  // empty: it survived
	Oracle    string `json:"oracle,omitempty"`    // or the test that failed first
	Schedules int    `json:"schedules,omitempty"` // median over the base seeds that caught it
	Slowest   int    `json:"slowest,omitempty"`   // of them
	Seeds     int    `json:"seeds,omitempty"`     // how many they are
	Played    int    `json:"played,omitempty"`    // schedules in which the simulation saw nothing
	Err       string `json:"error,omitempty"`     // it does not apply or compile

	missed bool // by the simulation, which should have caught it
}

// runner tries mutants, a few at a time.
type runner struct {
	root     string
	budget   Budget
	use      []detector
	parallel int
	progress func(Result)
}

// run tries all mutants; the results come in their order.
func (r *runner) run(ctx context.Context, mutants []Mutant) []Result {
	results := make([]Result, len(mutants))
	next := make(chan int)
	var workers sync.WaitGroup
	for range r.parallel {
		workers.Go(func() {
			for i := range next {
				results[i] = r.try(ctx, &mutants[i], r.budget)
				r.progress(results[i])
			}
		})
	}
	for i := range mutants {
		next <- i
	}
	close(next)
	workers.Wait()
	return results
}

// try lets the detectors at one mutant until one catches it.
func (r *runner) try(ctx context.Context, m *Mutant, budget Budget) Result {
	result := Result{Mutant: m.Name, Breaks: m.Breaks, Unseen: m.Unseen}
	found, err := r.detect(ctx, m, budget, &result.Played)
	switch {
	case err != nil:
		result.Err = err.Error()
	case found != nil:
		result.Detector, result.Oracle, result.Seeds = found.detector, found.oracle, len(found.schedules)
		if len(found.schedules) > 0 {
			slices.Sort(found.schedules)
			result.Schedules = found.schedules[len(found.schedules)/2]
			result.Slowest = found.schedules[len(found.schedules)-1]
		}
	}
	simulated := slices.ContainsFunc(r.use, func(d detector) bool { return d.name == "sim" })
	result.missed = simulated && m.Unseen == "" && m.concerns("sim") && result.Detector != "sim"
	return result
}

func (r *runner) detect(ctx context.Context, m *Mutant, budget Budget, played *int) (*detection, error) {
	dir, err := os.MkdirTemp("", "mutant-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	b := &bench{root: r.root, dir: dir, budget: budget}
	if b.overlay, err = m.overlay(r.root, dir); err != nil {
		return nil, err
	}
	for _, d := range m.order(r.use) {
		if !m.concerns(d.name) {
			continue
		}
		found, err := d.try(ctx, b)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", d.name, err)
		}
		*played = b.played
		if found != nil {
			found.detector = d.name
			return found, nil
		}
	}
	return nil, nil
}

// order puts the simulation last for what it is said not to see: it would use
// up its whole budget.
func (m *Mutant) order(use []detector) []detector {
	out := slices.Clone(use)
	if m.Unseen != "" {
		slices.SortStableFunc(out, func(a, b detector) int {
			return cmp.Compare(strings.Count(a.name, "sim"), strings.Count(b.name, "sim"))
		})
	}
	return out
}

// concerns reports whether a detector can show the mutant.
func (m *Mutant) concerns(detector string) bool {
	if len(m.Edits) == 0 {
		return true // the control
	}
	return m.ofDriver() == (detector == "driver")
}

// control tries the unmutated engine as hard as the slowest catch was, and
// errs when it is caught.
func (r *runner) control(ctx context.Context, results []Result) error {
	slowest := slices.MaxFunc(results, func(a, b Result) int { return cmp.Compare(a.Slowest, b.Slowest) }).Slowest
	budget := r.budget
	budget.Schedules = max(slowest, 100)
	control := r.try(ctx, &Mutant{Name: "control"}, budget)
	if control.Err != "" {
		return errors.New(control.Err)
	}
	if control.Detector != "" {
		return fmt.Errorf("the unmutated engine is caught by %s: %s", control.Detector, control.Oracle)
	}
	return nil
}

// available are the detectors whose packages exist.
func available(root string) (out []detector) {
	folder := map[string]string{"sim": "pbft/mutants/probe", "rules": "pbft", "model": "pbft/model", "driver": "bftpath"}
	for _, d := range detectors {
		if _, err := os.Stat(filepath.Join(root, folder[d.name])); err == nil {
			out = append(out, d)
		}
	}
	return out
}
