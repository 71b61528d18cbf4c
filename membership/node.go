package membership

import (
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/pbft/quorum"
)

// NodeKey is the identity key that a libp2p peer id embeds. It errs with
// sign.ErrBadKey on anything but the one base58btc spelling of an Ed25519
// peer id (12D3KooW…).
func NodeKey(peerID string) (sign.PublicKey, error) { return sign.ParsePeerID(peerID) }

// EncodePeerID is the libp2p peer id of a key.
func EncodePeerID(key sign.PublicKey) string { return key.PeerID() }

// Faults is how many of n voters may be Byzantine, see [quorum.F].
func Faults(n int) int { return quorum.F(n) }

// Quorum is how many of n voters must agree, see [quorum.Q].
func Quorum(n int) int { return quorum.Q(n) }
