package sim

import (
	"slices"

	"github.com/deliberd/deliberd/pbft"
)

// count is the number of honest members who said something.
func (r *run) count(match func(seat int, v *pbft.Vote) bool) int {
	count := 0
	for seat, votes := range r.said {
		for i := range votes {
			if match(seat, &votes[i]) {
				count++
				break
			}
		}
	}
	return count
}

// committers are the honest members who committed to a value in a view.
func (r *run) committers(view uint64, d pbft.Digest) int {
	return r.count(func(_ int, v *pbft.Vote) bool { return v.Phase == pbft.Commit && v.View == view && v.Digest == d })
}

// acceptors are the honest members who accepted a value in a view.
func (r *run) acceptors(view uint64, d pbft.Digest) int {
	primary := r.primary(view)
	return r.count(func(seat int, v *pbft.Vote) bool { return accepts(primary, seat, v) && v.View == view && v.Digest == d })
}

// accepts reports whether a vote is its member's acceptance of a value.
func accepts(primary, seat int, v *pbft.Vote) bool {
	return v.Phase == pbft.PrePrepare || v.Phase == pbft.Prepare && seat != primary
}

// judge is the global oracle. Whatever the adversary could still assemble, of
// all that honest members ever stored or said and all that its keys can sign,
// must not prove two values; nor may anything make a view prepare two, or a
// later view prepare another value than one that can be certified.
func (r *run) judge() {
	need := r.committee.Q() - len(r.liars)
	lowest := uint64(1 << 62)
	var first pbft.Digest
	for _, view := range r.spoken() {
		prepared := 0
		for _, d := range []pbft.Digest{valueA, valueB, valueX} {
			if n := r.acceptors(view, d); n > 0 && n >= need {
				prepared++
			}
			if n := r.committers(view, d); n == 0 || n < need {
				continue
			}
			cert := r.assemble(view, d)
			if r.committee.VerifyCertificate(r.instance, d, *cert) != nil {
				continue
			}
			if r.committee.VerifyCertificate(r.instance, other(d), *cert) == nil {
				r.violate("global", "the certificate of %s in view %d is accepted for %s", letter(d), view, letter(other(d)))
			}
			if lowest == 1<<62 {
				lowest, first = view, d
			} else if d != first {
				r.violate("global", "certificates of %s in view %d and of %s in view %d verify", letter(first), lowest, letter(d), view)
			}
		}
		if prepared > 1 {
			r.violate("lock", "two values can be proven prepared in view %d", view)
		}
	}
	if lowest < 1<<62 {
		r.heldLock(lowest, first)
	}
	if r.plan.Seed%4 == 0 {
		r.frame()
	}
}

// heldLock demands that once a value can be certified honest members accept no
// other in later views.
func (r *run) heldLock(view uint64, d pbft.Digest) {
	for seat, votes := range r.said {
		for i := range votes {
			if v := &votes[i]; v.View > view && v.Digest != d && (v.Phase == pbft.PrePrepare || v.Phase == pbft.Prepare || v.Phase == pbft.Commit) {
				r.violate("lock", "honest %d casts %s although %s can be certified in view %d", seat, describe(*v), letter(d), view)
			}
		}
	}
}

// spoken are the views that an honest member spoke in, in order. With too many
// liars they may be few and far apart: liars name views near 2^48.
func (r *run) spoken() []uint64 {
	var views []uint64
	for _, votes := range r.said {
		for i := range votes {
			views = append(views, votes[i].View)
		}
	}
	slices.Sort(views)
	return slices.Compact(views)
}

// assemble makes a certificate of honest commits and as many liars as it takes.
func (r *run) assemble(view uint64, d pbft.Digest) *pbft.Certificate {
	cert := &pbft.Certificate{Instance: r.instance, View: view, Digest: d}
	for seat := range r.plan.Nodes {
		if len(cert.Votes) == r.committee.Q() {
			break
		}
		v := pbft.Vote{Key: r.key, View: view, Phase: pbft.Commit, Digest: d}
		if r.liar[seat] {
			cert.Votes = append(cert.Votes, r.sign(r.domain, seat, []pbft.Vote{v}).Proof())
		} else if proof, ok := r.pool.proof(seat, v); ok {
			cert.Votes = append(cert.Votes, proof)
		} else if at := slotOf(r.said[seat], v); at >= 0 && same(r.said[seat][at], v) { // stored, not sent yet: it will be
			cert.Votes = append(cert.Votes, r.sign(r.domain, seat, []pbft.Vote{v}).Proof())
		}
	}
	return cert
}

// frame tries to prove honest members guilty with what there is.
func (r *run) frame() {
	for phase := pbft.PrePrepare; phase <= pbft.ViewChange; phase++ {
		heard := r.pool.votes[phase]
		if len(heard) == 0 {
			continue
		}
		a := heard[mix(uint64(r.plan.Seed), uint64(phase))%uint64(len(heard))]
		if r.liar[a.seat] {
			continue
		}
		again := a.vote
		again.Digest, again.Prepared, again.Proof = other(a.vote.Digest), 0, nil
		if phase == pbft.ViewChange {
			again.Prepared = 1
		}
		r.accuse("one signature for two votes", a.vote, again, a.proof, a.proof)
		r.accuse("one vote twice", a.vote, a.vote, a.proof, a.proof)
		for _, b := range heard {
			if b.seat == a.seat && b.vote.View != a.vote.View {
				r.accuse("votes of two views", a.vote, b.vote, a.proof, b.proof)
				break
			}
		}
		for _, l := range r.liars {
			own := r.sign(r.domain, l.seat, []pbft.Vote{again}).Proof()
			r.accuse("votes of two members", a.vote, again, a.proof, own)
			own.Signer = a.seat
			r.accuse("a liar's signature", a.vote, again, a.proof, own)
			break
		}
	}
}

func (r *run) accuse(by string, a, b pbft.Vote, pa, pb pbft.Proof) {
	a.Proof, b.Proof = nil, nil
	g := pbft.Guilt{Instance: r.instance, A: a, B: b, ProofA: pa, ProofB: pb}
	if g.Verify(r.committee) == nil {
		r.violate("guilt", "%s proves honest %d guilty: %s and %s", by, pa.Signer, describe(a), describe(b))
	}
}
