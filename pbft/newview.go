package pbft

import (
	"github.com/deliberd/deliberd/machine"
)

// Prepared is the proof that a quorum prepared a digest in a view: q votes by
// distinct members, the primary's a PrePrepare and the others' Prepare.
type Prepared struct {
	View   uint64
	Digest Digest
	Votes  []Proof
}

// verify checks a prepared certificate of the instance with this key.
func (p *Prepared) verify(c *Committee, d Domain, key Digest) error {
	primary := c.Primary(key, p.View)
	return verifyQuorum(c, d, p.Votes, func(signer int) Vote {
		phase := Prepare
		if signer == primary {
			phase = PrePrepare
		}
		return Vote{Key: key, View: p.View, Phase: phase, Digest: p.Digest}
	})
}

// verifyQuorum checks that q distinct members, and no others, prove the vote
// that each of them should have cast.
func verifyQuorum(c *Committee, d Domain, proofs []Proof, vote func(signer int) Vote) error {
	if len(proofs) != c.q {
		return machine.Refuse(CodeBadCertificate, "", "%d votes, a quorum of %d has %d", len(proofs), c.N(), c.q)
	}
	last := -1
	for _, p := range proofs {
		if p.Signer <= last {
			return machine.Refuse(CodeBadCertificate, "", "signers ascend, each once; %d follows %d", p.Signer, last)
		}
		last = p.Signer
		if err := p.verify(c, d, vote(p.Signer)); err != nil {
			return err
		}
	}
	return nil
}

// Claim is a ViewChange as a new view quotes it: without the certificate
// behind it, since only the highest claim needs one.
type Claim struct {
	Prepared uint64 // one more than the view prepared in, 0 for none
	Digest   Digest // zero for none
	Proof    Proof
}

// NewView justifies the PrePrepare that opens a view above 0: q members have
// entered the view, and the value is the highest one any of them saw prepared.
type NewView struct {
	Claims  []Claim   // by ascending signer, exactly q
	Highest *Prepared // the certificate behind the highest claim; nil when all claim nothing
}

// Highest is the choice that every new view must make: the index of the claim
// prepared in the highest view, the first of equals; false when nobody claims
// anything and the primary is free to choose. Two different digests cannot both
// be certified in one view, so equals that carry their certificates agree.
func Highest(claims []Claim) (int, bool) {
	best := -1
	for i, c := range claims {
		if c.Prepared > 0 && (best < 0 || c.Prepared > claims[best].Prepared) {
			best = i
		}
	}
	return best, best >= 0
}

// newView decodes and checks the proof of a PrePrepare above view 0.
func (c *Committee) newView(d Domain, v Vote) (*NewView, error) {
	nv, err := DecodeNewView(v.Proof)
	if err != nil {
		return nil, err
	}
	if len(nv.Claims) != c.q {
		return nil, machine.Refuse(CodeNotJustified, "", "%d view changes, a quorum has %d", len(nv.Claims), c.q)
	}
	last := -1
	for _, claim := range nv.Claims {
		if claim.Proof.Signer <= last {
			return nil, machine.Refuse(CodeNotJustified, "", "view changes come by ascending signer, each once")
		}
		last = claim.Proof.Signer
		vote := Vote{Key: v.Key, View: v.View, Phase: ViewChange, Digest: claim.Digest, Prepared: claim.Prepared}
		if (claim.Prepared > 0) == claim.Digest.IsZero() || claim.Prepared > v.View {
			return nil, machine.Refuse(CodeNotJustified, "", "member %d claims what nobody can have prepared", last)
		}
		if err := claim.Proof.verify(c, d, vote); err != nil {
			return nil, err
		}
	}
	return nv, c.highestProven(d, v, nv)
}

// highestProven checks that a new view re-proposes the highest claim and
// proves it.
func (c *Committee) highestProven(d Domain, v Vote, nv *NewView) error {
	best, claimed := Highest(nv.Claims)
	switch {
	case !claimed && nv.Highest == nil:
		return nil
	case !claimed || nv.Highest == nil:
		return machine.Refuse(CodeNotJustified, "", "a certificate comes with a claim and a claim with a certificate")
	case nv.Highest.View+1 != nv.Claims[best].Prepared || nv.Highest.Digest != nv.Claims[best].Digest:
		return machine.Refuse(CodeNotJustified, "", "the certificate is not the one that the highest claim names")
	case nv.Highest.Digest != v.Digest:
		return machine.Refuse(CodeNotJustified, "", "another value than the highest prepared one is proposed")
	}
	return nv.Highest.verify(c, d, v.Key)
}

// preparedClaim decodes and checks the certificate of a ViewChange.
func (c *Committee) preparedClaim(d Domain, v Vote) (*Prepared, error) {
	p, err := DecodePrepared(v.Proof)
	if err != nil {
		return nil, err
	}
	if p.View+1 != v.Prepared || p.Digest != v.Digest {
		return nil, machine.Refuse(CodeNotJustified, "", "the certificate is not the one claimed")
	}
	return p, p.verify(c, d, v.Key)
}
