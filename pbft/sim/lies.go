package sim

import (
	"encoding/binary"

	"github.com/deliberd/deliberd/pbft"
)

// pool is everything that was ever sent for the instance.
type pool struct {
	votes    [pbft.ViewChange + 1][]overheard // by phase
	messages []*message
}

type overheard struct {
	seat  int
	vote  pbft.Vote
	proof pbft.Proof
}

func (p *pool) add(r *run, seat int, m *message) {
	proof := m.frame.Proof()
	for i, v := range m.frame.Votes() {
		if v.Key == r.key && m.verified.Refused(i) == nil {
			p.votes[v.Phase] = append(p.votes[v.Phase], overheard{seat, v, proof})
		}
	}
	p.messages = append(p.messages, m)
}

// proof finds what proves that a member cast a vote.
func (p *pool) proof(seat int, v pbft.Vote) (pbft.Proof, bool) {
	for i := range p.votes[v.Phase] {
		if o := &p.votes[v.Phase][i]; o.seat == seat && same(o.vote, v) {
			return o.proof, true
		}
	}
	return pbft.Proof{}, false
}

// voteToo prepares and commits what it hears of, whatever else it has voted for.
func (r *run) voteToo(l *liar, v pbft.Vote) {
	if v.Phase == pbft.ViewChange || !l.once(v.View, uint64(v.Phase), uint64(v.Digest[0])) {
		return
	}
	if r.draw(l, 24)%4 == 0 {
		r.contradict(l, v)
		return
	}
	accept := pbft.Vote{View: v.View, Phase: pbft.Prepare, Digest: v.Digest}
	if r.primary(v.View) != l.seat {
		r.say(l, accept)
	} else if v.View == 0 {
		accept.Phase = pbft.PrePrepare
		r.say(l, accept)
	}
	if v.Phase == pbft.Commit || r.draw(l, v.View, 11)%2 == 0 {
		r.say(l, pbft.Vote{View: v.View, Phase: pbft.Commit, Digest: v.Digest})
	}
}

// contradict accepts and commits, before everybody, the other of the two right
// values, so that what counts votes meets a wrong one early.
func (r *run) contradict(l *liar, v pbft.Vote) {
	if r.primary(v.View) != l.seat {
		r.sayTo(l, pbft.Vote{View: v.View, Phase: pbft.Prepare, Digest: other(v.Digest)}, ^uint64(0))
	}
	r.sayTo(l, pbft.Vote{View: v.View, Phase: pbft.Commit, Digest: other(v.Digest)}, ^uint64(0))
}

// prepared assembles a certificate of a value in a view from honest
// acceptances and the liars' own; nil when there are not enough.
func (r *run) prepared(view uint64, d pbft.Digest) *pbft.Prepared {
	p := &pbft.Prepared{View: view, Digest: d}
	primary := r.primary(view)
	for seat := range r.n {
		if len(p.Votes) == r.committee.Q() {
			break
		}
		v := pbft.Vote{Key: r.key, View: view, Phase: pbft.Prepare, Digest: d}
		if seat == primary {
			v.Phase = pbft.PrePrepare
		}
		if proof, ok := r.pool.proof(seat, v); ok {
			p.Votes = append(p.Votes, proof)
		} else if r.liar[seat] {
			p.Votes = append(p.Votes, r.sign(r.domain, seat, []pbft.Vote{v}).Proof())
		}
	}
	if len(p.Votes) < r.committee.Q() {
		return nil
	}
	return p
}

// viewChangeToo joins a view change, with a claim for some and another for others.
func (r *run) viewChangeToo(l *liar, view uint64) {
	if !l.once(view, uint64(pbft.ViewChange), 0) {
		return
	}
	var best []pbft.Vote
	best = append(best, pbft.Vote{View: view, Phase: pbft.ViewChange})
	for v := range min(view, 8) {
		for _, d := range []pbft.Digest{valueA, valueB} {
			if p := r.prepared(v, d); p != nil {
				best = append(best, pbft.Vote{View: view, Phase: pbft.ViewChange, Digest: d, Prepared: v + 1, Proof: p.Encode()})
			}
		}
	}
	luck := r.draw(l, view, 15)
	first := best[luck%uint64(len(best))]
	second := best[luck>>20%uint64(len(best))]
	if luck>>40%4 == 0 {
		first, second = best[len(best)-1], best[0]
	}
	r.sayTo(l, first, luck>>8)
	r.sayTo(l, second, ^(luck >> 8))
}

// viewChangeEarly leaves a view that nobody else wants to leave, or a later one.
func (r *run) viewChangeEarly(l *liar) {
	view := r.result.Views + 1 + r.draw(l, uint64(r.now), 16)%3
	r.say(l, pbft.Vote{View: view, Phase: pbft.ViewChange})
}

// spam votes in views near and far, as much as it can.
func (r *run) spam(l *liar) {
	if r.draw(l, 26)%4 == 0 {
		r.flood(l)
	}
	for i := range uint64(3) {
		luck := r.draw(l, uint64(r.now), 17, i)
		v := pbft.Vote{Phase: pbft.Phase(1 + luck%4), View: luck >> 8 % 40, Digest: value("ABX"[luck>>16%3])}
		if luck>>24%8 == 0 {
			v.View = pbft.MaxView - luck>>8%40
		}
		if v.Phase == pbft.ViewChange {
			v.View, v.Digest = v.View+1, pbft.Digest{}
		}
		if v.Phase == pbft.PrePrepare && v.View > 0 {
			v.Phase = pbft.Commit
		}
		r.sayTo(l, v, luck>>32)
	}
}

// flood fills a frame with as many votes of different views as it holds.
func (r *run) flood(l *liar) {
	if l.lies >= maxLies {
		return
	}
	l.lies += 8
	luck := r.draw(l, uint64(r.now), 27)
	phase := []pbft.Phase{pbft.Prepare, pbft.Commit, pbft.ViewChange}[luck%3]
	votes := make([]pbft.Vote, pbft.MaxVotes)
	for i := range votes {
		votes[i] = pbft.Vote{Key: r.key, Phase: phase, View: luck>>8%64 + uint64(i), Digest: valueB}
		if phase == pbft.ViewChange {
			votes[i].View, votes[i].Digest = votes[i].View+1, pbft.Digest{}
		}
	}
	if m := r.admit(r.sign(r.domain, l.seat, votes).Encode(), -1-l.seat, luck); m != nil {
		r.tell(m, ^uint64(0))
	}
}

// mutate signs what it heard with one field changed.
func (r *run) mutate(l *liar, v pbft.Vote) {
	luck := r.draw(l, v.View, uint64(v.Phase), uint64(v.Digest[0]), 18)
	if !l.once(luck, 0, 0) {
		return
	}
	switch luck % 6 {
	case 0:
		v.View++
	case 1:
		v.View -= min(v.View, 1)
	case 2:
		v.Digest = value("ABX"[luck>>8%3])
	case 3:
		v.Phase = pbft.Phase(1 + luck>>8%4)
	case 4:
		v.Prepared++
	case 5:
		v.Prepared, v.Digest, v.Proof = 0, pbft.Digest{}, nil
	}
	r.sayTo(l, v, luck>>16)
}

// garbage sends a view change whose proof is rubbish or nearly right.
func (r *run) garbage(l *liar, view uint64) {
	if view == 0 || !l.once(view, 99, 0) {
		return
	}
	luck := r.draw(l, view, 19)
	p := r.badProof(l, view, luck)
	claim := pbft.Vote{View: view, Phase: pbft.ViewChange, Digest: p.Digest, Prepared: p.View + 1, Proof: p.Encode()}
	if luck>>18%4 == 0 {
		claim.Proof = binary.BigEndian.AppendUint64(nil, luck)
	}
	r.say(l, claim)
}

// badProof is a prepared certificate that is none.
func (r *run) badProof(l *liar, view, luck uint64) *pbft.Prepared {
	d := value("AB"[luck>>8%2])
	at := luck >> 10 % view
	p := r.prepared(at, d)
	if p == nil {
		p = &pbft.Prepared{View: at, Digest: d}
		for seat := range r.committee.Q() {
			v := pbft.Vote{Key: r.key, View: at, Phase: pbft.Prepare, Digest: d}
			proof := r.sign(r.domain, l.seat, []pbft.Vote{v}).Proof()
			if luck>>12%2 == 0 {
				proof.Signer = seat // its own signature under another's name
			}
			p.Votes = append(p.Votes, proof)
		}
	}
	switch luck >> 14 % 5 {
	case 0:
		p.Votes = p.Votes[:len(p.Votes)-1]
	case 1:
		p.Votes[len(p.Votes)-1] = p.Votes[0]
	case 2:
		p.View = (p.View + 1) % view
	case 3:
		p.Digest = value("BA"[luck>>8%2])
	}
	return p
}

// other is the other one of the two right values.
func other(d pbft.Digest) pbft.Digest {
	if d == valueA {
		return valueB
	}
	return valueA
}
