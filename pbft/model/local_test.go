package model

import (
	"fmt"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/pbft"
)

// possible tells what a member can have heard, by what it has signed: the
// largest sets of votes that are castable in a reachable state.
type possible map[Member][]uint64

// possibleFor collects it from all reachable states.
func possibleFor(m *Model, me int) possible {
	p := possible{}
	m.Explore(false, func(s *State, _ []Step) {
		p.add(s[me], m.Castable(s).pack(me))
	})
	return p
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

// local explores every state of one member's engine.
type local struct {
	*Model
	w        *world
	me       int
	possible possible
	lazy     bool // things may happen while votes are being stored

	seen  map[localKey]struct{}
	edges int
	votes map[string]int // actions cast, by what they are
	root  pbft.Restored
	path  []move
	err   error
}

type localKey struct {
	engine [16]byte
	own    uint64
	heard  uint64
}

// run does all moves of the path and checks the last one. The engines are
// replayed and not copied: then nothing needs to be known about their inside.
func (l *local) run() (*replica, error) {
	r, err := l.w.start(l.me, l.root)
	if err != nil {
		return nil, fmt.Errorf("does not start: %w", err)
	}
	for i, m := range l.path {
		if err := l.do(r, m, i == len(l.path)-1); err != nil {
			return nil, err
		}
	}
	return r, nil
}

func (l *local) do(r *replica, m move, check bool) error {
	switch m.kind {
	case hearing:
		r.hear(m.message)
	case proposing:
		r.proposed = true
		r.engine.Propose(digest(m.value))
	case timing:
		r.timeout()
	case taking:
		return l.take(r, check)
	case storing:
		return r.store()
	}
	if l.lazy {
		return nil
	}
	for r.engine.HasReady() {
		if err := l.take(r, check); err != nil {
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

func (l *local) take(r *replica, check bool) error {
	ready := r.take()
	if !check {
		return nil
	}
	for _, g := range ready.Guilt {
		if !l.IsByzantine(g.Signer()) {
			return fmt.Errorf("holds a proof against honest %d", g.Signer())
		}
	}
	for _, v := range ready.Votes {
		l.votes[v.Phase.String()]++
	}
	return r.lawful(l.Protocol, ready.Votes)
}

// visit checks the replica at the end of the path and goes on from it.
func (l *local) visit() {
	r, err := l.run()
	if err != nil {
		l.fail(err)
		return
	}
	key := localKey{fingerprint(r.engine), r.own.Code(), r.heard}
	if _, done := l.seen[key]; done {
		return
	}
	l.seen[key] = struct{}{}
	busy := r.engine.HasReady() || len(r.handed) > 0
	if !busy {
		if err := r.idle(l.Protocol); err != nil {
			l.fail(err)
			return
		}
	}
	l.restart(r)
	for _, m := range l.moves(r) {
		if l.err != nil {
			return
		}
		l.edges++
		l.path = append(l.path, m)
		l.visit()
		l.path = l.path[:len(l.path)-1]
	}
}

// moves are all that may happen next.
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
	if !r.proposed {
		for _, x := range AllValues {
			out = append(out, move{kind: proposing, value: x})
		}
	}
	if int(r.engine.View())+1 < l.Views {
		out = append(out, move{kind: timing})
	}
	for from := range N {
		for i := range l.w.alphabet[from] {
			m, at := &l.w.alphabet[from][i], voiceAt(l.me, from)
			if from != l.me && r.heard&(m.slot<<at) == 0 && l.possible.has(r.own, r.heard|m.bit<<at) {
				out = append(out, move{kind: hearing, message: m})
			}
		}
	}
	return out
}

// restart goes on from what is on disk alone.
func (l *local) restart(r *replica) {
	if r.own == (Member{}) {
		return
	}
	root, path := l.root, l.path
	l.root, l.path = r.disk, nil
	l.visit()
	l.root, l.path = root, path
}

func (l *local) fail(err error) {
	if l.err != nil {
		return
	}
	var b strings.Builder
	for _, f := range l.root.Frames {
		for _, v := range f.Votes() {
			fmt.Fprintf(&b, "\n  restored with %s", describe(v))
		}
	}
	for _, m := range l.path {
		fmt.Fprintf(&b, "\n  %s", m)
	}
	l.err = fmt.Errorf("byzantine %v, member %d %w, after%s", l.Byzantine, l.me, err, b.String())
}

func TestLocal(t *testing.T) {
	w := newWorld(2)
	for b := range 3 {
		m := &Model{PBFT(2), []int{b}}
		for me := range N {
			if me == b {
				continue
			}
			l := &local{Model: m, w: w, me: me, possible: possibleFor(m, me), seen: map[localKey]struct{}{}, votes: map[string]int{}}
			l.visit()
			if l.err != nil {
				t.Fatal(l.err)
			}
			t.Log(b, me, len(l.seen), l.edges, l.votes)
		}
	}
}
