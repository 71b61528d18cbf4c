package main

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
)

func (a *app) roundShow() *cobra.Command {
	return staleFlag(&cobra.Command{
		Use:     "show ROUND",
		Short:   "Show a round: the question, positions, arguments, who has acted, the verdict",
		Example: "  deliberd round show 01JD0000000000000000000000 --as ada",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			var v deliberation.View
			return a.ask(cmd, "deliberatic.get", deliberation.RoundParams{Round: given[0]}, &v, func() { a.printRound(&v) })
		},
	})
}

func (a *app) printRound(v *deliberation.View) {
	a.printStanding(v)
	if v.Verdict != nil {
		a.printVerdict(v.Verdict)
	}
}

// printStanding is a round but for its verdict.
func (a *app) printStanding(v *deliberation.View) {
	r, st := v.Round, v.State
	options := make([]string, len(r.Options))
	for i, option := range r.Options {
		options[i] = line(string(option), 40)
	}
	facts(a.out, "round", r.ID, "title", r.Title, "question", line(r.Question, 400), "options", strings.Join(options, ", "), "domain", r.Domain,
		"opened by", r.Opener, "participants", strings.Join(r.IDs(), ", "), "rule", string(r.Rule), "τ", nano(r.TauNano), "phase", string(st.Phase), "deadline", stamp(st.Deadline), "moderator", v.Moderator, "waiting for", strings.Join(v.Waiting, ", "))
	var rows [][]string
	for _, arg := range v.Arguments {
		what := line(string(arg.Answer), 40)
		if what == "" {
			what = line(arg.Text, 40)
		}
		rows = append(rows, []string{arg.ID, string(arg.Kind), arg.Author, arg.Target, number(len(arg.Evidence)), what})
	}
	table(a.out, "no arguments", []string{"ARGUMENT", "KIND", "AUTHOR", "TARGET", "EVIDENCE", "SAYS"}, rows)
	if v.Verdict == nil && st.Outcome != nil {
		fmt.Fprintf(a.out, "proposed: %s, gap %s against τ %s\n", st.Outcome.Winner, gap(st.Outcome.GapNano), nano(r.TauNano))
	}
}

func gap(n *int64) string {
	if n == nil {
		return "none"
	}
	return nano(*n)
}

func (a *app) printVerdict(v *deliberation.Verdict) {
	var rows [][]string
	for _, s := range v.Strengths {
		rows = append(rows, []string{s.Position, s.Author, nano(s.SigmaNano), yes(s.Position == v.Winner, "winner")})
	}
	table(a.out, "no positions", []string{"POSITION", "AUTHOR", "σ", "RESULT"}, rows)
	pairs := []string{"status", string(v.Status), "reason", v.Reason, "winner", v.Winner, "answer", line(string(v.Answer), 100), "path", string(v.Path), "why", string(v.Why),
		"gap", gap(v.GapNano) + " against τ " + nano(v.TauNano)}
	if c := v.Count; c != nil {
		pairs = append(pairs, "confirmed", fmt.Sprintf("%d of %d, %d rejected", c.Accepts, c.Participants, c.Rejects))
	}
	if c := v.Certificate; c != nil {
		tolerance := fmt.Sprintf("tolerates %d faulty", c.Tolerance)
		if c.Tolerance == 0 {
			tolerance = "fewer than 4 voters tolerate no faulty one"
		}
		pairs = append(pairs, "certificate", fmt.Sprintf("view %d, %d of %d voters, %s", c.View, c.Signers, c.Voters, tolerance))
	}
	facts(a.out, append(pairs, "evidence root", v.EvidenceRoot, "decided", stamp(v.DecidedAt))...)
}

func (a *app) roundList() *cobra.Command {
	var phase, domain, after string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List rounds, oldest first",
		Example: "  deliberd round list --phase collecting --as ada",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var page deliberation.List
			params := without(map[string]any{"phase": phase, "domain": domain, "after": after, "limit": limit})
			return a.ask(cmd, "deliberatic.list", params, &page, func() {
				var rows [][]string
				for _, r := range page.Rounds {
					rows = append(rows, []string{r.Round, string(r.Phase), r.Domain, number(r.Positions), until(r.Deadline), string(r.Path), line(r.Title, 50)})
				}
				table(a.out, "no rounds", []string{"ROUND", "PHASE", "DOMAIN", "POSITIONS", "DEADLINE", "PATH", "TITLE"}, rows)
				more(a.out, page.Next)
			})
		},
	}
	cmd.Flags().StringVar(&phase, "phase", "", "collecting, fast, prepare, frozen, certified, review, verdict or no_verdict")
	cmd.Flags().StringVar(&domain, "domain", "", "only this domain")
	pageFlags(cmd, &after, &limit)
	return staleFlag(cmd)
}

// endedEvent is the last thing that happens to a round's question.
const endedEvent = "deliberatic.decided"

func (a *app) roundWatch() *cobra.Command {
	return &cobra.Command{
		Use:     "watch ROUND",
		Short:   "Follow a round until it ends",
		Long:    "Follow a round: where it stands, what has happened so far, and then every event until the verdict. With --json, one event a line and nothing else.",
		Example: "  deliberd round watch 01JD0000000000000000000000 --as ada",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			c, err := a.dial(false)
			if err != nil {
				return err
			}
			return a.watch(cmd.Context(), c, given[0])
		},
	}
}

// watch prints where the round stands and all its events, past and coming, up
// to the one that ends it.
func (a *app) watch(ctx context.Context, c *client.Client, round string) error {
	var v deliberation.View
	if err := c.Query(ctx, "deliberatic.get", deliberation.RoundParams{Round: round}, &v); err != nil {
		return err
	}
	if !a.json {
		a.printStanding(&v) // the verdict comes last
	}
	for rec, err := range c.EventsOf(ctx, round, 0) {
		if err != nil {
			return err
		}
		if !strings.HasPrefix(rec.Type, deliberation.Name+".") {
			continue
		}
		if err := a.show(rec, func(w io.Writer) {
			fmt.Fprintf(w, "%s  %s  %s\n", stamp(rec.StampMS), rec.Type, line(string(rec.Data), 120))
		}); err != nil {
			return err
		}
		if rec.Type == endedEvent {
			break
		}
	}
	if ctx.Err() != nil || a.json {
		return nil // interrupted, as wanted; or all has been printed
	}
	if err := c.Query(ctx, "deliberatic.get", deliberation.RoundParams{Round: round}, &v); err != nil {
		return err
	}
	if v.Verdict != nil {
		a.printVerdict(v.Verdict)
	}
	return nil
}

func (a *app) roundExplain() *cobra.Command {
	return staleFlag(&cobra.Command{
		Use:   "explain ROUND",
		Short: "Why a round stands as it does: w, ρ, every edge's share, the gap, and what would flip it",
		Long: `Explain a round: weight and reputation of every argument, what each edge adds to
its strength σ, the gap against τ, why this path, who has not acted, and the
smallest change of one weight that would make another position win. The change
is solved for with the fixed-point method and searched for with the others.
"deliberd semantics FILE" does the same offline.`,
		Example: "  deliberd round explain 01JD0000000000000000000000 --as ada",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			var e deliberation.Explanation
			return a.ask(cmd, "deliberatic.explain", deliberation.RoundParams{Round: given[0]}, &e, func() { printExplanation(a.out, &e) })
		},
	})
}
