package raftpath

import (
	"errors"
	"testing"
	"time"
)

func TestClosingDoesNotWaitForWhatWaitsForIt(t *testing.T) {
	c := newCluster(t, 1, quick)
	x := c.nodes[0]
	c.leader()
	x.path.wg.Go(func() { // as the reconciler does when it finds no raft running
		for x.path.running() != nil {
			time.Sleep(time.Millisecond)
		}
		x.path.promote()
	})
	closed := make(chan error, 1)
	go func() { closed <- x.path.Close() }()
	select {
	case err := <-closed:
		if err = errors.Join(err, x.host.Close(), x.store.Close()); err != nil {
			t.Error(err)
		}
		x.path, x.host = nil, nil
	case <-time.After(patience):
		x.path = nil // nor would the cleanup
		t.Fatal("Close does not return")
	}
}
