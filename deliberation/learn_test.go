package deliberation_test

import (
	"encoding/json"
	"math"
	"slices"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/reputation"
)

func (r *rig) reputation(agent, domain string) deliberation.Reputation {
	r.t.Helper()
	var out deliberation.Reputation
	p := obj{"agent": agent}
	if domain != "" {
		p["domain"] = domain
	}
	if err := r.Query("deliberatic.reputation", "ann", p, &out); err != nil {
		r.t.Fatal(err)
	}
	return out
}

// fast takes a clear round to its verdict: ann wins, bob's position is
// rejected, cid supports ann, dan challenges ann.
func (r *rig) fast() (string, *deliberation.Verdict) {
	r.t.Helper()
	round := r.open(nil)
	winner := r.position("ann", round, "yes", 1)
	r.position("bob", round, "no", 0.2)
	r.do("cid", "support", obj{"round": round, "target": winner, "evidence": evidence(1, 0)})
	r.do("dan", "challenge", obj{"round": round, "target": winner, "evidence": evidence(0.1, 0)})
	r.done(round, agents...)
	r.confirm("ann", round, winner, true)
	r.confirm("bob", round, winner, false)
	r.confirm("cid", round, winner, true)
	v := r.confirm("dan", round, winner, true).Verdict
	if v == nil {
		r.t.Fatal("no verdict")
	}
	return round, v
}

func TestRatingsMoveExactly(t *testing.T) {
	r := newRig(t)
	r.fast()
	const micro = 1_000_000
	// All stand at 1200, so E is ½: K_d = 32 and K₀ = 8 give ±16 and ±4; who
	// supports the winner scores what was expected.
	for _, c := range []struct {
		agent          string
		domain, global int64
		rounds         int
	}{{"ann", 1216 * micro, 1204 * micro, 1}, {"bob", 1184 * micro, 1196 * micro, 1}, {"cid", 1200 * micro, 1200 * micro, 1}, {"dan", 1200 * micro, 1200 * micro, 0}} {
		d, g := r.reputation(c.agent, "risk"), r.reputation(c.agent, "")
		if d.RatingMicro != c.domain || g.RatingMicro != c.global || d.Rounds != c.rounds || g.Rounds != c.rounds {
			t.Errorf("%s: %+v, global %+v", c.agent, d, g)
		}
	}
	if other := r.reputation("ann", "law"); other.Known || other.RatingMicro != 1204*micro {
		t.Errorf("an unseen domain starts from the global rating: %+v", other)
	}
	r.fast()
	// The second round starts from 1216 and 1184 with K_d = 960/31.
	d := (1216.0 - 1184.0) / 400
	e := 1 / (1 + math.Pow(10, -d))
	// bob's K is 960/31 too; cid plays against bob alone.
	want := map[string]float64{"ann": 1216 + 960.0/31*(1-e), "bob": 1184 - 960.0/31*(1-e)}
	for agent, points := range want {
		if got := r.reputation(agent, "risk").RatingMicro; math.Abs(float64(got)-points*micro) > 1 {
			t.Errorf("%s: %d, want %f", agent, got, points*micro)
		}
	}
}

func TestConcurrentRoundsAddTheirSteps(t *testing.T) {
	r := newRig(t)
	one, two := r.open(nil), r.open(nil)
	for _, round := range []string{one, two} {
		winner := r.position("ann", round, "yes", 1)
		r.position("bob", round, "no", 0.2)
		r.done(round, agents...)
		for _, id := range []string{"ann", "bob", "cid"} {
			r.confirm(id, round, winner, true)
		}
	}
	k2 := reputation.DomainK(1)
	want := 1200.0 + 16 + k2/2 // both rounds opened before either ended: E is ½ in both
	if got := r.reputation("ann", "risk").Rating; math.Abs(got-want) > 1e-6 {
		t.Fatalf("rating %f, want %f", got, want)
	}
}

func TestDissentsAreRecordedWithTheirExpectation(t *testing.T) {
	r := newRig(t)
	_, v := r.fast()
	if len(v.Dissents) != 2 {
		t.Fatalf("dissents %+v", v.Dissents)
	}
	bob, dan := v.Dissents[0], v.Dissents[1]
	if bob.Agent != "bob" || bob.Position == "" || !bob.Rejected || bob.ExpectedNano != 500_000_000 {
		t.Errorf("bob %+v", bob)
	}
	if dan.Agent != "dan" || dan.Position != "" || len(dan.Challenges) != 1 || dan.Rejected {
		t.Errorf("dan %+v", dan)
	}
}

func TestTheOutcomeScoresProbabilitiesAndVindicatesDissents(t *testing.T) {
	r := newRig(t)
	round, _ := r.fast()
	r.do("op", "outcome", obj{"round": round, "answer": "no"})
	last := r.Events[len(r.Events)-1]
	learned := last.Data.(*deliberation.Learned)
	if last.Type != "deliberatic.learned" || !slices.Equal(learned.Calibrated, []string{"ann", "bob"}) || !slices.Equal(learned.Vindicated, []string{"bob", "dan"}) {
		t.Fatalf("learned %+v", learned)
	}
	const micro = 1_000_000
	// 1.5 · K_d · (1 − ½): bob has one round behind him, dan none.
	if got, want := r.reputation("bob", "risk").RatingMicro, 1184*micro+int64(math.RoundToEven(0.75*960/31*micro)); got != want {
		t.Errorf("bob %d, want %d", got, want)
	}
	if got := r.reputation("dan", "risk").RatingMicro; got != 1224*micro {
		t.Errorf("dan %d", got)
	}
	if got := r.reputation("bob", "").RatingMicro; got != 1196*micro {
		t.Errorf("the bonus belongs to the domain, bob's global rating is %d", got)
	}
	for agent, brier := range map[string]float64{"ann": 0.81, "bob": 0.01} {
		for _, domain := range []string{"risk", ""} {
			m := r.reputation(agent, domain).Calibration
			if m.N != 1 || math.Abs(*m.Brier-brier) > 1e-12 {
				t.Errorf("%s in %q: %+v", agent, domain, m)
			}
		}
	}
	if a, b := r.reputation("ann", "risk").Rho, reputation.Factor(1216*micro); a >= b {
		t.Errorf("overconfidence does not lower rho: %f against %f", a, b)
	}
	r.refused("already_learned", "op", "outcome", obj{"round": round, "answer": "no"})
	r.refused("already_learned", "op", "outcome", obj{"round": round, "vindicated": []string{"dan"}})
	r.refused("not_a_dissent", "op", "outcome", obj{"round": round, "vindicated": []string{"cid"}})
}

func TestARightVerdictVindicatesNobody(t *testing.T) {
	r := newRig(t)
	round, _ := r.fast()
	r.Grant("hal", "risk", "1", "1")
	r.do("hal", "outcome", obj{"round": round, "answer": "yes"})
	if l := r.view(round).State.Learned; len(l.Vindicated) != 0 || string(l.Answer) != `"yes"` || l.By != "hal" {
		t.Fatalf("learned %+v", l)
	}
}

func TestADissentIsVindicatedOnceHoweverItIsTold(t *testing.T) {
	r := newRig(t)
	round, _ := r.fast()
	r.do("op", "outcome", obj{"round": round, "vindicated": []string{"dan"}})
	before := r.reputation("dan", "risk").RatingMicro
	r.do("op", "outcome", obj{"round": round, "answer": "no"})
	if got := r.reputation("dan", "risk").RatingMicro; got != before {
		t.Fatalf("dan's dissent was rewarded twice: %d, then %d", before, got)
	}
	if l := r.view(round).State.Learned; !slices.Equal(l.Vindicated, []string{"bob", "dan"}) {
		t.Fatalf("learned %+v", l)
	}
}

func TestLearningLeavesTheEvidenceChainAsItIs(t *testing.T) {
	r := newRig(t)
	round, v := r.fast()
	before := r.export(round)
	r.do("op", "outcome", obj{"round": round, "answer": "no"})
	if after := r.export(round); string(before) != string(after) {
		t.Fatal("the chain changed")
	}
	if got := r.view(round).Verdict.EvidenceRoot; got != v.EvidenceRoot {
		t.Fatalf("root %s, was %s", got, v.EvidenceRoot)
	}
}

func (r *rig) export(round string) []byte {
	r.t.Helper()
	var raw json.RawMessage
	if err := r.Query("deliberatic.export", "zoe", obj{"round": round}, &raw); err != nil {
		r.t.Fatal(err)
	}
	return raw
}

func TestARoundWithoutADomainMovesGlobalRatingsOnly(t *testing.T) {
	r := newRig(t)
	round := r.open(obj{"domain": nil, "participants": agents})
	winner := r.position("ann", round, "yes", 1)
	r.position("bob", round, "no", 0.2)
	r.done(round, agents...)
	for _, id := range []string{"ann", "bob", "cid"} {
		r.confirm(id, round, winner, true)
	}
	if g, d := r.reputation("ann", ""), r.reputation("ann", "risk"); g.RatingMicro != 1204_000_000 || d.Known {
		t.Fatalf("global %+v, domain %+v", g, d)
	}
}

func TestALonePositionMovesNoRating(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	winner := r.position("ann", round, "yes", 1)
	r.do("bob", "support", obj{"round": round, "target": winner})
	r.done(round, agents...)
	for _, id := range []string{"ann", "bob", "cid"} {
		r.confirm(id, round, winner, true)
	}
	if slices.Contains(r.events(), "rated") || r.reputation("ann", "").Known {
		t.Fatal("a rating moved without an opponent")
	}
}

func TestTheFactorRhoOfTheRatingsBeforeTheRoundWeighsIn(t *testing.T) {
	r := newRig(t)
	round := r.open(nil) // opens before ann's rating rises
	r.fast()
	later := r.open(nil)
	for _, c := range []struct {
		round string
		rho   float64
	}{{round, 1}, {later, reputation.Factor(1216_000_000)}} {
		ann, _ := r.view(c.round).Round.Participant("ann")
		if ann.Rho != c.rho {
			t.Errorf("rho %f, want %f", ann.Rho, c.rho)
		}
	}
}
