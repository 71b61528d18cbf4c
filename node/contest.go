package node

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"time"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

// submitStep spaces the nodes that hand in the same certificate: the first
// at once, each further one this much later if the round is still open.
const submitStep = 300 * time.Millisecond

// contest takes part in the PBFT instance of a frozen round. Its only valid
// value is the digest of the round's outcome and the checkpoint of its freeze.
func (n *Node) contest(r deliberation.FrozenRound) error {
	var committee machine.Committee
	var at machine.Checkpoint
	known := false
	err := n.store.View(func(tx machine.Tx) error {
		_, ctx, err := n.fsm.View(tx, deliberation.Name)
		if err != nil {
			return err
		}
		if committee, known, err = ctx.World.Committee(r.Epoch); err != nil || !known {
			return err
		}
		at, known, err = ctx.World.Checkpoint(r.Seq)
		return err
	})
	if err != nil || !known {
		return err
	}
	seated := slices.ContainsFunc(committee.Members, func(m machine.Member) bool { return m.Node == n.keys.ID() })
	if n.bft == nil || !seated {
		return nil
	}
	digest := deliberation.CertDigest(n.cluster, r.Generation, r.Epoch, r.Round, r.OutcomeHash, at)
	return n.bft.StartInstance(n.instance(r.Round, r.Generation, r.Epoch), committee, digest)
}

func (n *Node) instance(round string, generation, epoch uint64) pbft.Instance {
	return pbft.Instance{Protocol: pbft.Protocol, Genesis: n.cluster, Generation: generation, Epoch: epoch, Purpose: deliberation.Purpose, ID: round}
}

// contestAll takes part in every frozen round of the state, after a restart or
// when the state has been fetched, and forgets those that ended meanwhile.
func (n *Node) contestAll() error {
	var begun []pbft.Instance // before the state is read: each was frozen in it
	if n.bft != nil {
		begun = n.bft.Instances()
	}
	var frozen []deliberation.FrozenRound
	err := n.store.View(func(tx machine.Tx) error {
		own, _, err := n.fsm.View(tx, deliberation.Name)
		if err != nil {
			return err
		}
		frozen, err = deliberation.Frozen(own)
		return err
	})
	if errors.Is(err, fsm.ErrNoGenesis) {
		return nil
	}
	for _, in := range begun {
		if !slices.ContainsFunc(frozen, func(r deliberation.FrozenRound) bool { return n.instance(r.Round, r.Generation, r.Epoch) == in }) {
			n.bft.Forget(in)
		}
	}
	for _, r := range frozen {
		if err := n.contest(r); err != nil { // this round's own trouble: the others go on
			n.log.Error("taking part in a contested round failed", "round", r.Round, "err", err)
		}
	}
	return err
}

// heard follows one record of the decision log.
func (n *Node) heard(r fsm.Record) {
	switch r.Type {
	case "deliberatic.frozen":
		var e deliberation.FrozenEvent
		if err := json.Unmarshal(r.Data, &e); err != nil {
			n.log.Error("unreadable event", "type", r.Type, "err", err)
			return
		}
		frozen := deliberation.FrozenRound{Round: e.Round, Freeze: deliberation.Freeze{Generation: e.Generation, Epoch: e.Epoch, Seq: e.Seq, OutcomeHash: e.OutcomeHash}}
		if err := n.contest(frozen); err != nil {
			n.log.Error("taking part in a contested round failed", "round", e.Round, "err", err)
		}
	case "deliberatic.certified":
		var e deliberation.CertifiedEvent
		if err := json.Unmarshal(r.Data, &e); err == nil && n.bft != nil {
			n.bft.Forget(n.instance(e.Round, e.Certificate.Generation, e.Certificate.Epoch))
		}
	}
}

// certified hands a certificate in as an action. Every holder does, so that
// no single node can withhold it; they take turns so that one usually does.
func (n *Node) certified(instance pbft.Instance, cert *pbft.Certificate) {
	n.wg.Go(func() {
		turn := time.Duration(n.rank()) * submitStep
		for {
			if pause(n.ctx, turn) != nil || !n.waits(instance.ID) {
				return
			}
			ctx, cancel := context.WithTimeout(n.ctx, 20*time.Second)
			err := n.handIn(ctx, instance.ID, cert)
			cancel()
			if err == nil {
				return
			}
			if !unavailable(err) {
				n.log.Warn("a certificate was refused", "round", instance.ID, "err", err)
				return
			}
			turn = submitStep
		}
	})
}

func (n *Node) handIn(ctx context.Context, round string, cert *pbft.Certificate) error {
	text, err := json.Marshal(cert)
	if err != nil {
		return err
	}
	return n.act(ctx, "deliberatic.certify", deliberation.CertifyBody{Round: round, Certificate: text})
}

// rank is this node's turn: the leader first, then by distance in the list of voters.
func (n *Node) rank() int {
	c, leader := n.circle.Load(), n.path.Status().Leader
	if leader == n.keys.ID() {
		return 0
	}
	rank := 1
	for _, id := range c.voters {
		if id == n.keys.ID() {
			break
		}
		if id != leader {
			rank++
		}
	}
	return rank
}

// waits reports whether the round still waits for a certificate here.
func (n *Node) waits(round string) bool {
	found := false
	err := n.store.View(func(tx machine.Tx) error {
		own, _, err := n.fsm.View(tx, deliberation.Name)
		if err != nil {
			return err
		}
		frozen, err := deliberation.Frozen(own)
		for _, f := range frozen {
			found = found || f.Round == round
		}
		return err
	})
	return err != nil || found
}
