// Package simkey stands in for Ed25519 in simulations: a keyed hash which only
// whoever holds the key ring can make. It costs a hundredth of a signature, and
// a schedule has hundreds of them. No code outside pbft can name it, so no
// committee of a running node can be made of it.
package simkey

import (
	"crypto/sha256"
	"encoding/binary"
)

// Ring holds the keys of all members of a simulated committee.
type Ring struct{ secrets [][32]byte }

// New makes the keys of n members; equal seeds give equal keys.
func New(seed uint64, n int) *Ring {
	r := &Ring{secrets: make([][32]byte, n)}
	for i := range r.secrets {
		b := binary.BigEndian.AppendUint64([]byte("simulated key"), seed)
		r.secrets[i] = sha256.Sum256(binary.BigEndian.AppendUint64(b, uint64(i)))
	}
	return r
}

// N is the number of members.
func (r *Ring) N() int { return len(r.secrets) }

// Sign is a member's signature over a message.
func (r *Ring) Sign(member int, message []byte) (sig [64]byte) {
	var room [1024]byte
	sum := sha256.Sum256(append(append(room[:0], r.secrets[member][:]...), message...))
	copy(sig[:], sum[:])
	return sig
}

// Verify reports whether a member signed a message.
func (r *Ring) Verify(member int, message, signature []byte) bool {
	want := r.Sign(member, message)
	return string(want[:]) == string(signature)
}
