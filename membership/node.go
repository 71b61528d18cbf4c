package membership

import "github.com/deliberd/deliberd/internal/sign"

// NodeKey is the identity key that a libp2p peer id embeds. It errs with
// sign.ErrBadKey on anything but the one base58btc spelling of an Ed25519
// peer id (12D3KooW…).
func NodeKey(peerID string) (sign.PublicKey, error) { return sign.ParsePeerID(peerID) }

// EncodePeerID is the libp2p peer id of a key.
func EncodePeerID(key sign.PublicKey) string { return key.PeerID() }

// Faults is how many of n voters may be Byzantine: ⌊(n−1)/3⌋.
func Faults(n int) int {
	if n < 1 {
		return 0
	}
	return (n - 1) / 3
}

// Quorum is how many of n voters must agree: ⌈(n+f+1)/2⌉.
func Quorum(n int) int { return (n + Faults(n) + 2) / 2 }
