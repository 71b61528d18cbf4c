package semantics

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine"
)

var methods = []Method{FixedPoint, QuadraticEnergy, Rectified, LiteralJacobi}

func TestTheOrderInWhichAGraphIsListedDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 10, false)
		o := Options{Method: rapid.SampledFrom(methods).Draw(t, "method")}
		a := rapidCompute(t, g, o)
		h := Graph{
			Arguments: rapid.Permutation(g.Arguments).Draw(t, "arguments"),
			Attacks:   rapid.Permutation(append(g.Attacks, g.Attacks...)).Draw(t, "attacks"), // sets: twice is once
			Supports:  rapid.Permutation(g.Supports).Draw(t, "supports"),
		}
		b := rapidCompute(t, h, o)
		if a.Run != b.Run {
			t.Fatalf("%+v and %+v", a.Run, b.Run)
		}
		for i := range a.Arguments {
			if a.Arguments[i] != b.Arguments[i] {
				t.Fatalf("%+v and %+v", a.Arguments[i], b.Arguments[i])
			}
		}
	})
}

func TestEveryResultIsFiniteAndInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 9, false)
		o := Options{
			Method:     rapid.SampledFrom(methods).Draw(t, "method"),
			GammaPlus:  rapid.SampledFrom([]float64{1e-300, 0.5, 0.6, 0.999999, math.Nextafter(1, 0)}).Draw(t, "gp"),
			GammaMinus: rapid.SampledFrom([]float64{1e-300, 0.5, 0.8, 0.999999, math.Nextafter(1, 0)}).Draw(t, "gm"),
			Budget:     rapid.SampledFrom([]int64{1, 100, 100_000}).Draw(t, "budget"),
		}
		r := rapidCompute(t, g, o)
		for _, a := range r.Arguments {
			for name, x := range map[string]float64{"σ": a.Sigma, "bound": a.ErrorBound} {
				if math.IsNaN(x) || math.Abs(x) > 2*MaxStrength {
					t.Fatalf("%s of %s is %g", name, a.ID, x)
				}
			}
			if math.Abs(a.Sigma) > MaxStrength || a.Nano != Nano(a.Sigma) || a.Negative != (a.Nano < 0) {
				t.Fatalf("%+v", a)
			}
		}
		if _, err := json.Marshal(r); err != nil {
			t.Fatal(err)
		}
	})
}

func TestGrowthBeyondTheRangeIsHeldAndSaid(t *testing.T) {
	// Layers of 40 supporters: every layer multiplies by 24.
	var g Graph
	id := func(layer, i int) string { return fmt.Sprintf("l%02d-%02d", layer, i) }
	for layer := range 12 {
		for i := range 40 {
			g.Arguments = append(g.Arguments, Argument{id(layer, i), 1, 2})
			for j := range 40 {
				if layer > 0 {
					g.Supports = append(g.Supports, Edge{id(layer-1, j), id(layer, i)})
				}
			}
		}
	}
	r := must(t, g, Options{})
	last, _ := r.Of(id(11, 0))
	if last.Sigma != MaxStrength || last.Status != Diverged || r.Status != Diverged {
		t.Fatalf("%+v", last)
	}
	if first, _ := r.Of(id(0, 0)); first.Status != Exact || first.Sigma != 2 {
		t.Fatalf("%+v", first)
	}
	d, err := r.Decide([]Position{{ID: id(11, 0)}, {ID: id(0, 0)}}, DefaultTau)
	if err != nil || d.Path != Conflict || d.Reason != ReasonUnstable {
		t.Fatalf("%+v %v", d, err)
	}
}

// scattered is a chain of supports 0 → … over n arguments whose indices are in
// no topological order, and its last argument.
func scattered(n int) (links []Link, last int32) {
	at := func(i int) int32 { return int32(i * 7919 % n) } // n is no multiple of 7919
	for i := range n - 1 {
		links = append(links, Link{at(i), at(i + 1)})
	}
	return links, at(n - 1)
}

func TestAChainOfAMillionArgumentsNeedsNoStack(t *testing.T) {
	const n = 1_000_000
	chain, last := scattered(n)
	g, err := NewNetwork(n, nil, chain)
	if err != nil {
		t.Fatal(err)
	}
	base := make([]float64, n)
	for i := range base {
		base[i] = 0.4
	}
	s, err := g.Solve(base, Options{})
	if err != nil || s.Run.Status != Exact || s.Run.Components != n || g.order != unordered {
		t.Fatalf("%+v %v", s.Run, err)
	}
	if end := s.Sigma[last]; math.Abs(end-1) > 1e-12 { // 0.4/(1 − 0.6)
		t.Fatalf("the end of the chain is %g", end)
	}
}

func TestALongRingIsOneCertifiedComponent(t *testing.T) {
	const n = 50_000
	chain, last := scattered(n)
	g, err := NewNetwork(n, nil, append(chain, Link{last, 0}))
	if err != nil {
		t.Fatal(err)
	}
	base := make([]float64, n)
	for i := range base {
		base[i] = 0.4
	}
	s, err := g.Solve(base, Options{})
	if err != nil || s.Run.Status != Converged || s.Run.Components != 1 || s.Run.Certified != 1 || math.Abs(s.Sigma[0]-1) > 1e-11 {
		t.Fatalf("%+v %v", s.Run, err)
	}
}

func TestIndicesThatAreTopologicalGiveTheSameAnswerAsTarjan(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := int32(rapid.IntRange(1, 30).Draw(t, "n"))
		down := rapid.Bool().Draw(t, "down")
		var attacks, supports []Link
		for range rapid.IntRange(0, 60).Draw(t, "m") {
			i, j := rapid.Int32Range(0, n-1).Draw(t, "i"), rapid.Int32Range(0, n-1).Draw(t, "j")
			if i == j {
				continue
			}
			if down == (i < j) {
				i, j = j, i
			}
			if rapid.Bool().Draw(t, "attack") {
				attacks = append(attacks, Link{i, j})
			} else {
				supports = append(supports, Link{i, j})
			}
		}
		g, err := NewNetwork(int(n), attacks, supports)
		if err != nil {
			t.Fatal(err)
		}
		if g.order == unordered {
			t.Fatal("the order was not noticed")
		}
		base := make([]float64, n)
		for i := range base {
			base[i] = float64(i%7) / 7
		}
		a, _ := g.Solve(base, Options{})
		g.order = unordered
		b, _ := g.Solve(base, Options{})
		for i := range base {
			if a.Sigma[i] != b.Sigma[i] || a.Bound[i] != b.Bound[i] {
				t.Fatalf("argument %d: %g and %g", i, a.Sigma[i], b.Sigma[i])
			}
			for _, u := range g.src[g.off[2*i]:g.off[2*i+2]] {
				if a.Component[u] >= a.Component[i] || b.Component[u] >= b.Component[i] {
					t.Fatalf("%d influences %d but comes later", u, i)
				}
			}
		}
	})
}

// A status speaks of the structure: with the plain start, base 0 would look
// converged although no other base is.
func TestAStatusDoesNotDependOnTheWeights(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 6, false)
		a := rapidCompute(t, g, Options{})
		for i := range g.Arguments {
			g.Arguments[i].Weight = 0
		}
		b := rapidCompute(t, g, Options{})
		for i := range a.Arguments {
			if a.Arguments[i].Status != b.Arguments[i].Status {
				t.Fatalf("%s: %s, and %s with weight 0", a.Arguments[i].ID, a.Arguments[i].Status, b.Arguments[i].Status)
			}
		}
	})
}

// With γ 0.6 and 0.8 this component has the eigenvalue 1 (0.6² + 0.8² = 1):
// every start settles, each on another answer.
func TestAComponentWithoutAUniqueAnswerIsNotCalledStable(t *testing.T) {
	for _, weight := range []float64{0, 0.5, 1} {
		g := Graph{
			Arguments: []Argument{{"a", weight, 1}, {"b", weight, 1}, {"c", weight, 1}},
			Supports:  []Edge{{"a", "b"}, {"b", "a"}},
			Attacks:   []Edge{{"b", "c"}, {"c", "b"}},
		}
		if r := must(t, g, Options{}); r.Status != Averaged || r.Sweeps > 100_000 {
			t.Errorf("weight %g: %+v", weight, r.Run)
		}
	}
}

func TestNoComponentStarvesAnother(t *testing.T) {
	// A pair that needs few sweeps, beside a big clique that never settles.
	var g Graph
	add := func(id string) { g.Arguments = append(g.Arguments, Argument{id, 1, 1}) }
	add("z1")
	add("z2")
	g.Attacks = append(g.Attacks, Edge{"z1", "z2"}, Edge{"z2", "z1"})
	for i := range 60 {
		add(fmt.Sprintf("c%02d", i))
		for j := range 60 {
			if i != j {
				g.Supports = append(g.Supports, Edge{fmt.Sprintf("c%02d", i), fmt.Sprintf("c%02d", j)})
			}
		}
	}
	r := must(t, g, Options{Budget: 1_000_000})
	z, _ := r.Of("z1")
	c, _ := r.Of("c00")
	if z.Status != Converged || c.Status != Averaged {
		t.Fatalf("%s and %s", z.Status, c.Status)
	}
}

func TestTheBudgetBoundsTheWork(t *testing.T) {
	// Radius 1: the residual never shrinks, whatever is spent.
	g := Graph{}
	for _, id := range []string{"a", "b", "c"} {
		g.Arguments = append(g.Arguments, Argument{id, 1, 1})
		for _, to := range []string{"a", "b", "c"} {
			if to != id {
				g.Supports = append(g.Supports, Edge{id, to})
			}
		}
	}
	r := must(t, g, Options{GammaPlus: 0.5})
	if r.Status != Averaged || r.Sweeps > 50_000 {
		t.Fatalf("%+v: the guard did not notice", r.Run)
	}
	r = must(t, g, Options{GammaPlus: 0.5, Budget: 600})
	if r.Status != Averaged || r.Sweeps > 100+leastAveraging {
		t.Fatalf("%+v", r.Run)
	}
}

func TestASlowCycleStillSettles(t *testing.T) {
	g := Graph{Arguments: []Argument{{"a", 0.5, 1}, {"b", 0.5, 1}}, Supports: []Edge{{"a", "b"}, {"b", "a"}}}
	r := must(t, g, Options{GammaPlus: 0.9999})
	if r.Status != Converged || math.Abs(r.Arguments[0].Sigma-5000) > 1e-4 {
		t.Fatalf("%+v %g", r.Run, r.Arguments[0].Sigma)
	}
	if off := math.Abs(r.Arguments[0].Sigma - 0.5/(1-0.9999)); off > r.Arguments[0].ErrorBound {
		t.Fatalf("off by %g, bound %g", off, r.Arguments[0].ErrorBound)
	}
}

func TestBadGraphsAreRefusedByCode(t *testing.T) {
	a, b := Argument{"a", 0.5, 1}, Argument{"b", 0.5, 1}
	two := []Argument{a, b}
	nan := math.NaN()
	cases := map[string]struct {
		g    Graph
		o    Options
		code string
	}{
		"self-attack":           {Graph{Arguments: two, Attacks: []Edge{{"a", "a"}}}, Options{}, CodeSelfAttack},
		"self-support":          {Graph{Arguments: two, Supports: []Edge{{"b", "b"}}}, Options{}, CodeSelfSupport},
		"missing target":        {Graph{Arguments: two, Attacks: []Edge{{"a", "x"}}}, Options{}, CodeMissingArgument},
		"missing source":        {Graph{Arguments: two, Supports: []Edge{{"x", "a"}}}, Options{}, CodeMissingArgument},
		"one id twice":          {Graph{Arguments: []Argument{a, a}}, Options{}, CodeDuplicateArgument},
		"no id":                 {Graph{Arguments: []Argument{{"", 0.5, 1}}}, Options{}, machine.CodeOutOfRange},
		"weight above 1":        {Graph{Arguments: []Argument{{"a", 1.01, 1}}}, Options{}, machine.CodeOutOfRange},
		"negative weight":       {Graph{Arguments: []Argument{{"a", -0.1, 1}}}, Options{}, machine.CodeOutOfRange},
		"NaN weight":            {Graph{Arguments: []Argument{{"a", nan, 1}}}, Options{}, machine.CodeOutOfRange},
		"rho below a half":      {Graph{Arguments: []Argument{{"a", 0.5, 0.49}}}, Options{}, machine.CodeOutOfRange},
		"rho above two":         {Graph{Arguments: []Argument{{"a", 0.5, 2.1}}}, Options{}, machine.CodeOutOfRange},
		"NaN rho":               {Graph{Arguments: []Argument{{"a", 0.5, nan}}}, Options{}, machine.CodeOutOfRange},
		"gamma of one":          {Graph{Arguments: two}, Options{GammaPlus: 1}, machine.CodeOutOfRange},
		"negative gamma":        {Graph{Arguments: two}, Options{GammaMinus: -0.1}, machine.CodeOutOfRange},
		"NaN gamma":             {Graph{Arguments: two}, Options{GammaMinus: nan}, machine.CodeOutOfRange},
		"epsilon of one":        {Graph{Arguments: two}, Options{Epsilon: 1}, machine.CodeOutOfRange},
		"negative budget":       {Graph{Arguments: two}, Options{Budget: -1}, machine.CodeOutOfRange},
		"a method nobody knows": {Graph{Arguments: two}, Options{Method: "vibes"}, machine.CodeOutOfRange},
	}
	for name, c := range cases {
		_, err := Compute(c.g, c.o)
		if r, ok := machine.IsRefusal(err); !ok || r.Code != c.code || r.Fix == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if r := must(t, Graph{}, Options{}); len(r.Arguments) != 0 || r.Status != Exact {
		t.Errorf("an empty graph: %+v", r)
	}
}

func TestBadNetworksAreRefusedByCode(t *testing.T) {
	if _, err := NewNetwork(2, []Link{{0, 2}}, nil); !refused(err, CodeMissingArgument) {
		t.Error(err)
	}
	if _, err := NewNetwork(2, nil, []Link{{-1, 0}}); !refused(err, CodeMissingArgument) {
		t.Error(err)
	}
	if _, err := NewNetwork(-1, nil, nil); !refused(err, machine.CodeOutOfRange) {
		t.Error(err)
	}
	g, err := NewNetwork(2, []Link{{0, 1}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, base := range map[string][]float64{"short": {1}, "NaN": {1, math.NaN()}, "infinite": {1, math.Inf(1)}, "large": {1, 1e7}} {
		if _, err := g.Solve(base, Options{}); !refused(err, machine.CodeOutOfRange) {
			t.Errorf("%s base: %v", name, err)
		}
	}
}

func refused(err error, code string) bool {
	r, ok := machine.IsRefusal(err)
	return ok && r.Code == code
}

func TestNanoRoundsHalvesToEvenAndHoldsTheRange(t *testing.T) {
	cases := map[float64]int64{
		0.5: 500_000_000, 1.0 / 3: 333_333_333, -1.0 / 3: -333_333_333, 5e-10: 0, 1.5e-9: 2, 2.5e-9: 2, -1.5e-9: -2,
		1e300: MaxStrength * NanoPerUnit, math.Inf(-1): -MaxStrength * NanoPerUnit, 0.65 - 0.5: 150_000_000,
	}
	for x, want := range cases {
		if got := Nano(x); got != want {
			t.Errorf("%g: %d, want %d", x, got, want)
		}
	}
	if Nano(math.NaN()) != 0 {
		t.Error("NaN")
	}
	if MaxStrength*NanoPerUnit > 1<<53-1 {
		t.Error("published strengths leave the range that JSON readers carry exactly")
	}
}

func TestStatusesHaveNamesThatReadBack(t *testing.T) {
	for s := Exact; s <= Diverged; s++ {
		text, _ := s.MarshalText()
		var back Status
		if err := back.UnmarshalText(text); err != nil || back != s {
			t.Errorf("%s: %v", text, err)
		}
		if s.Stable() != (s <= Continuized) {
			t.Errorf("%s: stable %v", s, s.Stable())
		}
	}
	var s Status
	if s.UnmarshalText([]byte("fine")) == nil {
		t.Error("a name nobody knows")
	}
	if !strings.Contains(Status(99).String(), "99") {
		t.Error("an unknown status has no number")
	}
}

func TestSharesOfAFixedPointAddUpToTheStrength(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := rapidCompute(t, drawGraph(t, 9, false), Options{})
		for _, a := range r.Arguments {
			e, ok := r.Explain(a.ID)
			if !ok {
				t.Fatal(a.ID)
			}
			sum := e.Base
			for _, s := range e.Shares {
				sum += s.Sigma
				if s.Nano != Nano(s.Sigma) {
					t.Fatalf("%+v", s)
				}
			}
			if math.Abs(sum-a.Sigma) > 1e-9*max(1, math.Abs(a.Sigma)) {
				t.Fatalf("%s is %g (%s), its parts add up to %g", a.ID, a.Sigma, a.Status, sum)
			}
		}
		if _, ok := r.Explain("nobody"); ok {
			t.Fatal("explained an argument that does not exist")
		}
		if _, ok := r.Of("nobody"); ok {
			t.Fatal("found an argument that does not exist")
		}
	})
}
