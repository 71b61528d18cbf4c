package raftpath

import (
	"context"
	"time"

	"github.com/hashicorp/raft"
)

// startFollowing makes this node an observer: it follows the log of whichever
// member serves it. The caller holds life.
func (p *Path) startFollowing() {
	ctx, cancel := context.WithCancel(p.ctx)
	p.following, p.followed = cancel, make(chan struct{})
	done := p.followed
	p.wg.Go(func() {
		defer close(done)
		p.follow(ctx)
	})
}

// stopFollowing ends it; the caller holds life.
func (p *Path) stopFollowing() {
	if p.following == nil {
		return
	}
	p.following()
	<-p.followed
	p.following = nil
}

// follow keeps a stream to some member until ctx ends or this node fails.
func (p *Path) follow(ctx context.Context) {
	pause := againFirst
	for ctx.Err() == nil && p.Fatal() == nil {
		before := p.Head().Index
		for _, peer := range p.others("") {
			last, err := p.fetchFrom(ctx, peer, func(Progress) bool { return false })
			if last != nil {
				p.keep(last)
			}
			if ctx.Err() != nil || p.Fatal() != nil {
				return
			}
			p.log.Info("sync stream ended", "from", peer, "err", err)
		}
		if p.Head().Index > before {
			pause = againFirst
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
		}
		pause = min(2*pause, 5*againMost)
	}
}

// keep remembers the entry the state ends with: raft starts from it when this
// node becomes a voter.
func (p *Path) keep(last *raft.Log) {
	p.mu.Lock()
	p.ending = last
	p.mu.Unlock()
}
