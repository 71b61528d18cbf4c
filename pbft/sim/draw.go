package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deliberd/deliberd/pbft/quorum"
)

// Mix says what plans are drawn from.
type Mix struct {
	Nodes  int
	Kinds  []Kind // none: honest members only
	Excess int    // liars beyond f: a control, which must break agreement
}

// Check refuses sizes and kinds that do not exist.
func (m Mix) Check() error {
	if m.Nodes < 1 || m.Nodes > MaxNodes {
		return fmt.Errorf("a committee has 1 to %d nodes, got %d", MaxNodes, m.Nodes)
	}
	for _, k := range m.Kinds {
		if !slices.Contains(Kinds(), k) {
			return fmt.Errorf("no adversary is called %q", k)
		}
	}
	if m.Excess < 0 || quorum.F(m.Nodes)+m.Excess >= m.Nodes {
		return fmt.Errorf("%d liars beyond f leave no honest member among %d", m.Excess, m.Nodes)
	}
	return nil
}

// NewPlan draws the plan of a seed.
func NewPlan(seed int64, m Mix) Plan {
	r := source{mix(uint64(seed), uint64(m.Nodes))}
	twins := slices.Contains(m.Kinds, Twins) && quorum.F(m.Nodes)+m.Excess > 0
	switch {
	case twins && len(m.Kinds) == 1:
		return TwinsPlan(seed, uint64(seed), m)
	case twins && r.chance(120):
		return TwinsPlan(seed, r.next(), m)
	}
	p := Plan{
		Seed: seed, Nodes: m.Nodes, Known: r.chance(250), Filter: r.chance(800), Observer: r.chance(60), Batched: r.chance(120), Pruned: r.chance(500),
		Copies: 2 + r.below(10)/9, Timeout: 5 + r.below(4), Resend: 3 + r.below(3), Settle: 30 + r.below(60),
	}
	if r.chance(80) {
		p.Linger = 12 + r.below(30)
	}
	p.drawLiars(&r, m)
	p.drawProposals(&r)
	p.drawNet(&r)
	p.drawPartitions(&r)
	p.drawCrashes(&r)
	return p
}

func (p *Plan) drawLiars(r *source, m Mix) {
	if len(m.Kinds) == 0 {
		return
	}
	count := quorum.F(p.Nodes) + m.Excess
	if m.Excess == 0 && r.chance(100) {
		count = r.below(count + 1)
	}
	first := r.below(p.Nodes)
	if r.chance(500) {
		first = r.below(2) // the first two primaries do the most harm
	}
	step := 1
	if r.chance(300) {
		step = 1 + r.below(p.Nodes)
	}
	taken := uint64(0)
	for seat := first; len(p.Liars) < count; seat = (seat + step) % p.Nodes {
		for taken>>seat&1 == 1 {
			seat = (seat + 1) % p.Nodes
		}
		taken |= 1 << seat
		l := Liar{Seat: seat}
		for range 1 + r.below(4) {
			if k := m.Kinds[r.below(len(m.Kinds))]; !slices.Contains(l.Kinds, k) {
				l.Kinds = append(l.Kinds, k)
			}
		}
		p.Liars = append(p.Liars, l)
	}
}

func (p *Plan) drawProposals(r *source) {
	b := make([]byte, p.participants())
	for i := range b {
		b[i] = "AB"[r.below(2)]
	}
	p.Proposals = string(b)
}

func (p *Plan) drawNet(r *source) {
	p.Net = Net{Delay: 2 + r.below(7)}
	if r.chance(400) {
		p.Net.Loss = 1 + r.below(350)
	}
	if r.chance(300) {
		p.Net.Duplicate = 1 + r.below(150)
	}
	if r.chance(400) {
		p.Net.Slow, p.Net.SlowDelay = 1+r.below(400), 16+r.below(200)
	}
	if r.chance(100) {
		p.Net.Delay = 8 + r.below(40) // longer than the first timeout allows for
	}
	if r.chance(250) {
		p.Net.Fsync = 1 + r.below(12)
		if r.chance(250) {
			p.Net.Fsync += r.below(60) // so that votes are sent again while others are being stored
		}
	}
	if r.chance(150) {
		p.Net.LostTicks = 1 + r.below(500)
	}
}

// drawPartitions splits early views, mostly so that view 0 does not decide
// everywhere.
func (p *Plan) drawPartitions(r *source) {
	if r.chance(150) {
		return
	}
	for range 1 + r.below(4) {
		p.Partitions = append(p.Partitions, draw(r, p.participants(), 2+r.below(8)/7))
	}
}

// draw is a word of that many letters from the first of the alphabet.
func draw(r *source, letters, alphabet int) string {
	var b strings.Builder
	for range letters {
		b.WriteByte(byte('a' + r.below(alphabet)))
	}
	return b.String()
}

func (p *Plan) drawCrashes(r *source) {
	if r.chance(550) {
		return
	}
	for range 1 + r.below(3) {
		p.Crashes = append(p.Crashes, Crash{Seat: r.below(p.Nodes), Frame: r.below(7), Stage: r.below(3), Down: r.below(24)})
	}
	if last := &p.Crashes[len(p.Crashes)-1]; r.chance(300) { // once more, soon after, with what it did in between
		p.Crashes = append(p.Crashes, Crash{Seat: last.Seat, Frame: last.Frame + 1, Stage: 1 + r.below(2), Down: r.below(3)})
	}
}

// twinViews is how many views an enumerated Twins scenario partitions.
const twinViews = 4

// TwinsScenarios is how many Twins scenarios there are with one pair of twins:
// every seat of the twins relative to the primaries, every way to split the
// participants in two in each of the first four views, and four ways to
// distribute the proposals.
func TwinsScenarios(nodes int) uint64 {
	splits := uint64(1) << nodes // of nodes+1 participants, up to naming
	total := uint64(nodes) * 4
	for range twinViews {
		total *= splits
	}
	return total
}

// TwinsPlan is the Twins scenario of an index below [TwinsScenarios], or of
// that index modulo it: nothing but partitions and twins, so that counting
// indices up plays every scenario once. Further liars (f above 1) are twins at
// the following seats, and split as the seed draws.
func TwinsPlan(seed int64, index uint64, m Mix) Plan {
	n := uint64(m.Nodes)
	p := Plan{Seed: seed, Nodes: m.Nodes, Filter: true, Copies: 2, Timeout: 4, Resend: 3, Net: Net{Delay: 2}}
	seat := index % n
	index /= n
	letters := []string{"ABABABAB", "AABBAABB", "ABBAABBA", "AAAABBBB"}[index%4]
	index /= 4
	for i := range quorum.F(m.Nodes) + m.Excess {
		p.Liars = append(p.Liars, Liar{Seat: int((seat + uint64(i)) % n), Kinds: []Kind{Twins}})
	}
	count := p.participants()
	p.Proposals = strings.Repeat(letters, count/len(letters)+1)[:count]
	r := source{mix(uint64(seed), index)}
	for range twinViews {
		split := index & (1<<n - 1)
		index >>= n
		b := []byte(draw(&r, count, 2))
		b[0] = 'a'
		for i := 1; i < count && i <= m.Nodes; i++ {
			b[i] = byte('a' + split>>(i-1)&1)
		}
		p.Partitions = append(p.Partitions, string(b))
	}
	p.Settle = 60
	return p
}
