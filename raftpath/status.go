package raftpath

import "github.com/hashicorp/raft"

// Status is a view of this moment.
func (p *Path) Status() Status {
	head, seq, stamp := p.pos.get()
	s := Status{Role: Stopped, Generation: head.Generation, Index: head.Index, Term: head.Term, Seq: seq, Stamp: stamp, Fatal: p.Fatal()}
	if config, err := head.configuration(); err == nil {
		s.Voters = voters(config)
	}
	s.Leader = p.leaderNow()
	x := p.running()
	p.mu.Lock()
	catching, gone, goal := p.catching != nil, p.gone, p.goal
	p.mu.Unlock()
	if x == nil {
		if !catching && p.ctx.Err() == nil {
			s.Role = Observer
			s.CaughtUp = s.Leader != "" && head.Index > 0 && head.Index >= goal
		}
		return s
	}
	s.Term = x.r.CurrentTerm()
	s.Voters = voters(x.r.GetConfiguration().Configuration())
	switch x.r.State() {
	case raft.Leader:
		s.Role = Leader
	case raft.Candidate:
		s.Role = Candidate
	case raft.Follower:
		s.Role = Follower
	}
	s.Removed = gone
	need, err := x.lastCommand(x.r.CommitIndex())
	s.CaughtUp = s.Leader != "" && err == nil && x.r.CommitIndex() > 0 && head.Index >= need && !gone && !p.lags(head.Index)
	return s
}
