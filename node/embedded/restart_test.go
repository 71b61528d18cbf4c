package embedded_test

import (
	"slices"
	"testing"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/node"
)

func TestAClusterRestartedFromItsFoldersKeepsItsLogAndGoesOn(t *testing.T) {
	l := newLab(t, short(), nil) // with snapshots: what is applied is not replayed
	ids := l.write(15, l.urls...).wait()
	before := l.agree(l.living()...)
	var names []string
	for _, n := range l.living() {
		names = append(names, n.ID())
	}
	l.must(l.Close())

	l.open()
	if after := l.agree(l.living()...); after != before {
		t.Errorf("the log was %+v, it is %+v", before, after)
	}
	for i, n := range l.living() {
		if n.ID() != names[i] {
			t.Errorf("node %d was %s, it is %s", i+1, names[i], n.ID())
		}
	}
	ids = append(ids, l.write(5, l.urls...).wait()...)
	if after := l.agree(l.living()...); after.Size <= before.Size {
		t.Errorf("the log does not grow: %+v", after)
	}
	for _, url := range l.urls {
		l.holds(url, ids)
	}
}

func TestANodeThatComesBackUnderAnotherAddressKeepsItsIdentityAndIsReached(t *testing.T) {
	const moved, down = 2, 1
	listen := ""
	l := newLab(t, quick, func(i int, c *node.Config) {
		if i == moved && listen != "" {
			c.Listen = []string{listen}
		}
	})
	old := l.Node(moved)
	id, addrs := old.ID(), old.Addrs()
	l.must(l.Kill(moved))
	listen = "/ip4/127.0.0.1/tcp/0"
	l.must(l.Revive(l.ctx, moved))
	n := l.Node(moved)
	if n.ID() != id || slices.Equal(n.Addrs(), addrs) {
		t.Fatalf("%s at %v has become %s at %v", id, addrs, n.ID(), n.Addrs())
	}
	for i, url := range l.urls {
		if i == moved {
			continue
		}
		l.await("the new address, and a connection", func() bool {
			peers, err := l.as("kim", url).Peers(l.ctx)
			l.must(err)
			at := slices.IndexFunc(peers, func(p api.Peer) bool { return p.NodeID == id })
			return at >= 0 && peers[at].Connected && slices.Equal(peers[at].Addresses, n.Addrs())
		})
	}
	// Without another node a majority needs this one, and the others must dial it.
	l.must(l.Kill(down))
	for i := range l.Len() {
		if i != moved && i != down {
			l.must(l.Kill(i))
			l.must(l.Revive(l.ctx, i))
		}
	}
	l.must(l.WaitReady(l.ctx))
	ids := l.write(3, l.urls[0], l.urls[moved], l.urls[3]).wait()
	l.agree(l.living()...)
	l.holds(l.urls[moved], ids)
}
