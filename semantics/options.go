package semantics

import (
	"math"

	"github.com/deliberd/deliberd/machine"
)

// Method names a way to compute strengths.
type Method string

// The methods.
const (
	// FixedPoint solves the rule of §2.2 component by component. Default.
	FixedPoint Method = "fixed-point"
	// QuadraticEnergy is Potyka's quadratic energy model on base b/2, reported
	// doubled. Strengths stay in [0, 2]; recommended where arguments attack
	// each other in cycles.
	QuadraticEnergy Method = "quadratic-energy"
	// Rectified lets only positive strength propagate: σ = b + M·max(0, σ).
	// A defeated argument then neither helps nor harms anybody.
	Rectified Method = "rectified"
	// LiteralJacobi is the iteration as §2.2 prints it: the whole graph, until
	// no strength moves by Epsilon or more. For conformance tests; it can stop
	// far from the fixed point.
	LiteralJacobi Method = "literal-jacobi"
)

// Defaults of §2.2.
const (
	DefaultGammaPlus  = 0.6
	DefaultGammaMinus = 0.8
	DefaultEpsilon    = 0.001
	// DefaultBudget bounds the iterations of one run, in edge updates. It is a
	// protocol constant: replicas that differ in it differ in their results.
	DefaultBudget = 500_000_000
)

// Options are how strengths are computed. The zero value is the default.
type Options struct {
	Method     Method  // "" is FixedPoint
	GammaPlus  float64 // support propagation γ⁺ in (0, 1); 0 is DefaultGammaPlus
	GammaMinus float64 // attack propagation γ⁻ in (0, 1); 0 is DefaultGammaMinus
	Epsilon    float64 // the stop of LiteralJacobi, in (0, 1); 0 is DefaultEpsilon
	Budget     int64   // edge updates for converged and continuized; 0 is DefaultBudget
	// SelfEdges accepts an argument that attacks or supports itself. Rounds
	// refuse such edges; conformance tests need them.
	SelfEdges bool
}

// normal fills in defaults and checks ranges; it errs with out_of_range.
func (o Options) normal() (Options, error) {
	if o.Method == "" {
		o.Method = FixedPoint
	}
	switch o.Method {
	case FixedPoint, QuadraticEnergy, Rectified, LiteralJacobi:
	default:
		return o, machine.Refuse(machine.CodeOutOfRange, "choose fixed-point, quadratic-energy, rectified or literal-jacobi", "no semantics is called %q", o.Method)
	}
	for _, f := range []struct {
		name     string
		value    *float64
		fallback float64
	}{{"gamma_plus", &o.GammaPlus, DefaultGammaPlus}, {"gamma_minus", &o.GammaMinus, DefaultGammaMinus}, {"epsilon", &o.Epsilon, DefaultEpsilon}} {
		if *f.value == 0 {
			*f.value = f.fallback
		}
		if math.IsNaN(*f.value) || *f.value <= 0 || *f.value >= 1 {
			return o, machine.Refuse(machine.CodeOutOfRange, "give a number above 0 and below 1", "%s is %v", f.name, *f.value)
		}
	}
	if o.Budget == 0 {
		o.Budget = DefaultBudget
	}
	if o.Budget < 0 {
		return o, machine.Refuse(machine.CodeOutOfRange, "give a positive number of edge updates", "budget is %d", o.Budget)
	}
	return o, nil
}
