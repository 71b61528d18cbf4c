package pbft

import (
	"crypto/ed25519"

	"github.com/deliberd/deliberd/internal/canon"
)

// verifier is one place where a signature of a member is checked. Member 1's
// proof of the vote is put where such proofs stand, beside honest ones.
type verifier struct {
	name  string
	vote  Vote
	check func(c *Committee, p Proof) error
}

// verifiers are all the places of this package where signatures are checked,
// for the instance among four members whose first primary is member 0.
func verifiers(in Instance, keys []ed25519.PrivateKey) []verifier {
	d, key := in.Domain(), in.Key()
	honest := func(signer int, v Vote) Proof { return Sign(d, signer, []Vote{v}, keys[signer]).Proof() }
	prepare := Vote{Key: key, Phase: Prepare, Digest: valueOf("A")}
	commit := Vote{Key: key, Phase: Commit, Digest: valueOf("A")}
	first := Vote{Key: key, Phase: PrePrepare, Digest: valueOf("A")}
	lock := &Prepared{Digest: valueOf("A"), Votes: []Proof{honest(0, first), honest(2, prepare), honest(3, prepare)}}
	claim := Vote{Key: key, View: 1, Phase: ViewChange, Prepared: 1, Digest: valueOf("A")}
	none := Vote{Key: key, View: 1, Phase: ViewChange}
	certificate := func(p Proof) *Certificate {
		return &Certificate{Instance: in, Digest: valueOf("A"), Votes: []Proof{honest(0, commit), p, honest(3, commit)}}
	}
	return []verifier{
		{"frame alone", prepare, func(c *Committee, p Proof) error {
			return verifyAmong(c, d, prepare, p, nil)
		}},
		{"frame in a batch", prepare, func(c *Committee, p Proof) error {
			var others []*Frame
			for _, signer := range []int{0, 2, 3, 0, 2, 3} {
				others = append(others, Sign(d, signer, []Vote{commit}, keys[signer]))
			}
			return verifyAmong(c, d, prepare, p, others)
		}},
		{"vote proof", prepare, func(c *Committee, p Proof) error { return p.verify(c, d, prepare) }},
		{"prepared certificate", prepare, func(c *Committee, p Proof) error {
			lock := &Prepared{Digest: valueOf("A"), Votes: []Proof{honest(0, first), p, honest(3, prepare)}}
			read, err := DecodePrepared(lock.Encode())
			if err != nil {
				return err
			}
			return read.verify(c, d, key)
		}},
		{"view change's certificate", prepare, func(c *Committee, p Proof) error {
			lock := &Prepared{Digest: valueOf("A"), Votes: []Proof{honest(0, first), p, honest(3, prepare)}}
			v := claim
			v.Proof = lock.Encode()
			return refusedIn(c, Sign(d, 3, []Vote{v}, keys[3]))
		}},
		{"claim in a new view", claim, func(c *Committee, p Proof) error {
			nv := &NewView{Highest: lock, Claims: []Claim{
				{Proof: honest(0, none)}, {Prepared: 1, Digest: valueOf("A"), Proof: p}, {Proof: honest(3, none)},
			}}
			_, err := c.newView(d, Vote{Key: key, View: 1, Phase: PrePrepare, Digest: valueOf("A"), Proof: nv.Encode()})
			return err
		}},
		{"certificate in a new view", prepare, func(c *Committee, p Proof) error {
			nv := &NewView{Highest: &Prepared{Digest: valueOf("A"), Votes: []Proof{honest(0, first), p, honest(3, prepare)}}, Claims: []Claim{
				{Proof: honest(0, none)}, {Proof: honest(2, none)}, {Prepared: 1, Digest: valueOf("A"), Proof: honest(3, claim)},
			}}
			_, err := c.newView(d, Vote{Key: key, View: 1, Phase: PrePrepare, Digest: valueOf("A"), Proof: nv.Encode()})
			return err
		}},
		{"certificate", commit, func(c *Committee, p Proof) error {
			cert, err := DecodeCertificate(certificate(p).Encode())
			if err != nil {
				return err
			}
			return c.VerifyCertificate(in, valueOf("A"), *cert)
		}},
		{"certificate as JSON", commit, func(c *Committee, p Proof) error {
			var cert Certificate
			if err := canon.Decode(canon.MustMarshal(certificate(p)), &cert); err != nil {
				return err
			}
			return c.VerifyCertificate(in, valueOf("A"), cert)
		}},
		{"first vote of a guilt proof", prepare, func(c *Committee, p Proof) error {
			other := Vote{Key: key, Phase: Prepare, Digest: valueOf("B")}
			return Guilt{Instance: in, A: prepare, ProofA: p, B: other, ProofB: honest(1, other)}.Verify(c)
		}},
		{"second vote of a guilt proof", prepare, func(c *Committee, p Proof) error {
			other := Vote{Key: key, Phase: Prepare, Digest: valueOf("B")}
			return Guilt{Instance: in, A: other, ProofA: honest(1, other), B: prepare, ProofB: p}.Verify(c)
		}},
	}
}

// verifyAmong sends a vote under member 1's signature over the wire and checks
// its frame, among others when there are any.
func verifyAmong(c *Committee, d Domain, v Vote, p Proof, others []*Frame) error {
	f := &Frame{domain: d, signer: p.Signer, votes: []Vote{v}, signature: p.Signature}
	read, err := DecodeFrame(f.Encode())
	if err != nil {
		return err
	}
	_, errs := c.VerifyAll(append(others, read))
	for _, err := range errs[:len(others)] {
		if err != nil {
			panic(err) // the others are honest
		}
	}
	return errs[len(others)]
}

// refusedIn is why a vote of a validly signed frame is refused, or nil.
func refusedIn(c *Committee, f *Frame) error {
	read, err := DecodeFrame(f.Encode())
	if err != nil {
		return err
	}
	v, err := c.Verify(read)
	if err != nil {
		return err
	}
	return v.votes[0].refused
}
