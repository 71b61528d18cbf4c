package pbft

import "github.com/deliberd/deliberd/machine"

// advance does everything the votes so far allow. Each rule fires at most once
// per view, so it ends. It errs when a quorum decided what cannot be right.
func (e *Engine) advance() error {
	err := e.tryDecide()
	if e.cert != nil || e.self == Observer {
		return err
	}
	e.follow()
	if view := e.joinable(); view > 0 {
		e.enter(view)
	}
	e.arm()
	e.tryPropose()
	e.tryPrepare()
	e.tryCommit()
	return err
}

// follow enters a later view whose primary has proven that it is open.
func (e *Engine) follow() {
	for m := range e.votes {
		for _, c := range e.votes[m].of[PrePrepare] {
			if c.vote.View > e.view && e.valid(c.vote.Digest) {
				e.move(c.vote.View)
			}
		}
	}
}

// move makes view the current one. Votes of earlier views are no longer sent
// again, since the lock carries on what they may have prepared, and the timer
// waits for a quorum to come along.
func (e *Engine) move(view uint64) {
	e.view, e.armed, e.sent = view, false, nil
	e.resendIn = e.cfg.Resend
	for s := range e.own { // order: each is judged by itself
		if s.view+window < view {
			delete(e.own, s) // nothing is ever cast again in so old a view
		}
	}
}

// enter leaves all views below this one: after the ViewChange nothing is voted
// on in them.
func (e *Engine) enter(view uint64) {
	e.move(view)
	v := Vote{Key: e.key, View: view, Phase: ViewChange}
	if e.locked != nil {
		v.Prepared, v.Digest, v.Proof = e.locked.View+1, e.locked.Digest, e.locked.Encode()
	}
	e.cast(v)
}

// cast emits a vote unless one has been cast in its slot.
func (e *Engine) cast(v Vote) bool {
	if _, done := e.own[v.slot()]; done {
		return false
	}
	e.own[v.slot()] = ownVote{Vote: v}
	e.ready.Votes = append(e.ready.Votes, v)
	return true
}

// arm starts the view's timer once a quorum has reached the view: a replica
// cut off from the others does not run ahead of them.
func (e *Engine) arm() {
	if e.armed || e.self == Observer || e.cert != nil {
		return
	}
	if e.view > 0 && e.reached(e.view) < e.committee.q {
		return
	}
	e.armed = true
	e.left = e.cfg.Timeout << min(e.view, uint64(e.cfg.Doubling))
}

// Tick lets one unit of time pass.
func (e *Engine) Tick() {
	e.now++
	if e.cert != nil || e.self == Observer {
		return
	}
	if e.armed {
		if e.left--; e.left <= 0 && e.view < MaxView {
			e.enter(e.view + 1)
			_ = e.advance() // only a filed commit can make it err
			return
		}
	}
	if e.resendIn--; e.resendIn <= 0 {
		e.resendIn = e.cfg.Resend
		e.ready.Resend = append(e.ready.Resend[:0:0], e.sent...)
	}
}

// tryPropose opens the view when this replica is its primary: in view 0 with
// its own value, later with the highest prepared value of a quorum.
func (e *Engine) tryPropose() {
	if e.committee.Primary(e.key, e.view) != e.self {
		return
	}
	if _, done := e.own[slot{e.view, PrePrepare}]; done {
		return
	}
	v := Vote{Key: e.key, View: e.view, Phase: PrePrepare, Digest: e.value}
	if e.view > 0 {
		nv := e.collect()
		if nv == nil {
			return
		}
		if nv.Highest != nil {
			v.Digest = nv.Highest.Digest
		}
		v.Proof = nv.Encode()
	}
	if e.valid(v.Digest) {
		e.cast(v)
	}
}

// collect makes the proof of a new view from the first quorum of view changes.
// Any quorum will do, so those that claim what this replica may not vote for
// are left out: with them it could propose nothing.
func (e *Engine) collect() *NewView {
	nv := &NewView{}
	var certs []*Prepared
	for m := range e.votes {
		c := e.votes[m].find(slot{e.view, ViewChange})
		if c == nil || len(nv.Claims) == e.committee.q || c.vote.prepared != nil && !e.valid(c.vote.Digest) {
			continue
		}
		nv.Claims = append(nv.Claims, Claim{Prepared: c.vote.Prepared, Digest: c.vote.Digest, Proof: c.proof})
		certs = append(certs, c.vote.prepared)
	}
	if len(nv.Claims) < e.committee.q {
		return nil
	}
	if best, ok := Highest(nv.Claims); ok {
		nv.Highest = certs[best]
	}
	return nv
}

// tryPrepare accepts the primary's value. In view 0 nothing can be prepared
// yet, so a replica that knows the value need not wait to hear it.
func (e *Engine) tryPrepare() {
	primary := e.committee.Primary(e.key, e.view)
	if primary == e.self {
		return
	}
	value := Digest{}
	if c := e.votes[primary].find(slot{e.view, PrePrepare}); c != nil {
		value = c.vote.Digest
	} else if e.view == 0 {
		value = e.cfg.Expected
	}
	if e.valid(value) {
		e.cast(Vote{Key: e.key, View: e.view, Phase: Prepare, Digest: value})
	}
}

// tryCommit commits to the value that a quorum prepared in the current view
// and keeps the proof.
func (e *Engine) tryCommit() {
	s := slot{e.view, Commit}
	if _, done := e.own[s]; done {
		return
	}
	digest, proofs := e.quorumFor(func(m int) *cast { return e.accepted(m, e.view) })
	if proofs == nil || !e.valid(digest) {
		return
	}
	e.locked = &Prepared{View: e.view, Digest: digest, Votes: proofs}
	e.cast(Vote{Key: e.key, View: e.view, Phase: Commit, Digest: digest})
	e.ready.Prepared = e.locked
}

// tryDecide looks for a quorum of commits in the views where one was filed.
func (e *Engine) tryDecide() error {
	views := e.fresh
	e.fresh = e.fresh[:0]
	for _, view := range views {
		if e.cert != nil {
			return nil
		}
		digest, proofs := e.quorumFor(func(m int) *cast { return e.votes[m].find(slot{view, Commit}) })
		if proofs == nil {
			continue
		}
		if err := e.decide(&Certificate{Instance: e.instance, View: view, Digest: digest, Votes: proofs}); err != nil {
			return err
		}
	}
	return nil
}

// stepOwn refuses this replica's own votes when they come back from others.
func (e *Engine) stepOwn(v verifiedVote) error {
	mine, ok := e.own[v.slot()]
	if ok && !mine.same(v.Vote) || !ok && v.View+window >= e.view {
		return machine.Refuse(CodeEquivocation, "see that no other process uses this node's key",
			"a %s of view %d signed by this replica's key that it did not cast", v.Phase, v.View)
	}
	return machine.Refuse(CodeDuplicate, "", "this replica's own vote")
}

// keep files a stored frame of this replica.
func (e *Engine) keep(v Verified) error {
	if v.frame == nil || v.frame.signer != e.self || v.frame.domain != e.domain {
		return machine.Refuse(CodeCorrupt, "", "a stored frame is not this replica's")
	}
	current := false
	for i := range v.votes {
		vote := v.votes[i]
		if vote.Key != e.key {
			continue
		}
		mine, ok := e.own[vote.slot()]
		if vote.refused != nil || ok && !mine.same(vote.Vote) {
			return machine.Refuse(CodeCorrupt, "", "two different %s votes of view %d are stored", vote.Phase, vote.View)
		}
		e.own[vote.slot()] = ownVote{vote.Vote, true}
		if e.votes[e.self].find(vote.slot()) == nil {
			e.file(e.self, cast{vote, v.frame.Proof()})
		}
		current = current || vote.View == e.view
	}
	if current && e.cert == nil {
		e.sent = append(e.sent, v.frame)
	}
	return nil
}

// restore takes up what was stored: the slots voted in, the view, the locks
// and the decision.
func (e *Engine) restore(r Restored) error {
	if r.Certificate != nil {
		if err := r.Certificate.verify(e.committee, e.instance); err != nil {
			return machine.Refuse(CodeCorrupt, "", "the stored certificate: %v", err)
		}
		return e.decide(r.Certificate)
	}
	for _, p := range r.Prepared {
		if err := p.verify(e.committee, e.domain, e.key); err != nil {
			return machine.Refuse(CodeCorrupt, "", "a stored prepared certificate: %v", err)
		}
		if e.locked == nil || p.View > e.locked.View {
			e.locked = p
		}
	}
	if len(r.Frames) > 0 && e.self == Observer {
		return machine.Refuse(CodeCorrupt, "", "an observer has signed frames")
	}
	verified, errs := e.committee.VerifyAll(r.Frames)
	for i, v := range verified {
		if errs[i] != nil {
			return machine.Refuse(CodeCorrupt, "", "a stored frame: %v", errs[i])
		}
		for _, vote := range v.votes {
			if vote.Key == e.key && vote.View > e.view {
				e.move(vote.View)
			}
		}
		if err := e.keep(v); err != nil {
			return err
		}
	}
	// A commit without its proof would make this replica forget what it promised.
	// order: the refusal is the same for any
	for s := range e.own {
		if s.phase == Commit && (e.locked == nil || e.locked.View < s.view) {
			return machine.Refuse(CodeCorrupt, "", "the proof of a stored commit is missing")
		}
	}
	e.ready.Resend = append(e.ready.Resend, e.sent...)
	return nil
}
