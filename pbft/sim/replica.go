package sim

import (
	"fmt"

	"github.com/deliberd/deliberd/pbft"
)

// participant is one replica with its disk: an honest member, a copy that a
// liar runs, or an observer. It does what a driver must, in a driver's order.
type participant struct {
	idx, seat int
	name      string
	liar      bool
	lies      *liar
	engine    *pbft.Engine
	up        bool
	disk      disk
	sent      []*message // of this run, by frame
	writing   *message   // handed to the disk, not stored yet
	proof     *pbft.Prepared
	frames    int // made so far
	answers   int // certificates sent, in all runs
	answer    *message
	decided   *pbft.Certificate
	latest    map[int]pbft.Vote // by seat: the last vote that its engine took, in this run
	blamed    map[int]bool      // seats of which this run holds proof of guilt
}

// disk is what survives a crash.
type disk struct {
	frames   [][]byte
	prepared [][]byte
	cert     []byte
	view     uint64 // the last view of frames
	lock     uint64 // the view of the last of prepared
}

// store keeps a frame and the lock that came with it. Pruned, it forgets what a
// later view has made idle.
func (d *disk) store(m *message, lock *pbft.Prepared, pruned bool) {
	if pruned && m.view > d.view {
		d.frames = d.frames[:0:0]
	}
	d.frames, d.view = append(d.frames, m.frame.Encode()), max(d.view, m.view)
	if lock == nil {
		return
	}
	if pruned && lock.View > d.lock {
		d.prepared = d.prepared[:0:0]
	}
	d.prepared, d.lock = append(d.prepared, lock.Encode()), max(d.lock, lock.View)
}

func (r *run) add(seat int) {
	p := &participant{idx: len(r.parts), seat: seat, name: fmt.Sprint(seat)}
	if seat == pbft.Observer {
		p.name = "observer"
	} else {
		if r.liar[seat] {
			p.liar, p.lies = true, r.liarAt(seat)
			p.name = fmt.Sprintf("%d%s", seat, string(rune('a'+len(r.seats[seat]))))
		}
		r.seats[seat] = append(r.seats[seat], p)
	}
	r.parts = append(r.parts, p)
}

// start runs a replica from its disk.
func (r *run) start(p *participant) {
	cfg := pbft.Config{
		Instance: r.instance, Committee: r.committee, Self: p.seat,
		Timeout: r.plan.Timeout, Resend: r.plan.Resend, Doubling: doubling,
	}
	if r.plan.Known && !p.liar {
		cfg.Expected = valueA
	} else {
		cfg.Validate = right
	}
	restored, err := p.disk.read()
	if err == nil {
		cfg.Restored = restored
		p.engine, err = pbft.New(cfg)
	}
	if err != nil {
		r.violate("restart", "%s cannot start from its own disk: %v", p.name, err)
		return
	}
	p.up, p.sent = true, nil
	p.latest, p.blamed = map[int]pbft.Vote{}, map[int]bool{}
	for _, b := range p.disk.frames {
		if m := r.admit(b, p.idx, r.identity(p)); m != nil {
			p.sent = append(p.sent, m)
		}
	}
	r.push(1+int(mix(uint64(r.plan.Seed), uint64(p.idx), uint64(r.now))%perTick), event{what: ticks, at: int32(p.idx)})
	if p.seat != pbft.Observer {
		p.engine.Propose(value(r.plan.Proposals[p.idx]))
	}
	r.settleReplica(p)
}

func right(d pbft.Digest) bool { return d == valueA || d == valueB }

// read decodes what was stored.
func (d *disk) read() (out pbft.Restored, err error) {
	for _, b := range d.frames {
		f, err := pbft.DecodeFrame(b)
		if err != nil {
			return out, err
		}
		out.Frames = append(out.Frames, f)
	}
	for _, b := range d.prepared {
		p, err := pbft.DecodePrepared(b)
		if err != nil {
			return out, err
		}
		out.Prepared = append(out.Prepared, p)
	}
	if d.cert != nil {
		out.Certificate, err = pbft.DecodeCertificate(d.cert)
	}
	return out, err
}

// identity draws the luck of a replica's next frame.
func (r *run) identity(p *participant) uint64 { return mix(uint64(p.idx), uint64(p.frames)) }

// tick is a participant's clock.
func (r *run) tick(p *participant) {
	if !p.up {
		return // its clock starts again with it
	}
	r.push(perTick, event{what: ticks, at: int32(p.idx)})
	if r.now < r.settle && r.fault(r.plan.Net.LostTicks, lostTick, uint64(p.idx), uint64(r.now)) {
		return
	}
	p.engine.Tick()
	r.settleReplica(p)
}

// settleReplica does what a driver must after each call of an engine.
func (r *run) settleReplica(p *participant) {
	for p.up && r.result.Violation == nil && p.engine.HasReady() {
		rd := p.engine.Ready()
		if len(rd.Votes) > 0 && !r.vote(p, &rd) {
			return // it crashed
		}
		for _, f := range rd.Resend {
			r.resend(p, f)
		}
		for _, seat := range rd.Answers {
			r.answerTo(p, seat)
		}
		for i := range rd.Guilt {
			r.blame(p, &rd.Guilt[i])
		}
		if rd.Decided != nil {
			r.decide(p, rd.Decided)
		}
	}
}

// vote signs, stores and sends votes, in this order. It is false when the
// replica crashed on the way.
func (r *run) vote(p *participant, rd *pbft.Ready) bool {
	r.checkVotes(p, rd)
	c := r.crashOf(p)
	p.frames++
	if c != nil && c.Stage == 0 {
		r.crash(p, c, "before it stores")
		return false
	}
	votes := rd.Votes
	if r.plan.Batched { // as when other instances share the frame
		votes = append(votes[:len(votes):len(votes)], pbft.Vote{Key: r.other, Phase: pbft.Prepare, Digest: valueB})
	}
	m := r.admit(r.sign(r.domain, p.seat, votes).Encode(), p.idx, r.identity(p))
	if m == nil {
		r.violate("refused", "the committee refuses %s's own frame", p.name)
		return false
	}
	p.writing, p.proof = m, rd.Prepared
	if r.plan.Net.Fsync > 0 && c == nil {
		r.push(r.plan.Net.Fsync, event{what: stored, at: int32(p.idx), message: m})
		return true
	}
	r.finish(p, c)
	return p.up
}

// keep ends a write that took its time.
func (r *run) keep(p *participant, m *message) {
	if p.up && p.writing == m {
		r.finish(p, nil)
		r.settleReplica(p)
	}
}

// finish stores the frame being written and then sends it.
func (r *run) finish(p *participant, c *Crash) {
	m := p.writing
	p.disk.store(m, p.proof, r.plan.Pruned)
	p.writing, p.proof = nil, nil
	r.expose(p, m)
	if c != nil && c.Stage == 1 {
		r.crash(p, c, "once it has stored "+m.String())
		return
	}
	if r.trace != nil {
		r.logf("%s stores and sends %v", p.name, m)
	}
	if err := p.engine.Advance(m.verified); err != nil {
		r.violate("advance", "%s refuses its own stored frame: %v", p.name, err)
		return
	}
	p.sent = append(p.sent, m)
	r.overheard(p, m)
	if c != nil {
		r.crashWhileSending(p, c, m)
		return
	}
	r.broadcast(p, m)
}

func (r *run) crashWhileSending(p *participant, c *Crash, m *message) {
	to := r.parts[(p.idx+1)%len(r.parts)]
	if to.seat != p.seat {
		r.send(p, to, m)
	}
	r.crash(p, c, "having sent to "+to.name)
}

// crashOf is the crash planned for the frame that a replica is about to make.
func (r *run) crashOf(p *participant) *Crash {
	if p.liar || r.now >= r.settle {
		return nil
	}
	for i := range r.plan.Crashes {
		c := &r.plan.Crashes[i]
		if c.Seat == p.seat && c.Frame == p.frames && r.fault(1000, crash, uint64(p.seat), uint64(p.frames)) {
			return c
		}
	}
	return nil
}

func (r *run) crash(p *participant, c *Crash, when string) {
	r.logf("%s crashes %s", p.name, when)
	p.up, p.engine, p.writing, p.proof = false, nil, nil, nil
	r.push((1+c.Down)*perTick, event{what: starts, at: int32(p.idx)})
}

// resend sends a stored frame again, as it is.
func (r *run) resend(p *participant, f *pbft.Frame) {
	if m := p.find(f); m != nil {
		again := *m
		again.again = uint64(r.now)
		r.broadcast(p, &again)
		return
	}
	r.violate("resend", "%s sends again a frame that it has not stored", p.name)
}

// find is the stored message of a frame. After a restart the engine holds
// frames of its own, equal to the stored ones.
func (p *participant) find(f *pbft.Frame) *message {
	for _, m := range p.sent {
		if m.frame == f {
			return m
		}
	}
	encoded := string(f.Encode())
	for _, m := range p.sent {
		if string(m.frame.Encode()) == encoded {
			return m
		}
	}
	return nil
}

// answerTo sends the decision to a member who still votes.
func (r *run) answerTo(p *participant, seat int) {
	cert := p.engine.Decision()
	if cert == nil {
		r.violate("answer", "%s answers without a decision", p.name)
		return
	}
	p.answers++
	if most := (r.now/perTick/r.plan.Resend + 2) * r.n; p.answers > most {
		r.violate("traffic", "%s has sent %d certificates, at most %d are allowed by now", p.name, p.answers, most)
		return
	}
	if p.answer == nil || p.answer.cert.View != cert.View || p.answer.cert.Digest != cert.Digest {
		p.answer = r.admit(cert.Encode(), p.idx, mix(uint64(p.idx), 1<<32))
	}
	if p.answer == nil {
		r.violate("certificate", "the certificate of %s is refused", p.name)
		return
	}
	m := *p.answer
	m.again = uint64(r.now)
	for _, to := range r.seats[seat] {
		r.send(p, to, &m)
	}
}
