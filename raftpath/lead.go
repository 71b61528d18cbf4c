package raftpath

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
)

// pending is an action that waits for its answer.
type pending struct {
	action []byte
	done   chan result // holds one
}

type result struct {
	answer []byte
	seq    uint64
	err    error
}

func newPending(action []byte) *pending { return &pending{action, make(chan result, 1)} }

// proposer turns the actions that arrive while this node leads into entries:
// at once when nothing is under way, and together while something is, so that
// many clients share one disk flush.
type proposer struct {
	x    *run
	wake chan struct{}

	mu      sync.Mutex
	serving bool
	queue   []*pending

	// Owned by serve.
	last    machine.Stamp // of the newest entry proposed or applied
	ticking bool          // the newest entry was a tick
	flights int
	landed  chan struct{}
}

// maxFlights is how many entries may be under way: while one is being applied
// the next goes to disk.
const maxFlights = 2

// tickAgain is the pause before a tick that follows one which changed nothing.
const tickAgain = 100 * time.Millisecond

func (q *proposer) init(x *run) {
	q.x = x
	q.wake = make(chan struct{}, 1)
	q.landed = make(chan struct{}, maxFlights)
}

// add queues actions; it refuses when this node does not lead.
func (q *proposer) add(ps ...*pending) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	if !q.serving {
		return notLeader(q.x.leader())
	}
	if len(q.queue)+len(ps) > maxWaiting {
		return machine.Refuse(CodeBusy, "try again later", "%d actions wait already", len(q.queue))
	}
	q.queue = append(q.queue, ps...)
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

func notLeader(leader string) error {
	return machine.Refuse(CodeNotLeader, "ask the leader", "this node does not lead").With("leader", leader)
}

// watchLeadership serves while this node leads.
func (x *run) watchLeadership() {
	var cancel context.CancelFunc
	var done chan struct{}
	end := func() {
		if cancel != nil {
			cancel()
			<-done
			cancel = nil
		}
	}
	defer end()
	for {
		select {
		case leading := <-x.r.LeaderCh():
			end()
			if !leading {
				continue
			}
			ctx, stop := context.WithCancel(x.p.ctx)
			cancel, done = stop, make(chan struct{})
			go func() {
				defer close(done)
				x.lead.serve(ctx)
			}()
		case <-x.quit:
			return
		}
	}
}

// serve takes actions for as long as ctx lasts and this node leads.
func (q *proposer) serve(ctx context.Context) {
	term, ok := q.settle(ctx)
	if !ok {
		return
	}
	q.x.p.log.Info("leading", "term", term)
	q.open(true)
	defer func() {
		q.open(false)
		for q.flights > 0 {
			<-q.landed
			q.flights--
		}
	}()
	tick := time.NewTimer(0)
	defer tick.Stop()
	due := false
	for {
		select {
		case <-ctx.Done():
			return
		case <-q.wake:
		case <-tick.C:
			due = true
		case <-q.landed:
			q.flights--
		}
		if due && q.flights == 0 {
			due = q.due()
		}
		q.launch(due)
		if q.flights > 0 {
			due = false
			continue
		}
		tick.Reset(q.untilDue())
	}
}

// settle waits until everything that earlier leaders committed is applied
// here and an entry of this term is committed: only then is the last stamp
// known, and only then may this node answer for the log.
func (q *proposer) settle(ctx context.Context) (term uint64, ok bool) {
	poll := time.NewTicker(time.Millisecond)
	defer poll.Stop()
	for {
		if term, ok = q.x.settled(); ok {
			_, q.last = q.x.p.Applied()
			return term, true
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return 0, false
		}
	}
}

// settled reports whether this node leads in term, has committed an entry of
// it and applied all up to there.
func (x *run) settled() (term uint64, ok bool) {
	term, ok = x.leads()
	if !ok {
		return term, false
	}
	commit := x.r.CommitIndex()
	at, err := x.termAt(commit)
	if err != nil || at != term {
		return term, false
	}
	need, err := x.lastCommand(commit)
	return term, err == nil && x.p.Head().Index >= need
}

// open begins or ends taking actions; those that wait at the end were not ordered.
func (q *proposer) open(serving bool) {
	q.mu.Lock()
	q.serving = serving
	var left []*pending
	if !serving {
		left, q.queue = q.queue, nil
	}
	q.mu.Unlock()
	for _, p := range left {
		p.done <- result{err: notLeader(q.x.leader())}
	}
}

// now is the stamp of an entry proposed now.
func (q *proposer) now() machine.Stamp { return max(q.x.p.cfg.Clock(), q.last) }

// next is when time alone has something to do.
func (q *proposer) next() (at machine.Stamp, ok bool) {
	err := q.x.p.cfg.Store.View(func(tx machine.Tx) (err error) {
		at, ok, err = q.x.p.cfg.Applier.Next(tx)
		return err
	})
	if err != nil {
		q.x.p.log.Error("next tick", "err", err)
		return 0, false
	}
	return at, ok
}

func (q *proposer) due() bool {
	at, ok := q.next()
	return ok && at <= q.now()
}

// untilDue is how long to wait before asking whether a tick is due.
func (q *proposer) untilDue() time.Duration {
	at, ok := q.next()
	if !ok {
		return time.Hour
	}
	wait := time.Duration(min(max(int64(at-q.now()), 0), int64(time.Hour/time.Millisecond))) * time.Millisecond
	if q.ticking && at <= q.last {
		return max(wait, tickAgain) // the tick left it due: do not spin
	}
	return wait
}

// launch proposes what waits, or a tick if that is due.
func (q *proposer) launch(tick bool) {
	for q.flights < maxFlights {
		batch := q.take()
		if len(batch) == 0 && (!tick || q.flights > 0) {
			return
		}
		q.ticking = len(batch) == 0
		q.last, tick = q.now(), false
		future := q.x.propose(batch, q.last)
		q.flights++
		go func() {
			land(future, batch)
			q.landed <- struct{}{}
		}()
	}
}

// take removes one entry's actions from the queue.
func (q *proposer) take() []*pending {
	q.mu.Lock()
	defer q.mu.Unlock()
	n, size := 0, 0
	for n < len(q.queue) && n < MaxBatch {
		if size += len(q.queue[n].action); size > MaxBatchBytes && n > 0 {
			break
		}
		n++
	}
	batch := q.queue[:n:n]
	q.queue = q.queue[n:]
	return batch
}

// propose hands one entry to raft.
func (x *run) propose(batch []*pending, stamp machine.Stamp) raft.ApplyFuture {
	actions := make([][]byte, len(batch))
	for i, p := range batch {
		actions[i] = p.action
	}
	cfg := &x.p.cfg
	entry := cfg.Encode(x.p.Head().Generation, cfg.Epoch(), stamp, actions)
	return x.r.Apply(entry, cfg.Timing.Heartbeat)
}

// land waits for an entry's outcome and answers those who wait for it.
func land(f raft.ApplyFuture, batch []*pending) {
	err := raftError(f.Error())
	var outcome *Outcome
	if err == nil {
		switch r := f.Response().(type) {
		case *Outcome:
			outcome = r
			if len(r.Answers) != len(batch) {
				err = machine.Refuse(CodeUnavailable, "ask again under the same id", "the entry has %d answers for %d actions", len(r.Answers), len(batch))
			}
		case error:
			err = r
		default:
			err = machine.Refuse(CodeUnavailable, "ask again under the same id", "the entry was applied before")
		}
	}
	for i, p := range batch {
		if err != nil {
			p.done <- result{err: err}
			continue
		}
		p.done <- result{answer: outcome.Answers[i], seq: outcome.Seq}
	}
}

// raftError says what an error of raft.Apply means for the entry: not
// ordered, or not known.
func raftError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, raft.ErrNotLeader), errors.Is(err, raft.ErrEnqueueTimeout), errors.Is(err, raft.ErrLeadershipTransferInProgress):
		return machine.Refuse(CodeNotLeader, "ask the leader", "the entry was not ordered: %v", err)
	}
	return machine.Refuse(CodeUnavailable, "ask again under the same id", "whether the entry is ordered is not known: %v", err)
}
