package pbft

import (
	"crypto/sha256"
	"encoding/binary"
	"fmt"

	"github.com/deliberd/deliberd/machine"
)

// Phase is what a vote says.
type Phase uint8

// The phases. A new view is a PrePrepare of a view above 0, with its proof.
const (
	PrePrepare Phase = 1 + iota // the view's primary names a value; it is also the primary's prepare
	Prepare                     // I accept this value in this view
	Commit                      // a quorum prepared this value in this view, and I hold the proof
	ViewChange                  // I left all earlier views; this is the highest that I saw prepared
)

func (p Phase) String() string {
	switch p {
	case PrePrepare:
		return "pre-prepare"
	case Prepare:
		return "prepare"
	case Commit:
		return "commit"
	case ViewChange:
		return "view-change"
	}
	return fmt.Sprintf("phase(%d)", uint8(p))
}

// MarshalText writes the phase's name, and errs when it has none.
func (p Phase) MarshalText() ([]byte, error) {
	if p < PrePrepare || p > ViewChange {
		return nil, fmt.Errorf("%s has no name", p)
	}
	return []byte(p.String()), nil
}

// UnmarshalText reads the name of a phase.
func (p *Phase) UnmarshalText(text []byte) error {
	for q := PrePrepare; q <= ViewChange; q++ {
		if q.String() == string(text) {
			*p = q
			return nil
		}
	}
	return fmt.Errorf("a phase is pre-prepare, prepare, commit or view-change, not %q", text)
}

// MaxView bounds views, so that arithmetic on them cannot overflow.
const MaxView = 1<<48 - 1

// Vote is what one voter says in one slot: (instance, view, phase). A voter
// that makes two different votes for a slot is guilty.
type Vote struct {
	Key    Digest `json:"key"`  // the instance's key
	View   uint64 `json:"view"` // for a ViewChange, the view to enter
	Phase  Phase  `json:"phase"`
	Digest Digest `json:"digest"` // for a ViewChange, the digest prepared in view Prepared−1, else zero
	// Prepared is, for a ViewChange, one more than the highest view whose
	// prepared certificate the voter holds, 0 for none; else 0.
	Prepared uint64 `json:"prepared,omitempty"`
	// Proof justifies the vote and is not signed, since it proves itself: for
	// a ViewChange with Prepared > 0 a [Prepared] certificate, for a
	// PrePrepare above view 0 a [NewView]; else empty.
	Proof []byte `json:"proof,omitempty"`
}

// slot is what a voter may vote on once.
type slot struct {
	view  uint64
	phase Phase
}

func (v Vote) slot() slot { return slot{v.View, v.Phase} }

// same reports whether two votes sign the same statement.
func (v Vote) same(o Vote) bool {
	return v.Key == o.Key && v.View == o.View && v.Phase == o.Phase && v.Digest == o.Digest && v.Prepared == o.Prepared
}

const voteBytes = 32 + 8 + 1 + 32 + 8

// appendHeader writes the signed part of a vote.
func (v Vote) appendHeader(b []byte) []byte {
	b = append(b, v.Key[:]...)
	b = binary.BigEndian.AppendUint64(b, v.View)
	b = append(b, byte(v.Phase))
	b = append(b, v.Digest[:]...)
	return binary.BigEndian.AppendUint64(b, v.Prepared)
}

// Hash is what a frame's hash list holds for the vote.
func (v Vote) Hash() Digest {
	b := make([]byte, 0, len("deliberd/pbft/1 vote\x00")+voteBytes)
	b = append(b, "deliberd/pbft/1 vote\x00"...)
	return sha256.Sum256(v.appendHeader(b))
}

// check refuses a vote whose fields do not fit its phase.
func (v Vote) check() error {
	ok := v.View <= MaxView
	switch v.Phase {
	case PrePrepare:
		ok = ok && !v.Digest.IsZero() && v.Prepared == 0 && (v.View > 0) == (len(v.Proof) > 0)
	case Prepare, Commit:
		ok = ok && !v.Digest.IsZero() && v.Prepared == 0 && len(v.Proof) == 0
	case ViewChange:
		claims := v.Prepared > 0
		ok = ok && v.View > 0 && v.Prepared <= v.View && claims != v.Digest.IsZero() && claims == (len(v.Proof) > 0)
	default:
		ok = false
	}
	if !ok {
		return machine.Refuse(CodeMalformed, "", "the fields of a %s vote do not fit together", v.Phase)
	}
	return nil
}

// Proof shows that a member cast a vote: the hash list of the frame that held
// it and the member's signature over that list.
type Proof struct {
	Signer    int       `json:"signer"` // the member's index in its committee
	Hashes    []Digest  `json:"hashes"` // 1 to [MaxVotes], the vote's among them; shared, do not change
	Signature Signature `json:"signature"`
}

// verify checks that the proof's signer cast the vote in the domain.
func (p Proof) verify(c *Committee, d Domain, v Vote) error {
	if p.Signer < 0 || p.Signer >= c.N() {
		return machine.Refuse(CodeNotMember, "", "the committee of epoch %d has no member %d", c.epoch, p.Signer)
	}
	if d.Epoch != c.epoch {
		return machine.Refuse(CodeOtherDomain, "", "signed in epoch %d, the committee's is %d", d.Epoch, c.epoch)
	}
	if len(p.Hashes) > MaxVotes || !holds(p.Hashes, v.Hash()) {
		return machine.Refuse(CodeBadSignature, "", "the frame of member %d does not hold this %s", p.Signer, v.Phase)
	}
	if !c.signed(p.Signer, signedBytes(d, p.Signer, p.Hashes), &p.Signature) {
		return machine.Refuse(CodeBadSignature, "", "the signature of member %d does not verify", p.Signer)
	}
	return nil
}

func holds(hashes []Digest, h Digest) bool {
	for i := range hashes {
		if hashes[i] == h {
			return true
		}
	}
	return false
}
