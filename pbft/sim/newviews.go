package sim

import (
	"cmp"
	"iter"
	"slices"

	"github.com/deliberd/deliberd/pbft"
)

// allViews is how many views from 0 the adversary looks at one by one.
const allViews = 64

// near are the views that the adversary may open, in order: up to the one after
// the last that an honest replica reached. With too many liars that may be near
// 2^48: beyond the first views it looks at those that somebody has left for.
func (r *run) near() iter.Seq[uint64] {
	return func(yield func(uint64) bool) {
		end := r.result.Views + 2
		for view := range min(end, allViews) {
			if !yield(view) {
				return
			}
		}
		if end <= allViews {
			return
		}
		for _, view := range r.heardViews(end, pbft.ViewChange) {
			if view >= allViews && !yield(view) {
				return
			}
		}
	}
}

// heardViews are the views below an end in which votes of some phases were
// heard, in order.
func (r *run) heardViews(end uint64, phases ...pbft.Phase) (views []uint64) {
	for _, phase := range phases {
		for i := range r.pool.votes[phase] {
			if view := r.pool.votes[phase][i].vote.View; view < end {
				views = append(views, view)
			}
		}
	}
	slices.Sort(views)
	return slices.Compact(views)
}

// openViews proposes in the views whose primary a liar is, one value to some
// and another to others, each with the best justification there is.
func (r *run) openViews(l *liar) {
	for view := range r.near() {
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

// garbageNewViews opens the views whose primary a liar is by view changes that
// do not justify it, as soon as one less than a quorum is there, and then again.
func (r *run) garbageNewViews(l *liar) {
	for view := range r.near() {
		if view == 0 {
			continue
		}
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

// anyPrepared is the last certificate below a view that can be assembled, or
// nil. Where nobody accepted anything that takes a quorum of liars, for whom
// the view just below is as good as any.
func (r *run) anyPrepared(below uint64) *pbft.Prepared {
	if below == 0 {
		return nil
	}
	views := append(r.heardViews(below-1, pbft.PrePrepare, pbft.Prepare), below-1)
	for _, view := range slices.Backward(views) {
		for _, d := range []pbft.Digest{valueA, valueB} {
			if p := r.prepared(view, d); p != nil {
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
