package raftpath

import (
	"context"
	"errors"
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
)

// ReadIndex returns when this node has applied everything that was decided,
// anywhere, before ReadIndex was called: what it reads from the state then is
// linearizable. Until ctx ends it is tried again after changes of leader.
// Errors: [CodeNoLeader], [CodeHalted].
func (p *Path) ReadIndex(ctx context.Context) error {
	for pause := againFirst; ; pause = min(2*pause, againMost) {
		if err := p.Fatal(); err != nil {
			return halted(err)
		}
		index, err := p.reads.index(ctx)
		if err == nil {
			err = p.pos.wait(ctx, 0, index)
		}
		if err == nil {
			return nil
		}
		if again, _ := retry(err); !again {
			return err
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return p.gaveUp(false, err)
		case <-p.ctx.Done():
			return p.gaveUp(false, errStopped)
		}
	}
}

// rounds gathers those who wait for the same thing: who comes while a round
// is under way shares the next one, which begins after they came.
type rounds struct {
	mu      sync.Mutex
	running bool
	next    *round
}

type round struct {
	done  chan struct{}
	index uint64
	err   error
}

// join waits for a round that begins after the call.
func (g *rounds) join(ctx context.Context, spawn func(func()) bool, do func() (uint64, error)) (uint64, error) {
	g.mu.Lock()
	if g.next == nil {
		g.next = &round{done: make(chan struct{})}
	}
	r := g.next
	if !g.running {
		if !spawn(func() { g.work(do) }) {
			g.mu.Unlock()
			return 0, errStopped
		}
		g.running = true
	}
	g.mu.Unlock()
	select {
	case <-r.done:
		return r.index, r.err
	case <-ctx.Done():
		return 0, ctx.Err()
	}
}

func (g *rounds) work(do func() (uint64, error)) {
	for {
		g.mu.Lock()
		r := g.next
		g.next = nil
		if r == nil {
			g.running = false
			g.mu.Unlock()
			return
		}
		g.mu.Unlock()
		r.index, r.err = do()
		close(r.done)
	}
}

// readIndexes finds the index that a linearizable read must wait for.
type readIndexes struct {
	p      *Path
	local  rounds // confirmations, where this node leads
	remote rounds // questions to the leader, where it does not
}

func (r *readIndexes) init(p *Path) { r.p = p }

// index asks the leader, which may be this node.
func (r *readIndexes) index(ctx context.Context) (uint64, error) {
	if r.p.leaderNow() == r.p.id {
		return r.leaderIndex(ctx)
	}
	return r.remote.join(ctx, r.p.spawn, func() (uint64, error) {
		leader := r.p.leaderNow()
		if leader == "" || leader == r.p.id {
			return 0, machine.Refuse(CodeNoLeader, "try again", "no other node is known to lead")
		}
		reply, err := r.p.cfg.Host.Call(r.p.ctx, leader, p2p.Forward, []byte{askRead})
		if err != nil {
			return 0, err
		}
		x := &reader{b: reply}
		index := x.position()
		return index, x.end()
	})
}

// leaderIndex is the index for reads that began before the call, where this
// node leads.
func (r *readIndexes) leaderIndex(ctx context.Context) (uint64, error) {
	return r.local.join(ctx, r.p.spawn, func() (uint64, error) {
		x := r.p.running()
		if x == nil {
			return 0, notLeader("")
		}
		return x.confirmed()
	})
}

// confirmed is the index up to which the log was committed when it was
// called, provided this node has led in one term from before until a majority
// has answered a heartbeat sent after. raft.VerifyLeader also counts answers
// to earlier heartbeats: a leader that was paused would find them in its
// socket, and read what another leader has overwritten meanwhile.
func (x *run) confirmed() (uint64, error) {
	term, ok := x.leads()
	if !ok {
		return 0, notLeader(x.leader())
	}
	commit := x.r.CommitIndex()
	at, err := x.termAt(commit)
	if err != nil {
		return 0, err
	}
	if at != term {
		return 0, machine.Refuse(CodeNotReady, "try again", "the leader has committed nothing in its term yet")
	}
	index, err := x.lastCommand(commit)
	if err != nil {
		return 0, err
	}
	if err := x.confirm(term); err != nil {
		return 0, err
	}
	if now, ok := x.leads(); !ok || now != term {
		return 0, notLeader(x.leader())
	}
	return index, nil
}

var errDeposed = errors.New("the heartbeat was refused")

// confirm has a majority answer a heartbeat of this term.
func (x *run) confirm(term uint64) error {
	servers := x.r.GetConfiguration().Configuration().Servers
	votes := make(chan error, len(servers))
	for _, s := range servers {
		if string(s.ID) == x.p.id {
			votes <- nil
			continue
		}
		go func() {
			var answer raft.AppendEntriesResponse
			err := x.t.AppendEntries(s.ID, s.Address, &raft.AppendEntriesRequest{Term: term}, &answer)
			if err == nil && (!answer.Success || answer.Term != term) {
				err = errDeposed
			}
			votes <- err
		}()
	}
	good, bad := 0, 0
	for need := len(servers)/2 + 1; good < need; {
		select {
		case err := <-votes:
			if err == nil {
				good++
			} else if bad++; bad > len(servers)-need {
				return machine.Refuse(CodeNotReady, "try again", "a majority does not confirm that this node leads")
			}
		case <-x.t.ctx.Done():
			return errStopped
		}
	}
	return nil
}
