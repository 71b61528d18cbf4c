package raftpath

import (
	"context"
	"encoding/binary"
	"sync"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
)

// Requests of the forward protocol: the first byte.
const (
	askSubmit   byte = 1 // actions; the reply holds an answer for each
	askRead     byte = 2 // the index a linearizable read must wait for
	askStanding byte = 3 // how far a node is: see standing
	askEntry    byte = 4 // an entry of the log, by its index
)

// Bounds of one forwarded batch.
const (
	maxForward      = 256
	maxForwardBytes = 2 << 20
	maxForwards     = 4 // batches under way to one leader
)

// forwarder sends actions to the leader: at once when few batches are under
// way, and together otherwise.
type forwarder struct {
	p  *Path
	mu sync.Mutex
	to map[string]*lane
}

// lane is what waits for one peer.
type lane struct {
	queue   []*pending
	flights int
}

func (f *forwarder) init(p *Path) { f.p, f.to = p, map[string]*lane{} }

func (f *forwarder) add(leader string, w *pending) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.to[leader]
	if l == nil {
		l = &lane{}
		f.to[leader] = l
	}
	if len(l.queue) >= maxWaiting {
		return machine.Refuse(CodeBusy, "try again later", "%d actions wait already", len(l.queue))
	}
	l.queue = append(l.queue, w)
	f.launch(leader, l)
	return nil
}

// launch sends what waits as long as there is room; the caller holds mu.
func (f *forwarder) launch(leader string, l *lane) {
	for l.flights < maxForwards && len(l.queue) > 0 {
		n, size := 0, 0
		for n < len(l.queue) && n < maxForward {
			if size += len(l.queue[n].action); size > maxForwardBytes && n > 0 {
				break
			}
			n++
		}
		batch := l.queue[:n:n]
		l.queue = l.queue[n:]
		l.flights++
		going := f.p.spawn(func() {
			f.fly(leader, batch)
			f.mu.Lock()
			defer f.mu.Unlock()
			l.flights--
			f.launch(leader, l)
		})
		if !going {
			for _, w := range batch {
				w.done <- result{err: errStopped}
			}
		}
	}
}

// fly is one batch there and back.
func (f *forwarder) fly(leader string, batch []*pending) {
	request := []byte{askSubmit}
	request = binary.AppendUvarint(request, uint64(len(batch)))
	for _, w := range batch {
		request = appendBytes(request, w.action)
	}
	reply, err := f.p.cfg.Host.Call(f.p.ctx, leader, p2p.Forward, request)
	results := make([]result, len(batch))
	if err == nil {
		err = decodeResults(reply, results)
	}
	for i, w := range batch {
		if err != nil {
			results[i] = result{err: err}
		}
		w.done <- results[i]
	}
}

func encodeResults(results []result) []byte {
	var b []byte
	for _, r := range results {
		if r.err != nil {
			b = appendBytes(b, refusalReply(r.err))
			continue
		}
		body := binary.BigEndian.AppendUint64([]byte{replyOK}, r.seq)
		b = appendBytes(b, append(body, r.answer...))
	}
	return b
}

func decodeResults(b []byte, results []result) error {
	r := &reader{b: b}
	for i := range results {
		one := r.bytes()
		if r.err != nil {
			return r.err
		}
		body, err := parseReply(one)
		if err != nil {
			results[i].err = err
			continue
		}
		x := &reader{b: body}
		results[i].seq = x.u64()
		if x.err != nil {
			return x.err
		}
		results[i].answer = x.b
	}
	return r.end()
}

// serveForward answers other nodes' requests.
func (p *Path) serveForward(ctx context.Context, from string, request []byte) ([]byte, error) {
	if len(request) == 0 {
		return nil, errRequest
	}
	switch body := request[1:]; request[0] {
	case askSubmit:
		return p.serveSubmit(ctx, body)
	case askRead:
		index, err := p.reads.leaderIndex(ctx)
		if err != nil {
			return nil, err
		}
		return binary.BigEndian.AppendUint64(nil, index), nil
	case askStanding:
		return p.standing(from).encode(), nil
	case askEntry:
		return p.serveEntry(body)
	}
	return nil, errRequest
}

// serveEntry gives one applied entry to a node whose state ends with it.
func (p *Path) serveEntry(body []byte) ([]byte, error) {
	r := &reader{b: body}
	index := r.position()
	x := p.running()
	if r.end() != nil || index > p.Head().Index {
		return nil, errRequest
	}
	if x == nil {
		return nil, errStopped
	}
	var l raft.Log
	if err := x.disk.logs.GetLog(index, &l); err != nil {
		return nil, compacted()
	}
	return appendEntry(nil, &l), nil
}

var errRequest = machine.Refuse("malformed", "", "not a request of the forward protocol")

// serveSubmit queues another node's actions here, where raft leads, and waits
// for all answers.
func (p *Path) serveSubmit(ctx context.Context, body []byte) ([]byte, error) {
	x := p.running()
	if x == nil {
		return nil, notLeader("")
	}
	r := &reader{b: body}
	batch := make([]*pending, r.uvarint(maxForward))
	for i := range batch {
		action := r.bytes()
		if len(action) > MaxActionBytes {
			return nil, errRequest
		}
		batch[i] = newPending(action)
	}
	if err := r.end(); err != nil {
		return nil, errRequest
	}
	if err := x.lead.add(batch...); err != nil {
		return nil, err
	}
	results := make([]result, len(batch))
	for i, w := range batch {
		select {
		case results[i] = <-w.done:
		case <-ctx.Done():
			return nil, machine.Refuse(CodeUnavailable, "ask again under the same id", "the leader is stopping")
		case <-p.ctx.Done():
			return nil, machine.Refuse(CodeUnavailable, "ask again under the same id", "the leader is stopping")
		}
	}
	return encodeResults(results), nil
}
