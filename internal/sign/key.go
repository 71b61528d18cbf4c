// Package sign holds the signatures of principals: Ed25519 keys as JWK
// (RFC 8037), their RFC 7638 thumbprints, detached compact JWS over canonical
// JSON, and signed actions.
//
// One rule serves everywhere a principal's signature is checked: the
// protected header is exactly {alg: EdDSA, kid, typ}, base64url is strict,
// the key is canonical and not of small order, and verification is
// cofactorless (as crypto/ed25519) and never batched. Node votes follow ZIP-215
// instead: see package pbft.
package sign

import (
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"

	"filippo.io/edwards25519"

	"github.com/deliberd/deliberd/internal/canon"
)

// Errors of this package. Callers match with errors.Is.
var (
	// ErrBadKey is a public key that is no canonical point of large order, or a JWK of another shape.
	ErrBadKey = errors.New("bad_key")
	// ErrJWKShape comes with ErrBadKey when a JWK is not of the one accepted
	// shape: members, types, kty, crv, or x that is no strict base64url of 32 bytes.
	ErrJWKShape = errors.New("jwk_shape")
	// ErrBadSignature is a signature that does not verify, or not in the one accepted spelling.
	ErrBadSignature = errors.New("bad_signature")
)

// JWK is an Ed25519 public key as RFC 8037 writes it: exactly these members.
type JWK struct {
	Kty string `json:"kty"`
	Crv string `json:"crv"`
	X   string `json:"x"`
	KID string `json:"kid,omitempty"`
}

// PublicKey is an Ed25519 public key that has passed [NewPublicKey], with its
// RFC 7638 thumbprint. The zero value is no key.
type PublicKey struct {
	raw [ed25519.PublicKeySize]byte
	kid string
}

// NewPublicKey takes 32 bytes; it errs with [ErrBadKey] on a non-canonical
// encoding and on the eight points of small order, whose signatures can
// verify for every message.
func NewPublicKey(raw []byte) (PublicKey, error) {
	point, err := new(edwards25519.Point).SetBytes(raw)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%w: not a point of the curve", ErrBadKey)
	}
	if string(point.Bytes()) != string(raw) {
		return PublicKey{}, fmt.Errorf("%w: not the canonical encoding of its point", ErrBadKey)
	}
	if new(edwards25519.Point).MultByCofactor(point).Equal(edwards25519.NewIdentityPoint()) == 1 {
		return PublicKey{}, fmt.Errorf("%w: a point of small order", ErrBadKey)
	}
	var k PublicKey
	copy(k.raw[:], raw)
	k.kid = Thumbprint(base64.RawURLEncoding.EncodeToString(raw))
	return k, nil
}

// StoredKey is the key that a record holds under its kid: x was checked by
// [NewPublicKey] when the record was made, and since kid is the hash of x, a
// damaged record errs with [ErrBadKey]. It costs a hash, no arithmetic.
func StoredKey(x, kid string) (PublicKey, error) {
	raw, err := RawX(x)
	if err != nil || Thumbprint(x) != kid {
		return PublicKey{}, fmt.Errorf("%w: the stored key is not the one that kid %q names", ErrBadKey, kid)
	}
	return PublicKey{raw: raw, kid: kid}, nil
}

// RawX is the 32 bytes of a JWK's member x, not checked to be a key. It errs
// with [ErrBadKey] on another length or spelling.
func RawX(x string) (out [ed25519.PublicKeySize]byte, err error) {
	raw, err := strictBase64(x)
	if err != nil || len(raw) != len(out) {
		return out, fmt.Errorf("%w: x is not 32 bytes of strict unpadded base64url", ErrBadKey)
	}
	return [ed25519.PublicKeySize]byte(raw), nil
}

// Thumbprint is the RFC 7638 thumbprint of the Ed25519 JWK with this x.
func Thumbprint(x string) string {
	sum := sha256.Sum256([]byte(`{"crv":"Ed25519","kty":"OKP","x":"` + x + `"}`))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// Bytes is the key's 32-byte encoding.
func (k PublicKey) Bytes() ed25519.PublicKey { return append(ed25519.PublicKey(nil), k.raw[:]...) }

// KID is the key's RFC 7638 thumbprint, unpadded base64url.
func (k PublicKey) KID() string { return k.kid }

// IsZero reports whether k is no key.
func (k PublicKey) IsZero() bool { return k.kid == "" }

// JWK is the key with its thumbprint as kid.
func (k PublicKey) JWK() JWK {
	return JWK{Kty: "OKP", Crv: "Ed25519", X: base64.RawURLEncoding.EncodeToString(k.raw[:]), KID: k.kid}
}

// Public checks a JWK and returns its key. A kid, when present, must be the
// key's thumbprint.
func (j JWK) Public() (PublicKey, error) {
	if j.Kty != "OKP" || j.Crv != "Ed25519" {
		return PublicKey{}, fmt.Errorf("%w: %w: kty OKP and crv Ed25519 are wanted, got %q and %q", ErrBadKey, ErrJWKShape, j.Kty, j.Crv)
	}
	raw, err := strictBase64(j.X)
	if err != nil || len(raw) != ed25519.PublicKeySize {
		return PublicKey{}, fmt.Errorf("%w: %w: x is not 32 bytes of strict unpadded base64url", ErrBadKey, ErrJWKShape)
	}
	k, err := NewPublicKey(raw)
	if err != nil {
		return PublicKey{}, err
	}
	if j.KID != "" && j.KID != k.kid {
		return PublicKey{}, fmt.Errorf("%w: kid is not the key's RFC 7638 thumbprint", ErrBadKey)
	}
	return k, nil
}

// ParseJWK decodes a JWK strictly: exactly kty, crv, x and perhaps kid, none of them null or empty.
func ParseJWK(text []byte) (PublicKey, error) {
	var j JWK
	if err := canon.DecodeExact(text, &j); err != nil {
		return PublicKey{}, fmt.Errorf("%w: %w: %w", ErrBadKey, ErrJWKShape, err)
	}
	return j.Public()
}

// strictBase64 decodes unpadded base64url and accepts one spelling only:
// encoding/base64 skips CR and LF even when strict.
func strictBase64(s string) ([]byte, error) {
	if strings.ContainsAny(s, "\r\n=") {
		return nil, errors.New("not strict base64url")
	}
	return base64.RawURLEncoding.Strict().DecodeString(s)
}

// Key is a private Ed25519 key.
type Key struct {
	private ed25519.PrivateKey
	public  PublicKey
}

// NewKey makes a key from a source of randomness, crypto/rand.Reader in earnest.
func NewKey(random io.Reader) (Key, error) {
	seed := make([]byte, ed25519.SeedSize)
	if _, err := io.ReadFull(random, seed); err != nil {
		return Key{}, fmt.Errorf("read randomness: %w", err)
	}
	return KeyFromSeed(seed)
}

// KeyFromSeed makes the key of a 32-byte RFC 8032 seed.
func KeyFromSeed(seed []byte) (Key, error) {
	if len(seed) != ed25519.SeedSize {
		return Key{}, fmt.Errorf("%w: a seed has %d bytes, got %d", ErrBadKey, ed25519.SeedSize, len(seed))
	}
	private := ed25519.NewKeyFromSeed(seed)
	public, err := NewPublicKey(private.Public().(ed25519.PublicKey))
	return Key{private: private, public: public}, err
}

// Public is the key's public half.
func (k Key) Public() PublicKey { return k.public }

// KID is the thumbprint of the key's public half.
func (k Key) KID() string { return k.public.kid }

// Seed is the 32-byte RFC 8032 seed: a secret.
func (k Key) Seed() []byte { return k.private.Seed() }

// Private is the standard library's form of the key: a secret.
func (k Key) Private() ed25519.PrivateKey { return k.private }

// privateJWK is a key file: RFC 8037 with the seed as d.
type privateJWK struct {
	JWK
	D string `json:"d"`
}

// MarshalJSON writes the private JWK (RFC 8037, with d): a secret.
func (k Key) MarshalJSON() ([]byte, error) {
	return json.Marshal(privateJWK{JWK: k.public.JWK(), D: base64.RawURLEncoding.EncodeToString(k.Seed())})
}

// ParseKey reads a private JWK as [Key.MarshalJSON] writes it; d must belong to x.
func ParseKey(text []byte) (Key, error) {
	var j privateJWK
	if err := canon.Decode(text, &j); err != nil {
		return Key{}, fmt.Errorf("%w: %w", ErrBadKey, err)
	}
	seed, err := strictBase64(j.D)
	if err != nil {
		return Key{}, fmt.Errorf("%w: d is not strict base64url", ErrBadKey)
	}
	k, err := KeyFromSeed(seed)
	if err != nil {
		return Key{}, err
	}
	if public, err := j.Public(); err != nil || public.kid != k.public.kid {
		return Key{}, fmt.Errorf("%w: d and x are not one key", ErrBadKey)
	}
	return k, nil
}
