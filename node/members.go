package node

import (
	"context"
	"maps"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/raftpath"
)

// circle is who a node talks to: members, and strangers with an open
// invitation. It is rebuilt from the state whenever membership has changed.
type circle struct {
	members []membership.Node
	voters  []string
	self    membership.Role // empty: not a member (any more)
	epoch   uint64
	admit   map[string]bool
	removed map[string]bool // who were members and never will be again
}

// admitted answers package p2p for every connection.
func (n *Node) admitted(id string) bool {
	c := n.circle.Load()
	return c != nil && c.admit[id] || n.guests.has(id)
}

// dismissed answers package p2p for those who are not admitted: who has been
// removed may hear that.
func (n *Node) dismissed(id string) bool {
	c := n.circle.Load()
	return c != nil && c.removed[id]
}

// farewell is how long somebody who has just lost the right to connect may
// stay: long enough to hear why.
const farewell = 10 * time.Second

// guests are strangers being welcomed, and members just removed. Using an
// invitation takes away the right to connect under it, and would cut off the
// answer; a removed node should apply its own removal.
type guests struct {
	mu    sync.Mutex
	until map[string]time.Time
}

func (g *guests) add(id string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.until == nil {
		g.until = map[string]time.Time{}
	}
	now := time.Now()
	maps.DeleteFunc(g.until, func(_ string, until time.Time) bool { return until.Before(now) })
	g.until[id] = now.Add(farewell)
}

func (g *guests) has(id string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	return time.Now().Before(g.until[id])
}

// firstCircle is the circle before there is any state: the founders, or the
// members that welcomed this node.
func (n *Node) firstCircle(peers []knownPeer) *circle {
	c := &circle{admit: map[string]bool{}}
	for _, v := range n.genesis.Voters {
		c.admit[v.Node] = true
		c.voters = append(c.voters, v.Node)
		c.members = append(c.members, membership.Node{Node: v.Node, Role: membership.RoleVoter, Addrs: v.Addrs})
	}
	for _, p := range peers {
		c.admit[p.ID] = true
		c.members = append(c.members, membership.Node{Node: p.ID, Role: membership.RoleVoter, Addrs: p.Addrs})
	}
	return c
}

// readCircle reads the circle from the state.
func (n *Node) readCircle(tx machine.Tx) (*circle, error) {
	own, _, err := n.fsm.View(tx, membership.Name)
	if err != nil {
		return nil, err
	}
	c := &circle{admit: map[string]bool{}, removed: map[string]bool{}}
	if c.members, err = membership.Members(own); err != nil {
		return nil, err
	}
	for _, m := range c.members {
		c.admit[m.Node] = true
		if m.Node == n.keys.ID() {
			c.self = m.Role
		}
	}
	gone, err := membership.Removed(own)
	if err != nil {
		return nil, err
	}
	for _, m := range gone {
		c.removed[m.Node] = true
	}
	if c.voters, err = membership.Voters(own); err != nil {
		return nil, err
	}
	if c.epoch, err = membership.Epoch(own); err != nil {
		return nil, err
	}
	open, err := membership.OpenInvitations(own)
	for _, inv := range open {
		if key, err := sign.ParseX(inv.Key); err == nil {
			c.admit[key.PeerID()] = true
		}
	}
	return c, err
}

// useCircle makes a circle the one in force: who may connect, where to find
// them, and which voters Raft should have.
func (n *Node) useCircle(c *circle) {
	if old := n.circle.Swap(c); old != nil {
		n.sayFarewell(old, c)
	}
	for _, m := range c.members {
		if m.Node == n.keys.ID() {
			continue
		}
		if len(m.Addrs) > 0 {
			if err := n.host.SetAddrs(m.Node, m.Addrs); err != nil {
				n.log.Warn("a member's address is unusable", "node", m.Node, "err", err)
			}
		}
		n.host.Protect(m.Node)
	}
	n.host.Refresh()
	if n.path != nil && c.epoch > 0 {
		n.path.Reconcile(c.voters)
	}
}

// sayFarewell lets those who were members a moment ago hear that they are not
// any more, and stops this node if it is one of them.
func (n *Node) sayFarewell(old, now *circle) {
	if now.epoch == 0 {
		return
	}
	for _, m := range old.members {
		if !now.admit[m.Node] {
			n.guests.add(m.Node)
		}
	}
	if old.self != "" && now.self == "" {
		n.fail(removedRefusal())
	}
}

func removedRefusal() error {
	return machine.Refuse(raftpath.CodeRemoved, "a removed node needs a new data folder and an invitation", "this node is no longer a member")
}

// refreshCircle reads the circle again after membership has changed.
func (n *Node) refreshCircle() {
	var c *circle
	err := n.store.View(func(tx machine.Tx) (err error) {
		c, err = n.readCircle(tx)
		return err
	})
	if err != nil {
		n.log.Error("reading the members failed", "err", err)
		return
	}
	n.useCircle(c)
	select {
	case n.duty <- struct{}{}:
	default:
	}
}

// peersToAsk lists the members that a node without Raft may ask, voters first.
func (n *Node) peersToAsk() []string {
	c := n.circle.Load()
	out := slices.Clone(c.voters)
	for _, m := range c.members {
		if !slices.Contains(out, m.Node) {
			out = append(out, m.Node)
		}
	}
	return slices.DeleteFunc(out, func(id string) bool { return id == n.keys.ID() })
}

// announced are the addresses that others should find this node at.
func (n *Node) announced() []string {
	if len(n.cfg.Announce) > 0 {
		return n.cfg.Announce
	}
	return n.host.Addrs()
}

// duties does what a node owes the cluster on its own account: tell its
// address when it has changed, and say that it is ready to vote once it has
// caught up. Both are actions; they are repeated until they show in the state.
func (n *Node) duties(ctx context.Context) {
	retry := time.NewTicker(time.Second)
	defer retry.Stop()
	for {
		n.host.Refresh() // whose farewell is over
		if err := n.markRaft(); err != nil {
			n.log.Error("marking that Raft runs here failed", "err", err)
		}
		if err := n.doDuties(ctx); err != nil && ctx.Err() == nil {
			n.log.Info("will try again", "err", err)
		}
		select {
		case <-ctx.Done():
			return
		case <-n.duty:
		case <-retry.C:
		}
	}
}

func (n *Node) doDuties(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	c := n.circle.Load()
	if c.self == "" || c.epoch == 0 {
		return nil
	}
	for _, m := range c.members {
		if m.Node == n.keys.ID() && !slices.Equal(m.Addrs, n.announced()) {
			if err := n.act(ctx, "cluster.address", membership.Address{Addrs: n.announced()}); err != nil {
				return err
			}
		}
	}
	if c.self == membership.RoleJoining && n.path.Status().CaughtUp {
		return n.act(ctx, "cluster.ready", membership.Ready{})
	}
	return nil
}

// act sends an action of the node's own.
func (n *Node) act(ctx context.Context, kind string, body any) error {
	a, err := n.keys.Identity.Sign(n.cluster, n.newID(), kind, n.keys.ID(), body)
	if err != nil {
		return err
	}
	text, err := a.Encode()
	if err != nil {
		return err
	}
	_, err = n.order(ctx, text)
	return err
}

// changesMembers reports whether a record may have changed the circle.
func changesMembers(r fsm.Record) bool {
	return len(r.Type) > len(membership.Name) && r.Type[:len(membership.Name)+1] == membership.Name+"."
}

type circlePointer = atomic.Pointer[circle]
