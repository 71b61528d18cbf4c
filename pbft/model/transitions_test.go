package model

import (
	"fmt"
	"testing"

	"github.com/deliberd/deliberd/pbft"
)

// diskOf is a disk that holds what an honest member signed, each vote in its
// own frame, in the one order in which it can have been signed.
func (w *world) diskOf(me int, own Member) (disk pbft.Restored) {
	add := func(v pbft.Vote) { disk.Frames = append(disk.Frames, w.sign(me, v).Frame()) }
	for v := range w.views {
		if own.Changed[v] {
			add(w.change(v, own.Claim(v)))
		}
		if x := own.Accepted[v]; x != None {
			add(w.acceptance(me, v, x, 0, 0))
		}
		if x := own.Committed[v]; x != None {
			add(pbft.Vote{View: uint64(v), Phase: pbft.Commit, Digest: digest(x)})
			disk.Prepared = append(disk.Prepared, w.prepared(ClaimOf(v, x)))
		}
	}
	return disk
}

// trial is one way to bring an engine to an action: from what disk, by what moves.
type trial struct {
	me    int
	own   Member
	moves string // names, to know it again
	list  []move
}

// trials are all ways that need no more messages than the action itself: every
// smallest set of votes, castable in the state, that enables it.
func (w *world) trials(p Protocol, me int, own Member, a Action, castable *Heard) (out []trial) {
	add := func(own Member, moves ...move) {
		t := trial{me: me, own: own, list: moves}
		t.moves = fmt.Sprint(moves)
		out = append(out, t)
	}
	switch a.Kind {
	case ViewChange:
		add(own, move{kind: timing})
	case Prepare:
		for _, m := range w.voices(Primary(a.View), Prepare, a.View, castable) {
			if m.value == a.Value {
				add(own, move{kind: hearing, message: m})
			}
		}
	case Commit:
		need := p.Quorum
		if own.Accepted[a.View] == a.Value {
			need--
		}
		w.choose(me, need, Prepare, a.View, castable, func(chosen []move, h *Heard) {
			if count(&h.Accepted[a.View], a.Value) == need {
				add(own, chosen...)
			}
		})
	case PrePrepare:
		proposing := move{kind: proposing, value: a.Value}
		if a.View == 0 {
			add(own, proposing)
			return out
		}
		w.choose(me, p.Quorum-1, ViewChange, a.View, castable, func(chosen []move, h *Heard) {
			h.Add(me, own)
			if p.Justified(&h.Changed[a.View]).Has(a.Value) {
				add(own, append(chosen, proposing)...)
			}
		})
		// Or while its own view change, made because two others left, is being stored.
		before := own
		before.Changed[a.View] = false
		w.choose(me, p.Quorum, ViewChange, a.View, castable, func(chosen []move, h *Heard) {
			if p.Justified(&h.Changed[a.View]).Has(a.Value) {
				add(before, chosen[0], chosen[1], move{kind: taking}, chosen[2], proposing, move{kind: storing})
			}
		})
	}
	return out
}

// voices are the castable votes of a member in a slot; a pre-prepare counts as
// the primary's prepare.
func (w *world) voices(from int, kind Kind, view int, castable *Heard) (out []*message) {
	if kind == Prepare && from == Primary(view) {
		kind = PrePrepare
	}
	said := castable.packVoice(from)
	for i := range w.alphabet[from] {
		m := &w.alphabet[from][i]
		if m.kind == kind && m.view == view && m.bit&^said == 0 {
			out = append(out, m)
		}
	}
	return out
}

// choose tries all ways to hear one vote in a slot from each of n other members.
func (w *world) choose(me, n int, kind Kind, view int, castable *Heard, found func([]move, *Heard)) {
	var pick func(from int, chosen []move, heard uint64)
	pick = func(from int, chosen []move, heard uint64) {
		if len(chosen) == n {
			found(append([]move(nil), chosen...), unpack(me, heard))
			return
		}
		if from == N {
			return
		}
		pick(from+1, chosen, heard)
		if from == me {
			return
		}
		for _, m := range w.voices(from, kind, view, castable) {
			pick(from+1, append(chosen[:len(chosen):len(chosen)], move{kind: hearing, message: m}), heard|m.bit<<voiceAt(me, from))
		}
	}
	pick(0, nil, 0)
}

// attempt runs a trial and reports whether the engine took the action. All that
// it casts on the way must be lawful.
func (w *world) attempt(p Protocol, t trial, a Action) (bool, error) {
	r, err := w.start(t.me, w.diskOf(t.me, t.own))
	if err != nil {
		return false, err
	}
	taken := false
	settle := func(store bool) error {
		for r.engine.HasReady() {
			votes := r.take().Votes
			if err := r.lawful(p, votes); err != nil {
				return err
			}
			for _, v := range votes {
				taken = taken || actionOf(v) == a
			}
			if len(r.handed) == 0 {
				continue
			}
			if !store {
				return nil
			}
			if err := r.store(); err != nil {
				return err
			}
		}
		return nil
	}
	slow := false // storing takes long
	for _, m := range t.list {
		slow = slow || m.kind == taking
	}
	for _, m := range t.list {
		switch m.kind {
		case hearing:
			r.hear(m.message)
		case proposing:
			r.proposed = true
			r.engine.Propose(digest(m.value))
		case timing:
			r.timeout()
		case taking:
			err = settle(false)
		case storing:
			slow, err = false, r.store()
		}
		if err == nil && !slow {
			err = settle(true)
		}
		if err != nil {
			return false, err
		}
	}
	return taken, nil
}

// TestEngineTakesEveryTransitionOfTheSpecification goes over every action of an
// honest member in every reachable state. A real engine with this member's votes
// on its disk, given each smallest set of messages that enables the action, takes it.
func TestEngineTakesEveryTransitionOfTheSpecification(t *testing.T) {
	w, tried := newWorld(2), map[string]bool{}
	states, transitions := 0, 0
	for b := range N {
		m := &Model{PBFT(2), []int{b}}
		r := m.Explore(m.Unsafe, false, func(s *State, steps []Step) {
			castable := m.Castable(s)
			for _, step := range steps {
				ways := 0
				for _, way := range w.trials(m.Protocol, step.Member, s[step.Member], step.Action, castable) {
					id := fmt.Sprint(way.me, way.own, way.moves, step.Action)
					if _, done := tried[id]; !done {
						taken, err := w.attempt(m.Protocol, way, step.Action)
						if err != nil {
							t.Fatalf("byzantine %d, %s, with %s and %s: %v", b, step, tell(way.own), way.moves, err)
						}
						tried[id] = taken
					}
					if tried[id] {
						ways++
					} else if step.Kind != PrePrepare || step.View == 0 {
						t.Fatalf("byzantine %d: an engine with %s does not take %s, after %s", b, tell(way.own), step, way.moves)
					}
				}
				if ways == 0 {
					t.Fatalf("byzantine %d: nothing brings an engine with %s to %s", b, tell(s[step.Member]), step)
				}
			}
		})
		states, transitions = states+len(r.States), transitions+r.Transitions
	}
	t.Logf("%d transitions of %d states, tried in %d ways", transitions, states, len(tried))
}
