package node

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/pbft"
	"github.com/deliberd/deliberd/raftpath"
)

var _ api.Backend = (*Node)(nil)

// Submit implements api.Backend: it refuses at the door what apply would
// refuse for its signature or sender, then orders the action and waits until
// this node has applied it.
func (n *Node) Submit(ctx context.Context, action []byte) (api.Answer, error) {
	text, u, err := wellFormed(action)
	if err != nil {
		return api.Answer{}, err
	}
	if err := n.authentic(ctx, u); err != nil {
		return api.Answer{}, err
	}
	return n.order(ctx, text)
}

// order submits canonical text and decodes the answer.
func (n *Node) order(ctx context.Context, text []byte) (api.Answer, error) {
	raw, _, err := n.path.Submit(ctx, text)
	if err != nil {
		return api.Answer{}, err
	}
	var answer fsm.Answer
	if err := json.Unmarshal(raw, &answer); err != nil {
		return api.Answer{}, fmt.Errorf("answer: %w", err)
	}
	if answer.Refusal != nil {
		return api.Answer{}, answer.Refusal
	}
	return api.Answer{Seq: answer.Seq, StampMS: answer.Stamp, ActionID: answer.ActionID, Result: answer.Result, Finality: api.Ordered}, nil
}

// wellFormed reads an action in any spelling and gives it its canonical one.
func wellFormed(action []byte) ([]byte, sign.Unverified, error) {
	text, err := canon.Canonicalize(action)
	if err == nil {
		var u sign.Unverified
		if u, err = sign.Read(text); err == nil {
			return text, u, nil
		}
	}
	code := machine.CodeMalformed
	var bad *canon.Error
	if errors.As(err, &bad) {
		code = string(bad.Code)
	}
	return nil, sign.Unverified{}, machine.Refuse(code, "send the action as it was signed: {actor, body, cluster, id, kid, kind, sig, v}", "not a signed action: %v", err)
}

// authentic checks the signature. An actor or key that this node does not
// know may have been registered a moment ago: it looks again after catching up.
func (n *Node) authentic(ctx context.Context, u sign.Unverified) error {
	a := u.Action()
	if a.Cluster != n.cluster {
		return machine.Refuse(machine.CodeWrongCluster, "sign for this cluster's id", "the action is for cluster %.12s…, this is %.12s…", a.Cluster, n.cluster)
	}
	key, err := n.Key(ctx, a.Actor, a.KID)
	if _, refused := machine.IsRefusal(err); refused {
		if err := n.path.ReadIndex(ctx); err != nil {
			return err
		}
		key, err = n.Key(ctx, a.Actor, a.KID)
	}
	if err != nil {
		return err
	}
	if _, err := n.verifier.verify(u, key); err != nil {
		return machine.Refuse(machine.CodeBadSignature, "sign the canonical JSON of the action without sig", "%v", err)
	}
	return nil
}

// Key implements api.Backend.
func (n *Node) Key(_ context.Context, actor, kid string) (key sign.PublicKey, err error) {
	err = n.store.View(func(tx machine.Tx) error {
		key, err = n.fsm.Key(tx, actor, kid)
		return err
	})
	return key, err
}

// Query implements api.Backend.
func (n *Node) Query(ctx context.Context, name, principal string, params json.RawMessage, stale bool) (out json.RawMessage, err error) {
	err = n.read(ctx, stale, func(tx machine.Tx) error {
		out, err = n.fsm.Query(tx, name, principal, params)
		return err
	})
	return out, err
}

// Asks implements api.Backend.
func (n *Node) Asks(ctx context.Context, principal string, stale bool) (asks []machine.Ask, err error) {
	err = n.read(ctx, stale, func(tx machine.Tx) error {
		asks, err = n.fsm.Asks(tx, principal)
		return err
	})
	return asks, err
}

// read runs f on committed state, after a linearizable barrier unless stale.
func (n *Node) read(ctx context.Context, stale bool, f func(machine.Tx) error) error {
	if !stale {
		if err := n.path.ReadIndex(ctx); err != nil {
			return err
		}
	}
	return n.store.View(f)
}

// Kinds implements api.Backend.
func (n *Node) Kinds() []machine.Kind { return n.fsm.Kinds() }

// Queries implements api.Backend.
func (n *Node) Queries() []machine.Query { return n.fsm.Queries() }

// Subscribe implements api.Backend.
func (n *Node) Subscribe(_ context.Context, since uint64) (api.Stream, error) {
	return n.feed.subscribe(since), nil
}

// Status implements api.Backend.
func (n *Node) Status(context.Context) (api.Status, error) {
	raft := n.path.Status()
	st := api.Status{
		NodeID: n.keys.ID(), ClusterID: n.cluster, Role: string(raft.Role), Leader: raft.Leader, Term: raft.Term,
		Generation: raft.Generation, AppliedIndex: raft.Index, Ready: raft.CaughtUp && raft.Fatal == nil, Version: Version,
	}
	err := n.store.View(func(tx machine.Tx) error {
		head, err := fsm.ReadHead(tx)
		if errors.Is(err, fsm.ErrNoGenesis) {
			st.Role, st.Ready = string(membership.RoleJoining), false
			return nil
		}
		if err != nil {
			return err
		}
		st.DecisionLog = api.DecisionLog{Size: head.Size, Root: head.Root}
		own, _, err := n.fsm.View(tx, membership.Name)
		if err != nil {
			return err
		}
		if st.Epoch, err = membership.Epoch(own); err != nil {
			return err
		}
		st.Voters, err = membership.Voters(own)
		st.ByzantineTolerance = membership.Faults(len(st.Voters))
		if m, ok, err := membership.MemberOf(own, st.NodeID); err == nil && ok && m.Role != membership.RoleVoter {
			st.Role = string(m.Role)
		}
		return err
	})
	if err != nil {
		return st, err
	}
	st.Guilty, err = n.guilty()
	return st, err
}

// guilty are the ids of the nodes against which this node holds proof, ascending.
func (n *Node) guilty() ([]string, error) {
	proofs, err := n.Guilt(context.Background())
	ids := make([]string, len(proofs))
	for i, g := range proofs {
		ids[i] = g.NodeID
	}
	slices.Sort(ids)
	return slices.Compact(ids), err
}

// Guilt implements api.Backend.
func (n *Node) Guilt(context.Context) ([]api.Guilt, error) {
	out := []api.Guilt{}
	if n.bft == nil {
		return out, nil
	}
	proofs := slices.DeleteFunc(n.bft.Guilt(), func(g pbft.Guilt) bool { return g.Instance.Genesis != n.cluster })
	if len(proofs) == 0 {
		return out, nil
	}
	err := n.store.View(func(tx machine.Tx) error {
		own, _, err := n.fsm.View(tx, membership.Name)
		if err != nil {
			return err
		}
		for _, g := range proofs {
			c, ok, err := membership.Committee(own, g.Instance.Epoch)
			if err != nil {
				return err
			}
			if !ok {
				continue // a node that lost its state and catches up does not know the epoch yet
			}
			committee, err := pbft.NewCommittee(c)
			if err != nil {
				return err
			}
			if g.Verify(committee) == nil { // whatever the disk says
				out = append(out, api.Guilt{NodeID: committee.Node(g.Signer()), Proof: g})
			}
		}
		return nil
	})
	if errors.Is(err, fsm.ErrNoGenesis) {
		err = nil
	}
	return out, err
}

// Peers implements api.Backend.
func (n *Node) Peers(context.Context) (peers []api.Peer, err error) {
	raft := n.path.Status()
	connected := map[string]bool{}
	for _, id := range n.host.Connected() {
		connected[id] = true
	}
	err = n.store.View(func(tx machine.Tx) error {
		own, _, err := n.fsm.View(tx, membership.Name)
		if err != nil {
			return err
		}
		members, err := membership.Members(own)
		for _, m := range members {
			self := m.Node == n.keys.ID()
			peers = append(peers, api.Peer{NodeID: m.Node, Operator: m.Operator, Role: string(m.Role), Leader: m.Node == raft.Leader,
				Self: self, Connected: self || connected[m.Node], Addresses: m.Addrs})
		}
		return err
	})
	return peers, err
}

// unavailable reports whether an error says that the cluster cannot answer
// now, so that trying again makes sense.
func unavailable(err error) bool {
	r, ok := machine.IsRefusal(err)
	if !ok {
		return err != nil
	}
	switch r.Code {
	case raftpath.CodeNoLeader, raftpath.CodeUnavailable, raftpath.CodeNotLeader, raftpath.CodeNotReady, raftpath.CodeBusy:
		return true
	}
	return false
}
