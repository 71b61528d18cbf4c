package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/registry"
)

func (a *app) agentList() *cobra.Command {
	var kind, operator, domain, after string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List agents, humans and operators",
		Example: "  deliberd agent list --domain risk.credit --as ada",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			params := without(map[string]any{"kind": kind, "operator": operator, "domain": domain, "after": after, "limit": limit})
			var list registry.List
			return a.ask(cmd, "registry.list", params, &list, func() {
				var rows [][]string
				for _, p := range list.Principals {
					rows = append(rows, []string{p.ID, string(p.Kind), p.Operator, p.Name, keyOf(p)})
				}
				table(a.out, "nobody", []string{"ID", "KIND", "OPERATOR", "NAME", "KEY"}, rows)
				more(a.out, list.Next)
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&kind, "kind", "", "agent, human or operator")
	f.StringVar(&operator, "operator", "", "who answers for them")
	f.StringVar(&domain, "domain", "", "only who holds a grant there")
	pageFlags(cmd, &after, &limit)
	return staleFlag(cmd)
}

func pageFlags(cmd *cobra.Command, after *string, limit *int) {
	cmd.Flags().StringVar(after, "after", "", "continue after this id")
	cmd.Flags().IntVar(limit, "limit", 0, "at most this many")
}

// more says how to get the next page.
func more(w io.Writer, next string) {
	if next != "" {
		fmt.Fprintf(w, "more: --after %s\n", next)
	}
}

// without leaves out what is empty, so that a query's own defaults hold.
func without(params map[string]any) map[string]any {
	for name, v := range params {
		if v == "" || v == 0 {
			delete(params, name)
		}
	}
	return params
}

func keyOf(v registry.View) string {
	switch {
	case v.Revoked != nil:
		return "revoked"
	case v.JWK != nil:
		return v.JWK.KID
	}
	return ""
}

func (a *app) agentShow() *cobra.Command {
	return staleFlag(&cobra.Command{
		Use:     "show ID",
		Short:   "Show one principal, its key and grants",
		Example: "  deliberd agent show ada --as ada",
		Args:    args("ID"),
		RunE: func(cmd *cobra.Command, given []string) error {
			var v registry.View
			return a.ask(cmd, "registry.get", map[string]string{"id": given[0]}, &v, func() {
				facts(a.out, "id", v.ID, "kind", string(v.Kind), "name", v.Name, "operator", v.Operator, "key", keyOf(v), "since", stamp(v.Since))
				var rows [][]string
				for _, g := range v.Grants {
					rows = append(rows, []string{g.Pattern, g.Authority, g.Trust})
				}
				table(a.out, "no grants", []string{"DOMAIN", "AUTHORITY", "TRUST"}, rows)
			})
		},
	})
}

func (a *app) agentReputation() *cobra.Command {
	var domain string
	cmd := &cobra.Command{
		Use:   "reputation [ID]",
		Short: "Show an agent's rating and calibration, overall or in a domain",
		Long: `Show the rating (ELO), the factor ρ it gives to the agent's arguments, and how
well the probabilities it stated came true. Without ID it shows one's own.`,
		Example: "  deliberd agent reputation --as ada\n  deliberd agent reputation bob --domain risk.credit --as ada",
		Args:    maybe("ID"),
		RunE: func(cmd *cobra.Command, given []string) error {
			params := deliberation.ReputationParams{Domain: domain}
			if len(given) == 1 {
				params.Agent = given[0]
			} else {
				me, err := a.me()
				if err != nil {
					return err
				}
				params.Agent = me.ID
			}
			var r deliberation.Reputation
			return a.ask(cmd, "deliberatic.reputation", params, &r, func() { printReputation(a.out, r) })
		},
	}
	cmd.Flags().StringVar(&domain, "domain", "", "in this domain (default: overall)")
	return staleFlag(cmd)
}

func printReputation(w io.Writer, r deliberation.Reputation) {
	decimal := func(x *float64) string {
		if x == nil {
			return ""
		}
		return strconv.FormatFloat(*x, 'g', 6, 64)
	}
	rating := decimal(&r.Rating)
	if !r.Known {
		rating += ", where everybody starts"
		if r.Domain != "" {
			rating = decimal(&r.Rating) + ", from elsewhere: no round in this domain has been rated"
		}
	}
	facts(w, "agent", r.Agent, "domain", r.Domain, "rating", rating, "rounds", number(r.Rounds), "ρ", decimal(&r.Rho), "stated probabilities", number(r.Calibration.N),
		"came true", decimal(r.Calibration.Accuracy), "Brier score", decimal(r.Calibration.Brier), "calibration error", decimal(r.Calibration.ECE),
		"overconfidence", decimal(r.Calibration.OverconfidenceIndex), "underconfidence", decimal(r.Calibration.UnderconfidenceIndex), "updated", stamp(r.Updated))
}

func (a *app) agentInbox() *cobra.Command {
	var wait time.Duration
	var follow bool
	cmd := &cobra.Command{
		Use:   "inbox",
		Short: "List what one is asked now, or wait until one is asked",
		Long: `List what one is asked now: positions, confirmations, votes, responses and
reviews, with deadlines. With --wait it waits until anything is asked; with
--follow it goes on and prints the inbox whenever it changes.`,
		Example: "  deliberd agent inbox --as ada --wait 1m\n  deliberd agent inbox --as ada --follow --json",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if wait < 0 || wait > time.Minute {
				return usage("--wait is %s; use 0 to 1m, or --follow", wait)
			}
			c, err := a.dial(false)
			if err != nil {
				return err
			}
			if follow {
				return a.followInbox(cmd.Context(), c)
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout+wait)
			defer cancel()
			asks, version, err := c.Inbox(ctx, wait, "")
			if err != nil {
				return err
			}
			return a.showInbox(asks, version)
		},
	}
	cmd.Flags().DurationVar(&wait, "wait", 0, "wait this long, 1m at most, until anything is asked")
	cmd.Flags().BoolVar(&follow, "follow", false, "go on until interrupted")
	return cmd
}

func (a *app) followInbox(ctx context.Context, c *client.Client) error {
	version := ""
	for {
		asks, now, err := c.Inbox(ctx, time.Minute, version)
		switch {
		case ctx.Err() != nil:
			return nil // interrupted, as wanted
		case err != nil:
			return err
		case now == version:
			continue
		}
		version = now
		if err := a.showInbox(asks, version); err != nil {
			return err
		}
	}
}

func (a *app) showInbox(asks []client.Ask, version string) error {
	return a.show(map[string]any{"asks": asks, "version": version}, func(w io.Writer) {
		var rows [][]string
		for _, ask := range asks {
			rows = append(rows, []string{ask.Ask, ask.Subject, until(ask.Deadline), ask.Kind, line(ask.Title, 60)})
		}
		table(w, "nothing is asked", []string{"ASK", "SUBJECT", "DEADLINE", "ANSWER WITH", "TITLE"}, rows)
	})
}
