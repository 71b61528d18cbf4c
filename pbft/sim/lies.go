package sim

import (
	"cmp"
	"encoding/binary"
	"slices"

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

// openViews proposes in the views whose primary a liar is, one value to some
// and another to others, each with the best justification there is.
func (r *run) openViews(l *liar) {
	for view := range r.result.Views + 2 {
		if r.primary(view) != l.seat || l.opened[view] < 0 {
			continue
		}
		if view == 0 {
			l.opened[view] = -1
			r.propose(l, 0, nil)
			continue
		}
		a, b := r.newView(l, view, valueA), r.newView(l, view, valueB)
		if a == nil && b == nil {
			continue
		}
		if l.opened[view] == 0 {
			l.opened[view] = 1 + r.now
		}
		// It waits for more view changes: the more it can choose from the better.
		if waited := r.now - l.opened[view]; a != nil && b != nil || waited > int(r.draw(l, view, 12)%6)*perTick {
			l.opened[view] = -1
			r.propose(l, view, map[pbft.Digest]*pbft.NewView{valueA: a, valueB: b})
		}
	}
}

// propose sends what could be justified to some each; which is also to say
// that with a single value some hear nothing.
func (r *run) propose(l *liar, view uint64, by map[pbft.Digest]*pbft.NewView) {
	mask := r.draw(l, view, 13)
	for i, d := range []pbft.Digest{valueA, valueB} {
		v := pbft.Vote{View: view, Phase: pbft.PrePrepare, Digest: d}
		if view > 0 {
			nv := by[d]
			if nv == nil {
				continue
			}
			v.Proof = nv.Encode()
		}
		if i == 1 {
			mask = ^mask
		}
		if r.draw(l, view, 14)%8 == 0 {
			mask |= 1 << (mask >> 40 % uint64(r.n)) // one hears both
		}
		r.sayTo(l, v, mask)
	}
}

// newView looks for q view changes that justify a value: those of honest
// members that it has heard, and whatever the liars care to claim.
func (r *run) newView(l *liar, view uint64, want pbft.Digest) *pbft.NewView {
	if len(r.liars)+r.changed(view) < r.committee.Q() {
		return nil
	}
	claims, proven := r.claims(view)
	return r.choose(l, view, want, claims, proven)
}

// claims are the view changes into a view that the adversary can quote, and
// the certificates behind them by what they claim.
func (r *run) claims(view uint64) ([]pbft.Claim, map[uint64]*pbft.Prepared) {
	var claims []pbft.Claim
	proven := map[uint64]*pbft.Prepared{}
	for _, o := range r.liars {
		proof, ok := o.empty[view]
		if !ok {
			v := pbft.Vote{Key: r.key, View: view, Phase: pbft.ViewChange}
			proof = r.sign(r.domain, o.seat, []pbft.Vote{v}).Proof()
			o.empty[view] = proof
		}
		claims = append(claims, pbft.Claim{Proof: proof})
	}
	for i := range r.pool.votes[pbft.ViewChange] {
		o := &r.pool.votes[pbft.ViewChange][i]
		if o.vote.View != view || r.liar[o.seat] || quoted(claims, o.seat) {
			continue
		}
		if o.vote.Prepared > 0 {
			p, err := pbft.DecodePrepared(o.vote.Proof)
			if err != nil {
				continue
			}
			proven[o.vote.Prepared] = p
		}
		claims = append(claims, pbft.Claim{Prepared: o.vote.Prepared, Digest: o.vote.Digest, Proof: o.proof})
	}
	slices.SortFunc(claims, func(a, b pbft.Claim) int { return cmp.Compare(a.Proof.Signer, b.Proof.Signer) })
	return claims, proven
}

func quoted(claims []pbft.Claim, seat int) bool {
	return slices.ContainsFunc(claims, func(c pbft.Claim) bool { return c.Proof.Signer == seat })
}

// changed is how many view changes into a view were heard.
func (r *run) changed(view uint64) (count int) {
	for i := range r.pool.votes[pbft.ViewChange] {
		if r.pool.votes[pbft.ViewChange][i].vote.View == view {
			count++
		}
	}
	return count
}

// choose takes q claims of which the highest is for the wanted value, or none
// is for any.
func (r *run) choose(l *liar, view uint64, want pbft.Digest, claims []pbft.Claim, proven map[uint64]*pbft.Prepared) *pbft.NewView {
	q := r.committee.Q()
	if len(claims) < q {
		return nil
	}
	highest := uint64(0)
	for _, c := range claims {
		if c.Digest == want {
			highest = max(highest, c.Prepared)
		}
	}
	for _, limit := range []uint64{0, highest} { // nothing claimed, else up to the wanted value's own claim
		nv := &pbft.NewView{}
		for seat := range r.n {
			for _, c := range claims {
				if c.Proof.Signer == seat && c.Prepared <= limit && len(nv.Claims) < q && (c.Prepared < limit || c.Digest == want || limit == 0) {
					nv.Claims = append(nv.Claims, c)
					break
				}
			}
		}
		if len(nv.Claims) < q {
			continue
		}
		if best, ok := pbft.Highest(nv.Claims); ok {
			if nv.Claims[best].Digest != want {
				continue
			}
			nv.Highest = proven[nv.Claims[best].Prepared]
		}
		return nv
	}
	return nil
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

// garbageNewViews opens the views whose primary a liar is by view changes that
// do not justify it, as soon as one less than a quorum is there, and then again.
func (r *run) garbageNewViews(l *liar) {
	for view := uint64(1); view < r.result.Views+2; view++ {
		have := len(r.liars) + r.changed(view)
		if r.primary(view) == l.seat && have >= r.committee.Q()-1 && l.once(view, 98, uint64(have)) {
			r.garbageNewView(l, view, r.draw(l, view, uint64(have), 25))
		}
	}
}

func (r *run) garbageNewView(l *liar, view, luck uint64) {
	q := r.committee.Q()
	claims, proven := r.claims(view)
	nv := &pbft.NewView{Claims: slices.Clone(claims[:min(len(claims), q)])}
	d := value("AB"[luck%2])
	if best, ok := pbft.Highest(nv.Claims); ok {
		d, nv.Highest = nv.Claims[best].Digest, proven[nv.Claims[best].Prepared]
	}
	for range 1 + luck>>1%2 {
		switch luck = scramble(luck); luck % 8 {
		case 0: // one claim too few
			nv.Claims = nv.Claims[:min(len(nv.Claims), q-1)]
		case 1: // one of them twice
			if at := int(luck >> 8 % uint64(len(nv.Claims))); at > 0 {
				nv.Claims[at] = nv.Claims[at-1]
			}
		case 2: // as if nobody had claimed anything
			nv.Highest, d = nil, other(d)
		case 3: // a claim of its own, with a proof that is none
			p := r.badProof(l, view, luck)
			r.claim(l, nv, view, p.View+1, p.Digest)
			nv.Highest, d = p, p.Digest
		case 6: // a high claim of its own, with the good proof of a lower one
			if p := r.anyPrepared(view - 1); p != nil {
				r.claim(l, nv, view, view, p.Digest)
				nv.Highest, d = p, p.Digest
			}
		case 7: // a claim of its own, with the good proof of the other value
			if p := r.anyPrepared(view); p != nil {
				r.claim(l, nv, view, p.View+1, other(p.Digest))
				nv.Highest, d = p, p.Digest
			}
		case 4: // another value than was prepared
			d = other(d)
		case 5: // a claim changed after it was signed
			c := &nv.Claims[luck>>8%uint64(len(nv.Claims))]
			c.Prepared, c.Digest = 0, pbft.Digest{}
			d = other(d)
		}
	}
	r.say(l, pbft.Vote{View: view, Phase: pbft.PrePrepare, Digest: d, Proof: nv.Encode()})
}

// anyPrepared is the last certificate below a view that can be assembled, or nil.
func (r *run) anyPrepared(below uint64) *pbft.Prepared {
	for view := below; view > 0; view-- {
		for _, d := range []pbft.Digest{valueA, valueB} {
			if p := r.prepared(view-1, d); p != nil {
				return p
			}
		}
	}
	return nil
}

// claim puts what a liar wants to claim into its own place among the claims.
func (r *run) claim(l *liar, nv *pbft.NewView, view, prepared uint64, d pbft.Digest) {
	if at := slices.IndexFunc(nv.Claims, func(c pbft.Claim) bool { return c.Proof.Signer == l.seat }); at >= 0 {
		v := pbft.Vote{Key: r.key, View: view, Phase: pbft.ViewChange, Digest: d, Prepared: prepared}
		nv.Claims[at] = pbft.Claim{Prepared: prepared, Digest: d, Proof: r.sign(r.domain, l.seat, []pbft.Vote{v}).Proof()}
	}
}

// other is the other one of the two right values.
func other(d pbft.Digest) pbft.Digest {
	if d == valueA {
		return valueB
	}
	return valueA
}
