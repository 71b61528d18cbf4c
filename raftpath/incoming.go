package raftpath

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
)

// maxAhead bounds the messages of one stream that are decoded before their turn.
const maxAhead = 4

// serveRaft serves one stream of the raft plane. Messages are decoded and
// checked here, in parallel with other streams; they reach raft one at a time.
func (p *Path) serveRaft(_ context.Context, s *p2p.Stream) error {
	jobs := make(chan func() []byte, maxAhead)
	done := make(chan struct{})
	go func() {
		defer close(done)
		for job := range jobs {
			reply := job()
			s.SetWriteDeadline(time.Now().Add(p.cfg.Timing.RPC))
			if s.Send(reply) != nil {
				s.Reset() // ends the loop below
			}
		}
	}()
	defer func() {
		close(jobs)
		s.Reset()
		<-done
	}()
	for {
		frame, err := s.Recv()
		if err != nil {
			return err
		}
		if p.ctx.Err() != nil {
			return errStopped
		}
		jobs <- p.receive(s.Peer(), frame)
	}
}

// receive decodes and checks one message and returns what is left to do in
// its turn.
func (p *Path) receive(from string, frame []byte) func() []byte {
	refuse := func(err error) func() []byte { return func() []byte { return refusalReply(err) } }
	run := p.running()
	if run == nil || run.t.stopped() || len(frame) == 0 {
		return refuse(errStopped)
	}
	t := run.t
	switch frame[0] {
	case kindAppend:
		m, err := decodeAppend(frame[1:])
		if err == nil {
			err = t.guard.CheckAppend(from, m)
		}
		if err != nil {
			return refuse(err)
		}
		return func() []byte { return run.takeAppend(from, m) }
	case kindVote:
		m, err := decodeVote(frame[1:])
		if err == nil {
			err = t.guard.CheckVote(from, m)
		}
		if err != nil {
			return refuse(err)
		}
		return func() []byte { return t.takeVote(from, m) }
	case kindOffer:
		m, err := decodeOffer(frame[1:])
		if err != nil {
			return refuse(err)
		}
		return func() []byte { return p.takeOffer(run, from, m) }
	}
	return refuse(errFrame)
}

// ask hands one message to raft's main thread and waits for its answer.
func (t *transport) ask(command any) (any, error) {
	rpc := raft.RPC{Command: command}
	answer := make(chan raft.RPCResponse, 1)
	rpc.RespChan = answer
	if t.stopped() {
		return nil, errStopped
	}
	select {
	case t.rpc <- rpc:
	case <-t.ctx.Done():
		return nil, errStopped
	}
	select {
	case r := <-answer:
		return r.Response, r.Error
	case <-t.ctx.Done():
		return nil, errStopped
	}
}

func (x *run) takeAppend(from string, m *guard.Append) []byte {
	t := x.t
	if f := t.beat.Load(); f != nil && m.Prev == 0 && len(m.Entries) == 0 && m.Commit == 0 {
		return t.beatFast(*f, from, m)
	}
	t.serial.Lock()
	defer t.serial.Unlock()
	given, err := x.fit(m)
	if err != nil {
		return refusalReply(err)
	}
	r, err := t.append(from, m, given)
	if err != nil {
		return refusalReply(err)
	}
	if len(m.Entries) > 0 {
		t.late(x.r)
	}
	return encodeAppendReply(r)
}

// fit cuts off a message what lies before the beginning of this node's log.
// All of that is committed and in the state, so every leader holds the same.
// raft would only say that it does not find it, and the leader would look for
// a common entry further back, and from its snapshot again, for ever: that
// snapshot may be older than the state this node has fetched.
func (x *run) fit(m *guard.Append) (*guard.Append, error) {
	if m.Prev >= x.r.LastIndex() || m.Prev == 0 && len(m.Entries) == 0 {
		return m, nil
	}
	first, err := x.disk.logs.FirstIndex()
	if err != nil || m.Prev >= first || first > max(x.p.Head().Index, x.r.CommitIndex()) {
		return m, err
	}
	var begin raft.Log
	if err := x.disk.logs.GetLog(first, &begin); err != nil {
		return nil, err
	}
	given, known := *m, first-m.Prev // the last one known is the log's first
	given.Prev, given.PrevTerm = first, begin.Term
	switch {
	case uint64(len(m.Entries)) < known:
		given.Entries, given.Commit = nil, min(m.Commit, first)
	case m.Entries[known-1].Term != begin.Term:
		return m, nil // no leader's: raft refuses it
	default:
		given.Entries = m.Entries[known:]
	}
	return &given, nil
}

// append rules on a message and gives it to raft, as far as it concerns it;
// the caller holds serial.
func (t *transport) append(from string, m, given *guard.Append) (r guard.AppendReply, err error) {
	if err := t.guard.JudgeAppend(from, m); err != nil {
		return r, err
	}
	out, err := t.ask(appendRequest(from, given))
	if err != nil {
		return r, err
	}
	a := out.(*raft.AppendEntriesResponse)
	r = guard.AppendReply{Term: a.Term, LastLog: a.LastLog, Success: a.Success, NoRetryBackoff: a.NoRetryBackoff}
	t.guard.DoneAppend(from, m, &r)
	return r, nil
}

func appendRequest(from string, m *guard.Append) *raft.AppendEntriesRequest {
	return &raft.AppendEntriesRequest{RPCHeader: header(from), Term: m.Term, PrevLogEntry: m.Prev, PrevLogTerm: m.PrevTerm,
		Entries: m.Entries, LeaderCommitIndex: m.Commit}
}

// beatFast is what raft's own transport does with heartbeats; for tests that
// show why ours does not.
func (t *transport) beatFast(f func(raft.RPC), from string, m *guard.Append) []byte {
	answer := make(chan raft.RPCResponse, 1)
	f(raft.RPC{Command: appendRequest(from, m), RespChan: answer})
	select {
	case r := <-answer:
		if a, ok := r.Response.(*raft.AppendEntriesResponse); ok && r.Error == nil {
			return encodeAppendReply(guard.AppendReply{Term: a.Term, LastLog: a.LastLog, Success: a.Success, NoRetryBackoff: a.NoRetryBackoff})
		}
	default: // raft is shut down
	}
	return refusalReply(errStopped)
}

func (t *transport) takeVote(from string, m *guard.Vote) []byte {
	t.serial.Lock()
	defer t.serial.Unlock()
	r, err := t.ballot(from, m)
	if err != nil {
		return refusalReply(err)
	}
	return encodeVoteReply(r)
}

func (t *transport) ballot(from string, m *guard.Vote) (r guard.VoteReply, err error) {
	if err := t.guard.JudgeVote(from, m); err != nil {
		return r, err
	}
	if m.Pre {
		out, err := t.ask(&raft.RequestPreVoteRequest{RPCHeader: header(from), Term: m.Term, LastLogIndex: m.LastIndex, LastLogTerm: m.LastTerm})
		if err != nil {
			return r, err
		}
		v := out.(*raft.RequestPreVoteResponse)
		r = guard.VoteReply{Term: v.Term, Granted: v.Granted}
	} else {
		out, err := t.ask(&raft.RequestVoteRequest{RPCHeader: header(from), Term: m.Term, LastLogIndex: m.LastIndex, LastLogTerm: m.LastTerm})
		if err != nil {
			return r, err
		}
		v := out.(*raft.RequestVoteResponse)
		r = guard.VoteReply{Term: v.Term, Granted: v.Granted}
	}
	t.guard.DoneVote(from, m, &r)
	return r, nil
}
