package main

import (
	"context"
	"fmt"
	"io"
	"os"
	"runtime/debug"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft/quorum"
	"github.com/deliberd/deliberd/pbft/sim"
	"github.com/deliberd/deliberd/pbft/sim/campaign"
)

// simFlags are the flags of `deliberd sim`.
type simFlags struct {
	campaign.Options
	adversary []string
	replay    bool
	plan      string
	save      string
}

func (a *app) simCommand() *cobra.Command {
	var f simFlags
	kinds := make([]string, len(sim.Kinds()))
	for i, k := range sim.Kinds() {
		kinds[i] = string(k)
	}
	cmd := &cobra.Command{
		Use:   "sim",
		Short: "Attack the PBFT engine in simulated networks",
		Long: `Plays seeded schedules of whole networks of replicas: messages are lost, late
and repeated, views are partitioned, replicas crash and start again, and up to
f members lie, in up to four of these ways each:

  ` + strings.Join(kinds[:6], ", ") + `,
  ` + strings.Join(kinds[6:], ", ") + `

A schedule counts when it reaches a second view and suffers a fault. Seed s
plays the s-th size of --nodes, counted round and round. The command stops at
the first violation, makes the schedule as small as it can, prints it and exits
with 1. --replay plays one seed and prints what happened; the same seed and
flags give the same bytes on every machine.`,
		Example: `  deliberd sim --schedules 100000
  deliberd sim --nodes 4 --adversary twins --seed 0 --seeds 1048576 --json
  deliberd sim --nodes 7 --seed 42 --replay
  deliberd sim --nodes 4 --excess 1 --save broken.json; deliberd sim --plan broken.json`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := f.check(cmd); err != nil {
				return err
			}
			switch {
			case f.plan != "":
				plan, err := a.readPlan(f.plan)
				if err != nil {
					return err
				}
				return a.playOne(plan)
			case f.replay:
				n := f.Sizes[int(uint64(f.Seed)%uint64(len(f.Sizes)))]
				mix := sim.Mix{Nodes: n, Kinds: f.Kinds, Excess: f.Excess}
				if err := mix.Check(); err != nil {
					return usage("%s", err)
				}
				plan := sim.NewPlan(f.Seed, mix)
				plan.Genuine = f.Genuine
				return a.playOne(plan)
			}
			return a.campaign(cmd.Context(), &f)
		},
	}
	flags := cmd.Flags()
	flags.Int64Var(&f.Seed, "seed", 1, "first seed")
	flags.Int64Var(&f.Schedules, "schedules", 100_000, "play at least this many schedules that count")
	flags.Int64Var(&f.Seeds, "seeds", 0, "play exactly this many seeds, whether their schedules count or not")
	flags.IntSliceVar(&f.Sizes, "nodes", sim.Sizes(), "sizes of the committee")
	flags.StringSliceVar(&f.adversary, "adversary", []string{"all"}, "ways of lying, all or none")
	flags.IntVar(&f.Excess, "excess", 0, "liars beyond f: then violations are to be expected")
	flags.BoolVar(&f.Genuine, "ed25519", false, "sign with Ed25519, which is some ten times slower")
	flags.IntVar(&f.Workers, "workers", 0, "schedules played at the same time (default one per core)")
	flags.DurationVar(&f.Every, "every", 10*time.Second, "time between lines of progress")
	flags.BoolVar(&f.replay, "replay", false, "play --seed alone and print its transcript")
	flags.StringVar(&f.plan, "plan", "", "play the plan in this file and print its transcript")
	flags.StringVar(&f.save, "save", "", "write the plan of a violation, made small, to this file")
	return cmd
}

// check refuses flags that cannot be, or that would be ignored, and reads --adversary.
func (f *simFlags) check(cmd *cobra.Command) error {
	mode, ignored := "", []string(nil)
	switch {
	case f.plan != "":
		mode, ignored = "--plan plays what is in the file", []string{"seed", "replay", "schedules", "seeds", "nodes", "adversary", "excess", "ed25519", "workers", "every", "save"}
	case f.replay:
		mode, ignored = "--replay plays --seed alone", []string{"schedules", "seeds", "workers", "every", "save"}
	case cmd.Flags().Changed("seeds"):
		mode, ignored = "--seeds says how much is played", []string{"schedules"}
	}
	for _, name := range ignored {
		if cmd.Flags().Changed(name) {
			return usage("%s: leave --%s away", mode, name)
		}
	}
	if cmd.Flags().Changed("plan") && f.plan == "" {
		return usage("--plan needs a file")
	}
	switch most := int64(sim.MaxSeed / 2); {
	case f.Schedules < 1:
		return usage("--schedules is at least 1")
	case cmd.Flags().Changed("seeds") && (f.Seeds < 1 || f.Seeds > most):
		return usage("--seeds is from 1 to %d", most)
	case f.Seed < -sim.MaxSeed || f.Seed > most:
		return usage("--seed is from %d to %d", -sim.MaxSeed, most)
	case f.Excess < 0:
		return usage("--excess is not below 0")
	case f.Workers < 0:
		return usage("--workers is not below 0")
	case f.Every <= 0:
		return usage("--every is longer than 0")
	}
	if f.Seeds > 0 {
		f.Schedules = 0
	}
	return f.kinds()
}

// kinds reads --adversary.
func (f *simFlags) kinds() error {
	if len(f.Sizes) == 0 {
		return usage("--nodes needs a size")
	}
	for _, name := range f.adversary {
		switch {
		case name == "all":
			f.Kinds = append(f.Kinds, sim.Kinds()...)
		case name == "none" && len(f.adversary) == 1:
		case slices.Contains(sim.Kinds(), sim.Kind(name)):
			f.Kinds = append(f.Kinds, sim.Kind(name))
		default:
			var names []string
			for _, k := range sim.Kinds() {
				names = append(names, string(k))
			}
			fix := "name some of " + strings.Join(names, ", ") + "; or all, or none by itself"
			return machine.Refuse("usage", fix, "No adversary is called %q.", name)
		}
	}
	if f.Excess > 0 && len(f.Kinds) == 0 {
		return usage("--excess needs an adversary")
	}
	return nil
}

// readPlan reads the plan in a file.
func (a *app) readPlan(name string) (plan sim.Plan, err error) {
	text, err := a.readInput(name)
	if err == nil {
		plan, err = sim.ParsePlan(text)
	}
	if r, ok := machine.IsRefusal(err); ok {
		return plan, machine.Refuse("usage", r.Fix, "%s: %s", name, r.Message)
	}
	if err != nil {
		return plan, usage("%s", err)
	}
	return plan, nil
}

// writable refuses a file that cannot be written, and leaves it as it is.
func writable(name string) error {
	_, err := os.Lstat(name)
	missing := os.IsNotExist(err)
	f, err := os.OpenFile(name, os.O_WRONLY|os.O_CREATE, 0o644)
	if err != nil {
		return usage("--save: %s", err)
	}
	if err := f.Close(); err != nil || !missing {
		return err
	}
	return os.Remove(name)
}

// expected says of a plan with too many liars that its violation is no wonder.
func expected(p sim.Plan) string {
	if f := quorum.F(p.Nodes); len(p.Liars) > f {
		return fmt.Sprintf(" This was to be expected: of %d members %d lie, more than the %d that the committee tolerates.", p.Nodes, len(p.Liars), f)
	}
	return ""
}

// simReport is what a campaign printed as JSON.
type simReport struct {
	campaign.Report
	Smallest   *sim.Plan `json:"smallest,omitempty"` // of the first violation
	Saved      string    `json:"saved,omitempty"`    // the file that holds it
	Transcript string    `json:"transcript,omitempty"`
}

// campaign plays until all is done, the first violation or an interruption.
func (a *app) campaign(ctx context.Context, f *simFlags) error {
	if os.Getenv("GOGC") == "" {
		defer debug.SetGCPercent(debug.SetGCPercent(1600)) // schedules are short and leave little behind
	}
	if f.save != "" {
		if err := writable(f.save); err != nil {
			return err
		}
	}
	f.Progress = func(r campaign.Report) {
		of := ""
		if f.Schedules > 0 {
			of = fmt.Sprintf(" of %d", f.Schedules)
		}
		fmt.Fprintf(a.err, "%d%s schedules, %.0f a minute, next seed %d\n", r.Schedules, of, r.PerMinute, r.NextSeed)
	}
	report, err := campaign.Run(ctx, f.Options)
	if err != nil {
		return usage("%s", err)
	}
	out := simReport{Report: report}
	var refusal error
	if len(report.Violations) > 0 {
		first := report.Violations[0]
		player := sim.NewPlayer(sim.NewWorld(first.Nodes, f.Genuine))
		small := player.Shrink(first.Plan)
		result := player.Play(small, true)
		out.Smallest, out.Transcript = &small, result.Transcript
		violation := first.Violation
		if result.Violation != nil { // played twice it may go another way
			violation = *result.Violation
		}
		refusal = machine.Refuse("violation", fmt.Sprintf("play it as it was before it was made small: deliberd sim --nodes %d --seed %d --replay, with the same --adversary and --excess", first.Nodes, first.Seed),
			"Seed %d with %d nodes, made small, violates %s: %s.%s", first.Seed, first.Nodes, violation.Oracle, violation.Detail, expected(small))
		if f.save != "" {
			text, err := canon.Marshal(small)
			if err != nil {
				return err
			}
			if err := os.WriteFile(f.save, text, 0o644); err != nil {
				return err
			}
			out.Saved = f.save
		}
	}
	if err := a.show(out, func(w io.Writer) { printCampaign(w, &out) }); err != nil {
		return err
	}
	if refusal != nil {
		return refusal
	}
	if ctx.Err() != nil {
		return machine.Refuse("interrupted", fmt.Sprintf("go on with --seed %d", report.NextSeed), "The campaign was interrupted after %d schedules.", report.Schedules)
	}
	return nil
}

func printCampaign(w io.Writer, r *simReport) {
	seeds := "none"
	if r.NextSeed > r.FirstSeed {
		seeds = fmt.Sprintf("%d to %d", r.FirstSeed, r.NextSeed-1)
	}
	if beyond := r.Played - (r.NextSeed - r.FirstSeed); beyond > 0 {
		seeds += fmt.Sprintf(", and %d beyond", beyond)
	}
	facts(w, "schedules", number(r.Schedules), "seeds", seeds, "a minute", fmt.Sprintf("%.0f", r.PerMinute),
		"faults", number(r.Faults), "messages", number(r.Messages), "played twice", number(r.Rechecked), "violations", number(len(r.Violations)))
	var rows [][]string
	for _, k := range sim.Kinds() {
		if r.Adversary[k] > 0 {
			rows = append(rows, []string{string(k), number(r.Adversary[k])})
		}
	}
	if len(rows) > 0 {
		fmt.Fprintln(w)
		table(w, "", []string{"ADVERSARY", "SCHEDULES"}, rows)
	}
	if r.Transcript != "" {
		fmt.Fprintf(w, "\n%s\n", r.Transcript)
	}
	if r.Saved != "" {
		fmt.Fprintf(w, "The plan is in %s: deliberd sim --plan %s plays it.\n", r.Saved, r.Saved)
	}
}

// playOne plays one plan and prints what happened.
func (a *app) playOne(plan sim.Plan) error {
	if err := plan.Check(); err != nil {
		return err
	}
	result := sim.NewPlayer(sim.NewWorld(plan.Nodes, plan.Genuine)).Play(plan, true)
	decided := ""
	if result.Decided != 0 {
		decided = string(rune(result.Decided))
	}
	err := a.show(map[string]any{
		"plan": plan, "violation": result.Violation, "decided": decided, "views": result.Views + 1, "faults": result.Faults, "ticks": result.Ticks,
		"messages": result.Messages, "fingerprint": fmt.Sprintf("%016x", result.Fingerprint), "transcript": result.Transcript,
	}, func(w io.Writer) {
		fmt.Fprint(w, result.Transcript)
		facts(w, "decided", decided, "views", number(result.Views+1), "faults", number(result.Faults), "ticks", number(result.Ticks), "fingerprint", fmt.Sprintf("%016x", result.Fingerprint))
	})
	if err == nil && result.Violation != nil {
		return machine.Refuse("violation", "read the transcript: the line VIOLATION is where it went wrong", "The plan violates %s: %s.%s", result.Violation.Oracle, result.Violation.Detail, expected(plan))
	}
	return err
}
