package membership

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// keyOf is a key made from a name.
func keyOf(t testing.TB, name string) sign.Key {
	t.Helper()
	seed := canon.Hash([]byte("membership test " + name))
	k, err := sign.KeyFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// nodeID is the peer id of the node with this name.
func nodeID(t testing.TB, name string) string { return keyOf(t, name).Public().PeerID() }

// founding is an unsigned genesis: voters lists the operator of each.
func founding(t testing.TB, operators int, voters ...int) Genesis {
	t.Helper()
	g := Genesis{V: 1, Name: "test", CreatedAt: "2026-11-03T09:00:00.000Z", Nonce: "AAAAAAAAAAAAAAAAAAAAAA", Params: DefaultParameters()}
	for i := range operators {
		id := fmt.Sprintf("op%d", i)
		g.Operators = append(g.Operators, Operator{ID: id, JWK: keyOf(t, id).Public().JWK()})
	}
	for i, op := range voters {
		name := fmt.Sprintf("node%d", i)
		g.Voters = append(g.Voters, Voter{
			Node: nodeID(t, name), Operator: fmt.Sprintf("op%d", op),
			PBFTKey: keyOf(t, name+" pbft").Public().X(), AttestKey: keyOf(t, name+" attest").Public().X(),
			Addrs: []string{fmt.Sprintf("/ip4/10.0.0.%d/tcp/7701", i+1)},
		})
	}
	return g
}

func signed(t testing.TB, g Genesis) Genesis {
	t.Helper()
	for _, o := range g.Operators {
		if err := g.SignBy(keyOf(t, o.ID)); err != nil {
			t.Fatal(err)
		}
	}
	return g
}

// cluster is a bench whose state begins with a genesis.
type cluster struct {
	*machinetest.Bench
	t testing.TB
}

func newCluster(t testing.TB, operators int, voters ...int) cluster {
	t.Helper()
	b := machinetest.New(t, New())
	if err := Init(b.Tx, signed(t, founding(t, operators, voters...))); err != nil {
		t.Fatal(err)
	}
	c := cluster{b, t}
	for i := range operators {
		b.Use(fmt.Sprintf("op%d", i), keyOf(t, fmt.Sprintf("op%d", i)))
	}
	for i := range voters {
		c.own(fmt.Sprintf("node%d", i))
	}
	return c
}

// own lets a node sign with its identity key, and returns its id.
func (c cluster) own(name string) string {
	k := keyOf(c.t, name)
	c.Use(k.Public().PeerID(), k)
	return k.Public().PeerID()
}

// invite asks for an invitation and returns what the invited node gets.
func (c cluster) invite(operator, name string, role Role) (Invitation, InvitationView) {
	c.t.Helper()
	key := keyOf(c.t, "invitation "+name)
	var v InvitationView
	c.decode(c.Must(operator, KindInvite, Invite{Key: key.Public().X(), Role: role, ExpiresInMS: 60_000}), &v)
	return c.invitation(name, role), v
}

func (c cluster) invitation(name string, role Role) Invitation {
	seed := keyOf(c.t, "invitation "+name).Seed()
	return Invitation{Genesis: machinetest.Genesis, Seed: base64.RawURLEncoding.EncodeToString(seed), Role: role, ExpiresMS: 1, Addrs: []string{"/ip4/10.0.0.1/tcp/1"}}
}

// joinBody is the body by which the node called name uses an invitation.
func (c cluster) joinBody(i Invitation, name string) Join {
	c.t.Helper()
	c.own(name)
	b, err := i.Join(keyOf(c.t, name).Public(), keyOf(c.t, name+" pbft").Public(), keyOf(c.t, name+" attest").Public(), []string{"/ip4/10.1.0.1/tcp/7701"})
	if err != nil {
		c.t.Fatal(err)
	}
	return b
}

// join invites and joins a node; where approvals are wanted, everybody gives them.
func (c cluster) join(operator, name string, role Role) string {
	c.t.Helper()
	i, v := c.invite(operator, name, role)
	for n := 0; v.State == PendingApproval; n++ {
		if op := fmt.Sprintf("op%d", n); op != operator {
			var a ApprovedData
			c.decode(c.Must(op, KindApprove, Approve{Change: v.Change}), &a)
			if a.Done {
				break
			}
		}
	}
	id := c.own(name)
	c.Must(id, KindJoin, c.joinBody(i, name))
	return id
}

func (c cluster) decode(raw json.RawMessage, v any) {
	c.t.Helper()
	if err := canon.Decode(raw, v); err != nil {
		c.t.Fatal(err)
	}
}

// events lists the types of the events since n.
func (c cluster) events(n int) []string {
	var out []string
	for _, e := range c.Events[n:] {
		out = append(out, e.Type)
	}
	return out
}

func (c cluster) epoch() uint64 {
	c.t.Helper()
	n, err := Epoch(c.Tx)
	if err != nil {
		c.t.Fatal(err)
	}
	return n
}

func code(err error) string {
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return fmt.Sprint(err)
}
