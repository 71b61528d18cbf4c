package embedded_test

import (
	"bytes"
	"crypto/sha256"
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/deliberd/deliberd/bftpath"
	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/pbft"
)

// dir is node i's data folder.
func (l *lab) dir(i int) string { return filepath.Join(l.cfg.Dir, fmt.Sprintf("node%d", i+1)) }

// lose removes parts of a node's data folder while it is down.
func (l *lab) lose(i int, names ...string) {
	l.Helper()
	l.must(l.Kill(i))
	for _, name := range names {
		l.must(os.RemoveAll(filepath.Join(l.dir(i), name)))
	}
}

func TestAVoterRestoredFromItsKeysAloneDoesNotVoteAgain(t *testing.T) {
	l := newLab(t, quick, nil)
	l.lose(0, "state.db", "raft-0", "signed.pbft")
	if r, ok := machine.IsRefusal(l.Revive(l.ctx, 0)); !ok || r.Code != node.CodeRaftLost || r.Fix == "" {
		t.Fatalf("it starts, or is refused with %v", r)
	}
	if found, _ := filepath.Glob(filepath.Join(l.dir(0), "raft-*")); len(found) > 0 {
		t.Errorf("a refused start has made %v, and the next one may pass", found)
	}
}

func TestAVoterWithoutStateAndJournalSignsNothing(t *testing.T) {
	l := newLab(t, quick, nil)
	l.lose(0, "state.db", "signed.pbft")
	l.must(l.Revive(l.ctx, 0))
	l.await("it to be level", func() bool { return l.status(l.Node(0)).Ready })
	if _, err := os.Stat(filepath.Join(l.dir(0), "signed.pbft")); err == nil {
		t.Error("its journal is made afresh")
	}
}

func TestAVoterWhoseStateIsOlderThanItsJournalComesBack(t *testing.T) {
	l := newLab(t, quick, nil)
	const mute, late = 2, 3 // without these two a round freezes and stays undecided
	l.lose(mute, "signed.pbft")
	l.must(l.Revive(l.ctx, mute))
	l.must(l.Kill(late))
	l.await("a leader", func() bool { return l.status(l.Node(0)).Ready })
	round := l.freeze(l.urls[0], l.urls[1])
	l.await("node 1 to see it frozen", func() bool {
		var view deliberation.View
		l.must(l.as("kim", l.urls[0]).Query(l.ctx, "deliberatic.get", object{"round": round}, &view, client.Stale()))
		return view.State.Phase == deliberation.PhaseFrozen
	})
	l.must(l.Kill(0))
	older := t.TempDir()
	l.must(os.CopyFS(older, os.DirFS(l.dir(0))))
	l.must(l.Revive(l.ctx, 0))
	l.must(l.Revive(l.ctx, late))
	verdict := l.verdict(l.urls[0], round)

	l.lose(0, "state.db", "raft-0")
	l.must(os.CopyFS(filepath.Join(l.dir(0), "raft-0"), os.DirFS(filepath.Join(older, "raft-0"))))
	l.must(os.Rename(filepath.Join(older, "state.db"), filepath.Join(l.dir(0), "state.db")))
	l.must(l.Revive(l.ctx, 0))
	if again := l.verdict(l.urls[0], round); again.Winner != verdict.Winner {
		t.Errorf("it says %+v, the cluster had %+v", again, verdict)
	}
}

func TestAProofFromAnotherClusterAccusesNobodyHere(t *testing.T) {
	l := newLab(t, quick, nil)
	here := l.committee()
	keys, err := node.LoadKeys(l.dir(0))
	l.must(err)
	gone, err := node.LoadKeys(l.dir(1)) // was in that cluster, in another seat
	l.must(err)
	l.must(l.Kill(0))
	there := machine.Committee{Epoch: here.Epoch}
	for _, m := range here.Members {
		if m.Node == keys.ID() || m.Node == gone.ID() {
			there.Members = append(there.Members, m)
		}
	}
	committee, err := pbft.NewCommittee(there)
	l.must(err)
	d, err := bftpath.New(bftpath.Config{Self: keys.ID(), Key: keys.PBFT.Private(), Journal: filepath.Join(l.dir(0), "signed.pbft"), Send: func(string, []byte) {}})
	l.must(err)
	in := pbft.Instance{Protocol: pbft.Protocol, Genesis: fmt.Sprintf("%064x", 7), Epoch: there.Epoch, Purpose: "deliberatic.verdict", ID: "round"}
	l.must(d.StartInstance(in, there, sha256.Sum256([]byte("north"))))
	for _, value := range []string{"north", "south"} {
		v := pbft.Vote{Key: in.Key(), Phase: pbft.Commit, Digest: sha256.Sum256([]byte(value))}
		d.Deliver(gone.ID(), pbft.Sign(in.Domain(), committee.Index(gone.ID()), []pbft.Vote{v}, gone.PBFT.Private()).Encode())
	}
	l.await("the proof", func() bool { return len(d.Guilt()) == 1 })
	l.must(d.Close())
	l.must(l.Revive(l.ctx, 0))
	if got := l.guilty(0); got != "" {
		t.Errorf("it accuses %s", got)
	}
}

func TestARoundThatEndsWhileAVoterIsAwayIsForgottenWhenItFetchesTheState(t *testing.T) {
	back := &progress{}
	l := newLab(t, short(), func(i int, c *node.Config) {
		if i == 0 {
			c.OnProgress = back.note
		}
	})
	const mute, late = 2, 3
	journal := filepath.Join(l.dir(mute), "signed.pbft")
	l.must(l.Kill(mute))
	l.must(os.Rename(journal, journal+".away"))
	l.must(l.Revive(l.ctx, mute))
	l.must(l.Kill(late))
	l.await("a leader", func() bool { return l.status(l.Node(0)).Ready })
	round := l.freeze(l.urls[0], l.urls[1])
	in := pbft.Instance{Protocol: pbft.Protocol, Genesis: l.Operator().Cluster, Epoch: l.status(l.Node(0)).Epoch, Purpose: deliberation.Purpose, ID: round}
	key := in.Key()
	l.await("node 1's vote", func() bool { return bytes.Contains(l.read(0, "signed.pbft"), key[:]) })
	l.must(l.Kill(0))
	l.must(l.Kill(mute))
	l.must(os.Rename(journal+".away", journal))
	l.must(l.Revive(l.ctx, mute))
	l.must(l.Revive(l.ctx, late))
	l.verdict(l.urls[1], round)
	l.write(100, l.urls[1:]...).wait()
	for i := 1; i < 4; i++ {
		l.cutLog(i)
	}
	kept := l.status(l.Node(1)).AppliedIndex / 2
	l.must(l.Revive(l.ctx, 0))
	l.agree(l.living()...)
	l.byState(back, "node 1", kept)
	l.must(l.Kill(0)) // a clean end stores what waits for company
	forgotten := append([]byte{4, 0, 0, 0, 32}, key[:]...)
	if !bytes.Contains(l.read(0, "signed.pbft"), forgotten) {
		t.Error("node 1 goes on with a round that has ended")
	}
}

func (l *lab) read(i int, name string) []byte {
	l.Helper()
	text, err := os.ReadFile(filepath.Join(l.dir(i), name))
	l.must(err)
	return text
}
