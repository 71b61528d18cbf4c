package sim

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft/quorum"
)

// Kind is a way of lying. A liar may have several.
type Kind string

// The kinds. Whatever a liar says is signed with its own key, or is a forgery.
const (
	Silent       Kind = "silent"       // says nothing
	Delaying     Kind = "delaying"     // follows the protocol, late, to some much later than to others
	Equivocating Kind = "equivocating" // as primary, proposes different values to different members, justified where that is possible
	DoubleVoter  Kind = "double-voter" // prepares and commits every value it hears of, each to whom it suits
	Forger       Kind = "forger"       // alters others' frames and certificates, signs for them, fills quorums with copies
	Replayer     Kind = "replayer"     // sends again what was said before: earlier views, other instances, epochs, generations
	Lying        Kind = "lying"        // hides or invents what it prepared in view changes, starts them early
	Garbage      Kind = "garbage"      // view changes and new views whose proofs are rubbish, or nearly right
	Withholding  Kind = "withholding"  // keeps its frames and reveals them later, to some
	Spammer      Kind = "spammer"      // floods with votes of many views
	Mutating     Kind = "mutating"     // signs what it heard with one field a little changed
	Twins        Kind = "twins"        // several honest replicas under one key
)

// Kinds are all kinds, in the order in which they are documented.
func Kinds() []Kind {
	return []Kind{Silent, Delaying, Equivocating, DoubleVoter, Forger, Replayer, Lying, Garbage, Withholding, Spammer, Mutating, Twins}
}

// Sizes are the committee sizes that campaigns play by default.
func Sizes() []int { return []int{4, 5, 6, 7, 10} }

// MaxNodes is the largest committee that a plan may have.
const MaxNodes = 31

// Liar is a member whose key the adversary holds.
type Liar struct {
	Seat  int    `json:"seat"`
	Kinds []Kind `json:"kinds"`
}

// Crash stops a replica and loses what it had not stored.
type Crash struct {
	Seat  int `json:"seat"`
	Frame int `json:"frame"` // which of the frames it makes; the first is 0
	// Stage is where in its duties it stops: 0 before storing, 1 after storing,
	// 2 after sending to one member.
	Stage int `json:"stage"`
	Down  int `json:"down"` // ticks
}

// Net is how messages travel until the network settles, in thousandths and in
// units of time, of which a tick has eight.
type Net struct {
	Loss      int `json:"loss"`
	Duplicate int `json:"duplicate"`
	Slow      int `json:"slow"`       // share of messages that take up to SlowDelay instead of Delay
	SlowDelay int `json:"slow_delay"` // units
	Delay     int `json:"delay"`      // units, also once the network has settled
	Fsync     int `json:"fsync"`      // units until a frame is stored
	LostTicks int `json:"lost_ticks"` // share of ticks that a replica's clock misses
}

// Plan is all that one schedule depends on: equal plans play alike, to the byte.
type Plan struct {
	Seed  int64  `json:"seed"`
	Nodes int    `json:"nodes"`
	Liars []Liar `json:"liars,omitempty"`
	Known bool   `json:"known"` // honest replicas know the one right value, A; else A and B are both right
	// Proposals has a letter for each participant: what it proposes when it may.
	Proposals string `json:"proposals"`
	Copies    int    `json:"copies,omitempty"` // replicas under each twin's key
	Observer  bool   `json:"observer,omitempty"`
	Filter    bool   `json:"filter"` // frames that an engine does not want are dropped unverified, as drivers do
	Batched   bool   `json:"batched,omitempty"`
	Pruned    bool   `json:"pruned,omitempty"` // disks keep the frames of the last view and the highest lock only, as drivers do
	Timeout   int    `json:"timeout"`          // ticks
	Resend    int    `json:"resend"`
	Linger    int    `json:"linger,omitempty"` // ticks played after everybody has decided
	Net       Net    `json:"net"`
	// Partitions has for each view a letter for each participant: until the
	// network settles, frames of that view pass only between equal letters.
	Partitions []string `json:"partitions,omitempty"`
	Crashes    []Crash  `json:"crashes,omitempty"`
	Settle     int      `json:"settle"` // the tick from which the network is good
	// Suppressed are faults that are left out, by identity: what shrinking found
	// to be unnecessary.
	Suppressed []Identity `json:"suppressed,omitempty"`
	// Undelivered are messages that never arrive, by identity: what shrinking
	// found to make no difference.
	Undelivered []Identity `json:"undelivered,omitempty"`
	Genuine     bool       `json:"genuine,omitempty"` // Ed25519 instead of simulated signatures
}

// Identity names something that happens in a schedule, so that a plan can leave
// it out. As text it is 16 hex digits.
type Identity uint64

// MarshalText writes 16 hex digits.
func (i Identity) MarshalText() ([]byte, error) { return fmt.Appendf(nil, "%016x", uint64(i)), nil }

// UnmarshalText reads 16 hex digits.
func (i *Identity) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil || len(text) != 16 {
		return fmt.Errorf("an identity has 16 hex digits, got %q", text)
	}
	*i = Identity(n)
	return nil
}

// MaxSeed bounds seeds on both sides of 0, so that every JSON reader keeps them.
const MaxSeed = 1<<53 - 1

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

// participants are the replicas that run: honest members, the copies that
// liars run, and perhaps an observer.
func (p *Plan) participants() int {
	count := p.Nodes
	for _, l := range p.Liars {
		count += p.copies(l) - 1
	}
	if p.Observer {
		count++
	}
	return count
}

// copies is how many replicas of its own a liar runs.
func (p *Plan) copies(l Liar) int {
	switch {
	case slices.Contains(l.Kinds, Twins):
		return p.Copies
	case slices.Contains(l.Kinds, Delaying) || slices.Contains(l.Kinds, Withholding):
		return 1
	}
	return 0
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

// bound is how many ticks after the network has settled everybody must have decided.
func (p *Plan) bound() int {
	f := quorum.F(p.Nodes)
	return 4*(f+2)*(p.Timeout<<doubling) + 200
}

// doubling is how often the timeout doubles in every plan.
const doubling = 5

// Has reports whether a liar of the plan is of a kind.
func (p *Plan) Has(k Kind) bool {
	return slices.ContainsFunc(p.Liars, func(l Liar) bool { return slices.Contains(l.Kinds, k) })
}

// ParsePlan reads a plan as JSON and checks it.
func ParsePlan(text []byte) (Plan, error) {
	var p Plan
	if err := canon.Check(text); err != nil {
		return p, machine.Refuse(machine.CodeMalformed, "give a plan that deliberd sim wrote", "The plan is no JSON: %v.", err)
	}
	if err := canon.DecodeChecked(text, &p); err != nil {
		return p, machine.Refuse(machine.CodeMalformed, "give a plan that deliberd sim wrote", "The text is no plan: %v.", err)
	}
	return p, p.Check()
}

// Check refuses a plan that cannot be played.
func (p *Plan) Check() error {
	bad := func(format string, args ...any) error {
		return machine.Refuse(machine.CodeMalformed, "give a plan that deliberd sim wrote", format, args...)
	}
	if p.Nodes < 1 || p.Nodes > MaxNodes {
		return bad("A committee has 1 to %d nodes, the plan has %d.", MaxNodes, p.Nodes)
	}
	if p.Seed < -MaxSeed || p.Seed > MaxSeed {
		return bad("A seed is from -2^53 to 2^53, got %d.", p.Seed)
	}
	seats := map[int]bool{}
	for _, l := range p.Liars {
		if l.Seat < 0 || l.Seat >= p.Nodes || seats[l.Seat] {
			return bad("No second liar, and none outside the committee, sits at %d.", l.Seat)
		}
		seats[l.Seat] = true
		for _, k := range l.Kinds {
			if !slices.Contains(Kinds(), k) {
				return bad("No adversary is called %q.", k)
			}
		}
	}
	if len(seats) == p.Nodes {
		return bad("A plan needs an honest member.")
	}
	for _, field := range []struct {
		name         string
		value, least int
		most         int
	}{
		{"copies", p.Copies, 0, 4}, {"timeout", p.Timeout, 1, 100}, {"resend", p.Resend, 1, 100}, {"linger", p.Linger, 0, 1000}, {"settle", p.Settle, 0, 10_000},
		{"net.loss", p.Net.Loss, 0, 1000}, {"net.duplicate", p.Net.Duplicate, 0, 1000}, {"net.slow", p.Net.Slow, 0, 1000}, {"net.lost_ticks", p.Net.LostTicks, 0, 1000},
		{"net.slow_delay", p.Net.SlowDelay, min(p.Net.Slow, 1), 10_000}, {"net.delay", p.Net.Delay, 1, p.longest()}, {"net.fsync", p.Net.Fsync, 0, 1000},
	} {
		if field.value < field.least || field.value > field.most {
			return bad("%s is from %d to %d, the plan says %d.", field.name, field.least, field.most, field.value)
		}
	}
	for _, c := range p.Crashes {
		if c.Seat < 0 || c.Seat >= p.Nodes || c.Frame < 0 || c.Stage < 0 || c.Stage > 2 || c.Down < 0 || c.Down > 1000 {
			return bad("The crash %+v is of no member, or its stage is not 0 to 2, or it is down for more than 1,000 ticks.", c)
		}
	}
	if len(p.Proposals) != p.participants() || strings.Trim(p.Proposals, "AB") != "" {
		return bad("proposals has a letter, A or B, for each of %d participants.", p.participants())
	}
	for _, part := range p.Partitions {
		if len(part) != p.participants() {
			return bad("A partition has a letter for each of %d participants, got %q.", p.participants(), part)
		}
	}
	return nil
}

// longest is the longest delay with which the last timeout still allows for
// all phases of a view.
func (p *Plan) longest() int { return max(p.Timeout<<doubling*perTick/5, 1) }
