package main

import (
	"encoding/json"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/agora"
)

func (a *app) agoraCommand() *cobra.Command {
	return group("agora", "Agora: propose, vote, veto, evaluate",
		`  deliberd agora propose --id deploy-42 --action '{"type":"deploy"}' --voters ada,bob,cyd --quorum 2/3 --as ada
  deliberd agora vote deploy-42 yes --as bob
  deliberd agora evaluate deploy-42 --as ada`,
		a.agoraPropose(), a.agoraVote(), a.agoraVeto(), a.agoraEvaluate(), a.agoraGet(), a.agoraList(), a.agoraDissents())
}

func (a *app) agoraPropose() *cobra.Command {
	var id, action, quorum string
	var voters, vetoers []string
	var deadline time.Duration
	var auto bool
	cmd := &cobra.Command{
		Use:   "propose",
		Short: "Open a round on an action",
		Long: `Open a round on an action. --quorum is a count ("2"), an exact fraction of the
registered voters ("2/3") or a decimal one ("0.5"). A voter may carry a weight:
"ada:3".`,
		Example: `  deliberd agora propose --id delete-bucket --action '{"type":"delete"}' --voters ada,bob --vetoers safety --quorum 2 --as ada`,
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if action == "" || len(voters) == 0 || quorum == "" {
				return usage("%s needs --action, --voters and --quorum", cmd.CommandPath())
			}
			body := agora.ProposeBody{ID: id, Vetoers: vetoers, DeadlineInMS: deadline.Milliseconds(), AutoEvaluate: auto}
			var err error
			if body.Action, err = jsonValue("--action", action, false); err != nil {
				return err
			}
			if body.Quorum, err = quorumOf(quorum); err != nil {
				return err
			}
			for _, text := range voters {
				v, err := voterOfText(text)
				if err != nil {
					return err
				}
				body.Voters = append(body.Voters, v)
			}
			return a.act(cmd, "agora.propose", body, a.agoraDone)
		},
	}
	f := cmd.Flags()
	f.StringVar(&id, "id", "", "id of the round, such as deploy-42 (default: the action's id)")
	f.StringVar(&action, "action", "", "what is proposed: a JSON object, or @FILE")
	f.StringSliceVar(&voters, "voters", nil, "who votes; ID or ID:WEIGHT")
	f.StringSliceVar(&vetoers, "vetoers", nil, "who may veto")
	f.StringVar(&quorum, "quorum", "", "2, 2/3 or 0.5")
	f.DurationVar(&deadline, "deadline", 0, "time to vote, such as 10m")
	f.BoolVar(&auto, "auto", false, "evaluate after every vote and veto")
	return cmd
}

// quorumOf reads "2", "2/3" or "0.5".
func quorumOf(text string) (agora.Quorum, error) {
	if num, den, ok := strings.Cut(text, "/"); ok {
		n, err := strconv.ParseUint(num, 10, 53)
		d, err2 := strconv.ParseUint(den, 10, 53)
		if err == nil && err2 == nil && n > 0 && d > 0 {
			return agora.Rational(n, d), nil
		}
	} else if n, err := strconv.ParseUint(text, 10, 53); err == nil && n > 0 {
		return agora.Count(n), nil
	} else if f, err := strconv.ParseFloat(text, 64); err == nil && f > 0 && f <= 1 {
		return agora.Fraction(f), nil
	}
	return agora.Quorum{}, usage("--quorum is %q; use a count such as 2, or a fraction such as 2/3 or 0.5", text)
}

// voterOfText reads "ada" or "ada:3". Ids may hold colons: a weight is digits only.
func voterOfText(text string) (agora.Voter, error) {
	if at := strings.LastIndexByte(text, ':'); at > 0 {
		if w, err := strconv.ParseUint(text[at+1:], 10, 53); err == nil {
			if w == 0 || w > agora.MaxWeight {
				return agora.Voter{}, usage("the weight of %s is not 1 to %d", text[:at], agora.MaxWeight)
			}
			return agora.Voter{ID: text[:at], Weight: w}, nil
		}
	}
	return agora.Voter{ID: text, Weight: 1}, nil
}

// agoraDone prints where a round stands.
func (a *app) agoraDone(raw json.RawMessage) error {
	var r agora.Result
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	facts(a.out, append([]string{"round", r.RoundID, "status", r.Status, "tally", tallyText(r.Tally)}, resolutionFacts(r.Resolution)...)...)
	return nil
}

func tallyText(t agora.Tally) string {
	text := fmt.Sprintf("%d yes, %d no, %d abstain of %d", t.Yes, t.No, t.Abstain, t.Registered)
	if w := t.Weighted; w != nil {
		text += fmt.Sprintf("; by weight %d yes, %d no", w.Yes, w.No)
	}
	return text
}

func resolutionFacts(r *agora.Resolution) []string {
	if r == nil {
		return nil
	}
	pairs := []string{"outcome", string(r.Outcome)}
	if r.Veto != nil {
		pairs = append(pairs, "veto", r.Veto.AgentID+": "+line(r.Veto.Reason, 80))
	}
	return pairs
}

func (a *app) agoraVote() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "vote ROUND yes|no|abstain",
		Short:   "Vote; the last vote counts",
		Example: `  deliberd agora vote deploy-42 no --reason "not on a Friday" --as bob`,
		Args:    args("ROUND", "yes|no|abstain"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.act(cmd, "agora.vote", agora.VoteBody{RoundID: given[0], Choice: agora.Choice(given[1]), Reason: reason}, a.agoraDone)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (a *app) agoraVeto() *cobra.Command {
	var reason string
	cmd := &cobra.Command{
		Use:     "veto ROUND",
		Short:   "Stop a round, with a reason, whatever the tally",
		Example: `  deliberd agora veto delete-bucket --reason "no confirmed backup exists" --as safety`,
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if strings.TrimSpace(reason) == "" {
				return usage("%s needs --reason: an unexplained veto cannot be audited", cmd.CommandPath())
			}
			return a.act(cmd, "agora.veto", agora.VetoBody{RoundID: given[0], Reason: reason}, a.agoraDone)
		},
	}
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (a *app) agoraEvaluate() *cobra.Command {
	return &cobra.Command{
		Use:     "evaluate ROUND",
		Short:   "Resolve a round if a veto, its deadline or its quorum applies",
		Example: "  deliberd agora evaluate deploy-42 --as ada",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.act(cmd, "agora.evaluate", agora.EvaluateBody{RoundID: given[0]}, a.agoraDone)
		},
	}
}

func (a *app) agoraGet() *cobra.Command {
	return staleFlag(&cobra.Command{
		Use:     "get ROUND",
		Short:   "Show a round with its votes, vetoes and resolution",
		Example: "  deliberd agora get deploy-42 --as ada",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			var v agora.View
			return a.ask(cmd, "agora.get", agora.EvaluateBody{RoundID: given[0]}, &v, func() { a.printAgora(v) })
		},
	})
}

func (a *app) printAgora(v agora.View) {
	pairs := []string{"round", v.ID, "proposer", v.ProposerID, "status", v.Status, "action", line(string(v.Action), 100),
		"tally", tallyText(v.Tally), "needed", number(v.Needed), "vetoers", strings.Join(v.Vetoers, ", ")}
	if v.Deadline != nil {
		pairs = append(pairs, "deadline", time.UnixMilli(*v.Deadline).UTC().Format("2006-01-02 15:04:05Z"))
	}
	facts(a.out, append(pairs, resolutionFacts(v.Resolution)...)...)
	var rows [][]string
	for _, vote := range v.Votes {
		rows = append(rows, []string{vote.AgentID, string(vote.Choice), line(vote.Reason, 60)})
	}
	for _, veto := range v.Vetoes {
		rows = append(rows, []string{veto.AgentID, "veto", line(veto.Reason, 60)})
	}
	table(a.out, "no votes", []string{"WHO", "VOTE", "REASON"}, rows)
}

func (a *app) agoraList() *cobra.Command {
	var status, after string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List rounds",
		Example: "  deliberd agora list --status open --as ada",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var page struct {
				Rounds []struct {
					RoundID    string      `json:"round_id"`
					ProposerID string      `json:"proposer_id"`
					Status     string      `json:"status"`
					Tally      agora.Tally `json:"tally"`
				} `json:"rounds"`
				Next string `json:"next"`
			}
			return a.ask(cmd, "agora.list", without(map[string]any{"status": status, "after": after, "limit": limit}), &page, func() {
				var rows [][]string
				for _, r := range page.Rounds {
					rows = append(rows, []string{r.RoundID, r.ProposerID, r.Status, tallyText(r.Tally)})
				}
				table(a.out, "no rounds", []string{"ROUND", "PROPOSER", "STATUS", "TALLY"}, rows)
				more(a.out, page.Next)
			})
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "open, approved, rejected, vetoed or timed_out")
	pageFlags(cmd, &after, &limit)
	return staleFlag(cmd)
}

func (a *app) agoraDissents() *cobra.Command {
	var round, agent, after string
	var limit int
	cmd := &cobra.Command{
		Use:     "dissents",
		Short:   "Read who dissented and why, of a round or of an agent",
		Example: "  deliberd agora dissents --agent bob --as ada",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if (round == "") == (agent == "") {
				return usage("%s needs either --round or --agent", cmd.CommandPath())
			}
			var page agora.DissentPage
			params := without(map[string]any{"round_id": round, "agent_id": agent, "after": after, "limit": limit})
			return a.ask(cmd, "agora.dissents", params, &page, func() {
				var rows [][]string
				for _, d := range page.Dissents {
					rows = append(rows, []string{d.RoundID, d.AgentID, string(d.Kind), string(d.Outcome), line(d.Reason, 60)})
				}
				table(a.out, "no dissents", []string{"ROUND", "WHO", "DISSENT", "OUTCOME", "REASON"}, rows)
				more(a.out, page.Next)
			})
		},
	}
	cmd.Flags().StringVar(&round, "round", "", "of this round")
	cmd.Flags().StringVar(&agent, "agent", "", "of this agent")
	pageFlags(cmd, &after, &limit)
	return staleFlag(cmd)
}
