package main

import (
	"encoding/json"
	"fmt"
	"regexp"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/acp"
)

// isDecimal accepts an exact decimal in JSON's spelling: it is sent as it is written.
var isDecimal = regexp.MustCompile(`^(0|[1-9][0-9]*)(\.[0-9]+)?$`).MatchString

func (a *app) acpCommand() *cobra.Command {
	return group("acp", "ACP: proposals, endorsed or challenged by weight",
		`  deliberd acp submit --domain risk.credit --payload '{"loan":17}' --quorum 2 --as ada
  deliberd acp respond 01JD0000000000000000000000 endorse --confidence 0.85 --as bob
  deliberd acp get 01JD0000000000000000000000 --as ada`,
		a.acpSubmit(), a.acpRespond(), a.acpEscalate(), a.acpResolve(), a.acpGet(), a.acpList())
}

func (a *app) acpSubmit() *cobra.Command {
	var domain, payload, kind, weighted, at, policy string
	var quorum int
	var unanimous bool
	var in time.Duration
	cmd := &cobra.Command{
		Use:   "submit",
		Short: "Post a proposal, an observation or a hypothesis",
		Example: `  deliberd acp submit --domain risk.credit --payload '{"loan":17}' --quorum 2 --expires-in 5m --as ada
  deliberd acp submit --domain ops.deploy --payload @plan.json --weighted 1.5 --as ada`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if domain == "" || payload == "" {
				return usage("%s needs --domain and --payload", cmd.CommandPath())
			}
			text, err := jsonValue("--payload", payload, false)
			if err != nil {
				return err
			}
			body := without(map[string]any{"domain": domain, "type": kind, "quorum": quorum, "expires_at": at, "escalate_policy": policy})
			body["payload"] = text
			if in != 0 {
				body["expires_in_ms"] = in.Milliseconds()
			}
			switch {
			case unanimous && weighted != "" || (unanimous || weighted != "") && quorum != 0:
				return usage("--quorum, --weighted and --unanimous exclude each other")
			case unanimous:
				body["quorum_policy"] = map[string]any{"type": "unanimous"}
			case weighted != "":
				if !isDecimal(weighted) {
					return usage("--weighted is %q, not a decimal such as 1.5", weighted)
				}
				body["quorum_policy"] = map[string]any{"type": "weighted", "threshold": json.RawMessage(weighted)}
			case quorum == 0 && kind == string(acp.ProposalType):
				return usage("%s needs --quorum, --weighted or --unanimous", cmd.CommandPath())
			}
			return a.act(cmd, "acp.submit", body, a.acpDone)
		},
	}
	f := cmd.Flags()
	f.StringVar(&domain, "domain", "", "domain, such as risk.credit")
	f.StringVar(&payload, "payload", "", "what is proposed: a JSON object, or @FILE")
	f.StringVar(&kind, "type", string(acp.ProposalType), "proposal, observation or hypothesis")
	f.IntVar(&quorum, "quorum", 0, "responses that decide")
	f.StringVar(&weighted, "weighted", "", "summed weight that decides, instead of a count")
	f.BoolVar(&unanimous, "unanimous", false, "all grant-holders of the domain must respond")
	f.DurationVar(&in, "expires-in", 0, "time to respond, such as 5m")
	f.StringVar(&at, "expires-at", "", "when it expires, RFC 3339 in UTC")
	f.StringVar(&policy, "escalate-policy", "", "id of the policy that wants a human at once")
	return cmd
}

// acpDone prints what an action came to.
func (a *app) acpDone(raw json.RawMessage) error {
	var r struct {
		ProposalID string         `json:"proposal_id"`
		Status     string         `json:"status"`
		Responses  uint64         `json:"responses"`
		Weight     string         `json:"weight"`
		Decision   map[string]any `json:"decision"`
	}
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	pairs := []string{"proposal", r.ProposalID, "status", r.Status, "responses", number(r.Responses), "weight", r.Weight}
	if d := r.Decision; d != nil {
		pairs = append(pairs, "outcome", fmt.Sprint(d["outcome"]), "trigger", fmt.Sprint(d["trigger"]), "for", fmt.Sprint(d["votes_for"]), "against", fmt.Sprint(d["votes_against"]))
	}
	facts(a.out, pairs...)
	return nil
}

func (a *app) acpRespond() *cobra.Command {
	var confidence, authority, trust, reason string
	cmd := &cobra.Command{
		Use:     "respond PROPOSAL endorse|challenge",
		Short:   "Endorse or challenge a pending proposal, once",
		Example: `  deliberd acp respond 01JD0000000000000000000000 challenge --confidence 0.9 --reason "no backup" --as bob`,
		Args:    args("PROPOSAL", "endorse|challenge"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body := without(map[string]any{"proposal_id": given[0], "response_type": given[1], "reason": reason})
			for _, d := range []struct{ flag, member, text string }{{"--confidence", "confidence", confidence}, {"--authority", "domain_authority", authority}, {"--trust", "trust_score", trust}} {
				if d.text == "" && d.member != "confidence" {
					continue
				}
				if !isDecimal(d.text) {
					return usage("%s is %q, not a decimal from 0 to 1", d.flag, d.text)
				}
				body[d.member] = json.RawMessage(d.text)
			}
			return a.act(cmd, "acp.respond", body, a.acpDone)
		},
	}
	f := cmd.Flags()
	f.StringVar(&confidence, "confidence", "", "how certain one is, 0 to 1")
	f.StringVar(&authority, "authority", "", "claim less domain authority than is granted")
	f.StringVar(&trust, "trust", "", "claim less trust than is granted")
	f.StringVar(&reason, "reason", "", "why")
	return cmd
}

func (a *app) acpEscalate() *cobra.Command {
	var note, responsible, policy string
	cmd := &cobra.Command{
		Use:     "escalate PROPOSAL",
		Short:   "Hand a pending proposal to a human",
		Example: `  deliberd acp escalate 01JD0000000000000000000000 --note "touches production" --responsible on-call --as ada`,
		Args:    args("PROPOSAL"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body := without(map[string]any{"proposal_id": given[0], "note": note, "responsible": responsible, "policy": policy})
			return a.act(cmd, "acp.escalate", body, a.acpDone)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why")
	cmd.Flags().StringVar(&responsible, "responsible", "", "which human or team shall resolve it")
	cmd.Flags().StringVar(&policy, "policy", "", "id of the policy that asks for it")
	return cmd
}

func (a *app) acpResolve() *cobra.Command {
	var note string
	cmd := &cobra.Command{
		Use:     "resolve PROPOSAL approve|reject",
		Short:   "Decide an escalated proposal, as a human",
		Example: `  deliberd acp resolve 01JD0000000000000000000000 approve --note "checked" --as grace`,
		Args:    args("PROPOSAL", "approve|reject"),
		RunE: func(cmd *cobra.Command, given []string) error {
			outcome := given[1]
			switch outcome { // the verb for people, the wire's word for scripts
			case "approve", "approved":
				outcome = string(acp.Approved)
			case "reject", "rejected":
				outcome = string(acp.Rejected)
			}
			return a.act(cmd, "acp.resolve", without(map[string]any{"proposal_id": given[0], "outcome": outcome, "note": note}), a.acpDone)
		},
	}
	cmd.Flags().StringVar(&note, "note", "", "why")
	return cmd
}

// acpView is what acp.get answers, as far as it is printed.
type acpView struct {
	ProposalID string          `json:"proposal_id"`
	Type       string          `json:"type"`
	Domain     string          `json:"domain"`
	Author     string          `json:"author"`
	Status     string          `json:"status"`
	Quorum     json.Number     `json:"quorum"`
	Payload    json.RawMessage `json:"payload"`
	ExpiresAt  string          `json:"expires_at"`
	Responses  []struct {
		Participant string      `json:"participant_id"`
		Type        string      `json:"response_type"`
		Confidence  json.Number `json:"confidence"`
		Authority   json.Number `json:"domain_authority"`
		Trust       json.Number `json:"trust_score"`
		Weight      json.Number `json:"weight"`
		Reason      string      `json:"reason"`
	} `json:"responses"`
	Tally struct {
		For     string `json:"votes_for"`
		Against string `json:"votes_against"`
	} `json:"tally"`
	Resolution *struct {
		Outcome   string `json:"outcome"`
		Trigger   string `json:"trigger"`
		DecidedAt string `json:"decided_at"`
	} `json:"resolution"`
	Note string `json:"resolution_note"`
}

func (a *app) acpGet() *cobra.Command {
	return staleFlag(&cobra.Command{
		Use:     "get PROPOSAL",
		Short:   "Show a proposal with its responses and decision",
		Example: "  deliberd acp get 01JD0000000000000000000000 --as ada",
		Args:    args("PROPOSAL"),
		RunE: func(cmd *cobra.Command, given []string) error {
			var v acpView
			return a.ask(cmd, "acp.get", map[string]string{"proposal_id": given[0]}, &v, func() { a.printProposal(v) })
		},
	})
}

func (a *app) printProposal(v acpView) {
	pairs := []string{"proposal", v.ProposalID, "type", v.Type, "domain", v.Domain, "author", v.Author, "status", v.Status,
		"quorum", v.Quorum.String(), "expires", v.ExpiresAt, "payload", line(string(v.Payload), 100), "for", v.Tally.For, "against", v.Tally.Against}
	if r := v.Resolution; r != nil {
		pairs = append(pairs, "outcome", r.Outcome, "trigger", r.Trigger, "decided", r.DecidedAt, "note", v.Note)
	}
	facts(a.out, pairs...)
	var rows [][]string
	for _, r := range v.Responses {
		rows = append(rows, []string{r.Participant, r.Type, r.Authority.String(), r.Confidence.String(), r.Trust.String(), r.Weight.String(), line(r.Reason, 40)})
	}
	table(a.out, "no responses", []string{"WHO", "RESPONSE", "AUTHORITY", "CONFIDENCE", "TRUST", "WEIGHT", "REASON"}, rows)
}

func (a *app) acpList() *cobra.Command {
	var status, domain, after string
	var limit int
	cmd := &cobra.Command{
		Use:     "list",
		Short:   "List proposals",
		Example: "  deliberd acp list --status pending --domain risk.credit --as ada",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			var page struct {
				Proposals []struct {
					ID        string      `json:"proposal_id"`
					Type      string      `json:"type"`
					Domain    string      `json:"domain"`
					Author    string      `json:"author"`
					Status    string      `json:"status"`
					Outcome   string      `json:"outcome"`
					Responses json.Number `json:"responses"`
					Quorum    json.Number `json:"quorum"`
				} `json:"proposals"`
				Next string `json:"next"`
			}
			params := without(map[string]any{"status": status, "domain": domain, "after": after, "limit": limit})
			return a.ask(cmd, "acp.list", params, &page, func() {
				var rows [][]string
				for _, p := range page.Proposals {
					rows = append(rows, []string{p.ID, p.Type, p.Domain, p.Author, p.Status, p.Outcome, p.Responses.String() + "/" + p.Quorum.String()})
				}
				table(a.out, "no proposals", []string{"PROPOSAL", "TYPE", "DOMAIN", "AUTHOR", "STATUS", "OUTCOME", "RESPONSES"}, rows)
				more(a.out, page.Next)
			})
		},
	}
	cmd.Flags().StringVar(&status, "status", "", "pending, resolved, escalated or expired")
	cmd.Flags().StringVar(&domain, "domain", "", "only this domain")
	pageFlags(cmd, &after, &limit)
	return staleFlag(cmd)
}

// unitFlag reads a number in [0, 1].
func unitFlag(flag, text string) (float64, error) {
	f, err := strconv.ParseFloat(text, 64)
	if err != nil || !(f >= 0 && f <= 1) {
		return 0, usage("%s is %q; use a number from 0 to 1", flag, text)
	}
	return f, nil
}
