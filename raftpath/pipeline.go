package raftpath

import (
	"sync"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
)

// maxInFlight bounds the AppendEntries one pipeline sends ahead of replies.
const maxInFlight = 4

// pipeline sends AppendEntries to one follower ahead of their replies. It ends
// at the first bad answer: raft's decoder is gone by then, and raft's sender
// would wait for good.
type pipeline struct {
	t    *transport
	s    *p2p.Stream
	sent chan *appendFuture
	done chan raft.AppendFuture
	dead chan struct{} // closed by receive at a bad answer
	stop chan struct{} // closed by Close
	once sync.Once
}

type appendFuture struct {
	start time.Time
	m     *guard.Append
	req   *raft.AppendEntriesRequest
	resp  *raft.AppendEntriesResponse
	err   error
	ready chan struct{}
}

func (f *appendFuture) Error() error                          { <-f.ready; return f.err }
func (f *appendFuture) Start() time.Time                      { return f.start }
func (f *appendFuture) Request() *raft.AppendEntriesRequest   { return f.req }
func (f *appendFuture) Response() *raft.AppendEntriesResponse { return f.resp }

// AppendEntriesPipeline implements raft.Transport.
func (t *transport) AppendEntriesPipeline(id raft.ServerID, _ raft.ServerAddress) (raft.AppendPipeline, error) {
	s, err := t.open(string(id))
	if err != nil {
		return nil, err
	}
	p := &pipeline{t: t, s: s, sent: make(chan *appendFuture, maxInFlight), done: make(chan raft.AppendFuture, maxInFlight),
		dead: make(chan struct{}), stop: make(chan struct{})}
	go p.receive()
	return p, nil
}

// AppendEntries implements raft.AppendPipeline.
func (p *pipeline) AppendEntries(a *raft.AppendEntriesRequest, resp *raft.AppendEntriesResponse) (raft.AppendFuture, error) {
	m, err := p.t.message(p.s.Peer(), a)
	if err != nil {
		return nil, err
	}
	f := &appendFuture{start: time.Now(), m: m, req: a, resp: resp, ready: make(chan struct{})}
	p.s.SetWriteDeadline(time.Now().Add(p.t.timeout))
	if err := p.s.Send(encodeAppend(m)); err != nil {
		return nil, err
	}
	select {
	case p.sent <- f:
		return f, nil
	case <-p.dead:
	case <-p.stop:
	}
	return nil, errStopped
}

// receive matches replies to what was sent, in order.
func (p *pipeline) receive() {
	for {
		select {
		case f := <-p.sent:
			if !p.settle(f) {
				return
			}
		case <-p.stop:
			return
		}
	}
}

func (p *pipeline) settle(f *appendFuture) bool {
	p.s.SetReadDeadline(time.Now().Add(p.t.timeout))
	b, err := p.s.Recv()
	if err == nil {
		b, err = parseReply(b)
	}
	if err == nil {
		err = p.t.answered(p.s.Peer(), f.m, b, f.resp)
	}
	// raft does not ask for the error: an empty response is "not successful"
	// and ends the pipeline.
	f.err = err
	close(f.ready)
	good := err == nil && f.resp.Success
	if !good {
		close(p.dead)
	}
	select {
	case p.done <- f:
	case <-p.stop:
		return false
	}
	return good
}

// Consumer implements raft.AppendPipeline.
func (p *pipeline) Consumer() <-chan raft.AppendFuture { return p.done }

// Close implements raft.AppendPipeline. What has been sent still arrives: to a
// voter that is being removed raft sends its last entries right before.
func (p *pipeline) Close() error {
	p.once.Do(func() {
		close(p.stop)
		select {
		case <-p.dead:
			p.t.drop(p.s)
		default:
			p.t.finish(p.s)
		}
	})
	return nil
}
