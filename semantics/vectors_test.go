package semantics

import (
	"encoding/json"
	"math"
	"math/big"
	"strconv"
	"testing"

	"github.com/deliberd/deliberd/internal/vectors"
)

// sections of semantics.json, by the package whose TestVectors… runs them.
var sections = map[string]string{
	"format": "description", "conventions": "description", "description": "description", "kinds": "description", "notes": "description",
	"graphs": "semantics", "decision": "semantics", "evidence_weight": "semantics",
	"elo": "reputation", "k_decay": "reputation", "elo_factor": "reputation", "calibrated_factor": "reputation", "calibration": "reputation",
}

func TestVectorsSemantics(t *testing.T) {
	runners := map[string]func(*testing.T, json.RawMessage){
		"graphs": vectorGraph, "decision": vectorDecision, "evidence_weight": vectorWeight,
	}
	file := vectors.As[map[string]json.RawMessage](t, vectors.Load(t, "semantics"))
	ran := 0
	for name, raw := range file {
		switch sections[name] {
		case "":
			t.Errorf("no test knows the section %q", name)
		case "semantics":
			for _, c := range vectors.As[[]json.RawMessage](t, raw) {
				head := vectors.As[struct{ Name string }](t, c)
				t.Run(name+"/"+head.Name, func(t *testing.T) { runners[name](t, c) })
				ran++
			}
		}
	}
	if ran == 0 {
		t.Fatal("semantics.json has no case for this package")
	}
}

type graphCase struct {
	GammaPlus  decimal `json:"gamma_plus"`
	GammaMinus decimal `json:"gamma_minus"`
	Arguments  []struct {
		ID          string
		Weight, Rho decimal
	}
	Attacks, Supports [][2]string
	Base              map[string]decimal
	Structure         *struct {
		Acyclic    bool
		CyclicSCCs []struct{ Args []string } `json:"cyclic_sccs"`
	}
	Literal *struct {
		Status            string
		FloatStatus       string `json:"float64_status"`
		Iterations        int
		Float64Iterations int `json:"float64_iterations"`
		Sigma             map[string]decimal
	}
	FixedPoint *struct {
		Exists   bool
		Sigma    map[string]decimal
		Rational map[string]string
	} `json:"fixed_point"`
	Rectified       *iterated
	QuadraticEnergy *iterated `json:"quadratic_energy"`
	Continuized     *struct{ Converges bool }
	Recommended     *struct {
		Status       string
		PerArgument  map[string]string `json:"per_argument"`
		Sigma        map[string]decimal
		Rational     map[string]string
		Alternatives []string `json:"status_alternatives"`
	}
}

type iterated struct {
	Converged bool
	Sigma     map[string]decimal
}

// decimal is a number written as a string.
type decimal float64

func (d *decimal) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	f, err := strconv.ParseFloat(text, 64)
	*d = decimal(f)
	return err
}

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %.15g, want %.15g", what, got, want)
	}
}

func (c graphCase) graph() Graph {
	var g Graph
	for _, a := range c.Arguments {
		g.Arguments = append(g.Arguments, Argument{a.ID, float64(a.Weight), float64(a.Rho)})
	}
	for _, e := range c.Attacks {
		g.Attacks = append(g.Attacks, Edge{e[0], e[1]})
	}
	for _, e := range c.Supports {
		g.Supports = append(g.Supports, Edge{e[0], e[1]})
	}
	return g
}

func vectorGraph(t *testing.T, raw json.RawMessage) {
	c := vectors.As[graphCase](t, raw)
	compute := func(m Method) *Result {
		r, err := Compute(c.graph(), Options{Method: m, GammaPlus: float64(c.GammaPlus), GammaMinus: float64(c.GammaMinus), SelfEdges: true})
		if err != nil {
			t.Fatal(err)
		}
		return r
	}
	r := compute(FixedPoint)
	for id, b := range c.Base {
		e, _ := r.Explain(id)
		near(t, "base of "+id, e.Base, float64(b))
	}
	vectorStructure(t, c, r)
	vectorRecommended(t, c, r)
	vectorFixedPoint(t, c, r)
	vectorLiteral(t, c, compute(LiteralJacobi))
	vectorIterated(t, "rectified", c, c.Rectified, compute(Rectified))
	vectorIterated(t, "quadratic energy", c, c.QuadraticEnergy, compute(QuadraticEnergy))
}

func vectorStructure(t *testing.T, c graphCase, r *Result) {
	if c.Structure == nil {
		return
	}
	if got := r.Cyclic == 0; got != c.Structure.Acyclic {
		t.Errorf("acyclic: %v", got)
	}
	for _, scc := range c.Structure.CyclicSCCs {
		first, _ := r.Of(scc.Args[0])
		members := 0
		for _, a := range r.Arguments {
			if a.Component == first.Component {
				members++
			}
		}
		if members != len(scc.Args) {
			t.Errorf("component of %s has %d members, want %v", scc.Args[0], members, scc.Args)
		}
		for _, id := range scc.Args {
			if a, _ := r.Of(id); a.Component != first.Component {
				t.Errorf("%s and %s are in different components", id, first.ID)
			}
		}
	}
}

func vectorRecommended(t *testing.T, c graphCase, r *Result) {
	want := c.Recommended
	if want == nil {
		return
	}
	alternative := func(got string) bool {
		for _, s := range want.Alternatives {
			if s == got {
				return true
			}
		}
		return false
	}
	if got := r.Status.String(); got != want.Status && !alternative(got) {
		t.Errorf("status is %s, want %s", got, want.Status)
	}
	for id, s := range want.PerArgument {
		if a, _ := r.Of(id); a.Status.String() != s && !alternative(a.Status.String()) {
			t.Errorf("status of %s is %s, want %s", id, a.Status, s)
		}
	}
	if len(want.Sigma) != len(r.Arguments) {
		t.Errorf("%d strengths, want %d", len(r.Arguments), len(want.Sigma))
	}
	for id, v := range want.Sigma {
		a, ok := r.Of(id)
		if !ok {
			t.Fatalf("no argument %q", id)
		}
		near(t, "strength of "+id, a.Sigma, float64(v))
		if a.ErrorBound < math.Abs(a.Sigma-rational(t, want.Rational[id], float64(v))) {
			t.Errorf("strength of %s is off by more than its error bound %g", id, a.ErrorBound)
		}
	}
}

// rational reads p/q exactly; fallback stands for a missing one.
func rational(t *testing.T, text string, fallback float64) float64 {
	if text == "" {
		return fallback
	}
	r, ok := new(big.Rat).SetString(text)
	if !ok {
		t.Fatalf("not a rational: %q", text)
	}
	f, _ := r.Float64()
	return f
}

// vectorFixedPoint puts the known fixed point into the equation itself, and
// compares it with the strengths wherever the pipeline claims to have found it.
func vectorFixedPoint(t *testing.T, c graphCase, r *Result) {
	want := c.FixedPoint
	if want == nil {
		return
	}
	if !want.Exists {
		if r.Status.Stable() {
			t.Errorf("no fixed point exists, but the status is %s", r.Status)
		}
		return
	}
	for _, a := range r.Arguments {
		sigma := r.graph.base()[r.graph.index[a.ID]]
		for _, u := range r.graph.net.Supporters(r.graph.index[a.ID]) {
			sigma += r.GammaPlus * float64(want.Sigma[r.Arguments[u].ID])
		}
		for _, u := range r.graph.net.Attackers(r.graph.index[a.ID]) {
			sigma -= r.GammaMinus * float64(want.Sigma[r.Arguments[u].ID])
		}
		near(t, "equation of "+a.ID, sigma, float64(want.Sigma[a.ID]))
		if r.Status.Stable() {
			near(t, "fixed point of "+a.ID, a.Sigma, float64(want.Sigma[a.ID]))
		}
	}
}

func vectorLiteral(t *testing.T, c graphCase, r *Result) {
	want := c.Literal
	if want == nil {
		return
	}
	got := "diverged"
	if r.Status == Converged {
		got = "converged"
	}
	if got != want.FloatStatus {
		t.Errorf("literal status is %s, want %s", r.Status, want.FloatStatus)
	}
	if r.Sweeps != want.Float64Iterations {
		t.Errorf("literal iterations: %d, want %d", r.Sweeps, want.Float64Iterations)
	}
	for id, v := range want.Sigma {
		a, _ := r.Of(id)
		near(t, "literal strength of "+id, a.Sigma, float64(v))
	}
}

// vectorIterated compares a selectable method. Where the vector's own
// iteration gave up, ours may have settled: then it must solve the equation,
// which the property tests check.
func vectorIterated(t *testing.T, method string, c graphCase, want *iterated, r *Result) {
	if want == nil || !want.Converged {
		return
	}
	if !r.Status.Stable() {
		t.Errorf("%s is %s, want it settled", method, r.Status)
	}
	for id, v := range want.Sigma {
		a, _ := r.Of(id)
		near(t, method+" strength of "+id, a.Sigma, float64(v))
	}
}

func vectorDecision(t *testing.T, raw json.RawMessage) {
	c := vectors.As[struct {
		Sigma    map[string]decimal
		Tau      decimal
		Deltas   map[string]decimal `json:"preference_deltas"`
		Stable   bool               `json:"all_scc_status_stable"`
		Expected struct {
			Path           Path
			Winner, Second *string
			Gap            *decimal
		}
	}](t, raw)
	var candidates []Candidate
	for id, s := range c.Sigma {
		candidates = append(candidates, Candidate{ID: id, Nano: Nano(float64(s)), Delta: Nano(float64(c.Deltas[id])), Unstable: !c.Stable})
	}
	d := Decide(candidates, Nano(float64(c.Tau)))
	want := c.Expected
	if d.Path != want.Path {
		t.Errorf("path %s, want %s", d.Path, want.Path)
	}
	for what, pair := range map[string]struct {
		got  string
		want *string
	}{"winner": {d.Winner, want.Winner}, "second": {d.Second, want.Second}} {
		text := ""
		if pair.want != nil {
			text = *pair.want
		}
		if pair.got != text {
			t.Errorf("%s %q, want %q", what, pair.got, text)
		}
	}
	if want.Gap != nil && d.Gap != Nano(float64(*want.Gap)) {
		t.Errorf("gap %d, want %v", d.Gap, *want.Gap)
	}
}

func vectorWeight(t *testing.T, raw json.RawMessage) {
	c := vectors.As[struct {
		Evidence []struct{ Value, Confidence decimal }
		Weights  map[string]*decimal
	}](t, raw)
	var items []Evidence
	for _, e := range c.Evidence {
		items = append(items, Evidence{float64(e.Value), float64(e.Confidence)})
	}
	for rule, name := range map[WeightRule]string{Literal: "R1_literal", DiscountedGM: "R2_discounted_gm"} {
		got, err := Weight(items, rule, 0)
		if err != nil {
			t.Fatal(err)
		}
		want, known := c.Weights[name]
		switch {
		case !known:
			t.Fatalf("no weight %s", name)
		case want == nil: // no evidence: the configured weight
			near(t, name, got, 0)
		default:
			near(t, name, got, float64(*want))
		}
	}
}
