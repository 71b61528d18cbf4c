package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"time"
)

// Budget is how hard the simulation tries, from each base seed.
type Budget struct {
	BaseSeeds int
	Schedules int
	Time      time.Duration
}

// detection is what caught a mutant.
type detection struct {
	detector  string
	oracle    string // of the simulation, or the test that failed first
	schedules []int  // by base seed that caught it: how many schedules it took
}

// bench is where one mutant is built and tried.
type bench struct {
	root    string // of the module
	dir     string // for its files
	overlay string
	budget  Budget
	played  int // schedules from which the simulation learned nothing
}

// detector tries to catch what a bench holds; nil when it does not.
type detector struct {
	name string
	try  func(context.Context, *bench) (*detection, error)
}

// detectors are all of them, in the order in which they are tried.
var detectors = []detector{
	{"sim", simulate},
	{"rules", tests("pbft/quorum", "pbft")},
	{"model", tests("pbft/model")},
	{"driver", tests("bftpath")},
}

// errNotBuilt is a mutant that the compiler refuses.
var errNotBuilt = errors.New("does not compile")

// build runs the go command over the mutated tree.
func (b *bench) build(ctx context.Context, args ...string) error {
	args = slices.Insert(args, len(args)-1, "-overlay="+b.overlay, "-ldflags=-s -w")
	cmd := exec.CommandContext(ctx, "go", args...)
	cmd.Dir = b.root
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1")
	if out, err := cmd.CombinedOutput(); err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return fmt.Errorf("%w: %s", errNotBuilt, bytes.TrimSpace(out))
	}
	return nil
}

// run runs what was built. Its exit code is no error.
func (b *bench) run(ctx context.Context, limit time.Duration, dir, program string, args ...string) (out []byte, failed bool, err error) {
	limited, stop := context.WithTimeout(ctx, limit)
	defer stop()
	cmd := exec.CommandContext(limited, program, args...)
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), "GOMAXPROCS=1", "GOMEMLIMIT=2GiB")
	out, err = cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err == nil || errors.As(err, &exit) {
		return out, err != nil, ctx.Err()
	}
	return out, true, err
}

// probed is the line that command probe prints.
type probed struct {
	Runs      int    // schedules played
	Schedules int    // of them, those with two views and a fault
	Oracle    string // which was violated by the last; empty: none
	Seed      int64
}

// simulate plays schedules from each base seed until an oracle is violated.
func simulate(ctx context.Context, b *bench) (*detection, error) {
	probe := filepath.Join(b.dir, "probe")
	if err := b.build(ctx, "build", "-o", probe, "./pbft/mutants/probe"); err != nil {
		return nil, err
	}
	found := detection{detector: "sim"}
	var oracles []string
	for k := range b.budget.BaseSeeds {
		p, err := b.probe(ctx, probe, k)
		if err != nil {
			return nil, err
		}
		if p.Oracle == "" {
			b.played += p.Runs
			continue
		}
		oracles = append(oracles, p.Oracle)
		found.schedules = append(found.schedules, p.Runs)
	}
	if len(oracles) == 0 {
		return nil, nil
	}
	found.oracle = mostCommon(oracles)
	return &found, nil
}

func (b *bench) probe(ctx context.Context, program string, k int) (p probed, err error) {
	base := int64(k) * 1_000_000_007
	out, failed, err := b.run(ctx, b.budget.Time+time.Minute, b.dir, program, "-base-seed", strconv.FormatInt(base, 10),
		"-budget", strconv.Itoa(b.budget.Schedules), "-time", b.budget.Time.String())
	if err != nil {
		return p, err
	}
	if failed {
		p.Oracle = "crash" // of the whole process: no stack or no memory left
		return p, nil
	}
	lines := bytes.Split(bytes.TrimSpace(out), []byte("\n"))
	if err := json.Unmarshal(lines[len(lines)-1], &p); err != nil {
		return p, fmt.Errorf("the probe prints %q: %w", out, err)
	}
	return p, nil
}

// mostCommon is the word that occurs most often, the first of equals.
func mostCommon(words []string) string {
	count := map[string]int{}
	best := words[0]
	for _, w := range words {
		if count[w]++; count[w] > count[best] {
			best = w
		}
	}
	return best
}

// testTime is how long the tests of a package may take.
const testTime = 5 * time.Minute

// tests makes a detector of the tests of some packages.
func tests(packages ...string) func(context.Context, *bench) (*detection, error) {
	return func(ctx context.Context, b *bench) (*detection, error) {
		for _, p := range packages {
			name, err := b.test(ctx, p)
			if err != nil {
				return nil, err
			}
			if name != "" {
				return &detection{oracle: name}, nil
			}
		}
		return nil, nil
	}
}

// test runs the tests of a package and names the first that fails.
func (b *bench) test(ctx context.Context, pkg string) (string, error) {
	dir := filepath.Join(b.root, pkg)
	if _, err := os.Stat(dir); errors.Is(err, os.ErrNotExist) {
		return "", nil
	}
	program := filepath.Join(b.dir, filepath.Base(pkg)+".test")
	if err := b.build(ctx, "test", "-c", "-vet=off", "-o", program, "./"+pkg); err != nil {
		return "", err
	}
	args := []string{"-test.short", "-test.failfast", "-test.timeout=" + testTime.String()}
	if usesRapid(dir) { // the same draws each time, and nothing written into the tree
		args = append(args, "-rapid.seed=1", "-rapid.nofailfile", "-rapid.shrinktime=0s")
	}
	out, failed, err := b.run(ctx, testTime+time.Minute, dir, program, args...)
	if err != nil || !failed {
		return "", err
	}
	return failedTest(out), nil
}

func usesRapid(dir string) bool {
	files, _ := filepath.Glob(filepath.Join(dir, "*_test.go")) // errs on a bad pattern only
	return slices.ContainsFunc(files, func(name string) bool {
		text, err := os.ReadFile(name)
		return err == nil && bytes.Contains(text, []byte(`"pgregory.net/rapid"`))
	})
}

var (
	failLine    = regexp.MustCompile(`(?m)^--- FAIL: (\S+)`)
	runningLine = regexp.MustCompile(`(?m)^\s*running tests:\n\s+(\S+)`)
)

// failedTest is the name of the first test that failed or did not end.
func failedTest(out []byte) string {
	for _, line := range []*regexp.Regexp{failLine, runningLine} {
		if m := line.FindSubmatch(out); m != nil {
			return string(m[1])
		}
	}
	return "crash"
}
