package raftpath

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
)

func containsString(list []string, s string) bool { return slices.Contains(list, s) }

// catchUp is one catch-up under way; those who need the same wait for it.
type catchUp struct {
	done chan struct{}
	err  error
}

// takeOffer answers "my log begins at first; where are you?". A node whose
// log does not reach there fetches what it lacks first, so that the leader
// goes on at once.
func (p *Path) takeOffer(x *run, from string, m offer) []byte {
	if err := x.t.guard.JudgeOffer(from, m.term, m.first); err != nil {
		return refusalReply(err)
	}
	if term := x.r.CurrentTerm(); m.term < term {
		return refusalReply(machine.Refuse(CodeNotReady, "", "the offer is of term %d, this node is in %d", m.term, term))
	}
	last := x.r.LastIndex()
	if last >= m.first { // raft sends an entry with the one before it
		return encodeOfferReply(last)
	}
	if err := p.CatchUp(p.ctx, from); err != nil {
		p.log.Warn("catch up", "from", from, "err", err)
		return refusalReply(machine.Refuse(CodeNotReady, "", "the state could not be fetched"))
	}
	if x = p.running(); x == nil {
		return refusalReply(errStopped)
	}
	return encodeOfferReply(x.r.LastIndex())
}

// CatchUp stops raft, fetches state and entries from a peer (or, failing
// that, from another member) until this node is level with it, and starts
// raft there. A second call while one is under way waits for that one.
func (p *Path) CatchUp(ctx context.Context, from string) error {
	p.mu.Lock()
	c := p.catching
	if c == nil {
		if p.shut {
			p.mu.Unlock()
			return errStopped
		}
		c = &catchUp{done: make(chan struct{})}
		p.catching = c
		p.wg.Go(func() {
			c.err = p.catchUp(from)
			p.mu.Lock()
			p.catching = nil
			p.mu.Unlock()
			close(c.done)
		})
	}
	p.mu.Unlock()
	select {
	case <-c.done:
		return c.err
	case <-ctx.Done():
		return ctx.Err()
	}
}

func (p *Path) catchUp(from string) error {
	p.life.Lock()
	defer p.life.Unlock()
	if p.ctx.Err() != nil || p.running() == nil {
		return errStopped
	}
	began := time.Now()
	p.log.Info("catching up", "from", from, "index", p.Head().Index)
	p.hear(from, 0)
	if err := p.stopRaft(); err != nil {
		return err
	}
	last, err := p.level(append([]string{from}, p.others(from)...))
	if err == nil && last != nil {
		err = p.prepareRaft(last)
	}
	// Whatever came of it, raft starts again: it is where it was, or further.
	if p.ctx.Err() == nil {
		err = errors.Join(err, p.startRaft())
	}
	if err == nil {
		p.log.Info("caught up", "index", p.Head().Index, "took", time.Since(began))
	}
	return err
}

// level fetches from the first of the peers that serves until this node is
// level with it, and returns the entry it ends with; nil when nothing was
// missing.
func (p *Path) level(peers []string) (last *raft.Log, err error) {
	for _, peer := range peers {
		if p.ctx.Err() != nil {
			return last, errStopped
		}
		got, failed := p.fetchFrom(p.ctx, peer, func(s Progress) bool { return s.Done })
		if got != nil {
			last = got
		}
		if failed == nil {
			return last, nil
		}
		err = errors.Join(err, failed)
		if p.Fatal() != nil {
			break
		}
	}
	return last, err
}

// others lists the peers this node may fetch from, in an order that differs
// from node to node.
func (p *Path) others(not string) []string {
	head := p.Head()
	peers := slices.Clone(p.cfg.Members())
	if config, err := head.configuration(); err == nil {
		peers = append(peers, voters(config)...)
	}
	slices.Sort(peers)
	peers = slices.DeleteFunc(slices.Compact(peers), func(id string) bool { return id == p.id || id == not })
	at, _ := slices.BinarySearch(peers, p.id)
	return append(slices.Clone(peers[at:]), peers[:at]...)
}
