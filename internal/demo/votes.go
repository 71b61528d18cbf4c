package demo

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deliberd/deliberd/client"
)

// proposal plays ACP appendix C.2: an expert outweighs a junior agent.
func (s *stage) proposal(ctx context.Context) error {
	s.say("\nACP proposal: deploy the storage migration")
	a, err := s.do(ctx, "eve", "acp.submit", object{"type": "proposal", "domain": domain, "quorum": 2,
		"payload": object{"action": "deploy", "service": "storage"}, "expires_in_ms": 300_000}, nil)
	if err != nil {
		return err
	}
	for _, r := range []struct {
		who, response, reason string
		confidence            float64
	}{{"ada", "challenge", "no rollback was rehearsed", 0.9}, {"ben", "endorse", "tests are green", 0.6}} {
		body := object{"proposal_id": a.ActionID, "response_type": r.response, "confidence": r.confidence, "reason": r.reason}
		if _, err := s.do(ctx, r.who, "acp.respond", body, nil); err != nil {
			return err
		}
		s.say("  %s: %s (%s)", r.who, r.response, r.reason)
	}
	var view struct {
		Resolution struct {
			Outcome      string      `json:"outcome"`
			Trigger      string      `json:"trigger"`
			VotesFor     json.Number `json:"votes_for"`
			VotesAgainst json.Number `json:"votes_against"`
		} `json:"resolution"`
	}
	agree, err := s.everywhere(ctx, "acp.get", object{"proposal_id": a.ActionID}, &view)
	if err != nil {
		return err
	}
	r := view.Resolution
	s.report.ACP = ACPReport{ProposalID: a.ActionID, Outcome: r.Outcome, Trigger: r.Trigger, NodesAgree: agree}
	s.report.ACP.VotesFor, _ = r.VotesFor.Float64()
	s.report.ACP.VotesAgainst, _ = r.VotesAgainst.Float64()
	s.say("  %s by %s: %s for, %s against", r.Outcome, r.Trigger, r.VotesFor, r.VotesAgainst)
	s.say("  all nodes agree: %v", agree)
	return nil
}

// vote plays the first example of the Agora README.
func (s *stage) vote(ctx context.Context) error {
	s.say("\nAgora round: deploy checkout-api 4.2.0, two thirds must vote")
	a, err := s.do(ctx, "ada", "agora.propose", object{
		"action": object{"type": "deploy", "service": "checkout-api", "version": "4.2.0"},
		"voters": []string{"ada", "ben", "cyd"}, "quorum": object{"type": "fraction", "value": "2/3"}}, nil)
	if err != nil {
		return err
	}
	for _, who := range []string{"ada", "ben"} {
		if _, err := s.do(ctx, who, "agora.vote", object{"round_id": a.ActionID, "choice": "yes"}, nil); err != nil {
			return err
		}
		s.say("  %s: yes", who)
	}
	if _, err := s.do(ctx, "ada", "agora.evaluate", object{"round_id": a.ActionID}, nil); err != nil {
		return err
	}
	var view struct {
		Resolution struct {
			Outcome string `json:"outcome"`
			Tally   struct {
				Yes int `json:"yes"`
				No  int `json:"no"`
			} `json:"tally"`
		} `json:"resolution"`
	}
	agree, err := s.everywhere(ctx, "agora.get", object{"round_id": a.ActionID}, &view)
	if err != nil {
		return err
	}
	r := view.Resolution
	s.report.Agora = AgoraReport{RoundID: a.ActionID, Outcome: r.Outcome, Yes: r.Tally.Yes, No: r.Tally.No, NodesAgree: agree}
	s.say("  %s: %d yes, %d no", r.Outcome, r.Tally.Yes, r.Tally.No)
	s.say("  all nodes agree: %v", agree)
	return nil
}

// everywhere asks every node the same, linearizably, and decodes the first
// answer into out; agree is whether all answers are equal.
func (s *stage) everywhere(ctx context.Context, query string, params, out any) (agree bool, err error) {
	agree = true
	var first json.RawMessage
	for _, url := range s.urls {
		c, err := client.New([]string{url}, client.As(s.clients["eve"].Me()))
		if err != nil {
			return false, err
		}
		var raw json.RawMessage
		if err := c.Query(ctx, query, params, &raw); err != nil {
			return false, fmt.Errorf("%s at %s: %w", query, url, err)
		}
		if first == nil {
			first = raw
		}
		agree = agree && string(first) == string(raw)
	}
	return agree, json.Unmarshal(first, out)
}
