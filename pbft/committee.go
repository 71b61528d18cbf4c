package pbft

import (
	"encoding/binary"
	"fmt"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft/internal/simkey"
	"github.com/deliberd/deliberd/pbft/quorum"
)

// MaxMembers is the largest committee.
const MaxMembers = 256

// Observer is the place of a replica that has no seat: it follows and never votes.
const Observer = -1

// Committee is the voters of one epoch with their keys ready to verify. It is
// immutable and safe for concurrent use.
type Committee struct {
	epoch uint64
	nodes []string
	keys  []sign.NodeKey
	f, q  int
	ring  *simkey.Ring // in simulations, instead of keys
}

// NewCommittee checks and prepares a committee: members ascending by node
// without duplicates, keys of large order, no two keys usable with one private
// scalar: equal up to a point of small order and the sign. It refuses with bad_committee.
func NewCommittee(c machine.Committee) (*Committee, error) {
	n := c.N()
	if n < 1 || n > MaxMembers {
		return nil, machine.Refuse(CodeBadCommittee, "", "a committee has 1 to %d members, got %d", MaxMembers, n)
	}
	out := &Committee{epoch: c.Epoch, f: quorum.F(n), q: quorum.Q(n)}
	seen := make(map[[32]byte]string, n)
	for i, m := range c.Members {
		if i > 0 && out.nodes[i-1] >= m.Node {
			return nil, machine.Refuse(CodeBadCommittee, "list members ascending by node, each once", "member %q is out of order", m.Node)
		}
		key, err := sign.NewNodeKey(m.Key)
		if err != nil {
			return nil, machine.Refuse(CodeBadCommittee, "give the member another key", "member %q: %v", m.Node, err)
		}
		class := key.Class()
		class[31] &= 0x7f // the key of scalar −a is at hand for whoever holds a
		if other, dup := seen[class]; dup {
			return nil, machine.Refuse(CodeBadCommittee, "give each member its own key", "members %q and %q share a key", other, m.Node)
		}
		seen[class] = m.Node
		out.nodes, out.keys = append(out.nodes, m.Node), append(out.keys, key)
	}
	return out, nil
}

// NewSimulatedCommittee is a committee for package sim, which signs by a cheap
// keyed hash. Only code inside pbft can make a ring.
func NewSimulatedCommittee(epoch uint64, ring *simkey.Ring) *Committee {
	n := ring.N()
	c := &Committee{epoch: epoch, f: quorum.F(n), q: quorum.Q(n), ring: ring}
	for i := range n {
		c.nodes = append(c.nodes, fmt.Sprintf("node%03d", i))
	}
	c.keys = make([]sign.NodeKey, n)
	return c
}

// signed reports whether a member signed a message.
func (c *Committee) signed(member int, message []byte, s *Signature) bool {
	if c.ring != nil {
		return c.ring.Verify(member, message, s[:])
	}
	return c.keys[member].Verify(message, s[:])
}

// Epoch is the voter epoch of the committee.
func (c *Committee) Epoch() uint64 { return c.epoch }

// N is the number of members.
func (c *Committee) N() int { return len(c.nodes) }

// F is how many Byzantine members are tolerated.
func (c *Committee) F() int { return c.f }

// Q is the number of members in a quorum.
func (c *Committee) Q() int { return c.q }

// Node is the peer id of a member by its index.
func (c *Committee) Node(i int) string { return c.nodes[i] }

// Key is the public key of a member by its index.
func (c *Committee) Key(i int) [32]byte { return c.keys[i].Bytes() }

// Index is the seat of a node, or [Observer].
func (c *Committee) Index(node string) int {
	for i, n := range c.nodes {
		if n == node {
			return i
		}
	}
	return Observer
}

// Primary is the index of the member that proposes in a view of the instance
// with this key: round robin from a start that the key chooses.
func (c *Committee) Primary(key Digest, view uint64) int {
	n := uint64(len(c.nodes))
	return int((binary.BigEndian.Uint64(key[:8])%n + view%n) % n)
}
