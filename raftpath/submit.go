package raftpath

import (
	"context"
	"errors"
	"time"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
)

// Pauses between attempts to order an action.
const (
	againFirst = 5 * time.Millisecond
	againMost  = 200 * time.Millisecond
)

// Submit has an action ordered, from any node, and returns its answer and its
// entry's number once this node has applied it: what this node answers
// afterwards includes it. Until ctx ends the action is offered to whoever
// leads, again after each change of leader; actions carry ids, so that being
// ordered twice changes nothing. A ctx without a deadline waits for a leader
// for ever.
//
// Errors: [CodeNoLeader] when the action was certainly not ordered,
// [CodeUnavailable] when that is not known, [CodeTooLarge], [CodeBusy],
// [CodeHalted].
func (p *Path) Submit(ctx context.Context, action []byte) (answer []byte, seq uint64, err error) {
	if len(action) > MaxActionBytes {
		return nil, 0, machine.Refuse(CodeTooLarge, "send less", "an action has at most %d bytes, got %d", MaxActionBytes, len(action))
	}
	unknown := false
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		if err := p.Fatal(); err != nil {
			return nil, 0, halted(err)
		}
		r := p.once(ctx, action)
		if r.err == nil {
			if err := p.WaitApplied(ctx, r.seq); err != nil {
				return nil, 0, p.gaveUp(true, err)
			}
			return r.answer, r.seq, nil
		}
		again, maybe := retry(r.err)
		unknown = unknown || maybe
		if !again {
			return nil, 0, r.err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return nil, 0, p.gaveUp(unknown, r.err)
		case <-p.ctx.Done():
			return nil, 0, p.gaveUp(unknown, errStopped)
		}
	}
}

// once offers an action to the leader, which may be this node.
func (p *Path) once(ctx context.Context, action []byte) result {
	w := newPending(action)
	x := p.running()
	if x == nil || x.lead.add(w) != nil {
		leader := p.leaderNow()
		if leader == "" || leader == p.id {
			return result{err: machine.Refuse(CodeNoLeader, "try again later", "no leader is known here")}
		}
		if err := p.forwards.add(leader, w); err != nil {
			return result{err: err}
		}
	}
	select {
	case r := <-w.done:
		return r
	case <-ctx.Done():
		return result{err: machine.Refuse(CodeUnavailable, "ask again under the same id", "the time is up before the answer came")}
	case <-p.ctx.Done():
		return result{err: machine.Refuse(CodeUnavailable, "ask again under the same id", "this node is stopping")}
	}
}

// retry says whether an attempt that ended in err is worth repeating, and
// whether it may have ordered the action all the same.
func retry(err error) (again, maybe bool) {
	refusal, ok := machine.IsRefusal(err)
	if !ok {
		return true, true // the connection broke
	}
	switch refusal.Code {
	case CodeNotLeader, CodeNoLeader, CodeNotReady, p2p.CodeUnreachable, p2p.CodeNotAdmitted, p2p.CodeWrongGeneration:
		return true, false
	case CodeUnavailable, CodeHalted, p2p.CodeInternal:
		return true, true
	}
	return false, false
}

func (p *Path) gaveUp(unknown bool, last error) error {
	if refusal, ok := machine.IsRefusal(last); ok {
		last = errors.New(refusal.Message)
	}
	if unknown {
		return machine.Refuse(CodeUnavailable, "ask again under the same id: the first answer is kept", "whether the action is ordered is not known yet (%v)", last)
	}
	return machine.Refuse(CodeNoLeader, "try again when a majority of the voters is up", "no leader took the action (%v)", last)
}

// leaderNow is who leads as far as this node knows; empty when it does not.
func (p *Path) leaderNow() string {
	if x := p.running(); x != nil {
		return x.leader()
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.hint
}

// hear remembers who leads and how far the log is, for a node that runs no raft.
func (p *Path) hear(leader string, goal uint64) {
	p.mu.Lock()
	p.hint, p.goal = leader, goal
	p.mu.Unlock()
}
