package sim

import (
	"fmt"
	"slices"
	"strconv"

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
