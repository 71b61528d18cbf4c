package p2p

import (
	"context"
	"sync/atomic"
	"testing"
	"time"
)

func TestARemovedPeerHearsThatAndNothingElse(t *testing.T) {
	gone := newPeer(t, nil)
	other := &rules{}
	b := newPeer(t, func(c *Config) { c.Removed = other.admit })
	befriend(t, gone, b)
	b.Handle(Forward, echo)
	var frames atomic.Int64
	b.HandleFrames(Notice, func(string, []byte) error { frames.Add(1); return nil })
	heard := make(chan string, 100)
	gone.HandleRemoved(func(peer string) { heard <- peer })
	hear := func(what string) {
		t.Helper()
		select {
		case peer := <-heard:
			if peer != b.ID() {
				t.Fatalf("%s: heard of %s", what, peer)
			}
		case <-time.After(15 * time.Second):
			t.Fatalf("%s: the removed peer heard nothing", what)
		}
	}
	if _, err := gone.Call(context.Background(), b.ID(), Forward, nil); err != nil {
		t.Fatal(err)
	}
	b.rules.set(gone.ID(), false)
	other.set(gone.ID(), true)
	b.disconnect(gone.h.ID())
	eventually(t, "the refusal of a call", func() bool { // the old connection may still be on its way down
		_, err := gone.Call(context.Background(), b.ID(), Forward, nil)
		return code(err) == CodeRemoved
	})
	hear("by a call")
	if err := gone.Send(b.ID(), Notice, []byte("x")); err != nil {
		t.Fatal(err)
	}
	hear("by a frame")
	if frames.Load() != 0 {
		t.Fatal("a removed peer's frame was taken")
	}
	if _, err := b.Call(context.Background(), gone.ID(), Forward, nil); code(err) != CodeNotAdmitted {
		t.Fatalf("calling a removed peer: %v", err)
	}
	b.Refresh()
	if len(b.Connected()) != 1 {
		t.Fatal("the removed peer was cut off before it could hear why")
	}
	b.Cut(gone.ID())
	if _, err := gone.Call(context.Background(), b.ID(), Forward, nil); err == nil || code(err) == CodeRemoved {
		t.Fatalf("through a broken network: %v", err)
	}
}
