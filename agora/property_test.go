package agora_test

import (
	"encoding/json"
	"math/big"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/machine"
)

func TestARationalQuorumIsExact(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		den := rapid.Uint64Range(1, agora.MaxTerm).Draw(rt, "den")
		num := rapid.Uint64Range(1, den).Draw(rt, "num")
		registered := rapid.Uint64Range(1, 1<<40).Draw(rt, "registered")
		cast := rapid.Uint64Range(0, registered).Draw(rt, "cast")
		left := new(big.Int).Mul(new(big.Int).SetUint64(cast), new(big.Int).SetUint64(den))
		right := new(big.Int).Mul(new(big.Int).SetUint64(num), new(big.Int).SetUint64(registered))
		if got := agora.Rational(num, den).Met(cast, registered); got != (left.Cmp(right) >= 0) {
			rt.Fatalf("%d of %d against %d/%d: %v", cast, registered, num, den, got)
		}
	})
}

func TestAFractionNeedsAsManyVotesAsTryingOneByOneFinds(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		registered := rapid.Uint64Range(1, 300).Draw(rt, "registered")
		value := rapid.Float64Range(1e-9, 1).Draw(rt, "value")
		want := uint64(0)
		for float64(want)/float64(registered) < value {
			want++
		}
		if got, ok := agora.Fraction(value).Needed(registered); !ok || got != want {
			rt.Fatalf("%g of %d needs %d (%v), want %d", value, registered, got, ok, want)
		}
	})
}

// TestTheMachineAndTheRoundAgree runs one random script through both; the
// round is restored from its state after every step.
func TestTheMachineAndTheRoundAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t)
		deadline := int64(b.Now) + int64(rapid.IntRange(1, 40).Draw(rt, "deadline"))
		voters := []agora.Voter{{ID: "a", Weight: rapid.Uint64Range(1, 3).Draw(rt, "weight")}, {ID: "b", Weight: 1}, {ID: "c", Weight: 1}}
		body := agora.ProposeBody{
			ID: "r", Action: json.RawMessage(`{}`), Voters: voters, Vetoers: []string{"s", "a"}, DeadlineMS: deadline,
			Quorum: rapid.SampledFrom([]agora.Quorum{agora.Count(1), agora.Count(3), agora.Fraction(0.5), agora.Rational(2, 3)}).Draw(rt, "quorum"),
		}
		b.Must("p", "agora.propose", body)
		r, err := agora.Propose(agora.Proposal{ID: "r", ProposerID: "p", Action: body.Action, Voters: voters, Vetoers: body.Vetoers, Quorum: body.Quorum, Deadline: &deadline})
		if err != nil {
			rt.Fatal(err)
		}
		for range rapid.IntRange(1, 12).Draw(rt, "steps") {
			b.Now += machine.Stamp(rapid.IntRange(0, 8).Draw(rt, "wait"))
			if int64(b.Now) >= deadline { // the machine evaluates by itself then
				r.Evaluate(int64(b.Now))
			}
			who := rapid.SampledFrom([]string{"a", "b", "c", "s", "p"}).Draw(rt, "who")
			var inMachine, inRound error
			switch rapid.SampledFrom([]string{"vote", "vote", "vote", "veto", "evaluate"}).Draw(rt, "do") {
			case "vote":
				choice := rapid.SampledFrom([]agora.Choice{agora.Yes, agora.No, agora.Abstain}).Draw(rt, "choice")
				_, inMachine = b.Do(who, "agora.vote", agora.VoteBody{RoundID: "r", Choice: choice})
				inRound = r.CastVote(agora.Vote{AgentID: who, Choice: choice})
			case "veto":
				_, inMachine = b.Do(who, "agora.veto", agora.VetoBody{RoundID: "r", Reason: "because"})
				inRound = r.CastVeto(agora.Veto{AgentID: who, Reason: "because"})
			case "evaluate":
				b.Must(who, "agora.evaluate", agora.EvaluateBody{RoundID: "r"})
				r.Evaluate(int64(b.Now))
			}
			if named(inMachine) != named(inRound) {
				rt.Fatalf("machine %v, round %v", inMachine, inRound)
			}
			if r, err = agora.FromState(throughJSON(rt, r.ToState())); err != nil {
				rt.Fatal(err)
			}
			got, want := see(b, "r"), r.ToState()
			if !reflect.DeepEqual(got.Tally, r.Tally()) || !reflect.DeepEqual(got.Resolution, want.Resolution) || !reflect.DeepEqual(got.Vetoes, want.Vetoes) || !reflect.DeepEqual(got.Votes, want.Votes) {
				rt.Fatalf("machine %+v, round %+v with %+v", got, want, r.Tally())
			}
		}
	})
}

func throughJSON(t *rapid.T, s agora.State) (out agora.State) {
	text, err := json.Marshal(s)
	if err == nil {
		err = json.Unmarshal(text, &out)
	}
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestAStateThatNoRoundCouldReachIsRefused(t *testing.T) {
	r, err := agora.Propose(agora.Proposal{ID: "r", ProposerID: "p", Voters: []agora.Voter{{ID: "a"}}, Quorum: agora.Count(1)})
	if err != nil {
		t.Fatal(err)
	}
	good := r.ToState()
	for want, change := range map[string]func(*agora.State){
		agora.CodeNotAVoter:       func(s *agora.State) { s.Votes = []agora.Vote{{AgentID: "z", Choice: agora.Yes}} },
		agora.CodeInvalidChoice:   func(s *agora.State) { s.Votes = []agora.Vote{{AgentID: "a", Choice: "aye"}} },
		agora.CodeNotAVetoer:      func(s *agora.State) { s.Vetoes = []agora.Veto{{AgentID: "a", Reason: "r"}} },
		agora.CodeInvalidProposal: func(s *agora.State) { s.Resolution = &agora.Resolution{Outcome: agora.Approved} },
	} {
		s := good
		change(&s)
		if _, err := agora.FromState(s); refusal(err) != want {
			t.Errorf("%+v: %v, want %s", s, err, want)
		}
	}
}

func TestAStoreKeepsRounds(t *testing.T) {
	var s agora.Store = &agora.MemoryStore{}
	for _, id := range []string{"b", "a"} {
		if err := s.Save(agora.State{Proposal: agora.Proposal{ID: id}}); err != nil {
			t.Fatal(err)
		}
	}
	if ids, err := s.ListIDs(); err != nil || !reflect.DeepEqual(ids, []string{"a", "b"}) {
		t.Fatalf("%v, %v", ids, err)
	}
	if err := s.Delete("a"); err != nil {
		t.Fatal(err)
	}
	if _, ok, err := s.Load("a"); ok || err != nil {
		t.Fatalf("a deleted round: %v, %v", ok, err)
	}
	if got, ok, err := s.Load("b"); !ok || err != nil || got.Proposal.ID != "b" {
		t.Fatalf("%+v, %v, %v", got, ok, err)
	}
}
