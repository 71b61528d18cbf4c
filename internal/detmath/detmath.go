package detmath

import "math"

const (
	ln2         = 0.6931471805599453   // ln 2
	log2e       = 1.4426950408889634   // 1 / ln 2
	log2of10    = 0.008304820237218407 // log2(10) / 400
	sqrtHalf    = 0.7071067811865476   // √½
	taylorTerms = 14                   // |t| ≤ ln2/2: the next term is below 1e-19
	atanhTerms  = 27                   // |s| ≤ 0.1716: the next odd power is below 1e-22
)

// Exp2 is 2^x. It is +Inf above 1024 and 0 below −1075; NaN stays NaN.
func Exp2(x float64) float64 {
	switch {
	case math.IsNaN(x):
		return x
	case x >= 1024:
		return math.Inf(1)
	case x < -1075:
		return 0
	}
	k := math.Floor(x + 0.5)
	t := float64((x - k) * ln2)
	p := 1.0
	for i := taylorTerms; i >= 1; i-- {
		p = 1 + float64(t*p)/float64(i)
	}
	return math.Ldexp(p, int(k))
}

// Log2 is the binary logarithm of x. It is −Inf at 0 and NaN below; +Inf and
// NaN stay what they are.
func Log2(x float64) float64 {
	switch {
	case math.IsNaN(x) || math.IsInf(x, 1):
		return x
	case x < 0:
		return math.NaN()
	case x == 0:
		return math.Inf(-1)
	}
	m, e := math.Frexp(x)
	if m < sqrtHalf {
		m = float64(m * 2)
		e--
	}
	s := (m - 1) / (m + 1)
	z := float64(s * s)
	p := 0.0
	for i := atanhTerms; i >= 1; i -= 2 {
		p = float64(p*z) + 1/float64(i)
	}
	return float64(e) + float64(float64(float64(s*p)*2)*log2e)
}

// Root is v^(1/n) for v ≥ 0 and n ≥ 1; NaN otherwise.
func Root(v float64, n int) float64 {
	switch {
	case n < 1 || v < 0:
		return math.NaN()
	case n == 1 || v == 0 || v == 1:
		return v
	}
	return Exp2(Log2(v) / float64(n))
}

// Pow10Over400 is 10^(d/400), the odds that a rating difference of d points
// stands for.
func Pow10Over400(d float64) float64 { return Exp2(float64(d * log2of10)) }

// Expected is the score that Elo's model expects of a player rated own
// against one rated opp, both in points: 1 / (1 + 10^((opp−own)/400)).
func Expected(own, opp float64) float64 { return 1 / (1 + Pow10Over400(opp-own)) }
