package semantics

import (
	"math"
	"slices"
)

// room is memory that the cyclic components of one run share.
type room struct {
	local   []int32 // argument → index inside the component being solved
	off     []int32
	src     []int32
	ext     []float64 // error bounds of the influence from outside
	members []int32
	c, x, y []float64
}

// sweepLimit shares the budget among the cyclic components so that each may
// take the same number of sweeps: no component can starve another.
func (s *solver) sweepLimit() int {
	inside := int64(0)
	for c := range len(s.comps.start) - 1 {
		members := s.comps.members[s.comps.start[c]:s.comps.start[c+1]]
		if len(members) == 1 && !s.selfEdge(members[0]) {
			continue
		}
		s.out.Run.Cyclic++
		for _, v := range members {
			for _, u := range s.net.src[s.net.off[2*v]:s.net.off[2*v+2]] {
				if s.comps.of[u] == int32(c) {
					inside++
				}
			}
		}
	}
	if inside == 0 {
		return 0
	}
	return int(min(s.opt.Budget/inside, math.MaxInt32))
}

// cycle solves one component with a cycle: converged, continuized or averaged.
func (s *solver) cycle(comp int32, members []int32, limit int) {
	k, ext := s.inside(comp, members)
	status, bound := Averaged, 0.0
	for _, e := range ext {
		bound = max(bound, e)
	}
	done, step := s.attempts(k, limit)
	switch {
	case done.ok && step == 1:
		status = Converged
	case done.ok:
		status = Continuized
		s.out.Run.Step = min(s.out.Run.Step, step)
	default:
		done = s.average(k, limit)
	}
	s.out.Run.Residual = max(s.out.Run.Residual, done.residual)
	bound = float64(done.gain * (bound + done.residual + k.noise(done.largest)))
	for i, v := range s.room.members[:len(members)] {
		s.set(v, k.x[i], bound, status)
	}
}

// inside copies a component into a system of its own, in ascending order of
// arguments; influence from outside goes into its constant.
func (s *solver) inside(comp int32, members []int32) (*kernel, []float64) {
	if s.room == nil {
		s.room = &room{local: make([]int32, s.net.n)}
	}
	r, m := s.room, len(members)
	r.members = append(r.members[:0], members...)
	slices.Sort(r.members)
	r.off, r.src, r.ext, r.c = append(r.off[:0], 0), r.src[:0], r.ext[:0], r.c[:0]
	r.x, r.y = sized(r.x, m), sized(r.y, m)
	for i, v := range r.members {
		r.local[v] = int32(i)
	}
	k := &kernel{n: m, gammaPlus: s.opt.GammaPlus, gammaMinus: s.opt.GammaMinus, rectify: s.opt.Method == Rectified, x: r.x, y: r.y}
	for _, v := range r.members {
		var out [2]float64 // support and attack from outside
		var err [2]float64
		for rel := range int32(2) {
			for _, u := range s.net.src[s.net.off[2*v+rel]:s.net.off[2*v+rel+1]] {
				if s.comps.of[u] == comp {
					r.src = append(r.src, r.local[u])
					continue
				}
				x := s.cells[u].x
				if k.rectify {
					x = max(0, x)
				}
				out[rel] += x
				err[rel] += s.cells[u].bound
			}
			r.off = append(r.off, int32(len(r.src)))
		}
		r.c = append(r.c, s.base[v]+(float64(k.gammaPlus*out[0])-float64(k.gammaMinus*out[1])))
		r.ext = append(r.ext, float64(k.gammaPlus*err[0])+float64(k.gammaMinus*err[1]))
	}
	k.off, k.src, k.c = r.off, r.src, r.c
	if k.rectify {
		k.z = make([]float64, m)
	}
	return k, r.ext
}

func sized(a []float64, n int) []float64 {
	if cap(a) < n {
		return make([]float64, n)
	}
	return a[:n]
}

// steps are the damped steps of continuized components.
var steps = [...]float64{1, 0.5, 0.25, 0.125, 0.0625, 0.03125, 0.015625, 0.0078125}

// attempts tries the plain iteration and then the damped ones, within limit
// sweeps altogether. A step that is proven to settle, or has been probed to,
// gets all that are left; the probes share them.
func (s *solver) attempts(k *kernel, limit int) (settling, float64) {
	proven, spent := k.certify(min(64, limit/8))
	left := limit - spent
	defer func() { s.out.Run.Sweeps += limit - left }()
	for i, h := range steps {
		share, probed := left/(len(steps)-i), 0.0
		switch {
		case proven > 0:
			share = left
		case !k.rectify: // the rectified rule is not linear: a probe would say nothing
			probe := k.probe(h, share)
			left -= probe.sweeps
			if !probe.ok {
				continue
			}
			share, probed = left, probe.gain
		}
		copy(k.x, k.c)
		done := k.iterate(h, share)
		left -= done.sweeps
		if !done.ok {
			continue
		}
		done.gain = max(done.gain, probed)
		if proven > 0 {
			s.out.Run.Certified++
			done.gain = proven
		}
		return done, h
	}
	return settling{}, 0
}

// leastAveraging is the number of sweeps an averaged component may take
// however large it is: with the default factors 130 settle it.
const leastAveraging = 256

// average divides the influence on each argument from inside the component by
// the number of its in-edges from inside: a contraction by max(γ⁺, γ⁻).
func (s *solver) average(k *kernel, limit int) settling {
	if s.out.divisor == nil {
		s.out.divisor = make([]float64, s.net.n)
	}
	k.divisor = make([]float64, k.n)
	for i := range k.n {
		k.divisor[i] = float64(k.off[2*i+2] - k.off[2*i])
		s.out.divisor[s.room.members[i]] = k.divisor[i]
	}
	copy(k.x, k.c)
	done := k.iterate(1, max(limit, leastAveraging))
	s.out.Run.Sweeps += done.sweeps
	done.gain = 1 / (1 - max(k.gammaPlus, k.gammaMinus))
	return done
}
