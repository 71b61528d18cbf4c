package pbft

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"strings"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft/internal/simkey"
)

// Bounds of a frame.
const (
	MaxVotes = 64      // votes in one frame, of any instances of the domain
	MaxFrame = 1 << 20 // encoded bytes
)

// Signature is an Ed25519 signature; as text, unpadded base64url.
type Signature [ed25519.SignatureSize]byte

// MarshalText writes unpadded base64url.
func (s Signature) MarshalText() ([]byte, error) {
	return base64.RawURLEncoding.AppendEncode(nil, s[:]), nil
}

// UnmarshalText reads the one spelling that MarshalText writes.
func (s *Signature) UnmarshalText(text []byte) error {
	raw, err := base64.RawURLEncoding.Strict().DecodeString(string(text))
	if err != nil || len(raw) != len(s) || strings.ContainsAny(string(text), "\r\n") {
		return fmt.Errorf("a signature is %d bytes of strict base64url", len(s))
	}
	copy(s[:], raw)
	return nil
}

// Frame is what a voter signs at once: votes of one domain and perhaps many
// instances, under one signature over the list of their hashes. A frame is
// stored before it is sent, and what is sent again is the stored one. Frames
// are immutable once made.
type Frame struct {
	domain    Domain
	signer    int
	votes     []Vote
	hashes    []Digest // of votes, computed here and never read from the wire
	signature Signature
}

// Domain is the domain of all votes in the frame.
func (f *Frame) Domain() Domain { return f.domain }

// Signer is the index of the member that the frame says signed it.
func (f *Frame) Signer() int { return f.signer }

// Votes are the frame's votes: do not change them.
func (f *Frame) Votes() []Vote { return f.votes }

// signedBytes is what a frame's signature covers.
func signedBytes(d Domain, signer int, hashes []Digest) []byte {
	b := make([]byte, 0, 256+32*len(hashes))
	b = appendDomain(b, d)
	b = appendName(b, "frame")
	b = binary.BigEndian.AppendUint16(b, uint16(signer))
	b = binary.BigEndian.AppendUint16(b, uint16(len(hashes)))
	for i := range hashes {
		b = append(b, hashes[i][:]...)
	}
	return b
}

// Sign makes the frame of 1 to [MaxVotes] votes by the member at index signer.
// Whoever calls it must store the frame before anybody else sees it.
func Sign(d Domain, signer int, votes []Vote, key ed25519.PrivateKey) *Frame {
	f := &Frame{domain: d, signer: signer, votes: votes, hashes: hashesOf(votes)}
	copy(f.signature[:], ed25519.Sign(key, signedBytes(d, signer, f.hashes)))
	return f
}

// Sign is the function of that name for a member of the committee; what it
// signed itself needs no verification. It refuses with not_a_member when key is
// not the member's, and with malformed when the votes do not fit one frame, of
// [MaxVotes] votes and [MaxFrame] bytes: then split them.
func (c *Committee) Sign(d Domain, signer int, votes []Vote, key ed25519.PrivateKey) (Verified, error) {
	if len(votes) == 0 || len(votes) > MaxVotes || frameSize(d, votes) > MaxFrame {
		return Verified{}, machine.Refuse(CodeMalformed, "split them into several frames", "%d votes do not fit one frame", len(votes))
	}
	if len(key) != ed25519.PrivateKeySize || signer < 0 || signer >= c.N() || d.Epoch != c.epoch || c.Key(signer) != [32]byte(key.Public().(ed25519.PublicKey)) {
		return Verified{}, machine.Refuse(CodeNotMember, "", "the key is not that of member %d in epoch %d", signer, d.Epoch)
	}
	f := Sign(d, signer, votes, key)
	return Verified{frame: f, votes: c.justify(f)}, nil
}

// frameSize is how long a frame's encoding is.
func frameSize(d Domain, votes []Vote) int {
	size := 2 + 1 + len(d.Protocol) + 1 + len(d.Genesis) + 16 + 2 + 1 + len(Signature{})
	for i := range votes {
		size += voteBytes + 4 + len(votes[i].Proof)
	}
	return size
}

func hashesOf(votes []Vote) []Digest {
	out := make([]Digest, len(votes))
	for i := range votes {
		out[i] = votes[i].Hash()
	}
	return out
}

// SignSimulated is [Sign] for a member of a simulated committee.
func SignSimulated(d Domain, signer int, votes []Vote, ring *simkey.Ring) *Frame {
	f := &Frame{domain: d, signer: signer, votes: votes, hashes: hashesOf(votes)}
	f.signature = ring.Sign(signer, signedBytes(d, signer, f.hashes))
	return f
}

// Proof is the proof of every vote in the frame.
func (f *Frame) Proof() Proof {
	return Proof{Signer: f.signer, Hashes: f.hashes, Signature: f.signature}
}

// Holds reports whether the frame has a vote of the instance with this key.
func (f *Frame) Holds(key Digest) bool {
	for i := range f.votes {
		if f.votes[i].Key == key {
			return true
		}
	}
	return false
}

// Verified is a frame whose signature and proofs have been checked against a
// committee. Only [Committee.Verify], [Committee.VerifyAll] and, for a member's
// own frames, [Committee.Sign] make one, and an [Engine] takes nothing else.
type Verified struct {
	frame *Frame
	votes []verifiedVote
}

// verifiedVote is a vote with what its proof was found to show.
type verifiedVote struct {
	Vote
	prepared *Prepared // of a ViewChange that claims one
	newView  *NewView  // of a PrePrepare above view 0
	refused  error     // why the proof does not justify the vote
}

// Frame is the frame that was verified.
func (v Verified) Frame() *Frame { return v.frame }

// Verify checks one frame.
func (c *Committee) Verify(f *Frame) (Verified, error) {
	v, errs := c.VerifyAll([]*Frame{f})
	return v[0], errs[0]
}

// VerifyAll checks frames together, which is faster than one by one. A frame
// is refused (its error is set) when its signer is no member, its epoch is not
// the committee's, or its signature does not verify. A vote whose own proof
// fails is kept apart and refused by the engine: it does not hide the others.
func (c *Committee) VerifyAll(frames []*Frame) ([]Verified, []error) {
	out, errs := make([]Verified, len(frames)), make([]error, len(frames))
	items, at := make([]sign.Signed, 0, len(frames)), make([]int, 0, len(frames))
	for i, f := range frames {
		switch {
		case f.signer < 0 || f.signer >= c.N():
			errs[i] = machine.Refuse(CodeNotMember, "", "the committee of epoch %d has no member %d", c.epoch, f.signer)
		case f.domain.Epoch != c.epoch:
			errs[i] = machine.Refuse(CodeOtherDomain, "", "signed in epoch %d, the committee's is %d", f.domain.Epoch, c.epoch)
		case c.ring != nil:
			if message := signedBytes(f.domain, f.signer, f.hashes); c.signed(f.signer, message, &f.signature) {
				out[i] = Verified{frame: f, votes: c.justify(f)}
				continue
			}
			errs[i] = machine.Refuse(CodeBadSignature, "", "the frame of member %d does not verify", f.signer)
		default:
			items = append(items, sign.Signed{Key: c.keys[f.signer], Message: signedBytes(f.domain, f.signer, f.hashes), Sig: f.signature[:]})
			at = append(at, i)
		}
	}
	for k, ok := range sign.VerifyAll(items) {
		i := at[k]
		if !ok {
			errs[i] = machine.Refuse(CodeBadSignature, "", "the frame of member %d does not verify", frames[i].signer)
			continue
		}
		out[i] = Verified{frame: frames[i], votes: c.justify(frames[i])}
	}
	return out, errs
}

// justify checks the proofs that votes carry, and again that the fields of a
// vote fit together: not every frame has come through a decoder.
func (c *Committee) justify(f *Frame) []verifiedVote {
	votes := make([]verifiedVote, len(f.votes))
	for i, v := range f.votes {
		votes[i].Vote = v
		if votes[i].refused = v.check(); votes[i].refused != nil {
			continue
		}
		switch {
		case v.Phase == ViewChange && v.Prepared > 0:
			votes[i].prepared, votes[i].refused = c.preparedClaim(f.domain, v)
		case v.Phase == PrePrepare && v.View > 0:
			votes[i].newView, votes[i].refused = c.newView(f.domain, v)
		}
	}
	return votes
}

// Refused is why the proof of the vote at an index does not justify it; nil
// when it does. The engine refuses such a vote for the same reason.
func (v Verified) Refused(i int) error { return v.votes[i].refused }
