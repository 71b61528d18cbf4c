package membership

import (
	"bytes"
	"encoding/base64"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// InvitationPrefix starts the one-line text of every invitation.
const InvitationPrefix = "deliberd-invite-"

// maxInvitation is the longest text of an invitation in bytes.
const maxInvitation = 16 << 10

// Invitation is what an operator hands to a node's operator, outside the
// cluster: whoever holds it can join once. It is a secret.
type Invitation struct {
	Genesis   string        `json:"genesis"` // hash: the cluster's id
	Seed      string        `json:"seed"`    // 32 bytes in unpadded base64url, RFC 8032 seed of its one-use key; a secret
	Role      Role          `json:"role"`    // voter or observer
	ExpiresMS machine.Stamp `json:"expires_ms"`
	Addrs     []string      `json:"addrs"` // 1 to MaxInvitationAddrs multiaddrs of members, with /p2p/<peer id>
}

// MaxInvitationAddrs is how many member addresses an invitation may carry.
const MaxInvitationAddrs = 32

// Encode is the invitation as one line of text: the prefix, then base64url of
// its canonical JSON and the first 4 bytes of that JSON's SHA-256.
func (i Invitation) Encode() string { return wrap(canon.MustMarshal(i)) }

func wrap(text []byte) string {
	sum := canon.Hash(text)
	return InvitationPrefix + base64.RawURLEncoding.EncodeToString(append(bytes.Clone(text), sum[:4]...))
}

// ParseInvitation reads what [Invitation.Encode] writes; white space around it
// is ignored. It errs with a refusal, code bad_invitation. Errors never show the seed.
func ParseInvitation(line string) (Invitation, error) {
	line = strings.TrimSpace(line)
	rest, ok := strings.CutPrefix(line, InvitationPrefix)
	if !ok || len(line) > maxInvitation {
		return Invitation{}, badInvitation("it does not start with " + InvitationPrefix + " or is too long")
	}
	raw, err := base64.RawURLEncoding.Strict().DecodeString(rest)
	if err != nil || strings.ContainsAny(rest, "\r\n") || len(raw) < 4 {
		return Invitation{}, badInvitation("a character is missing or wrong")
	}
	text, check := raw[:len(raw)-4], raw[len(raw)-4:]
	if sum := canon.Hash(text); !bytes.Equal(sum[:4], check) {
		return Invitation{}, badInvitation("its checksum is wrong: a character is missing or wrong")
	}
	var i Invitation
	if canon.CheckCanonical(text) != nil || canon.DecodeExact(text, &i) != nil {
		return Invitation{}, badInvitation("it holds something else")
	}
	if wrong := i.shape(); wrong != "" {
		return Invitation{}, badInvitation(wrong)
	}
	return i, nil
}

func badInvitation(why string) *machine.Refusal {
	return machine.Refuse(CodeBadInvitation, "copy the whole line that deliberd invite printed", "not an invitation: %s", why)
}

func (i Invitation) shape() string {
	switch {
	case !hashPattern.MatchString(i.Genesis):
		return "genesis is not 64 hex digits"
	case i.Role != RoleVoter && i.Role != RoleObserver:
		return "role is neither voter nor observer"
	case i.ExpiresMS < 1:
		return "expires_ms is not positive"
	case len(i.Addrs) == 0 || len(i.Addrs) > MaxInvitationAddrs:
		return "it carries no address of a member, or too many"
	}
	for _, a := range i.Addrs {
		if !addrPattern.MatchString(a) {
			return "addrs holds something that is no multiaddr"
		}
	}
	if _, err := i.Key(); err != nil {
		return "seed is not 32 bytes of base64url"
	}
	return ""
}

// CheckGenesis refuses, code wrong_genesis, an invitation to another cluster.
func (i Invitation) CheckGenesis(hash string) error {
	if i.Genesis != hash {
		return machine.Refuse(CodeWrongGenesis, "use an invitation to this cluster, or another data directory", "the invitation is to cluster %s, this is %s", i.Genesis, hash)
	}
	return nil
}

// Key is the invitation's one-use key. Its peer id is what a joining node
// connects under until it has joined.
func (i Invitation) Key() (sign.Key, error) {
	seed, err := base64.RawURLEncoding.Strict().DecodeString(i.Seed)
	if err != nil || strings.ContainsAny(i.Seed, "\r\n") {
		return sign.Key{}, badInvitation("seed is not 32 bytes of base64url")
	}
	return sign.KeyFromSeed(seed)
}

// Join makes the body of cluster.join for a node; the action is signed by the
// node's identity key and its actor is node's peer id.
func (i Invitation) Join(node, pbft, attest sign.PublicKey, addrs []string) (Join, error) {
	key, err := i.Key()
	if err != nil {
		return Join{}, err
	}
	b := Join{Invitation: key.Public().X(), Role: i.Role, PBFTKey: pbft.X(), AttestKey: attest.X(), Addrs: addrs}
	b.Proof, err = key.Detached(sign.TypInvitation, ProofPayload(i.Genesis, node.PeerID(), b.Role, b.PBFTKey, b.AttestKey))
	return b, err
}
