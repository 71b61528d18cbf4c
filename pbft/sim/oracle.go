package sim

import (
	"fmt"

	"github.com/deliberd/deliberd/pbft"
)

// Violation is something that must never be.
type Violation struct {
	// Oracle names the rule that was broken; see the package's documentation.
	Oracle string `json:"oracle"`
	Detail string `json:"detail"`
	Tick   int    `json:"tick"`
}

func (v Violation) String() string {
	return fmt.Sprintf("%s at tick %d: %s", v.Oracle, v.Tick, v.Detail)
}

// violate ends the schedule. The first violation counts.
func (r *run) violate(oracle, format string, args ...any) {
	if r.result.Violation == nil {
		r.result.Violation = &Violation{Oracle: oracle, Detail: fmt.Sprintf(format, args...), Tick: r.now / perTick}
		r.logf("VIOLATION of %s: %s", oracle, r.result.Violation.Detail)
	}
}

// checkVotes holds what an engine wants to sign against its duties.
func (r *run) checkVotes(p *participant, rd *pbft.Ready) {
	votes := rd.Votes
	switch {
	case p.writing != nil:
		r.violate("order", "%s hands out votes while others are being stored", p.name)
	case p.seat == pbft.Observer:
		r.violate("order", "an observer votes: %s", describe(votes[0]))
	case p.decided != nil:
		r.violate("quiet", "%s has decided and casts %s", p.name, describe(votes[0]))
	}
	if p.liar {
		return
	}
	for _, v := range votes {
		if v.Phase == pbft.Commit && (rd.Prepared == nil || rd.Prepared.View < v.View) {
			r.violate("order", "%s hands out %s without the certificate to store with it", p.name, describe(v))
		}
		if v.Phase == pbft.ViewChange && p.seat >= 0 {
			r.checkClaim(p, v)
			if !p.liar && v.View >= 2 {
				r.checkCompany(p, v)
			}
		}
		if v.Phase != pbft.ViewChange && (!right(v.Digest) || r.plan.Known && v.Digest != valueA) {
			r.violate("validity", "%s casts %s, which is not right", p.name, describe(v))
		}
		r.result.Views = max(r.result.Views, v.View)
		if least := r.earliest(v.View); r.now < least {
			r.violate("pace", "honest %s is in view %d, which nobody can have reached before tick %d", p.name, v.View, least/perTick)
		}
	}
}

// checkClaim demands that a view change claims the last view in which the
// replica has committed, or a later one.
func (r *run) checkClaim(p *participant, v pbft.Vote) {
	for _, o := range r.said[p.seat] {
		if o.Phase == pbft.Commit && (v.Prepared < o.View+1 || v.Prepared == o.View+1 && v.Digest != o.Digest) {
			r.violate("lock", "honest %s casts %s after %s", p.name, describe(v), describe(o))
		}
	}
}

// checkCompany demands that a replica leaves a view only once a quorum has been
// there: alone it must not run ahead.
func (r *run) checkCompany(p *participant, v pbft.Vote) {
	there := len(r.liars)
	for seat, votes := range r.said {
		reached := uint64(0)
		for i := range votes {
			reached = max(reached, votes[i].View)
		}
		if seat != p.seat && reached >= v.View {
			return // it follows
		}
		if reached >= v.View-1 {
			there++
		}
	}
	if there < r.committee.Q() {
		r.violate("pace", "honest %s casts %s, and only %d members can have been in the view before", p.name, describe(v), there)
	}
}

// earliest is the first moment at which an honest replica can be in a view: the
// timers of all views before have run out, one after the other.
func (r *run) earliest(view uint64) (units int) {
	for v := range min(view, 64) {
		units += (r.plan.Timeout<<min(v, doubling) - 1) * perTick
	}
	return units
}

// expose notes what an honest replica has stored or shown: one vote a slot.
func (r *run) expose(p *participant, m *message) {
	if p.liar || p.seat == pbft.Observer {
		return
	}
	for _, v := range m.frame.Votes() {
		if v.Key != r.key {
			continue
		}
		v.Proof = nil
		at := slotOf(r.said[p.seat], v)
		switch {
		case at < 0:
			r.said[p.seat] = append(r.said[p.seat], v)
		case !same(r.said[p.seat][at], v):
			r.violate("equivocation", "honest %s casts %s after %s", p.name, describe(v), describe(r.said[p.seat][at]))
		}
	}
}

// unforged holds what a committee accepted against what its members said.
func (r *run) unforged(m *message) {
	if m.cert != nil {
		if honest := r.committers(m.cert.View, m.cert.Digest); honest+len(r.liars) < r.committee.Q() {
			r.violate("forgery", "a certificate of %s in view %d is accepted, %d honest members committed to it", letter(m.cert.Digest), m.cert.View, honest)
		}
		return
	}
	seat := m.frame.Signer()
	for i, v := range m.frame.Votes() {
		if v.Key != r.key || m.frame.Domain() != r.domain {
			continue
		}
		if m.from < 0 && !r.liar[seat] {
			if at := slotOf(r.said[seat], v); at < 0 || !same(r.said[seat][at], v) {
				r.violate("forgery", "%s is accepted as honest %d's, who never said so", describe(v), seat)
			}
		}
		if m.from < 0 && m.verified.Refused(i) == nil {
			r.justified(v)
		}
	}
}

// justified holds an accepted proof of a liar's vote against what was said: a
// prepared certificate needs its quorum, also inside a new view, and a new
// view must propose what its quorum saw prepared last.
func (r *run) justified(v pbft.Vote) {
	if v.Phase == pbft.ViewChange && v.Prepared > 0 {
		r.preparable(v.Prepared-1, v.Digest, describe(v))
	}
	if v.Phase != pbft.PrePrepare || v.View == 0 {
		return
	}
	nv, err := pbft.DecodeNewView(v.Proof)
	if err != nil {
		r.violate("forgery", "%s is accepted with a proof that does not decode", describe(v))
		return
	}
	best, seen := pbft.Claim{}, uint64(0)
	for _, c := range nv.Claims {
		seen |= 1 << c.Proof.Signer
		if c.Prepared > best.Prepared {
			best = c
		}
		if !r.liar[c.Proof.Signer] && slotOf(r.said[c.Proof.Signer], pbft.Vote{View: v.View, Phase: pbft.ViewChange}) < 0 {
			r.violate("forgery", "%s quotes a view change that honest %d never sent", describe(v), c.Proof.Signer)
		}
	}
	if count := ones(seen); count < r.committee.Q() {
		r.violate("forgery", "%s is accepted on the view changes of %d members", describe(v), count)
	}
	if best.Prepared > 0 {
		r.preparable(best.Prepared-1, best.Digest, describe(v))
		if best.Digest != v.Digest {
			r.violate("forgery", "%s is accepted although %s was prepared in view %d", describe(v), letter(best.Digest), best.Prepared-1)
		}
	}
}

func (r *run) preparable(view uint64, d pbft.Digest, what string) {
	if count := r.acceptors(view, d) + len(r.liars); count < r.committee.Q() {
		r.violate("forgery", "%s is accepted, but %s cannot have been prepared in view %d", what, letter(d), view)
	}
}

func ones(x uint64) (count int) {
	for ; x != 0; x &= x - 1 {
		count++
	}
	return count
}

// blame checks a proof of guilt.
func (r *run) blame(p *participant, g *pbft.Guilt) {
	r.logf("%s holds proof against %d: %s and %s", p.name, g.Signer(), describe(g.A), describe(g.B))
	if p.blamed[g.Signer()] {
		r.violate("guilt", "%s proves %d guilty a second time", p.name, g.Signer())
	}
	p.blamed[g.Signer()] = true
	if err := g.Verify(r.committee); err != nil {
		r.violate("guilt", "%s holds a proof that does not verify: %v", p.name, err)
	} else if g.Instance != r.instance {
		r.violate("guilt", "%s holds a proof of another instance", p.name)
	} else if !r.liar[g.Signer()] {
		r.violate("guilt", "%s holds proof against honest %d: %s and %s", p.name, g.Signer(), describe(g.A), describe(g.B))
	}
}

// decide notes a replica's decision and compares it with all others.
func (r *run) decide(p *participant, cert *pbft.Certificate) {
	r.logf("%s decides %s in view %d, signed by %v", p.name, letter(cert.Digest), cert.View, cert.Signers())
	p.decided, p.disk.cert = cert, cert.Encode()
	if p.liar {
		return
	}
	if err := r.committee.VerifyCertificate(r.instance, cert.Digest, *cert); err != nil {
		r.violate("certificate", "the certificate of %s does not verify: %v", p.name, err)
	}
	if !right(cert.Digest) || r.plan.Known && cert.Digest != valueA {
		r.violate("validity", "%s decides %s, which is not right", p.name, letter(cert.Digest))
	}
	for _, o := range r.parts {
		if !o.liar && o.decided != nil && o.decided.Digest != cert.Digest {
			r.violate("agreement", "%s decides %s, %s decided %s", p.name, letter(cert.Digest), o.name, letter(o.decided.Digest))
		}
	}
	r.result.Decided = letter(cert.Digest)[0]
	if p.seat != pbft.Observer {
		r.honestLeft--
	}
}
