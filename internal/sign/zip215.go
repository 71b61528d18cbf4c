package sign

import (
	"crypto/ed25519"
	"crypto/sha512"
	"encoding/binary"
	"encoding/hex"
	"fmt"
	"io"

	"filippo.io/edwards25519"
	voi "github.com/oasisprotocol/curve25519-voi/primitives/ed25519"
)

// zip215 is the one rule of every node vote: ZIP-215. It is cofactored, so
// one signature and a batch of them give the same answer on every node, also
// for signatures crafted with torsion or non-canonical points.
var zip215 = &voi.Options{Verify: voi.VerifyOptionsZIP_215}

// VerifyZIP215 reports whether sig is a signature of message under a key of
// 32 bytes by the ZIP-215 rule, whatever the key's order or encoding. Votes
// are checked through a [NodeKey], which small-order keys cannot become.
func VerifyZIP215(key, message, sig []byte) bool {
	if len(key) != ed25519.PublicKeySize || len(sig) != ed25519.SignatureSize {
		return false
	}
	return voi.VerifyWithOptions(key, message, sig, zip215)
}

// NodeKey is a node's public Ed25519 key, expanded for fast ZIP-215
// verification. The zero value verifies nothing. It is safe for concurrent use.
type NodeKey struct {
	raw      [ed25519.PublicKeySize]byte
	expanded *voi.ExpandedPublicKey
}

// NewNodeKey expands a key. It errs with [ErrBadKey] on bytes that are no
// point and on the points of small order, under which one signature can
// verify for every message. A non-canonical encoding is accepted, as ZIP-215 has it.
func NewNodeKey(raw [ed25519.PublicKeySize]byte) (NodeKey, error) {
	expanded, err := voi.NewExpandedPublicKey(raw[:])
	if err != nil {
		return NodeKey{}, fmt.Errorf("%w: not a point of the curve", ErrBadKey)
	}
	point, ok := timesCofactor(raw[:])
	if !ok || point.Equal(edwards25519.NewIdentityPoint()) == 1 {
		return NodeKey{}, fmt.Errorf("%w: a point of small order", ErrBadKey)
	}
	return NodeKey{raw: raw, expanded: expanded}, nil
}

// Bytes is the key as it was given.
func (k NodeKey) Bytes() [ed25519.PublicKeySize]byte { return k.raw }

// Class names the key up to a small-order component: two keys of one class
// can be used by whoever holds the private scalar of either, so no two
// members of a committee may share it.
func (k NodeKey) Class() [ed25519.PublicKeySize]byte {
	var out [ed25519.PublicKeySize]byte
	if point, ok := timesCofactor(k.raw[:]); ok {
		copy(out[:], point.Bytes())
	}
	return out
}

// Class names a key up to a small-order component and the sign: whoever holds
// the private scalar of one key of a class can use all of them. 64 hex digits.
func (k PublicKey) Class() string {
	class := NodeKey{raw: k.raw}.Class()
	class[31] &= 0x7f // −A has the other sign of x, and the scalar −a
	return hex.EncodeToString(class[:])
}

// Verify reports whether sig is the key's signature of message.
func (k NodeKey) Verify(message, sig []byte) bool {
	if k.expanded == nil || len(sig) != ed25519.SignatureSize {
		return false
	}
	return voi.VerifyExpandedWithOptions(k.expanded, message, sig, zip215)
}

// timesCofactor is eight times the point, which removes its small-order component.
func timesCofactor(raw []byte) (*edwards25519.Point, bool) {
	point, err := new(edwards25519.Point).SetBytes(raw)
	if err != nil {
		return nil, false
	}
	return point.MultByCofactor(point), true
}

// Signed is one signature to check.
type Signed struct {
	Key     NodeKey
	Message []byte
	Sig     []byte
}

// batchFrom is the size from which a batch is faster than single checks.
const batchFrom = 4

// VerifyAll checks signatures together and reports each one's validity: the
// same answers that [NodeKey.Verify] gives, at about half the cost when all
// are valid.
func VerifyAll(items []Signed) []bool {
	valid := make([]bool, len(items))
	if len(items) < batchFrom {
		for i, it := range items {
			valid[i] = it.Key.Verify(it.Message, it.Sig)
		}
		return valid
	}
	batch := voi.NewBatchVerifierWithCapacity(len(items))
	at := make([]int, 0, len(items))
	for i, it := range items {
		if it.Key.expanded == nil || len(it.Sig) != ed25519.SignatureSize {
			continue
		}
		batch.AddExpandedWithOptions(it.Key.expanded, it.Message, it.Sig, zip215)
		at = append(at, i)
	}
	if len(at) == 0 {
		return valid
	}
	_, each := batch.Verify(coefficients(items))
	for i, ok := range each {
		valid[at[i]] = ok
	}
	return valid
}

// coefficients seeds the random linear combination of a batch with a hash of
// all that is in it: whoever crafts a signature cannot know its coefficient
// beforehand, and a run repeats to the byte.
func coefficients(items []Signed) io.Reader {
	h := sha512.New()
	h.Write([]byte("deliberd batch of signatures\x00"))
	var size [8]byte
	for _, it := range items {
		h.Write(it.Key.raw[:])
		h.Write(it.Sig)
		binary.BigEndian.PutUint64(size[:], uint64(len(it.Message)))
		h.Write(size[:])
		h.Write(it.Message)
	}
	return &seed{h.Sum(nil)}
}

// seed is a reader of its bytes, once.
type seed struct{ left []byte }

func (s *seed) Read(p []byte) (int, error) {
	if len(s.left) == 0 {
		return 0, io.EOF
	}
	n := copy(p, s.left)
	s.left = s.left[n:]
	return n, nil
}
