package main

import (
	"context"
	"encoding/json"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
)

func (a *app) roundDone() *cobra.Command {
	return &cobra.Command{
		Use:     "done ROUND",
		Short:   "Say that one has nothing to add in this phase, which ends when all have",
		Example: "  deliberd round done 01JD0000000000000000000000 --as ada",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.act(cmd, "deliberatic.done", deliberation.DoneBody{Round: given[0]}, a.roundStands)
		},
	}
}

func (a *app) roundResolve() *cobra.Command {
	return &cobra.Command{
		Use:     "resolve ROUND",
		Short:   "End collecting and compute the semantics, as the moderator",
		Example: "  deliberd round resolve 01JD0000000000000000000000 --as cyd",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.act(cmd, "deliberatic.resolve", deliberation.ResolveBody{Round: given[0]}, a.roundStands)
		},
	}
}

func (a *app) roundConfirm() *cobra.Command {
	var winner string
	var reject bool
	var standing, answers []string
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "confirm ROUND",
		Short: "Confirm or reject the proposed winner, or leave a standing confirmation",
		Long: `Confirm or reject the proposed winner. Without --winner the confirmation is for
the winner and the outcome that the round shows now. While a round collects,
--standing (position ids) or --answer leaves a confirmation that counts as soon
as one of them is the clear winner.`,
		Example: `  deliberd round confirm 01JD0000000000000000000000 --as bob
  deliberd round confirm 01JD0000000000000000000000 --reject --as bob
  deliberd round confirm 01JD0000000000000000000000 --answer '"pump A"' --for 10m --as bob`,
		Args: args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body := deliberation.ConfirmBody{Round: given[0]}
			if len(standing)+len(answers) > 0 {
				if winner != "" || reject {
					return usage("--standing and --answer exclude --winner and --reject")
				}
				body.Standing = &deliberation.StandingBody{Winners: standing, Expires: machine.Stamp(time.Now().Add(life).UnixMilli())}
				for _, text := range answers {
					answer, err := jsonValue("--answer", text, true)
					if err != nil {
						return err
					}
					body.Standing.Answers = append(body.Standing.Answers, answer)
				}
				return a.act(cmd, "deliberatic.confirm", body, a.roundStands)
			}
			accept := !reject
			body.Winner, body.Accept = winner, &accept
			if winner == "" {
				if err := a.nameWinner(cmd, &body); err != nil {
					return err
				}
			}
			return a.act(cmd, "deliberatic.confirm", body, a.roundStands)
		},
	}
	f := cmd.Flags()
	f.StringVar(&winner, "winner", "", "position to confirm or reject (default: the one proposed)")
	f.BoolVar(&reject, "reject", false, "reject instead")
	f.StringSliceVar(&standing, "standing", nil, "positions confirmed ahead")
	f.StringArrayVar(&answers, "answer", nil, "answers confirmed ahead: JSON or plain text; repeat it")
	f.DurationVar(&life, "for", 10*time.Minute, "how long a standing confirmation holds")
	return cmd
}

// nameWinner fills in the winner that the round proposes, bound to its outcome.
func (a *app) nameWinner(cmd *cobra.Command, body *deliberation.ConfirmBody) error {
	return a.call(cmd, func(ctx context.Context, c *client.Client) error {
		var v deliberation.View
		if err := c.Query(ctx, "deliberatic.get", deliberation.RoundParams{Round: body.Round}, &v); err != nil {
			return err
		}
		if v.State == nil || v.State.Outcome == nil {
			return machine.Refuse("no_winner_yet", "wait until collecting ends, or leave a standing confirmation with --standing or --answer", "The round %s proposes no winner yet.", body.Round)
		}
		body.Winner, body.OutcomeHash = v.State.Outcome.Winner, v.State.Outcome.Hash
		return nil
	})
}

func (a *app) roundReview() *cobra.Command {
	var winner, reason string
	cmd := &cobra.Command{
		Use:     "review ROUND",
		Short:   "Decide a round that was escalated, as a human: a winner, or none",
		Example: `  deliberd round review 01JD0000000000000000000000 --winner 01JD0000000000000000000001 --reason "checked on site" --as grace`,
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.act(cmd, "deliberatic.review", deliberation.ReviewBody{Round: given[0], Winner: winner, Reason: reason}, a.roundStands)
		},
	}
	cmd.Flags().StringVar(&winner, "winner", "", "position that wins (default: none, the rejection stands)")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (a *app) roundOutcome() *cobra.Command {
	var answer string
	var vindicated []string
	cmd := &cobra.Command{
		Use:     "outcome ROUND",
		Short:   "Tell what turned out right, so that ratings and calibration learn from it",
		Example: `  deliberd round outcome 01JD0000000000000000000000 --answer '"pump B"' --vindicated bob --as grace`,
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body := deliberation.OutcomeBody{Round: given[0], Vindicated: vindicated}
			if answer != "" {
				var err error
				if body.Answer, err = jsonValue("--answer", answer, true); err != nil {
					return err
				}
			}
			return a.act(cmd, "deliberatic.outcome", body, func(raw json.RawMessage) error {
				return a.roundStands(raw)
			})
		},
	}
	cmd.Flags().StringVar(&answer, "answer", "", "the right answer: JSON or plain text")
	cmd.Flags().StringSliceVar(&vindicated, "vindicated", nil, "dissenters who were right")
	return cmd
}
