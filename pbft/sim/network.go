package sim

import (
	"fmt"
	"slices"
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
		votes = append(votes, describe(v))
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
			r.queue[i] = r.queue[i][:0]
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
		r.queue[r.now] = r.queue[r.now][:0]
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

// fault decides by identity whether something goes wrong, and remembers that it did.
func (r *run) fault(perMille int, identity ...uint64) bool {
	if perMille <= 0 {
		return false
	}
	id := Identity(mix(identity...) ^ uint64(r.plan.Seed))
	if int(scramble(uint64(id))%1000) >= perMille || r.left[id] {
		return false
	}
	r.result.Faults++
	if r.record {
		r.result.fired = append(r.result.fired, id)
	}
	return true
}

// Identities of faults begin with one of these.
const (
	loss = 1 + iota
	duplicate
	slow
	split
	crash
	lostTick
	late
	lieOf
	delivery
)

// broadcast sends a message of a participant to all others.
func (r *run) broadcast(from *participant, m *message) {
	for _, to := range r.parts {
		if to != from && to.seat != from.seat {
			r.send(from, to, m)
		}
	}
}

// send lets a message travel: what the plan allows it to suffer it suffers.
func (r *run) send(from, to *participant, m *message) {
	if r.now >= r.settle {
		r.push(1+int(mix(m.id, m.again, uint64(to.idx))%uint64(r.plan.Net.Delay)), event{what: arrives, at: int32(to.idx), message: m})
		return
	}
	who := uint64(from.idx)<<8 | uint64(to.idx)
	if r.parted(from, to, m.view) && r.fault(1000, split, m.view, who) {
		return
	}
	net := &r.plan.Net
	if r.fault(net.Loss, loss, m.id, m.again, who) {
		r.logf("%s→%s %v: lost", from.name, to.name, m)
		return
	}
	luck := mix(uint64(r.plan.Seed), m.id, m.again, who)
	delay := 1 + int(luck%uint64(net.Delay))
	if r.fault(net.Slow, slow, m.id, m.again, who) {
		delay += int(luck >> 20 % uint64(net.SlowDelay))
	}
	if from.liar && from.lies.delays() {
		delay = r.hold(from, to, m, delay)
		if delay < 0 {
			return
		}
	}
	r.push(delay, event{what: arrives, at: int32(to.idx), message: m})
	if r.fault(net.Duplicate, duplicate, m.id, m.again, who) {
		r.push(delay+int(luck>>40%64), event{what: arrives, at: int32(to.idx), message: m})
	}
}

// parted reports whether the partition of a view keeps two participants apart.
func (r *run) parted(a, b *participant, view uint64) bool {
	return view < uint64(len(r.plan.Partitions)) && r.plan.Partitions[view][a.idx] != r.plan.Partitions[view][b.idx]
}

// deliver hands a message to a replica as a driver does.
func (r *run) deliver(p *participant, m *message) {
	if !p.up {
		return
	}
	if r.record || r.left != nil {
		id := Identity(mix(delivery, m.id, m.again, uint64(p.idx)))
		if r.left[id] {
			return
		}
		if r.record {
			r.result.arrived = append(r.result.arrived, id)
		}
	}
	var err error
	guilty := r.contradicts(p, m)
	if m.cert != nil {
		err = p.engine.StepCertificate(m.checked)
	} else {
		if r.plan.Filter && !p.engine.Wants(m.frame) {
			if guilty {
				r.violate("guilt", "%s does not want %v, although it contradicts what it has", p.name, m)
			}
			return
		}
		if err = p.engine.Step(m.verified); len(m.frame.Votes()) > 1 {
			delete(p.latest, m.frame.Signer()) // several may push each other out
		} else if err == nil {
			p.latest[m.frame.Signer()] = m.frame.Votes()[0]
		}
	}
	r.result.Messages++
	if r.trace != nil {
		r.logArrival(p, m, err)
	}
	r.settleReplica(p)
	if !p.up {
		return
	}
	if guilty && !p.blamed[m.frame.Signer()] {
		r.violate("guilt", "%s takes no notice of %v, although it contradicts what it has", p.name, m)
	}
	if held, most := p.engine.Held(), 16*r.n+48; held > most {
		r.violate("memory", "%s holds %d votes, at most %d are allowed", p.name, held, most)
	}
}

// contradicts reports whether a frame of one vote contradicts the last vote that
// an undecided engine took from the same member.
func (r *run) contradicts(p *participant, m *message) bool {
	if m.cert != nil || p.decided != nil || len(m.frame.Votes()) != 1 || m.frame.Domain() != r.domain || m.verified.Refused(0) != nil {
		return false
	}
	seat, v := m.frame.Signer(), m.frame.Votes()[0]
	had, ok := p.latest[seat]
	return ok && seat != p.seat && v.Key == r.key && had.Key == r.key && v.View == had.View && v.Phase == had.Phase && !same(v, had) && !p.blamed[seat]
}

func (r *run) logArrival(p *participant, m *message, err error) {
	from := ""
	if m.from >= 0 {
		from = r.parts[m.from].name
	} else {
		from = fmt.Sprintf("liar %d", -1-m.from)
	}
	if err != nil {
		r.logf("%s→%s %v: %s", from, p.name, m, strings.ReplaceAll(err.Error(), "\n", "; "))
		return
	}
	r.logf("%s→%s %v", from, p.name, m)
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

// admit passes what somebody sent through its encoding and the committee, as a
// driver does with what comes from the network. It is nil when refused.
func (r *run) admit(encoded []byte, from int, id uint64) *message {
	frame, cert, err := pbft.Decode(encoded)
	if err != nil {
		return nil
	}
	m := &message{frame: frame, cert: cert, from: from, id: id}
	if cert != nil {
		m.view = cert.View
		m.checked, err = r.committee.CheckCertificate(r.instance, cert)
	} else {
		for _, v := range frame.Votes() {
			if v.Key == r.key {
				m.view = max(m.view, v.View)
			}
		}
		m.verified, err = r.committee.Verify(frame)
	}
	if err != nil {
		return nil
	}
	r.unforged(m)
	return m
}

// slotOf finds a vote in the same slot.
func slotOf(votes []pbft.Vote, v pbft.Vote) int {
	return slices.IndexFunc(votes, func(o pbft.Vote) bool { return o.View == v.View && o.Phase == v.Phase })
}

func same(a, b pbft.Vote) bool {
	return a.View == b.View && a.Phase == b.Phase && a.Digest == b.Digest && a.Prepared == b.Prepared
}
