package node

import (
	"context"
	"sync"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/store"
)

// feedChunk is how many leaves a stream reads from the store at once.
const feedChunk = 256

// feed hands out the decision log's events. Streams read from the store, so a
// slow reader costs nobody anything and may resume from any leaf; the feed
// only wakes those who have read everything.
type feed struct {
	store *store.Store
	mu    sync.Mutex
	wake  chan struct{} // closed and replaced when the log grows
	done  chan struct{} // closed when the node stops
}

func newFeed(s *store.Store) *feed {
	return &feed{store: s, wake: make(chan struct{}), done: make(chan struct{})}
}

// grew wakes every stream.
func (f *feed) grew() {
	f.mu.Lock()
	defer f.mu.Unlock()
	close(f.wake)
	f.wake = make(chan struct{})
}

func (f *feed) waiter() <-chan struct{} {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.wake
}

func (f *feed) stop() { close(f.done) }

func (f *feed) subscribe(since uint64) *stream { return &stream{feed: f, next: since + 1} }

// stream is one reader's place in the log.
type stream struct {
	feed    *feed
	next    uint64
	pending []api.Record
}

// Next implements api.Stream.
func (s *stream) Next(ctx context.Context) (api.Record, error) {
	for len(s.pending) == 0 {
		grown := s.feed.waiter() // before reading, so that nothing is missed
		if err := s.fill(); err != nil {
			return api.Record{}, err
		}
		if len(s.pending) > 0 {
			break
		}
		select {
		case <-grown:
		case <-ctx.Done():
			return api.Record{}, ctx.Err()
		case <-s.feed.done:
			return api.Record{}, machine.Refuse(api.CodeStopping, "open the stream at another node, or here again later", "this node is stopping")
		}
	}
	rec := s.pending[0]
	s.pending = s.pending[1:]
	return rec, nil
}

// Close implements api.Stream.
func (s *stream) Close() {}

// fill reads the next leaves and keeps those that are events.
func (s *stream) fill() error {
	return s.feed.store.View(func(tx machine.Tx) error {
		return fsm.Records(tx, s.next, func(r fsm.Record) (bool, error) {
			s.next = r.Index + 1
			if r.Type != fsm.EntryRecord {
				s.pending = append(s.pending, api.Record{Index: r.Index, Seq: r.Seq, StampMS: r.Stamp, Type: r.Type, Subject: r.Subject, To: r.To, Data: r.Data})
			}
			return len(s.pending) < feedChunk, nil
		})
	})
}
