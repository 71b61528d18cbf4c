package sim

import (
	"slices"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

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
		return bad("A seed is from %d to %d, got %d.", -MaxSeed, MaxSeed, p.Seed)
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
