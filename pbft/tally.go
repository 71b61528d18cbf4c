package pbft

// window is how many votes of one phase are kept per member: those of the
// highest views. An honest member's views only rise, so what it pushes out it
// no longer needs; a liar pushes out only its own.
const window = 4

// cast is one verified vote and its proof.
type cast struct {
	vote  verifiedVote
	proof Proof
}

// ballots are the votes of one member, at most window per phase, by ascending view.
type ballots struct {
	of      [ViewChange + 1][]cast
	highest uint64 // the highest view of any vote
	guilty  bool   // an equivocation has been reported
}

// find returns the vote in a slot, or nil.
func (b *ballots) find(s slot) *cast {
	if s.phase > ViewChange {
		return nil // of a frame that no decoder has seen
	}
	list := b.of[s.phase]
	for i := range list {
		if list[i].vote.View == s.view {
			return &list[i]
		}
	}
	return nil
}

// room reports whether a vote in an empty slot would be kept.
func (b *ballots) room(s slot) bool {
	list := b.of[s.phase]
	return len(list) < window || s.view > list[0].vote.View
}

// add keeps a vote in an empty slot, pushing out the one of the lowest view
// when the window is full.
func (b *ballots) add(c cast) {
	b.highest = max(b.highest, c.vote.View)
	list := b.of[c.vote.Phase]
	if len(list) == window {
		copy(list, list[1:])
		list = list[:window-1]
	}
	at := len(list)
	for at > 0 && list[at-1].vote.View > c.vote.View {
		at--
	}
	list = append(list, cast{})
	copy(list[at+1:], list[at:])
	list[at] = c
	b.of[c.vote.Phase] = list
}

// accepted is the vote by which a member accepts a value in a view: the
// primary's PrePrepare, anybody else's Prepare.
func (e *Engine) accepted(member int, view uint64) *cast {
	phase := Prepare
	if member == e.committee.Primary(e.key, view) {
		phase = PrePrepare
	}
	return e.votes[member].find(slot{view, phase})
}

// quorumFor collects a quorum of equal votes: find returns a member's vote or
// nil. The proofs come by ascending signer, exactly q; nil when there is none.
func (e *Engine) quorumFor(find func(member int) *cast) (Digest, []Proof) {
	n, q := len(e.votes), e.committee.q
	for first := 0; first <= n-q; first++ { // a quorum's first member is among these
		lead := find(first)
		if lead == nil {
			continue
		}
		count := 0
		for m := first; m < n; m++ {
			if c := find(m); c != nil && c.vote.Digest == lead.vote.Digest {
				count++
			}
		}
		if count < q {
			continue
		}
		proofs := make([]Proof, 0, q)
		for m := first; len(proofs) < q; m++ {
			if c := find(m); c != nil && c.vote.Digest == lead.vote.Digest {
				proofs = append(proofs, c.proof)
			}
		}
		return lead.vote.Digest, proofs
	}
	return Digest{}, nil
}

// reached is the number of members known to have entered a view or a later one.
func (e *Engine) reached(view uint64) int {
	count := 0
	for m := range e.votes {
		if e.votes[m].highest >= view || m == e.self && e.view >= view {
			count++
		}
	}
	return count
}

// joinable is the highest view above this replica's that f+1 members have
// reached, so at least one honest one; 0 when there is none.
func (e *Engine) joinable() uint64 {
	best := uint64(0)
	for m := range e.votes {
		v := e.votes[m].highest
		if v > e.view && v > best && e.reached(v) > e.committee.f {
			best = v
		}
	}
	return best
}
