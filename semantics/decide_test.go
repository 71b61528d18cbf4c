package semantics

import (
	"fmt"
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine"
)

func TestThePathFollowsTheGapAndWhatItRestsOn(t *testing.T) {
	tau := DefaultTau
	at := func(id string, nano int64) Candidate { return Candidate{ID: id, Nano: nano} }
	cases := []struct {
		name   string
		in     []Candidate
		path   Path
		reason Reason
		winner string
		second string
		gap    int64
	}{
		{"no position", nil, None, ReasonNoSurvivor, "", "", 0},
		{"one position", []Candidate{at("p", -5)}, Fast, ReasonOnlyOne, "p", "", 0},
		{"one unstable position", []Candidate{{ID: "p", Nano: 5, Unstable: true}}, Fast, ReasonOnlyOne, "p", "", 0},
		{"a gap of exactly τ", []Candidate{at("p", 650_000_000), at("q", 500_000_000)}, Conflict, ReasonClose, "p", "q", 150_000_000},
		{"a gap just above τ", []Candidate{at("p", 650_000_001), at("q", 500_000_000)}, Fast, ReasonClear, "p", "q", 150_000_001},
		{"equal strengths rank by id", []Candidate{at("q", 7), at("p", 7)}, Conflict, ReasonClose, "p", "q", 0},
		{"deltas turn the order", []Candidate{{ID: "p", Nano: 700_000_000}, {ID: "q", Nano: 500_000_000, Delta: 400_000_000}}, Fast, ReasonClear, "q", "p", 200_000_000},
		{"an unstable position anywhere", []Candidate{at("p", 900_000_000), at("q", 100_000_000), {ID: "r", Unstable: true}}, Conflict, ReasonUnstable, "p", "q", 800_000_000},
		{"a gap within the error", []Candidate{{ID: "p", Nano: 650_000_002, ErrorBound: 1e-9}, at("q", 500_000_000)}, Conflict, ReasonUncertain, "p", "q", 150_000_002},
		{"a gap beyond the error", []Candidate{{ID: "p", Nano: 650_000_003, ErrorBound: 1e-9}, at("q", 500_000_000)}, Fast, ReasonClear, "p", "q", 150_000_003},
		{"an error that is no number", []Candidate{{ID: "p", Nano: 900_000_000, ErrorBound: math.NaN()}, at("q", 0)}, Conflict, ReasonUncertain, "p", "q", 900_000_000},
	}
	for _, c := range cases {
		d := Decide(c.in, tau)
		if d.Path != c.path || d.Reason != c.reason || d.Winner != c.winner || d.Second != c.second || d.Gap != c.gap || d.Tau != tau || len(d.Ranking) != len(c.in) {
			t.Errorf("%s: %+v", c.name, d)
		}
	}
	if d := Decide([]Candidate{at("p", 0), at("q", -1)}, tau); !d.NoPositive {
		t.Error("a best strength of 0 is not positive")
	}
	if d := Decide([]Candidate{at("p", 1), at("q", -1)}, tau); d.NoPositive {
		t.Error("a best strength above 0 is positive")
	}
}

func TestADecisionDoesNotDependOnTheOrderOfPositions(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var in []Candidate
		for i := range rapid.IntRange(0, 6).Draw(t, "n") {
			in = append(in, Candidate{ID: string(rune('a' + i)), Nano: rapid.Int64Range(-3, 3).Draw(t, "nano"), Delta: rapid.Int64Range(-2, 2).Draw(t, "delta")})
		}
		tau := rapid.Int64Range(0, 3).Draw(t, "tau")
		a, b := Decide(in, tau), Decide(rapid.Permutation(in).Draw(t, "shuffled"), tau)
		if a.Winner != b.Winner || a.Second != b.Second || a.Path != b.Path || a.Gap != b.Gap || a.Gap < 0 {
			t.Fatalf("%+v and %+v", a, b)
		}
		for i := range a.Ranking {
			if a.Ranking[i] != b.Ranking[i] {
				t.Fatalf("%+v and %+v", a.Ranking, b.Ranking)
			}
		}
	})
}

// Three mutual supporters have no stable strength.
func withUnstableRing(g Graph) Graph {
	for _, id := range []string{"x", "y", "z"} {
		g.Arguments = append(g.Arguments, Argument{id, 1, 1})
		for _, to := range []string{"x", "y", "z"} {
			if to != id {
				g.Supports = append(g.Supports, Edge{id, to})
			}
		}
	}
	return g
}

func TestOnlyAnUnstableComponentUpstreamOfAPositionForcesTheConflictPath(t *testing.T) {
	g := withUnstableRing(Graph{Arguments: []Argument{{"p", 0.9, 1}, {"q", 0.1, 1}, {"relay", 0.5, 1}}})
	positions := []Position{{ID: "p"}, {ID: "q"}}
	decide := func(g Graph) Decision {
		d, err := must(t, g, Options{}).Decide(positions, DefaultTau)
		if err != nil {
			t.Fatal(err)
		}
		return d
	}
	if d := decide(g); d.Path != Fast {
		t.Fatalf("the ring touches nobody: %+v", d)
	}
	downstream := g
	downstream.Attacks = append(downstream.Attacks, Edge{"p", "x"})
	if d := decide(downstream); d.Path != Fast {
		t.Fatalf("the ring depends on p, not p on the ring: %+v", d)
	}
	upstream := g
	upstream.Supports = append(append([]Edge(nil), g.Supports...), Edge{"x", "relay"}, Edge{"relay", "p"})
	if d := decide(upstream); d.Path != Conflict || d.Reason != ReasonUnstable {
		t.Fatalf("p depends on the ring: %+v", d)
	}
}

func TestPositionsAreCheckedAgainstTheGraph(t *testing.T) {
	r := must(t, Graph{Arguments: []Argument{{"p", 0.9, 1}}}, Options{})
	for name, c := range map[string]struct {
		positions []Position
		tau       int64
		code      string
	}{
		"no argument": {[]Position{{ID: "x"}}, 0, CodeMissingArgument},
		"named twice": {[]Position{{ID: "p"}, {ID: "p"}}, 0, CodeDuplicateArgument},
		"huge delta":  {[]Position{{ID: "p", Delta: math.MaxInt64}}, 0, machine.CodeOutOfRange},
		"negative τ":  {[]Position{{ID: "p"}}, -1, machine.CodeOutOfRange},
		"huge τ":      {[]Position{{ID: "p"}}, math.MaxInt64, machine.CodeOutOfRange},
	} {
		if _, err := r.Decide(c.positions, c.tau); !refused(err, c.code) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheLiteralStopCanNameAWrongWinnerAndTheDefaultDoesNot(t *testing.T) {
	// s feeds a chain too weak to move anything by ε until it fans in at t.
	g := Graph{Arguments: []Argument{{"s", 0.0016, 1}, {"a", 0, 1}, {"q", 0.003, 1}, {"t", 0, 1}}}
	g.Supports = []Edge{{"s", "a"}}
	for i := range 40 {
		id := fmt.Sprintf("u%02d", i)
		g.Arguments = append(g.Arguments, Argument{id, 0, 1})
		g.Supports = append(g.Supports, Edge{"a", id}, Edge{id, "t"})
	}
	winner := func(m Method) string {
		d, err := must(t, g, Options{Method: m}).Decide([]Position{{ID: "q"}, {ID: "t"}}, 0)
		if err != nil {
			t.Fatal(err)
		}
		return d.Winner
	}
	if got := winner(FixedPoint); got != "t" {
		t.Errorf("fixed point: %s", got)
	}
	if got := winner(LiteralJacobi); got != "q" {
		t.Errorf("literal: %s", got)
	}
}

func TestWeightsFollowTheirFormulas(t *testing.T) {
	item := func(v, c float64) Evidence { return Evidence{v, c} }
	cases := []struct {
		name         string
		items        []Evidence
		literal, gms float64
	}{
		{"one item", []Evidence{item(0.9, 0.2)}, 0.81, 0.81},
		{"a certain item", []Evidence{item(1, 0)}, 1, 1},
		{"the widest interval", []Evidence{item(1, 1)}, 0.5, 0.5},
		{"a value of zero", []Evidence{item(0, 0), item(1, 0)}, 0, 0},
		{"two items", []Evidence{item(0.25, 0), item(1, 0)}, 0.5, 0.5},
		{"repetition", []Evidence{item(0.9, 0.2), item(0.9, 0.2)}, 0.729, 0.81},
	}
	for _, c := range cases {
		for rule, want := range map[WeightRule]float64{"": c.literal, Literal: c.literal, DiscountedGM: c.gms} {
			got, err := Weight(c.items, rule, 0)
			if err != nil || math.Abs(got-want) > 1e-12 {
				t.Errorf("%s, %q: %.15g, want %g (%v)", c.name, rule, got, want, err)
			}
		}
	}
	if w, err := Weight(nil, Literal, 0.25); err != nil || w != 0.25 {
		t.Errorf("no evidence: %g %v", w, err)
	}
	var many []Evidence
	for range 500 {
		many = append(many, item(1e-9, 0))
	}
	if w, err := Weight(many, DiscountedGM, 0); err != nil || math.Abs(w/1e-9-1) > 1e-9 {
		t.Errorf("many small values: %g %v", w, err)
	}
}

func TestAWeightIsAWeightInAnyOrderOfTheEvidence(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		items := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) Evidence {
			return Evidence{rapid.Float64Range(0, 1).Draw(t, "v"), rapid.Float64Range(0, 1).Draw(t, "c")}
		}), 0, 8).Draw(t, "items")
		rule := rapid.SampledFrom([]WeightRule{Literal, DiscountedGM}).Draw(t, "rule")
		a, err := Weight(items, rule, 0)
		if err != nil || a < 0 || a > 1 || math.IsNaN(a) {
			t.Fatalf("%g %v", a, err)
		}
		if b, _ := Weight(rapid.Permutation(items).Draw(t, "shuffled"), rule, 0); a != b {
			t.Fatalf("%g and %g", a, b)
		}
	})
}

func TestBadEvidenceIsRefusedAndWidthExplained(t *testing.T) {
	nan := math.NaN()
	for name, e := range map[string]Evidence{"value": {1.1, 0}, "negative value": {-0.1, 0}, "NaN value": {nan, 0}, "width": {0.5, 1.1}, "negative width": {0.5, -1}, "NaN width": {0.5, nan}} {
		if _, err := Weight([]Evidence{e}, Literal, 0); !refused(err, machine.CodeOutOfRange) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := Weight(nil, "mean", 0); !refused(err, machine.CodeOutOfRange) {
		t.Error(err)
	}
	if _, err := Weight(nil, Literal, 2); !refused(err, machine.CodeOutOfRange) {
		t.Error(err)
	}
}
