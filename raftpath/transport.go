package raftpath

import (
	"context"
	"errors"
	"io"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
)

// maxPooled bounds idle streams to one voter; raft uses one for heartbeats and
// one for what it does not pipeline.
const maxPooled = 3

// transport is raft's transport for one run of raft: its messages go through
// the guard and over streams of package p2p.
type transport struct {
	self    string
	host    *p2p.Host
	guard   guard.Guard
	rpc     chan raft.RPC
	timeout time.Duration
	offered time.Duration // how long an offer may take
	first   func() (uint64, error)
	muted   atomic.Bool // says and hears nothing: see watchdog.go
	fast    bool        // tests: expose the heartbeat fast path
	beat    atomic.Pointer[func(raft.RPC)]

	ctx  context.Context
	stop context.CancelFunc

	serial sync.Mutex // what reaches raft, one at a time, with the guard's ruling
	early  *early     // guarded by serial

	mu   sync.Mutex
	pool map[string][]*p2p.Stream
	live map[*p2p.Stream]bool
}

var (
	_ raft.Transport   = (*transport)(nil)
	_ raft.WithPreVote = (*transport)(nil)
)

var errStopped = &machine.Refusal{Code: CodeNotReady, Message: "raft is stopped here"}

func newTransport(host *p2p.Host, g guard.Guard, t Timing, first func() (uint64, error)) *transport {
	x := &transport{self: host.ID(), host: host, guard: g, rpc: make(chan raft.RPC), timeout: t.RPC, offered: 2 * t.CatchUp, first: first,
		pool: map[string][]*p2p.Stream{}, live: map[*p2p.Stream]bool{}}
	x.ctx, x.stop = context.WithCancel(context.Background())
	return x
}

// shut ends every exchange. raft never sees a Close method: it would call it.
func (t *transport) shut() {
	t.stop()
	t.resetAll()
}

func (t *transport) resetAll() {
	t.mu.Lock()
	defer t.mu.Unlock()
	for s := range t.live {
		s.Reset()
	}
	for id := range t.pool {
		for _, s := range t.pool[id] {
			s.Reset()
		}
		delete(t.pool, id)
	}
}

// mute silences this node towards the other voters, and back.
func (t *transport) mute(on bool) {
	if t.muted.Swap(on) != on && on {
		t.resetAll()
	}
}

func (t *transport) stopped() bool { return t.ctx.Err() != nil || t.muted.Load() }

// Consumer implements raft.Transport.
func (t *transport) Consumer() <-chan raft.RPC { return t.rpc }

// LocalAddr implements raft.Transport: an address is a peer id.
func (t *transport) LocalAddr() raft.ServerAddress { return raft.ServerAddress(t.self) }

// EncodePeer implements raft.Transport.
func (t *transport) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }

// DecodePeer implements raft.Transport.
func (t *transport) DecodePeer(b []byte) raft.ServerAddress { return raft.ServerAddress(b) }

// SetHeartbeatHandler drops raft's fast path (hashicorp/raft issue 695): it
// would change term and state beside the main thread, and nodes then disagree
// about entries. Heartbeats queue behind log writes instead.
func (t *transport) SetHeartbeatHandler(f func(raft.RPC)) {
	if t.fast && f != nil {
		t.beat.Store(&f)
	}
}

// TimeoutNow implements raft.Transport: leadership is not transferred.
func (t *transport) TimeoutNow(raft.ServerID, raft.ServerAddress, *raft.TimeoutNowRequest, *raft.TimeoutNowResponse) error {
	return errors.New("leadership is not transferred")
}

// header names the authenticated peer; nothing of it travels.
func header(id string) raft.RPCHeader {
	return raft.RPCHeader{ProtocolVersion: raft.ProtocolVersionMax, ID: []byte(id), Addr: []byte(id)}
}

// message is the wire form of an AppendEntries, cut to what one frame takes.
// raft reads back from a how many entries went out.
func (t *transport) message(to string, a *raft.AppendEntriesRequest) (*guard.Append, error) {
	size := 0
	for i, e := range a.Entries {
		if size += len(e.Data) + 32; size > maxAppendBytes && i > 0 {
			a.Entries = a.Entries[:i]
			break
		}
	}
	m := &guard.Append{Term: a.Term, Prev: a.PrevLogEntry, PrevTerm: a.PrevLogTerm, Commit: a.LeaderCommitIndex, Entries: a.Entries}
	return m, t.guard.SealAppend(to, m)
}

// AppendEntries implements raft.Transport.
func (t *transport) AppendEntries(id raft.ServerID, _ raft.ServerAddress, a *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) error {
	m, err := t.message(string(id), a)
	if err != nil {
		return err
	}
	b, err := t.call(string(id), encodeAppend(m), t.timeout)
	if err != nil {
		return err
	}
	return t.answered(string(id), m, b, resp)
}

func (t *transport) answered(id string, m *guard.Append, b []byte, resp *raft.AppendEntriesResponse) error {
	r, err := decodeAppendReply(b)
	if err != nil {
		return err
	}
	if err := t.guard.AnsweredAppend(id, m, &r); err != nil {
		return err
	}
	*resp = raft.AppendEntriesResponse{RPCHeader: header(id), Term: r.Term, LastLog: r.LastLog, Success: r.Success, NoRetryBackoff: r.NoRetryBackoff}
	return nil
}

func (t *transport) vote(id string, m *guard.Vote) (guard.VoteReply, error) {
	if err := t.guard.SealVote(id, m); err != nil {
		return guard.VoteReply{}, err
	}
	b, err := t.call(id, encodeVote(m), t.timeout)
	if err != nil {
		return guard.VoteReply{}, err
	}
	r, err := decodeVoteReply(b)
	if err != nil {
		return guard.VoteReply{}, err
	}
	return r, t.guard.AnsweredVote(id, m, &r)
}

// RequestVote implements raft.Transport.
func (t *transport) RequestVote(id raft.ServerID, _ raft.ServerAddress, a *raft.RequestVoteRequest, resp *raft.RequestVoteResponse) error {
	r, err := t.vote(string(id), &guard.Vote{Term: a.Term, LastIndex: a.LastLogIndex, LastTerm: a.LastLogTerm})
	if err != nil {
		return err
	}
	*resp = raft.RequestVoteResponse{RPCHeader: header(string(id)), Term: r.Term, Granted: r.Granted}
	return nil
}

// RequestPreVote implements raft.WithPreVote.
func (t *transport) RequestPreVote(id raft.ServerID, _ raft.ServerAddress, a *raft.RequestPreVoteRequest, resp *raft.RequestPreVoteResponse) error {
	r, err := t.vote(string(id), &guard.Vote{Term: a.Term, LastIndex: a.LastLogIndex, LastTerm: a.LastLogTerm, Pre: true})
	if err != nil {
		return err
	}
	*resp = raft.RequestPreVoteResponse{RPCHeader: header(string(id)), Term: r.Term, Granted: r.Granted}
	return nil
}

// InstallSnapshot sends an offer without data. When the follower's log, which
// it may have fetched meanwhile, reaches into ours, raft is told that the
// snapshot is installed: it then takes the snapshot's index, which is
// committed anyway, for the follower's, and goes on from there. What the
// follower's log begins above, it knows: see fit.
func (t *transport) InstallSnapshot(id raft.ServerID, _ raft.ServerAddress, a *raft.InstallSnapshotRequest, resp *raft.InstallSnapshotResponse, _ io.Reader) error {
	first, err := t.first()
	if err != nil {
		return err
	}
	b, err := t.call(string(id), offer{term: a.Term, first: first}.encode(), t.offered)
	if err != nil {
		return err
	}
	r := &reader{b: b}
	last := r.position()
	if err := r.end(); err != nil {
		return err
	}
	if first, err = t.first(); err != nil {
		return err
	}
	*resp = raft.InstallSnapshotResponse{RPCHeader: header(string(id)), Term: a.Term, Success: last >= first}
	return nil
}

// call is one message and the body of its reply.
func (t *transport) call(to string, frame []byte, limit time.Duration) ([]byte, error) {
	s, err := t.get(to)
	if err != nil {
		return nil, err
	}
	s.SetDeadline(time.Now().Add(limit))
	if err = s.Send(frame); err == nil {
		var b []byte
		if b, err = s.Recv(); err == nil {
			t.put(to, s)
			return parseReply(b)
		}
	}
	t.drop(s)
	return nil, err
}

// get takes an idle stream or opens one, and counts it as live.
func (t *transport) get(to string) (*p2p.Stream, error) {
	if t.stopped() {
		return nil, errStopped
	}
	t.mu.Lock()
	if idle := t.pool[to]; len(idle) > 0 {
		s := idle[len(idle)-1]
		t.pool[to] = idle[:len(idle)-1]
		t.live[s] = true
		t.mu.Unlock()
		return s, nil
	}
	t.mu.Unlock()
	return t.open(to)
}

func (t *transport) open(to string) (*p2p.Stream, error) {
	s, err := t.host.Open(t.ctx, to, p2p.Raft)
	if err != nil {
		return nil, err
	}
	t.mu.Lock()
	t.live[s] = true
	t.mu.Unlock()
	if t.stopped() {
		t.drop(s)
		return nil, errStopped
	}
	return s, nil
}

func (t *transport) put(to string, s *p2p.Stream) {
	s.SetDeadline(time.Time{})
	t.mu.Lock()
	delete(t.live, s)
	keep := !t.stopped() && len(t.pool[to]) < maxPooled
	if keep {
		t.pool[to] = append(t.pool[to], s)
	}
	t.mu.Unlock()
	if !keep {
		s.Reset()
	}
}

// finish ends a stream in order.
func (t *transport) finish(s *p2p.Stream) {
	t.mu.Lock()
	delete(t.live, s)
	t.mu.Unlock()
	if s.Close() != nil {
		s.Reset()
	}
}

// drop resets a stream, and with it the idle ones to the same peer: when one
// fails the others have likely failed too.
func (t *transport) drop(s *p2p.Stream) {
	s.Reset()
	t.mu.Lock()
	delete(t.live, s)
	idle := t.pool[s.Peer()]
	delete(t.pool, s.Peer())
	t.mu.Unlock()
	for _, x := range idle {
		x.Reset()
	}
}
