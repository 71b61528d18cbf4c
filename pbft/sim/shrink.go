package sim

import (
	"slices"
)

// maxPlays bounds the work of one [Player.Shrink].
const maxPlays = 20_000

// Shrink makes a plan that violates something smaller as long as the same
// oracle is violated: without liars, kinds, crashes, partitions and peculiarities
// of the network that are not needed, then without single faults. It returns
// the plan as it is when it violates nothing.
func (pl *Player) Shrink(p Plan) Plan {
	s := &shrinker{player: pl, best: p}
	first := pl.Play(p, false)
	if first.Violation == nil {
		return p
	}
	s.oracle, s.fired = first.Violation.Oracle, first.fired
	for s.simplify() {
	}
	s.suppress()
	for s.simplify() {
	}
	return s.best
}

type shrinker struct {
	player *Player
	oracle string
	best   Plan
	fired  []uint64 // faults of the best plan
	plays  int
}

// try takes a plan if it still fails in the same way.
func (s *shrinker) try(p Plan) bool {
	if s.plays >= maxPlays {
		return false
	}
	s.plays++
	result := s.player.Play(p, false)
	if result.Violation == nil || result.Violation.Oracle != s.oracle {
		return false
	}
	s.best, s.fired = p, result.fired
	return true
}

// simplify tries every simplification of the plan's parts once; true when one
// of them held.
func (s *shrinker) simplify() (simpler bool) {
	for _, change := range simplifications(s.best) {
		p := s.best
		p.Liars = slices.Clone(p.Liars)
		p.Crashes, p.Partitions = slices.Clone(p.Crashes), slices.Clone(p.Partitions)
		if change(&p) && s.try(p) {
			simpler = true
		}
	}
	return simpler
}

// simplifications are changes to a plan. Each is false when there is nothing to
// change any more.
func simplifications(p Plan) []func(*Plan) bool {
	out := []func(*Plan) bool{
		func(p *Plan) bool { return zero(&p.Net.Loss) },
		func(p *Plan) bool { return zero(&p.Net.Duplicate) },
		func(p *Plan) bool { return zero(&p.Net.Slow) },
		func(p *Plan) bool { return zero(&p.Net.Fsync) },
		func(p *Plan) bool { return zero(&p.Net.LostTicks) },
		func(p *Plan) bool { return zero(&p.Linger) },
		func(p *Plan) bool { was := p.Batched; p.Batched = false; return was },
		func(p *Plan) bool { was := p.Net.Delay; p.Net.Delay = 1; return was > 1 },
		func(p *Plan) bool { was := len(p.Partitions); p.Partitions = nil; return was > 0 },
		func(p *Plan) bool { was := len(p.Crashes); p.Crashes = nil; return was > 0 },
	}
	for i := range p.Crashes {
		out = append(out, func(p *Plan) bool {
			if i >= len(p.Crashes) {
				return false
			}
			p.Crashes = slices.Delete(p.Crashes, i, i+1)
			return true
		})
	}
	for i := range p.Partitions {
		out = append(out, func(p *Plan) bool { return i < len(p.Partitions) && unite(&p.Partitions[i]) })
	}
	for i, l := range p.Liars {
		for _, k := range l.Kinds {
			out = append(out, func(p *Plan) bool { return p.without(i, k) })
		}
	}
	return out
}

func zero(field *int) bool {
	was := *field
	*field = 0
	return was != 0
}

// unite takes a partition away.
func unite(partition *string) bool {
	b := []byte(*partition)
	for i := range b {
		b[i] = 'a'
	}
	was := *partition
	*partition = string(b)
	return was != *partition
}

// without takes a kind from a liar, if that does not change how many replicas run:
// participants are known by their place.
func (p *Plan) without(liar int, k Kind) bool {
	l := &p.Liars[liar]
	before := p.copies(*l)
	kinds := slices.DeleteFunc(slices.Clone(l.Kinds), func(o Kind) bool { return o == k })
	if len(kinds) == len(l.Kinds) || len(kinds) == 0 {
		return false
	}
	l.Kinds = kinds
	return p.copies(*l) == before
}

// suppress leaves out as many faults as it can (delta debugging): first large
// shares of those that are left, then smaller ones.
func (s *shrinker) suppress() {
	for share := 2; ; share *= 2 {
		left := distinct(s.fired)
		size := (len(left) + share - 1) / share
		for from := 0; from < len(left); from += size {
			p := s.best
			p.Suppressed = append(slices.Clone(p.Suppressed), left[from:min(from+size, len(left))]...)
			s.try(p)
		}
		if size <= 1 || s.plays >= maxPlays {
			return
		}
	}
}

func distinct(ids []uint64) []uint64 {
	out := slices.Clone(ids)
	slices.Sort(out)
	return slices.Compact(out)
}
