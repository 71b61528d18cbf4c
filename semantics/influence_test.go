package semantics

import (
	"math"
	"testing"

	"github.com/deliberd/deliberd/machine"
	"pgregory.net/rapid"
)

func TestInfluenceIsWhatAWeightAddsToAStrength(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.IntRange(2, 8).Draw(rt, "n")
		var g Graph
		for i := range n {
			g.Arguments = append(g.Arguments, Argument{ID: string(rune('a' + i)), Weight: rapid.Float64Range(0, 0.5).Draw(rt, "weight"), Rho: 1})
			if i == 0 {
				continue
			}
			e := Edge{From: g.Arguments[i].ID, To: g.Arguments[rapid.IntRange(0, i-1).Draw(rt, "to")].ID}
			if rapid.Bool().Draw(rt, "attack") {
				g.Attacks = append(g.Attacks, e)
			} else {
				g.Supports = append(g.Supports, e)
			}
		}
		r, err := Compute(g, Options{})
		if err != nil {
			rt.Fatal(err)
		}
		influence, err := r.Influence()
		if err != nil {
			rt.Fatal(err)
		}
		of, less := g.Arguments[0].ID, g.Arguments[1].ID
		alone, err := influence.On(of, "")
		if err != nil {
			rt.Fatal(err)
		}
		gap, err := influence.On(of, less)
		if err != nil {
			rt.Fatal(err)
		}
		for i, a := range r.Arguments {
			heavier, err := Compute(withWeight(g, a.ID, Nano(a.Weight)+250_000_000), Options{})
			if err != nil {
				rt.Fatal(err)
			}
			grown := func(id string) float64 {
				before, _ := r.Of(id)
				after, _ := heavier.Of(id)
				return (after.Sigma - before.Sigma) / 0.25
			}
			if want := grown(of); math.Abs(alone[i]-want) > 1e-6 {
				rt.Errorf("%s on %s: %v, not %v", a.ID, of, alone[i], want)
			}
			if want := grown(of) - grown(less); math.Abs(gap[i]-want) > 1e-6 {
				rt.Errorf("%s on the gap: %v, not %v", a.ID, gap[i], want)
			}
		}
	})
}

func TestInfluenceOnNobodyIsRefused(t *testing.T) {
	influence, err := must(t, Graph{Arguments: []Argument{{"p", 0.5, 1}}}, Options{}).Influence()
	if err != nil {
		t.Fatal(err)
	}
	for _, ids := range [][2]string{{"x", ""}, {"", ""}, {"", "p"}, {"p", "x"}} {
		if _, err := influence.On(ids[0], ids[1]); err == nil {
			t.Errorf("%q is answered", ids)
		} else if r, ok := machine.IsRefusal(err); !ok || r.Code != CodeMissingArgument {
			t.Errorf("%q: %v", ids, err)
		}
	}
}
