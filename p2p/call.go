package p2p

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"

	"github.com/libp2p/go-libp2p/core/peer"

	"github.com/deliberd/deliberd/machine"
)

// maxIdle bounds the pooled streams of one route.
const maxIdle = 8

// Handle serves a protocol of requests and responses. f runs in its own
// goroutine per request stream; requests on one stream come one at a time.
// A [machine.Refusal] reaches the caller; any other error as code internal.
func (h *Host) Handle(proto string, f func(ctx context.Context, from string, request []byte) ([]byte, error)) {
	h.HandleStream(proto, func(ctx context.Context, s *Stream) error {
		for {
			request, err := s.Recv()
			if err != nil {
				return err
			}
			response, err := f(ctx, s.peer, request)
			if err != nil {
				return err
			}
			s.SetWriteDeadline(time.Now().Add(h.cfg.CallTimeout))
			if err := s.Send(response); err != nil {
				return err
			}
		}
	})
}

// Call sends a request and waits for the response, at most until ctx ends or
// CallTimeout has passed. Errors: a [machine.Refusal] of the peer's handler or
// of this package ([CodeUnreachable], [CodeWrongGenesis], …); anything else
// means that the request may or may not have been handled.
func (h *Host) Call(ctx context.Context, id, proto string, request []byte) ([]byte, error) {
	p, err := parsePeer(id)
	if err != nil {
		return nil, err
	}
	for {
		s, pooled, err := h.take(ctx, route{p, proto})
		if err != nil {
			return nil, err
		}
		response, sent, err := h.exchange(ctx, s, request)
		if err == nil {
			h.give(route{p, proto}, s)
			return response, nil
		}
		s.Reset()
		if pooled && !sent && ctx.Err() == nil {
			continue // it died while idle
		}
		return nil, err
	}
}

// exchange is one request on a stream of our own. sent is false when the peer
// cannot have received the whole request.
func (h *Host) exchange(ctx context.Context, s *Stream, request []byte) (response []byte, sent bool, err error) {
	limit := time.Now().Add(h.cfg.CallTimeout)
	if d, ok := ctx.Deadline(); ok && d.Before(limit) {
		limit = d
	}
	start := time.Now()
	s.SetDeadline(limit)
	stop := context.AfterFunc(ctx, s.Reset)
	defer stop()
	if err := s.Send(request); err != nil {
		return nil, false, h.broken(ctx, s.id, start, err)
	}
	response, err = s.Recv()
	if err != nil {
		return nil, true, h.broken(ctx, s.id, start, err)
	}
	if !stop() {
		return nil, true, ctx.Err()
	}
	return response, true, nil
}

// broken says why an exchange failed. A peer of which nothing was heard for
// the whole time of a call may sit behind a dead connection, which TCP would
// keep for minutes: it is closed, so that the next call dials.
func (h *Host) broken(ctx context.Context, p peer.ID, start time.Time, err error) error {
	if ctx.Err() != nil {
		return fmt.Errorf("node %s: %w", p, ctx.Err())
	}
	if _, ok := machine.IsRefusal(err); ok {
		return err
	}
	var timeout net.Error
	if errors.As(err, &timeout) && timeout.Timeout() {
		if d, ok := ctx.Deadline(); ok && !d.After(time.Now()) {
			return fmt.Errorf("node %s: %w", p, context.DeadlineExceeded)
		}
		if h.silentSince(p, start) {
			h.disconnect(p)
		}
	}
	return fmt.Errorf("node %s: %w", p, err)
}

func (h *Host) hear(p peer.ID) {
	h.mu.Lock()
	h.heard[p] = time.Now()
	h.mu.Unlock()
}

func (h *Host) silentSince(p peer.ID, t time.Time) bool {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.heard[p].Before(t)
}

// take gets an idle stream or opens one.
func (h *Host) take(ctx context.Context, r route) (s *Stream, pooled bool, err error) {
	h.mu.Lock()
	if idle := h.idle[r]; len(idle) > 0 {
		s = idle[len(idle)-1]
		h.idle[r] = idle[:len(idle)-1]
		h.mu.Unlock()
		return s, true, nil
	}
	h.mu.Unlock()
	s, err = h.open(ctx, r.peer, r.proto)
	return s, false, err
}

func (h *Host) give(r route, s *Stream) {
	s.SetDeadline(time.Time{})
	h.mu.Lock()
	if !h.closed && !h.cut[r.peer] && len(h.idle[r]) < maxIdle && !s.s.Conn().IsClosed() {
		h.idle[r] = append(h.idle[r], s)
		s = nil
	}
	h.mu.Unlock()
	if s != nil {
		s.Reset()
	}
}

// dropIdle resets the pooled streams of a peer.
func (h *Host) dropIdle(p peer.ID) {
	h.mu.Lock()
	var dead []*Stream
	for r, idle := range h.idle {
		if r.peer == p {
			dead = append(dead, idle...)
			delete(h.idle, r)
		}
	}
	h.mu.Unlock()
	for _, s := range dead {
		s.Reset()
	}
}
