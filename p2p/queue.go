package p2p

import (
	"context"
	"sync"
	"time"

	"github.com/deliberd/deliberd/machine"
)

// Bounds of one queue.
const (
	maxQueued      = 4096
	maxQueuedBytes = 32 << 20
)

const (
	retryFirst = 20 * time.Millisecond
	retryMost  = time.Second
)

// HandleFrames serves a protocol of one-way frames: f is called with each
// frame of a stream in order, streams in parallel. An error ends the stream.
func (h *Host) HandleFrames(proto string, f func(from string, frame []byte) error) {
	h.HandleStream(proto, func(_ context.Context, s *Stream) error {
		for {
			frame, err := s.Recv()
			if err != nil {
				return err
			}
			if err := f(s.peer, frame); err != nil {
				return err
			}
		}
	})
}

// Send queues a frame to a peer and returns at once. Frames arrive in order;
// when a connection breaks those in flight are lost and the rest follow on the
// next one. It errs with [CodeQueueFull] when more than 4,096 frames or 32 MiB
// wait. The queue keeps frame.
func (h *Host) Send(id, proto string, frame []byte) error {
	q, err := h.queueTo(id, proto)
	if err != nil {
		return err
	}
	return q.add(frame, false)
}

// SendLatest is Send for frames of which only the newest matters: it takes
// the place of those that wait.
func (h *Host) SendLatest(id, proto string, frame []byte) error {
	q, err := h.queueTo(id, proto)
	if err != nil {
		return err
	}
	return q.add(frame, true)
}

func (h *Host) queueTo(id, proto string) (*queue, error) {
	p, err := parsePeer(id)
	if err != nil {
		return nil, err
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	q := h.queues[route{p, proto}]
	if q == nil {
		if h.closed {
			return nil, machine.Refuse(CodeUnreachable, "", "this node is stopping")
		}
		q = &queue{h: h, to: route{p, proto}, wake: make(chan struct{}, 1)}
		h.queues[q.to] = q
		h.wg.Go(q.run)
	}
	return q, nil
}

// queue is the frames that wait for one peer on one protocol.
type queue struct {
	h    *Host
	to   route
	wake chan struct{}

	mu     sync.Mutex
	frames [][]byte
	bytes  int
}

func (q *queue) add(frame []byte, only bool) error {
	q.mu.Lock()
	if only {
		q.frames, q.bytes = nil, 0
	}
	if len(q.frames) >= maxQueued || q.bytes+len(frame) > maxQueuedBytes {
		q.mu.Unlock()
		return machine.Refuse(CodeQueueFull, "", "%d frames to %s wait already", maxQueued, q.to.peer)
	}
	q.frames = append(q.frames, frame)
	q.bytes += len(frame)
	q.mu.Unlock()
	select {
	case q.wake <- struct{}{}:
	default:
	}
	return nil
}

func (q *queue) takeAll() [][]byte {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.frames
	q.frames, q.bytes = nil, 0
	return out
}

func (q *queue) empty() bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.frames) == 0
}

// run sends until the host closes. A stream is opened when there is something
// to send, and what waits stays queued until one is open.
func (q *queue) run() {
	var s *Stream
	defer func() {
		if s != nil {
			s.Reset()
		}
	}()
	retry := retryFirst
	for {
		select {
		case <-q.wake:
		case <-q.h.ctx.Done():
			return
		}
		for !q.empty() {
			if s == nil {
				opened, err := q.h.open(q.h.ctx, q.to.peer, q.to.proto)
				if err != nil {
					if !q.pause(&retry) {
						return
					}
					continue
				}
				s, retry = opened, retryFirst
				q.watch(s)
			}
			if err := q.write(s); err != nil {
				s.Reset()
				s = nil
				if !q.pause(&retry) {
					return
				}
			}
		}
	}
}

// write sends all that waits in one flush.
func (q *queue) write(s *Stream) error {
	s.SetWriteDeadline(time.Now().Add(q.h.cfg.CallTimeout))
	for _, frame := range q.takeAll() {
		if err := s.Write(frame); err != nil {
			return err
		}
	}
	return s.Flush()
}

// watch resets the stream when the peer ends it or refuses its hello, so that
// the next write fails and the queue reconnects.
func (q *queue) watch(s *Stream) {
	q.h.wg.Go(func() {
		_, err := s.Recv()
		if refusal, ok := machine.IsRefusal(err); ok {
			q.h.log.Info("frames refused", "peer", s.peer, "protocol", q.to.proto, "code", refusal.Code)
		}
		s.Reset()
	})
}

// pause waits before the next attempt; false when the host closes.
func (q *queue) pause(retry *time.Duration) bool {
	t := time.NewTimer(*retry)
	defer t.Stop()
	*retry = min(2**retry, retryMost)
	select {
	case <-t.C:
		return true
	case <-q.h.ctx.Done():
		return false
	}
}
