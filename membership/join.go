package membership

import (
	"fmt"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Joined is the answer of cluster.join and the data of cluster.joined.
type Joined struct {
	Node       string   `json:"node"`
	Role       Role     `json:"role"` // observer, or joining
	Operator   string   `json:"operator"`
	Invitation string   `json:"invitation"`
	Addrs      []string `json:"addrs,omitempty"`
}

// VotersChanged is the answer of cluster.ready and the data of
// cluster.voters_changed: an epoch has begun.
type VotersChanged struct {
	Epoch  uint64  `json:"epoch"`
	N      int     `json:"n"`
	F      int     `json:"f"` // 0 below 4 voters: no fault is tolerated
	Quorum int     `json:"quorum"`
	Voters []Voter `json:"voters"` // ascending by node
}

// AddressChanged is the answer of cluster.address and the data of cluster.address_changed.
type AddressChanged struct {
	Node  string   `json:"node"`
	Addrs []string `json:"addrs"`
}

func missing(what, id string) error { return fmt.Errorf("membership: %s %s is missing", what, id) }

// orInUse is err, or else the refusal of a key that somebody has or had.
func orInUse(err error, x string) error {
	if err != nil {
		return err
	}
	return machine.Refuse(CodeKeyInUse, "make a new key; keys are never taken twice", "key %s is or was in use", x)
}

func (s *step) join() (any, error) {
	b, err := decode[Join](s.action.Body)
	if err != nil {
		return nil, err
	}
	identity, err := NodeKey(s.action.Actor)
	if err != nil {
		return nil, machine.Refuse(CodeBadKey, "join under the node's Ed25519 peer id", "actor: %v", err)
	}
	if identity.KID() != s.action.KID {
		return nil, machine.Refuse(machine.CodeBadSignature, "sign with the node's identity key", "signed by key %s, the peer id embeds %s", s.action.KID, identity.KID())
	}
	if err := s.checkStranger(s.action.Actor); err != nil {
		return nil, err
	}
	i, err := s.usable(b.Invitation, b.Role)
	if err != nil {
		return nil, err
	}
	if err := s.checkProof(b); err != nil {
		return nil, err
	}
	if err := s.checkJoinKeys(identity, b); err != nil {
		return nil, err
	}
	n := &Node{Node: s.action.Actor, Operator: i.Operator, Role: b.Role, PBFTKey: b.PBFTKey, AttestKey: b.AttestKey, Addrs: b.Addrs, Since: s.ctx.Now}
	if n.Role == RoleVoter {
		n.Role = RoleJoining
	}
	if err := s.admit(n); err != nil {
		return nil, err
	}
	i.State, i.Node = Used, n.Node
	if err := s.saveInvitation(i); err != nil {
		return nil, err
	}
	data := Joined{Node: n.Node, Role: n.Role, Operator: n.Operator, Invitation: i.Key, Addrs: n.Addrs}
	s.emit("cluster.joined", n.Node, data)
	return data, s.unschedule(i.Expires, prefixInvitation, i.Key)
}

// checkStranger refuses a node that is or was a member.
func (s *step) checkStranger(node string) error {
	n, err := s.node(node)
	if err != nil || n == nil {
		return err
	}
	if n.Role == RoleRemoved {
		return machine.Refuse(CodeRemoved, "start with a fresh data directory and identity", "%s has been removed", node)
	}
	return machine.Refuse(CodeAlreadyMember, "nothing is left to do", "%s is a member (%s)", node, n.Role)
}

// usable is an open invitation for a role.
func (s *step) usable(x string, role Role) (*invitationRecord, error) {
	i, err := s.invitation(x)
	if err != nil {
		return nil, err
	}
	if i == nil {
		return nil, machine.Refuse(CodeInvitationUnknown, "ask an operator for an invitation to this cluster", "nobody has invited with key %s", x)
	}
	switch i.State {
	case Used:
		return nil, machine.Refuse(CodeInvitationUsed, "ask an operator for another one", "the invitation was used by %s", i.Node)
	case Expired:
		return nil, machine.Refuse(CodeInvitationExpired, "ask an operator for another one", "the invitation expired at %d", i.Expires)
	case PendingApproval:
		return nil, machine.Refuse(CodeInvitationPending, "have operators approve change "+i.Change, "the invitation waits for approvals").With("change", i.Change)
	}
	if role != i.Role {
		return nil, machine.Refuse(machine.CodeNotAuthorized, "join as "+string(i.Role), "invited as %s, not as %s", i.Role, role)
	}
	return i, nil
}

func (s *step) checkProof(b Join) error {
	key, err := goodKey("invitation", b.Invitation)
	if err != nil {
		return err
	}
	payload := ProofPayload(s.ctx.Genesis, s.action.Actor, b.Role, b.PBFTKey, b.AttestKey)
	if err := key.VerifyDetached(sign.TypInvitation, payload, b.Proof); err != nil {
		return machine.Refuse(machine.CodeBadSignature, "sign {cluster, node, role, pbft_key, attest_key} with the invitation's key, typ "+sign.TypInvitation, "proof: %v", err)
	}
	return nil
}

// checkJoinKeys wants three good, distinct keys that nobody has or had.
func (s *step) checkJoinKeys(identity sign.PublicKey, b Join) error {
	pbft, err := goodKey("pbft_key", b.PBFTKey)
	if err != nil {
		return err
	}
	attest, err := goodKey("attest_key", b.AttestKey)
	if err != nil {
		return err
	}
	seen := keySet{}
	for _, k := range []sign.PublicKey{identity, pbft, attest} {
		if taken, err := s.keyTaken(k); err != nil || taken || !seen.add(k) {
			return orInUse(err, k.X())
		}
	}
	return nil
}

// ready makes a joining node a voter; it begins an epoch.
func (s *step) ready() (any, error) {
	if _, err := decode[Ready](s.action.Body); err != nil {
		return nil, err
	}
	n, err := s.acting()
	if err != nil {
		return nil, err
	}
	switch n.Role {
	case RoleVoter:
		return nil, machine.Refuse(CodeAlreadyMember, "nothing is left to do", "%s is a voter", n.Node)
	case RoleObserver:
		return nil, machine.Refuse(machine.CodeNotAuthorized, "have operators invite a new node as voter", "%s was invited as observer", n.Node)
	}
	e, err := s.current()
	if err != nil {
		return nil, err
	}
	if len(e.Voters) >= MaxVoters {
		return nil, machine.Refuse(CodeTooManyVoters, "remove a voter first", "there are %d voters, as many as a cluster may have", len(e.Voters))
	}
	n.Role = RoleVoter
	if err := s.saveNode(n); err != nil {
		return nil, err
	}
	return s.beginEpoch(e, append(e.Voters, n.voter()))
}

// beginEpoch starts the epoch after last with other voters.
func (s *step) beginEpoch(last *epochRecord, voters []Voter) (VotersChanged, error) {
	sortVoters(voters)
	e := &epochRecord{Epoch: last.Epoch + 1, Seq: s.ctx.Seq, Since: s.ctx.Now, Voters: voters}
	n := len(voters)
	data := VotersChanged{Epoch: e.Epoch, N: n, F: Faults(n), Quorum: Quorum(n), Voters: voters}
	s.emit("cluster.voters_changed", fmt.Sprint(e.Epoch), data)
	return data, s.saveEpoch(e)
}

func (s *step) address() (any, error) {
	b, err := decode[Address](s.action.Body)
	if err != nil {
		return nil, err
	}
	n, err := s.acting()
	if err != nil {
		return nil, err
	}
	n.Addrs = b.Addrs
	data := AddressChanged{Node: n.Node, Addrs: b.Addrs}
	s.emit("cluster.address_changed", n.Node, data)
	return data, s.saveNode(n)
}

// acting is the acting node, which must be a member.
func (s *step) acting() (*Node, error) {
	n, err := s.node(s.action.Actor)
	if err != nil {
		return nil, err
	}
	if n == nil {
		return nil, machine.Refuse(CodeNotMember, "join with an invitation first", "%s is no member", s.action.Actor)
	}
	if n.Role == RoleRemoved {
		return nil, machine.Refuse(CodeRemoved, "start with a fresh data directory and identity", "%s has been removed", n.Node)
	}
	return n, nil
}
