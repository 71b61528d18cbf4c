package acp_test

import (
	"fmt"
	"slices"
	"strconv"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// literal draws a factor as somebody might write it.
func literal() *rapid.Generator[string] {
	return rapid.OneOf(
		rapid.SampledFrom([]string{"0", "1", "0.1", "0.2", "0.3", "0.7", "1e-17", "0.30000000000000004", "5e-324", "0.90"}),
		rapid.Custom(func(t *rapid.T) string { return "0." + rapid.StringMatching(`[0-9]{1,20}`).Draw(t, "digits") }),
	)
}

func drawFactors(t *rapid.T) factors {
	return factors{
		Type:            rapid.SampledFrom([]string{"endorse", "challenge"}).Draw(t, "type"),
		DomainAuthority: literal().Draw(t, "authority"), Confidence: literal().Draw(t, "confidence"), TrustScore: literal().Draw(t, "trust"),
	}
}

func TestATallyDoesNotDependOnTheOrderOfResponses(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		all := rapid.SliceOfN(rapid.Custom(drawFactors), 0, 12).Draw(rt, "responses")
		sum := func(order []factors) acp.Tally {
			var tally acp.Tally
			for _, f := range order {
				tally = tally.Add(acp.ResponseType(f.Type), f.weight(t))
			}
			return tally
		}
		a, b := sum(all), sum(rapid.Permutation(all).Draw(rt, "order"))
		if a.VotesFor.Cmp(b.VotesFor) != 0 || a.VotesAgainst.Cmp(b.VotesAgainst) != 0 || a.Outcome() != b.Outcome() || a.Responses != b.Responses {
			rt.Fatalf("%+v in one order, %+v in another", a, b)
		}
	})
}

func TestAWeightIsInTheUnitIntervalAndBlindToTheOrderOfFactors(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var f [3]acp.Decimal
		for i := range f {
			text := rapid.OneOf(literal(), rapid.Custom(func(t *rapid.T) string {
				return strconv.FormatFloat(rapid.Float64().Filter(func(x float64) bool { return x-x == 0 }).Draw(t, "any"), 'g', -1, 64)
			})).Draw(rt, "factor")
			var err error
			if f[i], err = acp.ParseDecimal(text); err != nil {
				rt.Fatal(err)
			}
		}
		w := acp.Weight(f[0], f[1], f[2])
		if !w.InUnit() || w.Cmp(acp.Weight(f[2], f[0], f[1])) != 0 || w.String() != acp.Weight(f[1], f[2], f[0]).String() {
			rt.Fatalf("weight %s of %v", w, f)
		}
	})
}

// TestTheMachineAndTheWorkspaceAgree runs one random script through both.
func TestTheMachineAndTheWorkspaceAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := machinetest.New(t, acp.New())
		b.Add(machine.Agent, "author")
		b.Add(machine.Human, "human")
		people := []string{"author", "p0", "p1", "p2", "p3"}
		for _, id := range append(slices.Clone(people), "human") {
			b.Grant(id, "d", "1", "1")
		}
		expires := b.Now + machine.Stamp(rapid.IntRange(1, 20).Draw(rt, "expires"))
		at := acp.At(expires)
		quorum := rapid.IntRange(1, 4).Draw(rt, "quorum")
		id := submit(b, m{"quorum": quorum, "expires_at": at.String()})
		var w acp.Workspace
		if err := w.Submit(acp.Submission{ProposalID: id, Type: acp.ProposalType, Domain: "d", Author: "author", Quorum: uint64(quorum), ExpiresAt: &at}, acp.At(b.Now)); err != nil {
			rt.Fatal(err)
		}
		for i := range rapid.IntRange(1, 10).Draw(rt, "steps") {
			b.Now += machine.Stamp(rapid.IntRange(0, 5).Draw(rt, "wait"))
			now := acp.At(b.Now)
			var inMachine, inWorkspace error
			switch do := rapid.SampledFrom([]string{"respond", "respond", "respond", "escalate", "resolve"}).Draw(rt, "do"); do {
			case "respond":
				who := rapid.SampledFrom(people).Draw(rt, "who")
				kind := rapid.SampledFrom([]acp.ResponseType{acp.Endorse, acp.Challenge}).Draw(rt, "kind")
				text := rapid.SampledFrom([]string{"0", "0.1", "0.2", "0.3", "0.5"}).Draw(rt, "confidence")
				c, _ := acp.ParseDecimal(text)
				one, _ := acp.ParseDecimal("1")
				_, inMachine = b.Do(who, "acp.respond", acp.RespondBody{ProposalID: id, ResponseType: kind, Confidence: c})
				inWorkspace = w.Respond(id, acp.Response{ParticipantID: who, ResponseType: kind, Confidence: c, DomainAuthority: one, TrustScore: one}, now)
			case "escalate":
				_, inMachine = b.Do("author", "acp.escalate", m{"proposal_id": id})
				inWorkspace = w.Escalate(id, "author", "", now)
			case "resolve":
				_, inMachine = b.Do("human", "acp.resolve", m{"proposal_id": id, "outcome": "rejected"})
				inWorkspace = w.Resolve(id, "human", acp.Rejected, now)
			}
			got, want := see(b, id), mustProposal(rt, &w, id)
			if code(inMachine) != code(inWorkspace) || got.Status != want.Status || len(got.Responses) != len(want.Responses) ||
				len(got.Decisions) != len(w.Decisions(id)) || fmt.Sprint(got.Resolution) != fmt.Sprint(want.Resolution) {
				rt.Fatalf("step %d: machine %v %+v, workspace %v %+v", i, inMachine, got, inWorkspace, want)
			}
			if err := got.Verify(nil); err != nil {
				rt.Fatalf("step %d: the machine's own proposal does not verify: %v", i, err)
			}
		}
	})
}

func mustProposal(t *rapid.T, w *acp.Workspace, id string) acp.Proposal {
	p, ok := w.Proposal(id)
	if !ok {
		t.Fatalf("no proposal %s", id)
	}
	return p
}
