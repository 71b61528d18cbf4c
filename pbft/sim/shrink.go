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
	first := pl.play(p, false, true)
	if first.Violation == nil {
		return p
	}
	s.oracle, s.now = first.Violation.Oracle, first
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
	now    Result // of the best plan
	plays  int
}

// try takes a plan if it still fails in the same way.
func (s *shrinker) try(p Plan) bool {
	if s.plays >= maxPlays {
		return false
	}
	s.plays++
	result := s.player.play(p, false, true)
	if result.Violation == nil || result.Violation.Oracle != s.oracle {
		return false
	}
	s.best, s.now = p, result
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

// suppress leaves out as many faults as it can, and then as many messages:
// what is left is what matters. A liveness violation needs its messages, since
// losing them for good is no fair network.
func (s *shrinker) suppress() {
	s.reduce(func() []Identity { return s.now.fired }, func(p *Plan, ids []Identity) { p.Suppressed = append(slices.Clone(p.Suppressed), ids...) })
	if s.oracle != "liveness" {
		s.reduce(func() []Identity { return s.now.arrived }, func(p *Plan, ids []Identity) { p.Undelivered = append(slices.Clone(p.Undelivered), ids...) })
	}
}

// reduce leaves out large shares of what happened, then smaller ones (delta
// debugging), from the end: what came last depends on what came first.
func (s *shrinker) reduce(happened func() []Identity, leaveOut func(*Plan, []Identity)) {
	for share := 2; s.plays < maxPlays; share *= 2 {
		all := distinct(happened())
		size := max((len(all)+share-1)/share, 1)
		less := false
		for to := len(all); to > 0; to -= size {
			p := s.best
			leaveOut(&p, all[max(to-size, 0):to])
			less = s.try(p) || less
		}
		if size == 1 && !less {
			return
		}
	}
}

func distinct(ids []Identity) (out []Identity) {
	seen := map[Identity]bool{}
	for _, id := range ids {
		if !seen[id] {
			seen[id] = true
			out = append(out, id)
		}
	}
	return out
}
