package sim

import (
	"fmt"
	"strings"

	"github.com/deliberd/deliberd/pbft"
)

// perTick is how many units of time a tick has.
const perTick = 8

// message is what travels: a frame that has been verified, or a certificate.
type message struct {
	frame    *pbft.Frame
	verified pbft.Verified
	cert     *pbft.Certificate
	checked  pbft.VerifiedCertificate
	world    *World // whose instance it is about
	from     int    // the participant or, negative, −1 minus the liar's seat
	view     uint64 // the highest view that it speaks of
	id       uint64 // draws its luck
	again    uint64 // how often it has been sent
}

func (m *message) String() string {
	if m.cert != nil {
		return fmt.Sprintf("certificate(%d, %s)", m.cert.View, letter(m.cert.Digest))
	}
	var votes []string
	for _, v := range m.frame.Votes() {
		text := describe(v)
		if v.Key != m.world.key {
			text += " of another instance"
		}
		votes = append(votes, text)
	}
	return strings.Join(votes, " ")
}

// What an event is.
const (
	arrives = iota // a message at a participant
	ticks          // a participant's clock
	stored         // a frame at a participant's disk
	starts         // a participant that crashed
	lies           // the adversary's clock
)

type event struct {
	what    uint8
	at      int32 // participant
	message *message
}

// Result is what playing a plan showed.
type Result struct {
	Violation   *Violation
	Views       uint64 // the highest view an honest replica reached
	Faults      int    // how many things went wrong: messages lost, late or repeated, crashes, lies
	Decided     byte   // letter of the decided value, 0 for none
	Ticks       int
	Messages    int        // delivered
	Fingerprint uint64     // of every event in order: equal for equal plans
	Transcript  string     // when asked for
	fired       []Identity // faults by identity, when recorded
	arrived     []Identity // deliveries by identity, when recorded
}

// Counts reports whether the schedule tested what campaigns are for: at least
// two views, and at least one fault.
func (r *Result) Counts() bool { return r.Views >= 1 && r.Faults > 0 }

// run is one schedule being played.
type run struct {
	*World
	plan       Plan
	now        int // units
	settle     int // units
	queue      [][]event
	parts      []*participant
	seats      [][]*participant // by seat; a silent liar has none
	liars      []*liar
	liar       []bool // by seat
	honestLeft int    // undecided
	pool       pool
	said       [][]pbft.Vote     // by honest seat: every vote of the instance it ever showed or stored
	left       map[Identity]bool // faults and deliveries that the plan leaves out
	record     bool
	trace      *strings.Builder
	result     Result
}

// Player plays plans in a world, one after the other. It is not safe for
// concurrent use.
type Player struct {
	world *World
	queue [][]event // emptied, for the next run
}

// NewPlayer is a player in a world.
func NewPlayer(w *World) *Player { return &Player{world: w} }

// Play plays a plan whose size is the world's. With transcript it also says
// what happened, a line each.
func (pl *Player) Play(p Plan, transcript bool) Result { return pl.play(p, transcript, false) }

func (pl *Player) play(p Plan, transcript, record bool) (result Result) {
	r := &run{
		World: pl.world, plan: p, queue: pl.queue, settle: p.Settle * perTick, seats: make([][]*participant, p.Nodes),
		record: record, liar: make([]bool, p.Nodes), said: make([][]pbft.Vote, p.Nodes),
	}
	if transcript {
		r.trace = &strings.Builder{}
	}
	defer func() {
		if broken := recover(); broken != nil {
			r.violate("panic", "%v", broken)
		}
		result = r.result
		if r.trace != nil {
			result.Transcript = r.trace.String()
		}
		for i := range r.queue {
			r.queue[i] = emptied(r.queue[i])
		}
		pl.queue = r.queue[:min(len(r.queue), 4096)]
	}()
	if len(p.Suppressed)+len(p.Undelivered) > 0 {
		r.left = map[Identity]bool{}
		for _, id := range p.Suppressed {
			r.left[id] = true
		}
		for _, id := range p.Undelivered {
			r.left[id] = true
		}
	}
	r.begin()
	r.play()
	return r.result
}

// emptied keeps the room and lets go of the messages.
func emptied(events []event) []event {
	clear(events)
	return events[:0]
}

func (r *run) begin() {
	for _, l := range r.plan.Liars {
		r.liar[l.Seat] = true
		r.liars = append(r.liars, newLiar(l, r.plan.Seed))
	}
	for seat := range r.plan.Nodes {
		copies := 1
		if r.liar[seat] {
			copies = r.plan.copies(*r.plan.liarAt(seat))
		} else {
			r.honestLeft++
		}
		for range copies {
			r.add(seat)
		}
	}
	if r.plan.Observer {
		r.add(pbft.Observer) // it never asks, so it may never hear the decision
	}
	r.logf("%d nodes, f=%d, q=%d, primaries 0, 1, …; liars %s", r.n, r.committee.F(), r.committee.Q(), r.plan.liarsText())
	if len(r.liars) > 0 {
		r.push(0, event{what: lies})
	}
	for _, p := range r.parts {
		r.start(p)
	}
}

func (p *Plan) liarAt(seat int) *Liar {
	for i := range p.Liars {
		if p.Liars[i].Seat == seat {
			return &p.Liars[i]
		}
	}
	return nil
}

func (p *Plan) liarsText() string {
	if len(p.Liars) == 0 {
		return "none"
	}
	var out []string
	for _, l := range p.Liars {
		out = append(out, fmt.Sprint(l.Seat, l.Kinds))
	}
	return strings.Join(out, ", ")
}

// push schedules an event after a delay.
func (r *run) push(delay int, e event) {
	at := r.now + delay
	for len(r.queue) <= at {
		r.queue = append(r.queue, make([]event, 0, 8))
	}
	r.queue[at] = append(r.queue[at], e)
}

// play lets time pass until everybody has decided, and the plan's lingering is
// over, or until it is too late.
func (r *run) play() {
	end, done := r.settle+r.plan.bound()*perTick, -1
	for ; r.result.Violation == nil; r.now++ {
		if r.honestLeft == 0 && done < 0 {
			done = r.now + r.plan.Linger*perTick
		}
		if done >= 0 && r.now >= done {
			break
		}
		if r.now > end {
			r.violate("liveness", "%d honest replicas are undecided %d ticks after the network settled", r.honestLeft, r.plan.bound())
			break
		}
		if r.now >= len(r.queue) {
			continue
		}
		for i := 0; i < len(r.queue[r.now]) && r.result.Violation == nil; i++ {
			e := r.queue[r.now][i]
			r.result.Fingerprint = scramble(r.result.Fingerprint ^ uint64(r.now)<<24 ^ uint64(e.what)<<16 ^ uint64(uint32(e.at)))
			r.happen(e)
		}
		r.queue[r.now] = emptied(r.queue[r.now])
	}
	r.result.Ticks = r.now / perTick
	r.judge()
}

func (r *run) happen(e event) {
	if e.what == lies {
		r.lie()
		return
	}
	p := r.parts[e.at]
	switch e.what {
	case arrives:
		r.deliver(p, e.message)
	case ticks:
		r.tick(p)
	case stored:
		r.keep(p, e.message)
	case starts:
		if !p.up {
			r.logf("%s starts again", p.name)
			r.start(p)
			r.haunt(p)
		}
	}
}

// logf writes a line of the transcript.
func (r *run) logf(format string, args ...any) {
	if r.trace == nil {
		return
	}
	fmt.Fprintf(r.trace, "%3d.%d  ", r.now/perTick, r.now%perTick)
	fmt.Fprintf(r.trace, format, args...)
	r.trace.WriteByte('\n')
}
