package semantics

import (
	"testing"

	"pgregory.net/rapid"
)

func allPositions(g Graph) []Position {
	var out []Position
	for _, a := range g.Arguments {
		out = append(out, Position{ID: a.ID})
	}
	return out
}

// withWeight is g with another weight, at 1e-9, of one argument.
func withWeight(g Graph, id string, nano int64) Graph {
	g.Arguments = append([]Argument(nil), g.Arguments...)
	for i := range g.Arguments {
		if g.Arguments[i].ID == id {
			g.Arguments[i].Weight = float64(nano) / NanoPerUnit
		}
	}
	return g
}

func TestTheSmallestTurnOfTwoPositionsIsTheGapToTau(t *testing.T) {
	g := Graph{Arguments: []Argument{{"p", 0.8, 1}, {"q", 0.5, 2}}}
	r := must(t, g, Options{})
	// q = 1.0 leads p = 0.8 by 0.2. q's weight counts double: at 0.475 the gap
	// is τ and the path turns; p would have to rise by 0.05 to do the same.
	turn, err := r.SmallestTurn(allPositions(g), DefaultTau)
	if err != nil || turn.Change == nil || !turn.Exhaustive {
		t.Fatalf("%+v %v", turn, err)
	}
	if c := turn.Change; c.Argument != "q" || c.FromNano != 500_000_000 || c.ToNano != 475_000_000 || c.After.Path != Conflict || c.After.Winner != "q" {
		t.Fatalf("%+v", c)
	}
}

func TestATurnThroughAChallengeIsFound(t *testing.T) {
	g := Graph{
		Arguments: []Argument{{"p", 0.75, 1}, {"q", 0.5, 0.5}, {"c", 0, 2}},
		Attacks:   []Edge{{"c", "p"}},
	}
	r := must(t, g, Options{})
	turn, err := r.SmallestTurn([]Position{{ID: "p"}, {ID: "q"}}, DefaultTau)
	if err != nil || turn.Change == nil {
		t.Fatalf("%+v %v", turn, err)
	}
	// The gap is 0.5; c takes 0.8·2 per unit: 0.35/1.6 = 0.21875 suffices.
	if c := turn.Change; c.Argument != "c" || c.ToNano != 218_750_000 || c.After.Path != Conflict {
		t.Fatalf("%+v", c)
	}
}

func TestWhatNothingCanTurnIsSaid(t *testing.T) {
	g := Graph{Arguments: []Argument{{"p", 1, 2}, {"q", 0, 0.5}, {"s", 1, 2}}, Supports: []Edge{{"s", "p"}}, Attacks: []Edge{{"s", "q"}}}
	// p = 3.2, q = −1.6: with s silenced 2 and 0, with p at 0 1.2 and −1.6.
	r := must(t, g, Options{})
	for _, m := range []Method{FixedPoint, Rectified} {
		r = must(t, g, Options{Method: m})
		turn, err := r.SmallestTurn([]Position{{ID: "p"}, {ID: "q"}}, DefaultTau)
		if err != nil || turn.Change != nil || !turn.Exhaustive {
			t.Fatalf("%s: %+v %v", m, turn.Change, err)
		}
	}
	turn, err := r.SmallestTurn([]Position{{ID: "p"}}, DefaultTau)
	if err != nil || turn.Change != nil || !turn.Exhaustive {
		t.Fatalf("a lone survivor wins whatever its weight: %+v %v", turn, err)
	}
	if _, err := r.SmallestTurn([]Position{{ID: "x"}}, DefaultTau); !refused(err, CodeMissingArgument) {
		t.Fatal(err)
	}
}

// Every turn found turns; and on a coarse grid nothing smaller does.
func TestNoSmallerChangeTurnsTheDecision(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 5, rapid.Bool().Draw(t, "acyclic"))
		method := rapid.SampledFrom([]Method{FixedPoint, Rectified}).Draw(t, "method")
		o := Options{Method: method, GammaPlus: 0.3, GammaMinus: 0.4, Budget: 1_000_000}
		r := rapidCompute(t, g, o)
		positions := allPositions(g)[:min(len(g.Arguments), 3)]
		now, err := r.Decide(positions, DefaultTau)
		if err != nil {
			t.Fatal(err)
		}
		turn, err := r.SmallestTurn(positions, DefaultTau)
		if err != nil || !turn.Exhaustive {
			t.Fatalf("%+v %v", turn, err)
		}
		limit := int64(NanoPerUnit) + 1
		if c := turn.Change; c != nil {
			limit = c.size()
			after, err := rapidCompute(t, withWeight(g, c.Argument, c.ToNano), o).Decide(positions, DefaultTau)
			if err != nil || after.Winner == now.Winner && after.Path == now.Path || after.Winner != c.After.Winner || after.Path != c.After.Path {
				t.Fatalf("%+v does not turn %+v: %+v", c, now, after)
			}
		}
		if method != FixedPoint {
			return // a scan may miss a turn that turns back
		}
		for _, a := range g.Arguments {
			from := Nano(a.Weight)
			for w := int64(0); w <= NanoPerUnit; w += NanoPerUnit / 50 {
				size := (Change{FromNano: from, ToNano: w}).size()
				if size == 0 || size >= limit-16 { // rounding may shift a turning point by some nano
					continue
				}
				d, err := rapidCompute(t, withWeight(g, a.ID, w), o).Decide(positions, DefaultTau)
				if err != nil {
					t.Fatal(err)
				}
				if d.Winner != now.Winner || d.Path != now.Path {
					t.Fatalf("%s from %d to %d turns %s/%s to %s/%s, but the smallest turn is %+v", a.ID, from, w, now.Winner, now.Path, d.Winner, d.Path, turn.Change)
				}
			}
		}
	})
}
