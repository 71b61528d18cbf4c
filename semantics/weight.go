package semantics

import (
	"math"
	"sort"

	"github.com/deliberd/deliberd/internal/detmath"
	"github.com/deliberd/deliberd/machine"
)

// Evidence is what counts of an evidence item (§2.3).
type Evidence struct {
	Value float64 `json:"value"` // in [0, 1]
	// Confidence is the width of a confidence interval, in [0, 1]: larger
	// means weaker. 0 is certainty.
	Confidence float64 `json:"confidence"`
}

// WeightRule names how evidence adds up to a weight.
type WeightRule string

// The rules.
const (
	// Literal is the printed formula Π vᵢ^(1/n)·(1 − cᵢ/2). It discounts once
	// per item, so it punishes repetition: (0.9, 0.2) weighs 0.81 once and
	// 0.314 ten times. Default.
	Literal WeightRule = "literal"
	// DiscountedGM is the geometric mean of the discounted values,
	// (Π vᵢ(1 − cᵢ/2))^(1/n): repetition changes nothing.
	DiscountedGM WeightRule = "discounted-gm"
)

// Weight is the weight w in [0, 1] of an argument with this evidence; empty is
// the weight of an argument that has none. It does not depend on the order of
// the items. It errs with out_of_range on numbers outside [0, 1] and on an
// unknown rule; "" is Literal.
func Weight(items []Evidence, rule WeightRule, empty float64) (float64, error) {
	if !unit(empty) {
		return 0, machine.Refuse(machine.CodeOutOfRange, "give a weight from 0 to 1", "the weight of an argument without evidence is %v", empty)
	}
	if rule == "" {
		rule = Literal
	}
	if rule != Literal && rule != DiscountedGM {
		return 0, machine.Refuse(machine.CodeOutOfRange, "choose literal or discounted-gm", "no weight rule is called %q", rule)
	}
	sorted := append([]Evidence(nil), items...)
	for i, e := range sorted {
		if !unit(e.Value) {
			return 0, machine.Refuse(machine.CodeOutOfRange, "normalize the value to 0 … 1", "evidence %d has value %v", i, e.Value)
		}
		if !unit(e.Confidence) {
			return 0, machine.Refuse(machine.CodeOutOfRange, "give the width of the confidence interval, 0 … 1; larger means weaker", "evidence %d has confidence %v", i, e.Confidence)
		}
	}
	if len(sorted) == 0 {
		return empty, nil
	}
	sort.Slice(sorted, func(i, j int) bool {
		a, b := sorted[i], sorted[j]
		return a.Value < b.Value || a.Value == b.Value && a.Confidence < b.Confidence
	})
	return min(1, aggregate(sorted, rule)), nil
}

// aggregate takes logarithms, so that many small values do not underflow
// before the root is taken.
func aggregate(items []Evidence, rule WeightRule) float64 {
	n := len(items)
	if n == 1 {
		return float64(items[0].Value * (1 - float64(items[0].Confidence/2)))
	}
	logs, discount := 0.0, 1.0
	for _, e := range items {
		v, d := e.Value, 1-float64(e.Confidence/2)
		if v == 0 {
			return 0
		}
		if rule == DiscountedGM {
			v, d = float64(v*d), 1
		}
		logs += detmath.Log2(v)
		discount = float64(discount * d)
	}
	return float64(detmath.Exp2(logs/float64(n)) * discount)
}

func unit(x float64) bool { return !math.IsNaN(x) && x >= 0 && x <= 1 }
