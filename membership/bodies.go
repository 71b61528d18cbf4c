package membership

import (
	"embed"
	"encoding/json"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

//go:embed schema/*.json
var schemas embed.FS

// schemaOf returns the JSON Schema of a kind's body or a query's parameters.
func schemaOf(name string) json.RawMessage { return machine.MustSchema(schemas, name) }

// Role is what a node is in the cluster.
type Role string

// The roles. A node is invited as voter or observer.
const (
	RoleVoter    Role = "voter"
	RoleObserver Role = "observer"
	RoleJoining  Role = "joining" // invited as voter, not ready yet
	RoleRemoved  Role = "removed" // for ever
)

// MaxExpiryMS is how long an invitation, and any pending change, may stay open: 7 days.
const MaxExpiryMS = 7 * day

// Invite is the body of cluster.invite.
type Invite struct {
	Key         string `json:"key"`                // x of the invitation's public key
	Role        Role   `json:"role"`               // voter or observer
	ExpiresInMS int64  `json:"expires_in_ms"`      // 1 to MaxExpiryMS, from the entry's stamp
	Operator    string `json:"operator,omitempty"` // who will answer for the node; the actor when absent
}

// Approve is the body of cluster.approve.
type Approve struct {
	Change string `json:"change"` // id of the action that asked for the change
}

// Join is the body of cluster.join; the actor is the joining node's peer id
// and signs with its identity key. [Invitation.Join] makes one.
type Join struct {
	Invitation string   `json:"invitation"` // x of the invitation's public key
	Role       Role     `json:"role"`
	PBFTKey    string   `json:"pbft_key"`
	AttestKey  string   `json:"attest_key"`
	Addrs      []string `json:"addrs,omitempty"`
	Proof      string   `json:"proof"` // detached JWS by the invitation's key, see [ProofPayload]
}

// Ready is the body of cluster.ready.
type Ready struct{}

// Remove is the body of cluster.remove.
type Remove struct {
	Node string `json:"node"`
}

// Address is the body of cluster.address: all addresses of the acting node, replacing those before.
type Address struct {
	Addrs []string `json:"addrs"` // 1 to MaxAddrs multiaddrs
}

// ProofPayload is what an invitation's key signs (typ sign.TypInvitation) for
// a joining node: the canonical JSON of {cluster, node, role, pbft_key, attest_key}.
func ProofPayload(cluster, node string, role Role, pbftKey, attestKey string) []byte {
	return canon.MustMarshal(struct {
		Cluster   string `json:"cluster"`
		Node      string `json:"node"`
		Role      Role   `json:"role"`
		PBFTKey   string `json:"pbft_key"`
		AttestKey string `json:"attest_key"`
	}{cluster, node, role, pbftKey, attestKey})
}

// body is a decoded body that can judge its own shape: nil or why not.
type body interface{ shape() *machine.Refusal }

func decode[T body](raw json.RawMessage) (T, error) { return machine.DecodeExact(raw, T.shape) }

func params[T body](raw json.RawMessage) (T, error) { return machine.DecodeExactParams(raw, T.shape) }

func (b Invite) shape() *machine.Refusal {
	switch {
	case !xPattern.MatchString(b.Key):
		return machine.Malformed("key is not 43 base64url characters")
	case b.Role != RoleVoter && b.Role != RoleObserver:
		return machine.Malformed("role is neither voter nor observer")
	case b.Operator != "" && !principalPattern.MatchString(b.Operator):
		return machine.Malformed("operator is not the id of a principal")
	case b.ExpiresInMS < 1 || b.ExpiresInMS > MaxExpiryMS:
		return machine.Refuse(machine.CodeOutOfRange, "choose 1 to 604800000 milliseconds (7 days)", "expires_in_ms is %d", b.ExpiresInMS)
	}
	return nil
}

func (b Approve) shape() *machine.Refusal {
	if !changePattern.MatchString(b.Change) {
		return machine.Malformed("change is not the id of an action")
	}
	return nil
}

func (b Join) shape() *machine.Refusal {
	switch {
	case !xPattern.MatchString(b.Invitation) || !xPattern.MatchString(b.PBFTKey) || !xPattern.MatchString(b.AttestKey):
		return machine.Malformed("invitation, pbft_key and attest_key are not all 43 base64url characters")
	case b.Role != RoleVoter && b.Role != RoleObserver:
		return machine.Malformed("role is neither voter nor observer")
	case !jwsPattern.MatchString(b.Proof):
		return machine.Malformed("proof is not a detached compact JWS (header..signature)")
	}
	if wrong := addrsShape(b.Addrs); wrong != "" {
		return machine.Malformed("%s", wrong)
	}
	return nil
}

func (Ready) shape() *machine.Refusal { return nil }

func (b Remove) shape() *machine.Refusal {
	if !nodePattern.MatchString(b.Node) {
		return machine.Malformed("node is not a peer id (12D3KooW…)")
	}
	return nil
}

func (b Address) shape() *machine.Refusal {
	if len(b.Addrs) == 0 {
		return machine.Malformed("addrs is empty")
	}
	if wrong := addrsShape(b.Addrs); wrong != "" {
		return machine.Malformed("%s", wrong)
	}
	return nil
}

// goodKey is a key from a body that has the right shape.
func goodKey(name, x string) (sign.PublicKey, error) {
	key, err := sign.ParseX(x)
	if err != nil {
		return key, machine.Refuse(CodeBadKey, "make a new key", "%s: %v", name, err)
	}
	return key, nil
}
