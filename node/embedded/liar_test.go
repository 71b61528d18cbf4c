package embedded_test

import (
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/pbft"
)

// liar holds the keys of a node that is down, and speaks for it.
type liar struct {
	*lab
	keys node.Keys
	host *p2p.Host
}

func (l *lab) impersonate(i int) *liar {
	l.Helper()
	l.must(l.Kill(i))
	keys, err := node.LoadKeys(filepath.Join(l.cfg.Dir, fmt.Sprintf("node%d", i+1)))
	l.must(err)
	host, err := p2p.New(p2p.Config{Key: keys.Identity.Private(), Genesis: l.Operator().Cluster, Admit: func(string) bool { return true }, Logger: quiet()})
	l.must(err)
	return &liar{lab: l, keys: keys, host: host}
}

// committee is the founders, as the genesis names them.
func (l *lab) committee() machine.Committee {
	l.Helper()
	g, err := node.LoadGenesis(filepath.Join(l.cfg.Dir, "node1"))
	l.must(err)
	c := machine.Committee{Epoch: l.status(l.living()[0]).Epoch}
	for _, v := range g.Voters {
		key, err := sign.RawX(v.PBFTKey)
		l.must(err)
		c.Members = append(c.Members, machine.Member{Node: v.Node, Key: key})
	}
	slices.SortFunc(c.Members, func(a, b machine.Member) int { return strings.Compare(a.Node, b.Node) })
	return c
}

func TestAVoterThatVotesTwiceIsProvenGuiltyAndTheRoundIsDecidedAllTheSame(t *testing.T) {
	l := newLab(t, quick, nil)
	const mute, lying = 2, 3
	// One voter without its journal signs nothing, so that the others wait for the liar.
	l.must(l.Kill(mute))
	l.must(os.Remove(filepath.Join(l.cfg.Dir, fmt.Sprintf("node%d", mute+1), "signed.pbft")))
	l.must(l.Revive(l.ctx, mute))
	bad := l.impersonate(lying)
	l.await("a leader", func() bool { return l.status(l.Node(0)).Ready })

	round := l.freeze(l.urls[0], l.urls[1])
	members := l.committee()
	committee, err := pbft.NewCommittee(members)
	l.must(err)
	in := pbft.Instance{Protocol: pbft.Protocol, Genesis: l.Operator().Cluster, Epoch: members.Epoch, Purpose: deliberation.Purpose, ID: round}
	victim := l.Node(0).ID()
	l.must(bad.host.SetAddrs(victim, l.Node(0).Addrs()))
	for _, value := range []string{"north", "south"} {
		v := pbft.Vote{Key: in.Key(), Phase: pbft.Commit, Digest: sha256.Sum256([]byte(value))}
		frame := pbft.Sign(in.Domain(), committee.Index(bad.keys.ID()), []pbft.Vote{v}, bad.keys.PBFT.Private())
		l.must(bad.host.Send(victim, p2p.BFT, frame.Encode()))
	}
	c := l.as("ada", l.urls[0])
	l.await("the proof", func() bool { return l.guilty(0) != "" })
	check := func() {
		t.Helper()
		proofs, err := c.Guilt(l.ctx)
		l.must(err)
		if len(proofs) != 1 || proofs[0].NodeID != bad.keys.ID() || proofs[0].Proof.Instance != in || l.guilty(0) != bad.keys.ID() {
			t.Fatalf("node %s says %+v", l.guilty(0), proofs)
		}
		if err := proofs[0].Proof.Verify(committee); err != nil {
			t.Errorf("what the door hands out proves nothing: %v", err)
		}
	}
	check()
	if got := l.guilty(1); got != "" {
		t.Errorf("node 2 has heard nothing and accuses %s", got)
	}

	// The liar gone, its honest owner comes back and is one of the quorum.
	l.must(bad.host.Close())
	l.must(l.Revive(l.ctx, lying))
	if v := l.verdict(l.urls[0], round); v.Certificate == nil || v.Certificate.Signers != 3 {
		t.Errorf("the verdict: %+v", v)
	}
	l.must(l.Kill(0))
	l.must(l.Revive(l.ctx, 0))
	l.await("node 1 is back", func() bool { return l.status(l.Node(0)).Ready })
	check()
}

// guilty is whom a node's status accuses.
func (l *lab) guilty(i int) string {
	l.Helper()
	return strings.Join(l.status(l.Node(i)).Guilty, " ")
}
