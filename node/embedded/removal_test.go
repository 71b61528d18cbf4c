package embedded_test

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/node/embedded"
	"github.com/deliberd/deliberd/raftpath"
)

// expel has the operator remove a node, and waits until the living know.
func (l *lab) expel(id string) {
	l.Helper()
	_, err := l.as(embedded.OperatorID, l.doors()...).Do(l.ctx, membership.KindRemove, membership.Remove{Node: id})
	l.must(err)
	for _, n := range l.living() {
		l.await("the removal", func() bool {
			var known membership.MembersAnswer
			l.must(l.as("ada", n.URL()).Query(l.ctx, "cluster.members", nil, &known, client.Stale()))
			return !slices.ContainsFunc(known.Members, func(m membership.Node) bool { return m.Node == id })
		})
	}
}

// doors are the doors of the nodes that run.
func (l *lab) doors() (urls []string) {
	for _, n := range l.living() {
		urls = append(urls, n.URL())
	}
	return urls
}

// restart takes the living down and up again, one at a time: what they keep
// in memory only is gone then, such as whom they let in for a last time.
func (l *lab) restart() {
	l.Helper()
	for i := range l.Len() {
		if l.Node(i) != nil {
			l.must(l.Kill(i))
			l.must(l.Revive(l.ctx, i))
			l.must(l.WaitReady(l.ctx))
		}
	}
}

// stopsAsRemoved waits until a node stops because it has been removed.
func (l *lab) stopsAsRemoved(n *node.Node) {
	l.Helper()
	if r, ok := machine.IsRefusal(n.Wait(l.ctx)); !ok || r.Code != raftpath.CodeRemoved {
		l.Fatalf("it did not stop as removed: %v", r)
	}
}

func TestAVoterRemovedWhileItWasDownStopsWhenItReturns(t *testing.T) {
	for _, late := range []bool{false, true} {
		name := "soon after"
		if late {
			name = "long after"
		}
		t.Run(name, func(t *testing.T) {
			l := newLab(t, quick, nil)
			const away = 3
			id := l.Node(away).ID()
			l.must(l.Kill(away))
			l.expel(id)
			if late {
				l.restart()
			}
			l.must(l.Revive(l.ctx, away))
			l.stopsAsRemoved(l.Node(away))
			l.must(l.Kill(away))
			l.write(3, l.doors()...).wait()
			l.agree(l.living()...)
		})
	}
}

func TestAnObserverRemovedWhileItWasDownStopsWhenItReturns(t *testing.T) {
	l := newLab(t, quick, nil)
	cfg := node.Config{Dir: filepath.Join(t.TempDir(), "data"), Timing: l.cfg.Timing, Logger: l.cfg.Logger}
	l.must(node.Join(l.ctx, cfg, l.invite(membership.RoleObserver)))
	n, err := node.Start(l.ctx, cfg)
	l.must(err)
	id := n.ID()
	l.await("the observer", func() bool { st := l.status(n); return st.Ready && st.Role == string(membership.RoleObserver) })
	l.must(n.Close())
	l.expel(id)
	l.restart()
	n, err = node.Start(l.ctx, cfg)
	l.must(err)
	defer func() { l.check(n.Close()) }()
	l.stopsAsRemoved(n)
}

func TestANodeRemovedBeforeItHeldAnyStateStops(t *testing.T) {
	l := newLab(t, quick, nil)
	cfg := node.Config{Dir: filepath.Join(t.TempDir(), "data"), Timing: l.cfg.Timing, Logger: l.cfg.Logger}
	l.must(node.Join(l.ctx, cfg, l.invite(membership.RoleVoter)))
	keys, err := node.LoadKeys(cfg.Dir)
	l.must(err)
	l.expel(keys.ID())
	l.restart()
	n, err := node.Start(l.ctx, cfg)
	l.must(err)
	defer func() { l.check(n.Close()) }()
	l.stopsAsRemoved(n)
}
