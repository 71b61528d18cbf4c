package raftpath

import (
	"context"
	"sync"

	"github.com/deliberd/deliberd/machine"
)

// tracker knows how far this node has applied and wakes those who wait for a
// position. It is a position's only source outside the state.
type tracker struct {
	mu    sync.Mutex
	head  Head
	seq   uint64
	stamp machine.Stamp
	waits map[*wait]struct{}
}

type wait struct {
	seq, index uint64
	done       chan struct{}
}

// set moves the position; it may go back when state has been replaced.
func (t *tracker) set(head Head, seq uint64, stamp machine.Stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.head, t.seq, t.stamp = head, seq, stamp
	for w := range t.waits {
		if w.seq <= seq && w.index <= head.Index {
			close(w.done)
			delete(t.waits, w)
		}
	}
}

func (t *tracker) get() (Head, uint64, machine.Stamp) {
	t.mu.Lock()
	defer t.mu.Unlock()
	return t.head, t.seq, t.stamp
}

// wait returns when entry number seq and raft index index are applied here,
// or with ctx's error.
func (t *tracker) wait(ctx context.Context, seq, index uint64) error {
	t.mu.Lock()
	if t.seq >= seq && t.head.Index >= index {
		t.mu.Unlock()
		return nil
	}
	w := &wait{seq, index, make(chan struct{})}
	if t.waits == nil {
		t.waits = map[*wait]struct{}{}
	}
	t.waits[w] = struct{}{}
	t.mu.Unlock()
	select {
	case <-w.done:
		return nil
	case <-ctx.Done():
		t.mu.Lock()
		delete(t.waits, w)
		t.mu.Unlock()
		return ctx.Err()
	}
}
