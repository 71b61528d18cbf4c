package rpc

import (
	"context"
	"errors"
	"time"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

const (
	// maxWait is the longest wait of one poll.
	maxWait = 60 * time.Second
	// recheck is how often a waiting poll looks again although no event
	// concerned its principal: time alone can change what is asked.
	recheck = 5 * time.Second
	// settle lets the events of one entry arrive before the inbox is read again.
	settle = 20 * time.Millisecond
)

const inboxSchema = `{"type":"object","additionalProperties":false,"properties":{` +
	`"wait_ms":{"type":"integer","minimum":0,"maximum":60000,"description":"how long to wait for the inbox to differ from version; without version, to hold anything"},` +
	`"version":{"type":"string","pattern":"^[0-9a-f]{64}$","description":"version of the last answer"},` +
	`"stale":{"type":"boolean","description":"read this node's own state"}}}`

type inboxParams struct {
	WaitMS  int64  `json:"wait_ms"`
	Version string `json:"version"`
	Stale   bool   `json:"stale"`
}

// Inbox is the answer of agent.inbox. Version changes when the asks change.
type Inbox struct {
	Asks    []machine.Ask `json:"asks"`
	Version string        `json:"version"` // SHA-256 of the asks' canonical JSON, hex
}

// inbox lists what the reader is asked. With wait_ms it answers as soon as
// the inbox differs from the given version, or else when the wait is over.
func (h *Handler) inbox(ctx context.Context, c call) (any, error) {
	principal, err := h.reader(ctx, c)
	if err != nil {
		return nil, err
	}
	var p inboxParams
	if err := decode(c.Params, &p); err != nil {
		return nil, err
	}
	wait := time.Duration(p.WaitMS) * time.Millisecond
	switch {
	case p.WaitMS < 0 || p.WaitMS > maxWait.Milliseconds():
		return nil, machine.Refuse(machine.CodeOutOfRange, "use 0 to 60000", "The member wait_ms is %d.", p.WaitMS)
	case wait > 0 && c.batch:
		return nil, machine.Refuse("not_in_batch", "send the long poll as a single request", "A batch cannot wait.")
	case wait == 0:
		return h.readInbox(ctx, principal, p.Stale)
	}
	if !h.polls.Enter(principal) {
		return nil, machine.Refuse(api.CodeBusy, "end another poll first, or follow GET /events?for=me", "Too many long polls are waiting.")
	}
	defer h.polls.Leave(principal)
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	if h.cfg.Stop != nil {
		go func() {
			select {
			case <-h.cfg.Stop:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	return h.waitInbox(ctx, principal, p, wait)
}

var errStopping = machine.Refuse(api.CodeStopping, "repeat the poll at another node", "The node is stopping.")

func (h *Handler) waitInbox(ctx context.Context, principal string, p inboxParams, wait time.Duration) (Inbox, error) {
	// Following starts before the first look, so that no change between is missed.
	st, err := h.cfg.Backend.Status(ctx)
	if err != nil {
		return Inbox{}, err
	}
	stream, err := h.cfg.Backend.Subscribe(ctx, max(st.DecisionLog.Size, 1)-1)
	if err != nil {
		return Inbox{}, err
	}
	defer stream.Close()
	deadline := time.Now().Add(wait)
	for first := true; ; first = false {
		// Only the first look needs to be linearizable: later ones follow this node's own events.
		box, err := h.readInbox(ctx, principal, p.Stale || !first)
		if err != nil {
			return Inbox{}, err
		}
		changed := box.Version != p.Version && (p.Version != "" || len(box.Asks) > 0)
		left := time.Until(deadline)
		if changed || left <= 0 {
			return box, nil
		}
		if err := awaitConcern(ctx, stream, principal, min(left, recheck)); err != nil {
			return Inbox{}, err
		}
	}
}

// awaitConcern returns when an event concerns the principal, or after limit.
func awaitConcern(ctx context.Context, stream api.Stream, principal string, limit time.Duration) error {
	within, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	for {
		record, err := stream.Next(within)
		switch {
		case err != nil && ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded):
			return nil
		case err != nil:
			return err
		case record.Concerns(principal):
			return drain(ctx, stream)
		}
	}
}

// drain reads on while events keep coming, for a moment.
func drain(ctx context.Context, stream api.Stream) error {
	within, cancel := context.WithTimeout(ctx, settle)
	defer cancel()
	for {
		if _, err := stream.Next(within); err != nil {
			if ctx.Err() == nil && errors.Is(err, context.DeadlineExceeded) {
				return nil
			}
			return err
		}
	}
}

func (h *Handler) readInbox(ctx context.Context, principal string, stale bool) (Inbox, error) {
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	asks, err := h.cfg.Backend.Asks(ctx, principal, stale)
	if err != nil {
		return Inbox{}, err
	}
	if asks == nil {
		asks = []machine.Ask{}
	}
	version, err := canon.HexHash(asks)
	return Inbox{Asks: asks, Version: version}, err
}
