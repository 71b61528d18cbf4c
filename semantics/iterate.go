package semantics

import (
	"math"

	"github.com/deliberd/deliberd/internal/detmath"
)

// relativeResidual is where an iteration counts as settled.
const relativeResidual = 1e-12

// growthLimit is how far an iterate may outgrow its start before the
// iteration is given up as divergent.
const growthLimit = 1e9

// firstPatience is the number of sweeps after which an iteration must have
// made progress; asked again whenever the number doubles.
const firstPatience = 1024

// settling is how an iteration went.
type settling struct {
	ok       bool
	sweeps   int
	residual float64
	largest  float64
	// gain estimates how much a disturbance of c moves the answer:
	// ‖(1−M)⁻¹‖ as seen along this iteration.
	gain float64
}

// iterate runs k from its present x with step h for at most limit sweeps.
func (k *kernel) iterate(h float64, limit int) settling {
	start := k.largestStart()
	p := newProgress(h, limit)
	var last motion
	for p.sweeps < limit {
		last = k.sweep(h)
		target := float64(relativeResidual * max(1, last.largest))
		stalled := p.note(last.residual, target)
		switch {
		case !last.finite || last.largest > float64(growthLimit*start):
			return p.end(false, last)
		case last.residual <= target:
			return p.end(true, last)
		case stalled:
			return p.end(last.residual <= k.noise(last.largest), last)
		}
	}
	return p.end(false, last)
}

// settledProbe is how far a disturbance must have faded.
const settledProbe = 1e-6

// probe asks whether step h settles from every start. Two runs from different
// starts differ by a vector that follows e ← e + h·(Me − e), so a generic e
// must fade. That an iteration settles from its own start proves nothing: with
// weights of 0, or by symmetry, it may never see a mode that grows; and where 1
// is an eigenvalue every start settles on another answer. The outcome depends
// on the edges only, not on weights.
func (k *kernel) probe(h float64, limit int) settling {
	e := *k // its own x and y headers; k starts afresh afterwards
	e.c = make([]float64, k.n)
	for i := range e.x { // a fixed pattern without symmetry, from 1 to 2
		e.x[i] = 1 + float64(float64(uint16(uint32(i+1)*40503))/(1<<16))
	}
	p := newProgress(h, limit)
	p.first = 1
	var last motion
	for p.sweeps < limit {
		last = e.sweep(h)
		hopeless := p.note(last.largest, settledProbe)
		switch {
		case !last.finite || last.largest > growthLimit:
			return p.end(false, last)
		case last.largest <= settledProbe:
			return p.end(true, last)
		case hopeless:
			return p.end(false, last)
		}
	}
	return p.end(false, last)
}

func (k *kernel) largestStart() float64 {
	v := 1.0
	for i := range k.n {
		v = max(v, math.Abs(k.x[i]), math.Abs(k.c[i]))
	}
	return v
}

// progress watches the residuals of one iteration.
type progress struct {
	h           float64
	limit       int
	sweeps      int
	first, sum  float64 // the first residual or what stands for it, and the sum of all
	last        float64
	marks       [2]mark // residuals at the last two powers of two
	best, prior float64 // the least residual since the last check, and before it
	check       int     // the sweep of the next check
}

type mark struct {
	at       int
	residual float64
}

func newProgress(h float64, limit int) *progress {
	return &progress{h: h, limit: limit, best: math.Inf(1), prior: math.Inf(1), check: firstPatience}
}

// note takes the residual of a sweep and reports whether there is no point in
// going on: the residual has stopped shrinking, or at its pace it would not
// come down to target in several times the sweeps that are left.
func (p *progress) note(residual, target float64) (hopeless bool) {
	p.sweeps++
	if p.sweeps == 1 && p.first == 0 {
		p.first = residual
	}
	p.sum += residual
	p.last = residual
	if p.sweeps&(p.sweeps-1) == 0 {
		p.marks = [2]mark{p.marks[1], {p.sweeps, residual}}
	}
	p.best = min(p.best, residual)
	if p.sweeps < p.check {
		return false
	}
	const patience = 4
	if prior := p.prior; !math.IsInf(prior, 1) && residual > target {
		pace := detmath.Log2(prior/p.best) / float64(p.sweeps/2) // per sweep; ≤ 0 when nothing shrank
		hopeless = p.best >= prior || detmath.Log2(p.best/target) > float64(float64(patience*(p.limit-p.sweeps))*pace)
	}
	p.prior, p.best, p.check = p.best, math.Inf(1), 2*p.check
	return hopeless
}

func (p *progress) end(ok bool, m motion) settling {
	return settling{ok: ok, sweeps: p.sweeps, residual: m.residual, largest: m.largest, gain: p.gain()}
}

// gain is the larger of two estimates. The answer differs from x by h times
// the sum of all further residuals; if they shrink by q each, that is
// h·r/(1 − q). And the residuals seen, over the first one, say what the whole
// iteration made of its first disturbance.
func (p *progress) gain() float64 {
	g := 1.0
	if p.first > 0 {
		g = max(g, float64(p.h*p.sum)/p.first)
	}
	m := p.marks[0]
	if m.at == 0 {
		m = p.marks[1]
	}
	if m.at == 0 || p.sweeps == m.at || m.residual == 0 || p.last == 0 {
		return g
	}
	q := detmath.Root(p.last/m.residual, p.sweeps-m.at)
	if q < 1 {
		return max(g, p.h/(1-q))
	}
	return max(g, float64(p.h*float64(p.sweeps)))
}

// certify looks for a proof that the spectral radius of M is below 1: a
// positive vector y with |M|y ≤ θy, θ < 1 (Collatz–Wielandt), found by power
// iteration on (|M| + 1)/2. It returns the gain this proves, or 0.
// It spends at most limit sweeps.
func (k *kernel) certify(limit int) (proven float64, sweeps int) {
	y, z := make([]float64, k.n), make([]float64, k.n)
	for i := range y {
		y[i] = 1
	}
	for sweeps < limit {
		sweeps++
		low, high, norm := math.Inf(1), 0.0, 0.0
		for i := range k.n {
			sup, att := 0.0, 0.0
			for _, s := range k.src[k.off[2*i]:k.off[2*i+1]] {
				sup += y[s]
			}
			for _, s := range k.src[k.off[2*i+1]:k.off[2*i+2]] {
				att += y[s]
			}
			v := float64(k.gammaPlus*sup) + float64(k.gammaMinus*att)
			q := v / y[i]
			low, high = min(low, q), max(high, q)
			z[i] = float64(0.5*v) + float64(0.5*y[i])
			norm = max(norm, z[i])
		}
		if high < 1-1e-9 {
			least := math.Inf(1)
			most := 0.0
			for _, v := range y {
				least, most = min(least, v), max(most, v)
			}
			return most / least / (1 - high), sweeps
		}
		if low >= 1 { // a proof of the contrary for |M|: nothing to find
			return 0, sweeps
		}
		for i := range z {
			y[i] = z[i] / norm
		}
	}
	return 0, sweeps
}
