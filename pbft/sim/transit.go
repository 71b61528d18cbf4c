package sim

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deliberd/deliberd/pbft"
)

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

// admit passes what somebody sent through its encoding and the committee, as a
// driver does with what comes from the network. It is nil when refused.
func (r *run) admit(encoded []byte, from int, id uint64) *message {
	frame, cert, err := pbft.Decode(encoded)
	if err != nil {
		return nil
	}
	m := &message{world: r.World, frame: frame, cert: cert, from: from, id: id}
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
