package deliberation_test

import (
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"pgregory.net/rapid"
)

func (r *rig) explain(round string) deliberation.Explanation {
	r.t.Helper()
	var e deliberation.Explanation
	if err := r.Query("deliberatic.explain", "zoe", obj{"round": round}, &e); err != nil {
		r.t.Fatal(err)
	}
	return e
}

func TestAnExplanationAddsUp(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	yes := r.position("ann", round, "yes", 0.8)
	no := r.position("bob", round, "no", 0.5)
	ch := r.do("cid", "challenge", obj{"round": round, "target": yes, "evidence": evidence(0.5, 0)}).Argument
	r.do("dan", "support", obj{"round": round, "target": no, "evidence": evidence(0.25, 0)})
	r.do("ann", "relate", obj{"round": round, "from": yes, "to": ch, "relation": "attack"})
	e := r.explain(round)
	if !e.Provisional || e.Phase != deliberation.PhaseCollecting || e.Winner != yes || len(e.Waiting) != 4 || e.Moderator != "cid" {
		t.Fatalf("%+v", e)
	}
	for _, a := range e.Arguments {
		sum := a.BaseNano
		for _, s := range a.Shares {
			sum += s.ShareNano
			if s.CrossReference != (s.From == yes && a.ID == ch) {
				t.Errorf("share %+v of %s", s, a.ID)
			}
		}
		if d := sum - a.SigmaNano; d < -3 || d > 3 {
			t.Errorf("%s: shares add up to %d, sigma is %d", a.ID, sum, a.SigmaNano)
		}
	}
}

func TestAFlipIsWhatItTakesAndNoLess(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := &deliberation.Round{ID: "r", TauNano: deliberation.DefaultTau, GammaPlus: 0.6, GammaMinus: 0.8, WeightMethod: "literal",
			Method: rapid.SampledFrom([]string{"fixed-point", "quadratic-energy", "rectified", "literal-jacobi"}).Draw(rt, "method")}
		for _, id := range agents {
			r.Participants = append(r.Participants, deliberation.Participant{ID: id, Rho: rapid.Float64Range(0.5, 2).Draw(rt, "rho")})
		}
		var args []*deliberation.Argument
		n := rapid.IntRange(2, 12).Draw(rt, "n")
		for i := range n {
			a := &deliberation.Argument{ID: string(rune('a' + i)), Author: rapid.SampledFrom(agents).Draw(rt, "author"), Kind: deliberation.PositionKind,
				Evidence: []deliberation.Evidence{{Value: rapid.Float64Range(0, 1).Draw(rt, "value")}}}
			if i >= 2 && rapid.Bool().Draw(rt, "argument") {
				a.Kind = rapid.SampledFrom([]deliberation.ArgumentKind{deliberation.ChallengeKind, deliberation.SupportKind}).Draw(rt, "kind")
				a.Target = args[rapid.IntRange(0, i-1).Draw(rt, "target")].ID
			}
			args = append(args, a)
		}
		e, err := deliberation.Explain(r, args)
		if err != nil {
			rt.Fatal(err)
		}
		if e.Flip == nil || max(e.Flip.ChangeNano, -e.Flip.ChangeNano) < 20_000 {
			return
		}
		at := func(nano int64) string {
			for _, a := range args {
				if a.ID == e.Flip.Argument {
					old := a.Evidence
					a.Evidence = []deliberation.Evidence{{Value: min(1, max(0, float64(nano)/1e9))}}
					defer func() { a.Evidence = old }()
				}
			}
			g, _, err := deliberation.Grade(r, args)
			if err != nil {
				rt.Fatal(err)
			}
			return g.Winner
		}
		step := int64(1000)
		if e.Flip.ChangeNano < 0 {
			step = -step
		}
		beyond := e.Flip.ToNano + 10*step
		if beyond < 0 || beyond > 1e9 {
			return
		}
		searched := r.Method != "fixed-point" || e.Status != "exact" && e.Status != "converged" && e.Status != "continuized"
		if got := at(beyond); got == e.Winner && (!searched || at(e.Flip.ToNano) == e.Winner) {
			rt.Errorf("beyond the flip %+v %s still wins", *e.Flip, got)
		}
		if short := e.Flip.ToNano - 10*step; (short-e.Flip.FromNano)*step > 0 {
			if got := at(short); got != e.Winner {
				rt.Errorf("short of the flip %+v %s wins already, not %s", *e.Flip, got, e.Winner)
			}
		}
	})
}

func TestEveryMethodSaysWhatWouldTurnIt(t *testing.T) {
	for _, method := range []string{"fixed-point", "quadratic-energy", "rectified", "literal-jacobi"} {
		r := newRig(t)
		round := r.open(obj{"method": method})
		yes := r.position("ann", round, "yes", 0.8)
		no := r.position("bob", round, "no", 0.5)
		r.do("cid", "challenge", obj{"round": round, "target": yes, "evidence": evidence(0.25, 0)})
		e := r.explain(round)
		if e.Method != method || e.Winner == "" || e.Flip == nil || e.Flip.Then == e.Winner || e.Flip.Then != yes && e.Flip.Then != no || e.Flip.ToNano-e.Flip.FromNano != e.Flip.ChangeNano {
			t.Errorf("%s: winner %s, flip %+v", method, e.Winner, e.Flip)
		}
		if e.PathFlip == nil || e.PathFlip.Then == string(e.Path) {
			t.Errorf("%s: path %s, flip %+v", method, e.Path, e.PathFlip)
		}
	}
}

func TestAnEndedRoundIsExplainedByItsPath(t *testing.T) {
	r := newRig(t)
	round, winner, _ := r.close(nil)
	r.done(round, agents...)
	if e := r.explain(round); e.Path != deliberation.PathConflict || e.Why != "gap_within_tau" || e.ClosedBy != "all_final" || e.Provisional {
		t.Fatalf("%+v", e)
	}
	r.certify(round)
	e := r.explain(round)
	if e.Path != deliberation.PathConflict || e.Winner != winner || *e.GapNano != 100_000_000 {
		t.Fatalf("%+v", e)
	}
	if e.PathFlip == nil || e.PathFlip.Then != "fast" || e.PathFlip.ChangeNano != 50_000_000 && e.PathFlip.ChangeNano != -50_000_000 {
		t.Fatalf("path flip %+v", e.PathFlip)
	}
	if e.Flip == nil || e.Flip.ChangeNano != 100_000_000 && e.Flip.ChangeNano != -100_000_000 {
		t.Fatalf("flip %+v", e.Flip)
	}
}
