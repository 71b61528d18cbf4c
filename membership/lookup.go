package membership

import (
	"fmt"
	"slices"
	"strings"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Init writes a checked genesis into empty state: epoch 1 and its voters. It
// errs with the refusal of [Genesis.Check].
func Init(tx machine.Tx, g Genesis) error {
	if err := g.Check(); err != nil {
		return err
	}
	s := state{tx}
	if err := tx.Put([]byte(keyGenesis), g.Encode()); err != nil {
		return err
	}
	if err := s.putUint(keyVersion, FSMVersion1); err != nil {
		return err
	}
	for _, o := range g.Operators {
		key, err := o.JWK.Public()
		if err != nil {
			return err
		}
		if err := s.takeKey(key); err != nil {
			return err
		}
		if err := s.save(prefixOperator+o.ID, o); err != nil {
			return err
		}
	}
	first := epochRecord{Epoch: 1}
	for _, v := range g.Voters {
		n := Node{Node: v.Node, Operator: v.Operator, Role: RoleVoter, PBFTKey: v.PBFTKey, AttestKey: v.AttestKey, Addrs: v.Addrs}
		if err := s.admit(&n); err != nil {
			return err
		}
		first.Voters = append(first.Voters, n.voter())
	}
	sortVoters(first.Voters)
	return s.saveEpoch(&first)
}

// admit saves a new node and takes its keys.
func (s state) admit(n *Node) error {
	identity, err := NodeKey(n.Node)
	if err != nil {
		return err
	}
	if err := s.takeKey(identity); err != nil {
		return err
	}
	for _, x := range []string{n.PBFTKey, n.AttestKey} {
		key, err := sign.ParseX(x)
		if err != nil {
			return err
		}
		if err := s.takeKey(key); err != nil {
			return err
		}
	}
	return s.saveNode(n)
}

func sortVoters(voters []Voter) {
	slices.SortFunc(voters, func(a, b Voter) int { return strings.Compare(a.Node, b.Node) })
}

// Epoch is the current epoch, 1 at genesis. It errs on state without genesis.
func Epoch(tx machine.Tx) (uint64, error) { return state{tx}.uint(keyEpoch) }

// FSMVersion is the version of the state machine in force.
func FSMVersion(tx machine.Tx) (uint64, error) { return state{tx}.uint(keyVersion) }

// Committee is the voters of an epoch with their PBFT keys, ascending by
// node; ok is false for an epoch that has not begun.
func Committee(tx machine.Tx, epoch uint64) (c machine.Committee, ok bool, err error) {
	e, err := machine.Load[epochRecord](tx, epochKey(epoch))
	if err != nil || e == nil {
		return machine.Committee{}, false, err
	}
	c = machine.Committee{Epoch: e.Epoch, Members: make([]machine.Member, len(e.Voters))}
	for i, v := range e.Voters {
		key, err := sign.RawX(v.PBFTKey) // checked when the node was admitted
		if err != nil {
			return machine.Committee{}, false, fmt.Errorf("membership: epoch %d is damaged: %w", epoch, err)
		}
		c.Members[i] = machine.Member{Node: v.Node, Key: key}
	}
	return c, true, nil
}

// VotersOf is the voters of an epoch with all their keys, ascending by node,
// without addresses; ok is false for an epoch that has not begun.
func VotersOf(tx machine.Tx, epoch uint64) (voters []Voter, ok bool, err error) {
	e, err := machine.Load[epochRecord](tx, epochKey(epoch))
	if err != nil || e == nil {
		return nil, false, err
	}
	return e.Voters, true, nil
}

// Voters lists the current voters' peer ids, ascending: the servers that Raft
// should have.
func Voters(tx machine.Tx) ([]string, error) {
	e, err := state{tx}.current()
	if err != nil {
		return nil, err
	}
	out := make([]string, len(e.Voters))
	for i, v := range e.Voters {
		out[i] = v.Node
	}
	return out, nil
}

// Members lists voters, joining nodes and observers, ascending by peer id.
func Members(tx machine.Tx) ([]Node, error) {
	return nodes(tx, func(r Role) bool { return r != RoleRemoved })
}

// Removed lists the nodes that have been removed, ascending by peer id.
func Removed(tx machine.Tx) ([]Node, error) {
	return nodes(tx, func(r Role) bool { return r == RoleRemoved })
}

func nodes(tx machine.Tx, want func(Role) bool) ([]Node, error) {
	out := []Node{}
	err := machine.EachRecord(tx, prefixNode, "", func(_ string, n *Node) (bool, error) {
		if want(n.Role) {
			out = append(out, *n)
		}
		return true, nil
	})
	return out, err
}

// MemberOf finds one node, removed ones too; ok is false when the id is unknown.
func MemberOf(tx machine.Tx, peerID string) (n Node, ok bool, err error) {
	r, err := state{tx}.node(peerID)
	if err != nil || r == nil {
		return Node{}, false, err
	}
	return *r, true, nil
}

// Lookup finds a node as a principal; ok is false when the id is unknown. A
// removed node is inactive.
func Lookup(tx machine.Tx, peerID string) (p machine.Principal, ok bool, err error) {
	n, err := state{tx}.node(peerID)
	if err != nil || n == nil {
		return machine.Principal{}, false, err
	}
	return machine.Principal{ID: n.Node, Kind: machine.Node, Operator: n.Operator, Active: n.Role != RoleRemoved}, true, nil
}

// OpenInvitations lists the invitations that can be used, by key. A node that
// is about to join connects under the peer id of the invitation's key, so
// these are the strangers a member lets in. Entries whose ExpiresMS has passed
// stay until the next entry of the log.
func OpenInvitations(tx machine.Tx) ([]InvitationView, error) {
	return state{tx}.invitations(func(i *invitationRecord) bool { return i.State == Open })
}

// Founding is the genesis this state began with.
func Founding(tx machine.Tx) (Genesis, error) {
	raw, err := tx.Get([]byte(keyGenesis))
	if err != nil {
		return Genesis{}, err
	}
	return ParseGenesis(raw)
}

// Params is the parameters fixed by the genesis.
func Params(tx machine.Tx) (Parameters, error) {
	g, err := Founding(tx)
	return g.Params, err
}
