package semantics

import "math"

// kernel is one linear system x = c + Mx over rows as in Network: the inside
// of a component, or a whole network.
type kernel struct {
	n                     int
	off, src              []int32
	c                     []float64
	gammaPlus, gammaMinus float64
	divisor               []float64 // divides a row's influence; nil: 1
	rectify               bool      // only max(0, x) propagates
	x, y                  []float64 // the iterate, and room for the next
	z                     []float64 // what propagates when rectify is set
}

// motion is what one sweep observed.
type motion struct {
	residual float64 // max |c + Mx − x|
	largest  float64 // max |x| after the sweep
	finite   bool
}

// sweep replaces x by x + h·(c + Mx − x).
func (k *kernel) sweep(h float64) motion {
	z := k.x
	if k.rectify {
		z = k.z
		for i, v := range k.x {
			z[i] = max(0, v)
		}
	}
	var (
		off, src       = k.off, k.src
		m              = motion{finite: true}
		plus, minus    = k.gammaPlus, k.gammaMinus
		x, y, c        = k.x[:k.n], k.y[:k.n], k.c[:k.n]
		supStart, attS = off[0], int32(0)
	)
	for i := range y {
		attS = off[2*i+1]
		end := off[2*i+2]
		sup, att := 0.0, 0.0
		for _, s := range src[supStart:attS] {
			sup += z[s]
		}
		for _, s := range src[attS:end] {
			att += z[s]
		}
		supStart = end
		in := float64(plus*sup) - float64(minus*att)
		if k.divisor != nil {
			in /= k.divisor[i]
		}
		next := c[i] + in
		r := next - x[i]
		if h != 1 {
			next = x[i] + float64(h*r)
		}
		y[i] = next
		if a := math.Abs(r); a > m.residual {
			m.residual = a
		}
		if a := math.Abs(next); a > m.largest {
			m.largest = a
		}
		if next != next { // NaN: no comparison above sees it
			m.finite = false
		}
	}
	if math.IsInf(m.largest, 0) || math.IsInf(m.residual, 0) {
		m.finite = false
	}
	k.x, k.y = k.y, k.x
	return m
}

// noise is the residual that rounding alone can leave: some units in the last
// place of the largest sum of a row.
func (k *kernel) noise(largest float64) float64 {
	rows := 0.0
	for i := range k.n {
		sup, att := float64(k.off[2*i+1]-k.off[2*i]), float64(k.off[2*i+2]-k.off[2*i+1])
		r := float64(k.gammaPlus*sup) + float64(k.gammaMinus*att)
		if k.divisor != nil {
			r /= k.divisor[i]
		}
		rows = max(rows, math.Abs(k.c[i])+float64(r*largest))
	}
	return float64(rows * 4 * unitRoundoff)
}

// unitRoundoff is half the distance between 1 and the next double.
const unitRoundoff = 1.0 / (1 << 53)
