package semantics

import "math"

// The selectable methods work on the whole graph at once.

// whole is the system of the whole network.
func (s *solver) whole() *kernel {
	n := s.net.n
	return &kernel{
		n: n, off: s.net.off, src: s.net.src, c: s.base,
		gammaPlus: s.opt.GammaPlus, gammaMinus: s.opt.GammaMinus,
		x: append([]float64(nil), s.base...), y: make([]float64, n),
	}
}

func (s *solver) wholeLimit() int {
	return int(min(s.opt.Budget/int64(max(1, s.net.Edges(), s.net.n)), math.MaxInt32))
}

// literalSweeps is where the printed iteration is cut off.
const literalSweeps = 1000

// literalLimit is where the printed iteration counts as diverged.
const literalLimit = 1e6

// literal is the iteration of §2.2 as printed.
func (s *solver) literal() {
	k, status, p := s.whole(), Unsettled, newProgress(1, literalSweeps)
	var m motion
	for p.sweeps < literalSweeps && status == Unsettled {
		m = k.sweep(1)
		p.note(m.residual, s.opt.Epsilon) // with step 1 the residual is the movement
		switch {
		case !m.finite || m.largest > literalLimit:
			status = Diverged
		case m.residual < s.opt.Epsilon:
			status = Converged
		}
	}
	s.out.Run.Sweeps, s.out.Run.Residual = p.sweeps, m.residual
	bound := float64(p.gain() * m.residual)
	for v := range s.cells {
		s.set(int32(v), k.x[v], bound, status)
	}
}

// rectifiedSteps are the steps of the rectified iteration.
var rectifiedSteps = steps[:5]

// rectified iterates σ = b + M·max(0, σ) from b with the first step that
// settles. Where none does, it falls back on components, averaging cycles.
func (s *solver) rectified() {
	k := s.whole()
	k.z = make([]float64, k.n)
	k.rectify = true
	left := s.wholeLimit()
	for i, h := range rectifiedSteps {
		copy(k.x, s.base)
		done := k.iterate(h, left/(len(rectifiedSteps)-i))
		left -= done.sweeps
		s.out.Run.Sweeps += done.sweeps
		if !done.ok {
			continue
		}
		s.out.Run.Step, s.out.Run.Residual = h, done.residual
		status := Converged
		if h < 1 {
			status = Continuized
		}
		bound := float64(done.gain * (done.residual + k.noise(done.largest)))
		for v := range s.cells {
			s.set(int32(v), k.x[v], bound, status)
		}
		return
	}
	s.fixedPoint()
}

// energySteps are the steps of the quadratic energy iteration.
var energySteps = steps[1:5]

// energy is Potyka's quadratic energy model on base b/2. An argument moves
// from its base toward 1 or 0 by h(E) = E²/(1 + E²) of the way, E being the
// balance of support and attack. Strengths are reported doubled.
func (s *solver) energy() {
	n := s.net.n
	x, y, w := make([]float64, n), make([]float64, n), make([]float64, n)
	for v, b := range s.base {
		w[v] = min(1, max(0, b/2))
	}
	left, status := s.wholeLimit(), Unsettled
	var done settling
	for i, h := range energySteps {
		copy(x, w)
		x, y, done = s.energySweeps(x, y, w, h, left/(len(energySteps)-i))
		left -= done.sweeps
		s.out.Run.Sweeps += done.sweeps
		s.out.Run.Step, s.out.Run.Residual = h, done.residual
		if done.ok {
			status = Converged
			break
		}
	}
	bound := 2.0 // strengths lie in [0, 2]
	if done.ok {
		bound = float64(2 * done.gain * done.residual)
	}
	for v := range s.cells {
		s.set(int32(v), 2*x[v], bound, status)
	}
}

func (s *solver) energySweeps(x, y, w []float64, h float64, limit int) ([]float64, []float64, settling) {
	p := newProgress(h, limit)
	m := motion{largest: 1, finite: true}
	for p.sweeps < limit {
		m.residual = 0
		for v := range int32(len(x)) {
			r := s.pull(v, x, w[v]) - x[v]
			y[v] = x[v] + float64(h*r)
			m.residual = max(m.residual, math.Abs(r))
		}
		x, y = y, x
		stalled := p.note(m.residual, relativeResidual)
		if m.residual <= relativeResidual || stalled {
			return x, y, p.end(m.residual <= relativeResidual, m)
		}
	}
	return x, y, p.end(false, m)
}

// pull is where the present strengths of its neighbours draw argument v.
func (s *solver) pull(v int32, x []float64, w float64) float64 {
	e := s.energyOf(v, x)
	q := float64(e * e)
	q = q / (1 + q)
	if e > 0 {
		return w + float64((1-w)*q)
	}
	return w - float64(w*q)
}

func (s *solver) energyOf(v int32, x []float64) float64 {
	sup, att := 0.0, 0.0
	for _, u := range s.net.Supporters(v) {
		sup += x[u]
	}
	for _, u := range s.net.Attackers(v) {
		att += x[u]
	}
	return float64(s.opt.GammaPlus*sup) - float64(s.opt.GammaMinus*att)
}
