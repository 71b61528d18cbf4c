package sign

import (
	"crypto/ed25519"
	"fmt"

	"github.com/mr-tron/base58"
)

// peerIDPrefix is what stands before the key in the libp2p peer id of an
// Ed25519 key: the identity multihash (code 0, 36 bytes) of the protobuf
// PublicKey{Type: Ed25519, Data: 32 bytes}.
const peerIDPrefix = "\x00\x24\x08\x01\x12\x20"

// peerIDLen is the length of every Ed25519 peer id in base58btc: 12D3KooW….
const peerIDLen = 52

// PeerID is the libp2p peer id of a key, in base58btc: what a node is called.
func (k PublicKey) PeerID() string {
	return base58.Encode(append([]byte(peerIDPrefix), k.raw[:]...))
}

// ParsePeerID returns the key inside an Ed25519 peer id. Only the one base58btc
// spelling is accepted, no CID. It errs with [ErrBadKey].
func ParsePeerID(id string) (PublicKey, error) {
	if len(id) != peerIDLen {
		return PublicKey{}, fmt.Errorf("%w: an Ed25519 peer id has %d characters, this has %d", ErrBadKey, peerIDLen, len(id))
	}
	raw, err := base58.Decode(id)
	if err != nil {
		return PublicKey{}, fmt.Errorf("%w: not base58: %w", ErrBadKey, err)
	}
	if len(raw) != len(peerIDPrefix)+ed25519.PublicKeySize || string(raw[:len(peerIDPrefix)]) != peerIDPrefix {
		return PublicKey{}, fmt.Errorf("%w: not the peer id of an Ed25519 key", ErrBadKey)
	}
	k, err := NewPublicKey(raw[len(peerIDPrefix):])
	if err != nil {
		return PublicKey{}, err
	}
	if k.PeerID() != id {
		return PublicKey{}, fmt.Errorf("%w: another spelling of peer id %s", ErrBadKey, k.PeerID())
	}
	return k, nil
}

// ParseX returns the key whose JWK member x this is: 32 bytes of strict
// unpadded base64url. It errs with [ErrBadKey].
func ParseX(x string) (PublicKey, error) {
	return JWK{Kty: "OKP", Crv: "Ed25519", X: x}.Public()
}

// X is the JWK member x of the key: its 32 bytes in unpadded base64url.
func (k PublicKey) X() string { return k.JWK().X }
