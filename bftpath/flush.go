package bftpath

import (
	"fmt"
	"slices"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

// outgoing is the votes of one domain that wait to be signed.
type outgoing struct {
	domain    pbft.Domain
	committee *epochCommittee
	votes     []pbft.Vote
}

// signedBatch is frames on their way to the disk, and who waits for them.
type signedBatch struct {
	frames  []signedFrame
	engines []*instance
}

type signedFrame struct {
	verified  pbft.Verified
	bytes     []byte
	committee *epochCommittee
}

// pump does what the engines have ready: at once what needs no disk, and the
// votes by the next flush.
func (l *loop) pump() {
	l.resent = nil
	for len(l.dirty) > 0 {
		dirty := l.dirty
		l.dirty = nil
		for _, in := range dirty {
			in.dirty = false
			for !in.forgotten && in.engine.HasReady() {
				l.handle(in, in.engine.Ready())
			}
		}
	}
	l.flush()
}

func (l *loop) handle(in *instance, r pbft.Ready) {
	if len(r.Votes) > 0 {
		l.queueVotes(in, r)
	}
	for _, f := range r.Resend {
		l.resend(in.committee, f)
	}
	if len(r.Answers) > 0 {
		text := in.engine.Decision().Encode()
		for _, m := range r.Answers {
			l.d.cfg.Send(in.committee.prepared.Node(m), text)
		}
	}
	for _, g := range r.Guilt {
		l.convict(in, g)
	}
	if r.Decided != nil {
		l.decided(in, r.Decided)
	}
}

// convict keeps the first proof against a voter of an epoch: one says all that
// there is to say. It goes to the disk at once.
func (l *loop) convict(in *instance, g pbft.Guilt) {
	l.d.mu.Lock()
	fresh := l.d.guilty.add(g)
	l.d.mu.Unlock()
	if !fresh {
		return
	}
	l.d.log.Error("a voter has signed two different votes in one slot", "node", in.committee.prepared.Node(g.Signer()),
		"instance", g.Instance.ID, "view", g.A.View, "phase", g.A.Phase)
	l.notes, l.urgent = append(l.notes, item{itemGuilt, g.Encode()}), true
	if l.d.cfg.OnGuilt != nil {
		l.d.cfg.OnGuilt(g)
	}
}

func (l *loop) decided(in *instance, cert *pbft.Certificate) {
	in.decided = true
	l.count(func(s *Stats) { s.Decided++; s.Undecided-- })
	if in.stored.Certificate == nil {
		in.stored = pbft.Restored{Certificate: cert} // all else serves the decision
		l.notes = append(l.notes, item{itemCertificate, cert.Encode()})
	}
	if l.d.cfg.OnCertificate != nil {
		l.d.cfg.OnCertificate(in.engine.Instance(), cert)
	}
}

func (l *loop) queueVotes(in *instance, r pbft.Ready) {
	if l.d.Err() != nil {
		return // never to be signed
	}
	domain := in.engine.Instance().Domain()
	at := -1
	for i := range l.out {
		if l.out[i].domain == domain {
			at = i
		}
	}
	if at < 0 {
		at = len(l.out)
		l.out = append(l.out, outgoing{domain: domain, committee: in.committee})
	}
	l.out[at].votes = append(l.out[at].votes, r.Votes...)
	l.waiting = append(l.waiting, in)
	if r.Prepared != nil {
		key := in.engine.Key()
		in.stored.Prepared = append(in.stored.Prepared, r.Prepared)
		l.notes = append(l.notes, item{itemPrepared, append(key[:], r.Prepared.Encode()...)})
	}
}

// maxNotes is how many notes wait for votes to share their flush.
const maxNotes = 1024

// flush signs the waiting votes, as few frames as hold them, and sends them
// to the disk. One flush is under way at a time; votes that come meanwhile
// share the next.
func (l *loop) flush() {
	if l.flying != nil || l.closing || l.d.Err() != nil {
		return
	}
	if l.used > l.compact {
		l.rewrite()
		return
	}
	l.withdraw()
	if len(l.out) == 0 && !l.urgent && len(l.notes) <= maxNotes {
		return
	}
	batch := &signedBatch{engines: l.waiting}
	items := l.notes
	for _, o := range l.out {
		for len(o.votes) > 0 {
			n := fitting(o.votes)
			v, err := o.committee.prepared.Sign(o.domain, o.committee.self, o.votes[:n:n], l.d.cfg.Key)
			if err != nil {
				l.d.fail(fmt.Errorf("sign: %w", err))
				return
			}
			text := v.Frame().Encode()
			batch.frames = append(batch.frames, signedFrame{v, text, o.committee})
			items = append(items, item{itemFrame, text})
			o.votes = o.votes[n:]
		}
	}
	l.out, l.waiting, l.notes, l.urgent = nil, nil, nil, false
	l.flying = batch
	l.used += sizeOf(items)
	l.d.flusher.work <- flight{items: items}
}

// withdraw takes back the waiting votes of instances that were forgotten meanwhile.
func (l *loop) withdraw() {
	gone := map[pbft.Digest]bool{}
	for _, in := range l.waiting {
		if in.forgotten {
			gone[in.engine.Key()] = true
		}
	}
	if len(gone) == 0 {
		return
	}
	l.waiting = slices.DeleteFunc(l.waiting, func(in *instance) bool { return in.forgotten })
	for i := range l.out {
		l.out[i].votes = slices.DeleteFunc(l.out[i].votes, func(v pbft.Vote) bool { return gone[v.Key] })
	}
	l.out = slices.DeleteFunc(l.out, func(o outgoing) bool { return len(o.votes) == 0 })
}

// fitting is how many of the votes one frame can hold.
func fitting(votes []pbft.Vote) int {
	size := 1024
	for i := range votes {
		size += 128 + len(votes[i].Proof)
		if i == pbft.MaxVotes || i > 0 && size > pbft.MaxFrame {
			return i
		}
	}
	return len(votes)
}

// landed sends what is on the disk now. A failed write ends signing: what
// reached the disk is unknown.
func (l *loop) landed(err error) {
	batch := l.flying
	l.flying = nil
	if err != nil {
		l.d.fail(fmt.Errorf("journal: %w", err))
		return
	}
	for _, f := range batch.frames {
		l.broadcast(f.committee, f.bytes)
	}
	l.count(func(s *Stats) {
		s.Flushes++
		s.JournalBytes = l.used
		s.Frames += uint64(len(batch.frames))
		for _, f := range batch.frames {
			s.Votes += uint64(len(f.verified.Frame().Votes()))
		}
	})
	for _, in := range batch.engines {
		if !in.forgotten {
			l.advance(in, batch)
		}
	}
	l.pump()
}

func (l *loop) advance(in *instance, batch *signedBatch) {
	var mine []pbft.Verified
	key := in.engine.Key()
	for _, f := range batch.frames {
		if frame := f.verified.Frame(); frame.Holds(key) {
			mine = append(mine, f.verified)
			if !in.decided {
				in.stored.Frames = append(in.stored.Frames, frame)
			}
		}
	}
	prune(&in.stored, key)
	if err := in.engine.Advance(mine...); err != nil {
		if r, ok := machine.IsRefusal(err); ok && r.Code == pbft.CodeCorrupt {
			l.d.fail(err)
			return
		}
		l.d.log.Error("a quorum decided another value than this node holds right", "instance", in.engine.Instance().ID, "err", err)
	}
	l.touch(in)
}

// resend sends a stored frame again, once however many of its instances ask.
func (l *loop) resend(c *epochCommittee, f *pbft.Frame) {
	if !l.resent[f] {
		if l.resent == nil {
			l.resent = map[*pbft.Frame]bool{}
		}
		l.resent[f] = true
		l.broadcast(c, f.Encode())
	}
}

func (l *loop) broadcast(c *epochCommittee, message []byte) {
	for i := range c.prepared.N() {
		if i != c.self {
			l.d.cfg.Send(c.prepared.Node(i), message)
		}
	}
}
