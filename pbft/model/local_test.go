package model

import (
	"encoding/binary"
	"errors"
	"flag"
	"fmt"
	"hash/maphash"
	"runtime/debug"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/pbft"
)

// possible tells what a member can have heard, by what it has signed: the
// largest sets of votes that are castable in a reachable state.
type possible map[Member][]uint64

// collect takes up all reachable states of a model in which a member is honest.
func (p possible) collect(m *Model, me int) {
	m.Explore(m.Unsafe, false, func(s *State, _ []Step) {
		p.add(s[me], m.Castable(s).pack(me))
	})
}

func (p possible) add(own Member, heard uint64) {
	kept := p[own][:0]
	for _, h := range p[own] {
		if heard&^h == 0 {
			return
		}
		if h&^heard != 0 {
			kept = append(kept, h)
		}
	}
	p[own] = append(kept, heard)
}

func (p possible) has(own Member, heard uint64) bool {
	for _, h := range p[own] {
		if heard&^h == 0 {
			return true
		}
	}
	return false
}

// move is one thing that happens to a replica.
type move struct {
	kind    moveKind
	message *message // heard
	value   Value    // proposed
}

type moveKind int

const (
	hearing moveKind = iota
	proposing
	timing
	taking
	storing
)

func (m move) String() string {
	switch m.kind {
	case hearing:
		return m.message.name
	case proposing:
		return "proposes " + m.value.String()
	}
	return [...]string{timing: "its timer ends", taking: "hands votes out", storing: "stores them"}[m.kind]
}

// bound limits what happens to a member.
type bound struct {
	name      string
	members   []int
	hears     func(*message) bool // which votes of others reach it
	forgetful bool                // it restarts whenever it has entered a view
	lazy      bool                // things may happen while its votes are being stored
}

// local explores every state of one member's engine.
type local struct {
	bound
	p        Protocol
	w        *world
	me       int
	possible possible

	seen      *set
	restarted map[Member]bool
	edges     int
	cast      int // edges on which a vote was cast
	path      []string
	err       error
}

// visit goes on from a replica unless that has been done. Its path ends here.
func (l *local) visit(r *replica) {
	code := l.code(r)
	if !l.seen.add(code) {
		return
	}
	busy := r.engine.HasReady() || len(r.handed) > 0
	if !busy {
		if err := r.idle(l.p); err != nil {
			l.fail(err)
			return
		}
	}
	if err := l.disturb(r.copy(), code); err != nil {
		l.fail(err)
		return
	}
	l.restart(r)
	if l.forgetful && !busy && int(r.engine.View()) > r.startView {
		return // the restarted engine goes on
	}
	for _, m := range l.moves(r) {
		if l.err != nil {
			return
		}
		l.edges++
		l.path = append(l.path, m.String())
		next := r.copy()
		if err := l.do(next, m); err != nil {
			l.fail(err)
			return
		}
		l.visit(next)
		l.path = l.path[:len(l.path)-1]
	}
	if l.code(r) != code {
		l.fail(errors.New("changes what its copies share"))
	}
}

// code is a hash of all that a replica's future depends on. Of a million
// states two have one code with a chance of 1 in 30 million.
func (l *local) code(r *replica) uint64 {
	var buf [1024]byte
	b := appendEngine(buf[:0], r.engine)
	b = binary.BigEndian.AppendUint64(b, r.own.Code())
	b = binary.BigEndian.AppendUint64(b, r.heard)
	return maphash.Bytes(seed, b) &^ 1 // never all ones
}

// disturb repeats every vote that was heard and lets Byzantine members say in
// the same slots whatever else they can: nothing changes, but that the engine
// may now prove who is guilty.
func (l *local) disturb(r *replica, before uint64) error {
	if r.engine.Decision() != nil {
		return l.silent(r)
	}
	for from := range N {
		if from == l.me {
			continue
		}
		for i := range l.w.alphabet[from] {
			m, at := &l.w.alphabet[from][i], voiceAt(l.me, from)
			if r.heard&(m.slot<<at) == 0 || !l.possible.has(r.own, r.heard|m.bit<<at) {
				continue
			}
			if r.engine.StepVote(m.verified, 0) == nil {
				return fmt.Errorf("takes a second vote for a slot: %s", m.name)
			}
		}
	}
	if l.code(r) != before {
		return errors.New("is changed by repeated votes or second votes for a slot")
	}
	return nil
}

// silent checks that a decided replica votes no more, whatever it hears.
func (l *local) silent(r *replica) error {
	for from := range N {
		for i := range l.w.alphabet[from] {
			if from != l.me {
				_ = r.engine.StepVote(l.w.alphabet[from][i].verified, 0)
			}
		}
	}
	r.timeout()
	if votes := r.engine.Ready().Votes; len(votes) > 0 {
		return fmt.Errorf("casts %s after the decision", describe(votes[0]))
	}
	return nil
}

func (l *local) do(r *replica, m move) error {
	switch m.kind {
	case hearing:
		r.hear(m.message)
	case proposing:
		r.proposed, r.named = true, true
		r.engine.Propose(digest(m.value))
	case timing:
		r.timeout()
	case taking:
		return l.take(r)
	case storing:
		return r.store()
	}
	for !l.lazy && r.engine.HasReady() {
		if err := l.take(r); err != nil {
			return err
		}
		if err := l.patient(r, m); err != nil {
			return err
		}
		if len(r.handed) > 0 {
			if err := r.store(); err != nil {
				return err
			}
		}
	}
	return nil
}

// take checks what the engine hands out.
func (l *local) take(r *replica) error {
	ready := r.take()
	if len(ready.Votes) > 0 {
		l.cast++
	}
	return r.lawful(l.p, ready.Votes)
}

// patient checks that a view is left for a reason: the timer ended or f+1
// members have gone ahead.
func (l *local) patient(r *replica, m move) error {
	for _, v := range r.handed {
		if v.Phase == pbft.ViewChange && m.kind != timing && !l.p.Joinable(r.knows(r.own), int(v.View)) {
			return fmt.Errorf("casts %s before its timer ends, with %s heard", describe(v), tellHeard(r.me, r.heard))
		}
	}
	return nil
}

// moves are all that may happen next. The first value to come up is A: no engine
// tells digests apart but by equality, so A and B may change places.
func (l *local) moves(r *replica) []move {
	var out []move
	if r.engine.HasReady() && len(r.handed) == 0 {
		out = append(out, move{kind: taking})
	}
	if len(r.handed) > 0 {
		out = append(out, move{kind: storing})
	}
	if r.engine.Decision() != nil {
		return out
	}
	if !r.proposed && l.me < l.p.Views && int(r.engine.View()) <= l.me { // else it is primary no more
		for _, x := range AllValues {
			if x == A || r.named {
				out = append(out, move{kind: proposing, value: x})
			}
		}
	}
	if int(r.engine.View())+1 < l.p.Views {
		out = append(out, move{kind: timing})
	}
	for from := range N {
		for i := range l.w.alphabet[from] {
			m, at := &l.w.alphabet[from][i], voiceAt(l.me, from)
			if from != l.me && l.hears(m) && (m.value != B || r.named) && r.heard&(m.slot<<at) == 0 && l.possible.has(r.own, r.heard|m.bit<<at) {
				out = append(out, move{kind: hearing, message: m})
			}
		}
	}
	return out
}

// restart goes on from what is on disk alone.
func (l *local) restart(r *replica) {
	if l.restarted[r.own] {
		return
	}
	l.restarted[r.own] = true
	again, err := l.w.start(l.me, r.disk)
	l.path = append(l.path, "restarts")
	if err != nil {
		l.fail(err)
		return
	}
	l.visit(again)
	l.path = l.path[:len(l.path)-1]
}

func (l *local) fail(err error) {
	if l.err == nil {
		l.err = fmt.Errorf("member %d %w, after\n  %s", l.me, err, strings.Join(l.path, "\n  "))
	}
}

func (l *local) explore() error {
	l.seen, l.restarted = newSet(), map[Member]bool{}
	r, err := l.w.start(l.me, pbft.Restored{})
	if err != nil {
		return err
	}
	l.visit(r)
	return l.err
}

// explore is the exploration of every member within a bound, whoever else is
// Byzantine.
func (b bound) explore(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(400))
	w, p := newWorld(2), PBFT(2)
	for _, me := range b.members {
		possible := possible{}
		for byzantine := range N {
			if byzantine != me {
				possible.collect(&Model{p, []int{byzantine}}, me)
			}
		}
		l := &local{bound: b, p: p, w: w, me: me, possible: possible}
		if err := l.explore(); err != nil {
			t.Fatal(err)
		}
		t.Logf("%s, member %d: %d states of its engine, %d steps, on %d of them votes cast", b.name, me, l.seen.n, l.edges, l.cast)
	}
}

var full = flag.Bool("model.full", false, "explore the engine without the bounds of the default run: the better part of an hour of one core")

func anyButCommits(m *message) bool { return m.kind != Commit }

// fewPrepares leaves so few prepares that a decision takes the commits of others
// through all orders.
func fewPrepares(m *message) bool { return m.kind != Prepare || m.from == 3 }

// mostlyCommits leaves even less beside commits.
func mostlyCommits(m *message) bool {
	return m.kind == Commit || m.kind != ViewChange && (m.from == 3 || m.from == Primary(m.view))
}

// TestEngineCastsWhatTheSpecificationAllowsAndNothingElse takes the engine of
// each member through every order of events: any vote that is castable in a
// reachable state in which this member has signed what it has, timeouts,
// proposals and restarts. In each state of the engine, whatever it casts is
// allowed, and when it rests nothing is left that is allowed and needs no timer.
func TestEngineCastsWhatTheSpecificationAllowsAndNothingElse(t *testing.T) {
	// Members 2 and 3 differ by their place in lists alone.
	bound{name: "without commits of others", members: []int{0, 1, 3}, hears: anyButCommits, forgetful: true}.explore(t)
	bound{name: "commits and few other votes", members: []int{1, 3}, hears: mostlyCommits, forgetful: true}.explore(t)
}

func TestEngineAgreesWithTheSpecificationInWiderBounds(t *testing.T) {
	if !*full {
		t.Skip("takes long: run with -model.full")
	}
	all := []int{0, 1, 2, 3}
	for _, b := range []bound{
		{name: "with commits, few prepares", members: all, hears: fewPrepares, forgetful: true},
		{name: "with all that was heard kept", members: all, hears: anyButCommits},
		{name: "while storing", members: all, hears: anyButCommits, forgetful: true, lazy: true},
	} {
		t.Run(b.name, b.explore)
	}
}
