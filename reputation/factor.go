package reputation

import "math"

// Bounds of ρ.
const (
	MinRho = 0.5
	MaxRho = 2.0
)

// Factor maps a rating to [0.5, 2], monotone: 0.5 at 800, 1 at 1200, 2 at 2400.
func Factor(r Rating) float64 {
	r = r.Clamp()
	if r <= InitialRating {
		return 0.5 + float64(r-MinRating)/float64(800*Micro)
	}
	return 1 + float64(r-InitialRating)/float64(1200*Micro)
}

// Discount is D = 1/(1 + n/(n+20)·(ECE + max(0, OCI))), in (0, 1]: it falls
// with miscalibration and overconfidence, the more samples support them. It
// is 1 when n = 0.
func Discount(ece, oci float64, n int64) float64 {
	if n <= 0 || math.IsNaN(ece) || math.IsNaN(oci) {
		return 1
	}
	trust := float64(n) / float64(n+20)
	return 1 / (1 + float64(trust*(max(0, ece)+max(0, oci))))
}

// Rho is ρ = clamp(f·D, 0.5, 2), the factor of the graded semantics, from a
// rating and the calibration in the same domain.
func Rho(r Rating, c Calibration) float64 {
	d := 1.0
	if m := c.Metrics(); m.N > 0 {
		d = Discount(*m.ECE, *m.OverconfidenceIndex, m.N)
	}
	return RhoOf(r, d)
}

// RhoOf is Rho with a discount of the caller's own making, such as a
// configured one; it must be in (0, 1].
func RhoOf(r Rating, discount float64) float64 {
	return min(MaxRho, max(MinRho, float64(Factor(r)*discount)))
}

// RhoNano is Rho at 1e-9, halves to even: the exact form for records.
func RhoNano(r Rating, c Calibration) int64 { return nano(Rho(r, c)) }

func nano(x float64) int64 { return int64(math.RoundToEven(float64(x * 1e9))) }
