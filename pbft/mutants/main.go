package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/signal"
	"regexp"
	"slices"
	"strings"
	"time"
)

type options struct {
	pattern  string
	budget   Budget
	quick    bool
	json     bool
	write    string
	use      string
	parallel int
	part     string
}

func main() {
	var o options
	flag.StringVar(&o.pattern, "run", "", "try only mutants whose name matches this regular expression")
	flag.IntVar(&o.budget.BaseSeeds, "base-seeds", 5, "how many times the simulation starts anew")
	flag.IntVar(&o.budget.Schedules, "budget", 200_000, "schedules from each base seed at most")
	flag.DurationVar(&o.budget.Time, "time", 10*time.Minute, "time for each base seed at most")
	flag.BoolVar(&o.quick, "quick", false, "one base seed and a small budget: any detector may catch, none has to be the simulation")
	flag.BoolVar(&o.json, "json", false, "print JSON, one mutant a line, instead of the table")
	flag.StringVar(&o.write, "write", "", "write the table to this file, relative to the module")
	flag.StringVar(&o.use, "detectors", "", "use only these, separated by commas: sim, rules, model, driver")
	flag.IntVar(&o.parallel, "parallel", 2, "mutants tried at a time")
	flag.StringVar(&o.part, "part", "1/1", "of the mutants, counted by turns, the k-th of n parts: k/n")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	ok, err := o.main(ctx)
	if err != nil {
		fmt.Fprintln(os.Stderr, "mutants:", err)
		os.Exit(2)
	}
	if !ok {
		os.Exit(1)
	}
}

// main tries the mutants and reports; false when one survives or the
// unmutated engine is caught.
func (o *options) main(ctx context.Context) (bool, error) {
	r, mutants, err := o.prepare()
	if err != nil {
		return false, err
	}
	results := r.run(ctx, mutants)
	if err := ctx.Err(); err != nil {
		return false, err
	}
	ok := true
	if err := r.control(ctx, results); err != nil {
		fmt.Fprintln(os.Stderr, "control:", err)
		ok = false
	}
	if err := o.report(r, results); err != nil {
		return false, err
	}
	for _, res := range results {
		if res.Err != "" {
			return false, fmt.Errorf("%s: %s", res.Mutant, res.Err)
		}
		ok = ok && res.Detector != "" && (o.quick || !res.missed)
	}
	return ok, nil
}

func (o *options) prepare() (*runner, []Mutant, error) {
	root, err := moduleRoot(".")
	if err != nil {
		return nil, nil, err
	}
	pattern, err := regexp.Compile(o.pattern)
	if err != nil {
		return nil, nil, err
	}
	if o.write != "" && (o.pattern != "" || o.use != "" || o.quick || o.part != "1/1") {
		return nil, nil, fmt.Errorf("-write is for the whole table: not with -run, -part, -detectors or -quick")
	}
	mutants, err := partOf(Mutants(), o.part)
	if err != nil {
		return nil, nil, err
	}
	mutants = slices.DeleteFunc(mutants, func(m Mutant) bool { return !pattern.MatchString(m.Name) })
	if len(mutants) == 0 {
		return nil, nil, fmt.Errorf("no mutant matches %q", o.pattern)
	}
	if o.quick {
		o.budget = Budget{BaseSeeds: 1, Schedules: 1_500, Time: 20 * time.Second}
	}
	r := &runner{root: root, budget: o.budget, use: available(root), parallel: max(o.parallel, 1), progress: show}
	if o.use != "" {
		names := strings.Split(o.use, ",")
		r.use = slices.DeleteFunc(r.use, func(d detector) bool { return !slices.Contains(names, d.name) })
	}
	return r, mutants, nil
}

// partOf is every n-th mutant from the k-th on.
func partOf(all []Mutant, part string) (out []Mutant, err error) {
	var k, n int
	if _, err := fmt.Sscanf(part, "%d/%d", &k, &n); err != nil || k < 1 || k > n {
		return nil, fmt.Errorf("-part is k/n with k from 1 to n, got %q", part)
	}
	for i := k - 1; i < len(all); i += n {
		out = append(out, all[i])
	}
	return out, nil
}

// show tells on standard error what became of a mutant.
func show(r Result) {
	switch {
	case r.Err != "":
		fmt.Fprintf(os.Stderr, "%-40s error: %s\n", r.Mutant, r.Err)
	case r.Detector == "":
		fmt.Fprintf(os.Stderr, "%-40s SURVIVED %d schedules\n", r.Mutant, r.Played)
	case r.Seeds > 0:
		fmt.Fprintf(os.Stderr, "%-40s %s: %s after %d schedules (%d seeds, at most %d)\n", r.Mutant, r.Detector, r.Oracle, r.Schedules, r.Seeds, r.Slowest)
	case r.missed:
		fmt.Fprintf(os.Stderr, "%-40s %s: %s (MISSED by sim in %d schedules)\n", r.Mutant, r.Detector, r.Oracle, r.Played)
	default:
		fmt.Fprintf(os.Stderr, "%-40s %s: %s\n", r.Mutant, r.Detector, r.Oracle)
	}
}

func (o *options) report(r *runner, results []Result) error {
	if o.json {
		for _, res := range results {
			b, err := json.Marshal(res)
			if err != nil {
				return err
			}
			fmt.Println(string(b))
		}
	} else {
		fmt.Print(markdown(results, o.budget))
	}
	if o.write == "" {
		return nil
	}
	return os.WriteFile(r.root+"/"+o.write, []byte(markdown(results, o.budget)), 0o644)
}
