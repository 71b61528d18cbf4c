package sim

import (
	"slices"

	"github.com/deliberd/deliberd/pbft"
)

// liar is a member whose key the adversary holds. All liars know everything
// that was ever sent, to whomever, and help each other.
type liar struct {
	seat   int
	kinds  []Kind
	luck   uint64
	lies   int                   // told so far
	opened map[uint64]int        // by view: the tick in which it could first propose
	done   map[[3]uint64]bool    // lies of which one is enough
	held   map[int][]held        // messages withheld, by participant
	empty  map[uint64]pbft.Proof // by view: its view change that claims nothing
}

// held is a message that a withholding liar keeps.
type held struct {
	to      int
	message *message
}

// maxLies bounds what a liar tells by itself in one schedule.
const maxLies = 60

func newLiar(l Liar, seed int64) *liar {
	return &liar{seat: l.Seat, kinds: l.Kinds, luck: mix(uint64(seed), uint64(l.Seat)), opened: map[uint64]int{}, empty: map[uint64]pbft.Proof{}, done: map[[3]uint64]bool{}}
}

func (r *run) liarAt(seat int) *liar {
	for _, l := range r.liars {
		if l.seat == seat {
			return l
		}
	}
	return nil
}

func (l *liar) is(k Kind) bool { return slices.Contains(l.kinds, k) }

func (l *liar) delays() bool { return l.is(Delaying) || l.is(Withholding) }

// once is true the first time a lie is considered.
func (l *liar) once(a, b, c uint64) bool {
	k := [3]uint64{a, b, c}
	if l.done[k] {
		return false
	}
	l.done[k] = true
	return true
}

// hold makes the replica of a delaying or withholding liar late: it returns
// the delay, or a negative number when the message is kept for later.
func (r *run) hold(from, to *participant, m *message, delay int) int {
	l := from.lies
	luck := mix(l.luck, m.id, m.again, uint64(to.idx))
	if l.is(Delaying) && r.fault(600, late, m.id, m.again, uint64(to.idx)) {
		delay += int(luck % uint64(2*r.plan.Timeout*perTick))
	}
	if l.is(Withholding) && r.fault(700, late, m.id, uint64(to.idx), 1) {
		if l.held == nil {
			l.held = map[int][]held{}
		}
		l.held[from.idx] = append(l.held[from.idx], held{to.idx, m})
		return -1
	}
	return delay
}

// lie is the adversary's clock: every tick each liar may act.
func (r *run) lie() {
	if r.now < r.settle+40*perTick {
		r.push(perTick, event{what: lies})
	}
	now := uint64(r.now)
	for _, l := range r.liars {
		if l.is(Equivocating) || l.is(Lying) {
			r.openViews(l)
		}
		if l.is(Lying) && r.fault(40, lieOf, uint64(l.seat), now, 1) {
			r.viewChangeEarly(l)
		}
		if l.is(Spammer) && r.fault(300, lieOf, uint64(l.seat), now, 2) {
			r.spam(l)
		}
		if l.is(Forger) && r.fault(80, lieOf, uint64(l.seat), now, 3) {
			r.forgeCertificate(l)
		}
		if l.is(Replayer) && r.fault(250, lieOf, uint64(l.seat), now, 4) {
			r.replay(l)
		}
		if l.is(Withholding) && r.fault(60, lieOf, uint64(l.seat), now, 5) {
			r.reveal(l)
		}
		if l.is(Garbage) && r.fault(60, lieOf, uint64(l.seat), now, 6) {
			r.garbage(l, r.result.Views+uint64(r.draw(l, now)%2))
		}
		if l.is(Garbage) {
			r.garbageNewViews(l)
		}
	}
}

// draw is a liar's luck at something.
func (r *run) draw(l *liar, identity ...uint64) uint64 {
	return mix(l.luck, mix(identity...))
}

// overheard tells the liars what was sent.
func (r *run) overheard(p *participant, m *message) {
	if len(r.liars) == 0 {
		return
	}
	r.pool.add(r, p.seat, m)
	for _, l := range r.liars {
		for i, v := range m.frame.Votes() {
			if v.Key == r.key {
				r.react(l, p, m, i)
			}
		}
	}
}

// react lets a liar answer a vote as soon as it is sent.
func (r *run) react(l *liar, p *participant, m *message, i int) {
	v := m.frame.Votes()[i]
	if l.is(DoubleVoter) {
		r.voteToo(l, v)
	}
	if l.is(Lying) && v.Phase == pbft.ViewChange {
		r.viewChangeToo(l, v.View)
	}
	if l.is(Garbage) && v.Phase == pbft.ViewChange {
		r.garbage(l, v.View)
	}
	if l.is(Mutating) {
		r.mutate(l, v)
	}
	if l.is(Forger) && !p.liar {
		r.forge(l, m, v)
	}
	if l.is(Withholding) && v.Phase == pbft.ViewChange && r.fault(400, lieOf, uint64(l.seat), v.View, 7) {
		r.reveal(l)
	}
}

// haunt tells a replica that has just started again what the liars have told
// anybody: if it has forgotten what it said, it will now say something else.
func (r *run) haunt(p *participant) {
	for _, l := range r.liars {
		if !l.is(Equivocating) && !l.is(DoubleVoter) && !l.is(Replayer) && !l.is(Twins) || p.liar || !p.up {
			continue
		}
		for _, m := range r.pool.messages {
			if m.frameSigner() == l.seat && r.fault(700, lieOf, m.id, uint64(p.idx), uint64(r.now), 28) {
				again := *m
				again.again = uint64(r.now)
				r.push(1+int(mix(l.luck, m.id, uint64(r.now))%6), event{what: arrives, at: int32(p.idx), message: &again})
			}
		}
	}
}

// reveal lets everything that a liar withheld travel, some of it to nobody.
func (r *run) reveal(l *liar) {
	for _, p := range r.seats[l.seat] {
		for _, h := range l.held[p.idx] {
			if luck := mix(l.luck, h.message.id, uint64(h.to), 9); luck%4 > 0 {
				r.push(1+int(luck>>8%24), event{what: arrives, at: int32(h.to), message: h.message})
			}
		}
		delete(l.held, p.idx)
	}
}

// say signs a vote and sends it to the members that the liar's luck chooses.
func (r *run) say(l *liar, v pbft.Vote) { r.sayTo(l, v, r.mask(l, v)) }

// mask chooses whom a vote is told: all, one, or about half.
func (r *run) mask(l *liar, v pbft.Vote) uint64 {
	luck := r.draw(l, v.View, uint64(v.Phase), uint64(v.Digest[0]), v.Prepared)
	switch luck % 4 {
	case 0:
		return ^uint64(0)
	case 1:
		return 1 << (luck >> 8 % uint64(r.n))
	}
	return luck >> 16
}

func (r *run) sayTo(l *liar, v pbft.Vote, mask uint64) {
	if l.lies >= maxLies {
		return
	}
	v.Key = r.key
	id := []uint64{lieOf, uint64(l.seat), v.View, uint64(v.Phase), uint64(v.Digest[0]), v.Prepared, mask, uint64(len(v.Proof))}
	if !r.fault(1000, id...) {
		return
	}
	l.lies++
	m := r.admit(r.sign(r.domain, l.seat, []pbft.Vote{v}).Encode(), -1-l.seat, mix(id...))
	if m == nil {
		return
	}
	r.pool.add(r, l.seat, m)
	r.tell(m, mask)
}

// tell sends a lie to the members of a mask, at its own pace; the network
// harms only what honest members send.
func (r *run) tell(m *message, mask uint64) {
	for _, to := range r.parts {
		if to.seat != m.frameSigner() && mask>>to.idx&1 == 1 {
			r.push(1+int(mix(m.id, uint64(to.idx))%24), event{what: arrives, at: int32(to.idx), message: m})
		}
	}
}

// frameSigner is the seat that a message claims to be from.
func (m *message) frameSigner() int {
	if m.cert != nil {
		return -1 - m.from
	}
	return m.frame.Signer()
}
