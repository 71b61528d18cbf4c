package events

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"strconv"
	"time"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

// Config is what a handler needs. Zero durations and limits take the defaults.
type Config struct {
	Backend api.Backend
	Tokens  token.Verifier
	Log     *slog.Logger

	Heartbeat  time.Duration   // between comments, 15 s
	Patience   time.Duration   // a write slower than this cuts the reader off, 5 s; at twice that the connection is reset
	MaxStreams int             // open at once at this door, 1,024
	MaxEach    int             // of one principal, 16
	Stop       <-chan struct{} // closed when the node stops; nil is never
}

// Handler serves GET /events.
type Handler struct {
	cfg  Config
	gate *api.Gate
}

// New makes the handler.
func New(cfg Config) *Handler {
	if cfg.Heartbeat == 0 {
		cfg.Heartbeat = 15 * time.Second
	}
	if cfg.Patience == 0 {
		cfg.Patience = 5 * time.Second
	}
	if cfg.MaxStreams == 0 {
		cfg.MaxStreams = 1024
	}
	if cfg.MaxEach == 0 {
		cfg.MaxEach = 16
	}
	return &Handler{cfg: cfg, gate: api.NewGate(cfg.MaxStreams, cfg.MaxEach)}
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodGet {
		w.Header().Set("Allow", http.MethodGet)
		refuse(w, http.StatusMethodNotAllowed, machine.Refuse("method_not_allowed", "use GET", "This door takes GET only."))
		return
	}
	principal, err := h.cfg.Tokens.Reader(r.Context(), r.Header.Get("Authorization"))
	if err != nil {
		h.fail(w, http.StatusUnauthorized, err)
		return
	}
	q, err := h.readQuery(r)
	if err != nil {
		h.fail(w, http.StatusBadRequest, err)
		return
	}
	if !h.gate.Enter(principal) {
		refuse(w, http.StatusServiceUnavailable, machine.Refuse(api.CodeBusy, "close another stream first, or try another node", "Too many streams are open."))
		return
	}
	defer h.gate.Leave(principal)

	ctx, cancel := context.WithCancel(r.Context())
	defer cancel()
	stream, err := h.cfg.Backend.Subscribe(ctx, q.since)
	if err != nil {
		h.fail(w, http.StatusServiceUnavailable, err)
		return
	}
	defer stream.Close()
	if h.cfg.Stop != nil {
		go func() {
			select {
			case <-h.cfg.Stop:
				cancel()
			case <-ctx.Done():
			}
		}()
	}
	f := follower{h: h, out: http.NewResponseController(w), w: w, at: q.since}
	f.follow(ctx, stream, func(rec api.Record) bool {
		return (!q.mine || rec.Concerns(principal)) && (q.subject == "" || rec.Subject == q.subject)
	})
}

type query struct {
	since   uint64
	mine    bool
	subject string // empty: of everything
}

func (h *Handler) readQuery(r *http.Request) (query, error) {
	values := r.URL.Query()
	var q query
	for name, v := range values {
		if len(v) != 1 || name != "since" && name != "for" && name != "subject" {
			return q, machine.Refuse(machine.CodeMalformed, "use since=N, for=me and subject=ID, each once", "The query parameter %q is unknown or repeated.", name)
		}
	}
	q.subject = values.Get("subject")
	switch values.Get("for") {
	case "me":
		q.mine = true
	case "":
	default:
		return q, machine.Refuse(machine.CodeMalformed, "use for=me, or leave it out to follow everything", "The parameter for is %q.", values.Get("for"))
	}
	text := r.Header.Get("Last-Event-ID")
	if text == "" {
		text = values.Get("since")
	}
	if text == "" {
		st, err := h.cfg.Backend.Status(r.Context())
		q.since = max(st.DecisionLog.Size, 1) - 1
		return q, err
	}
	since, err := strconv.ParseUint(text, 10, 63)
	if err != nil {
		return q, machine.Refuse(machine.CodeMalformed, "use the id of the last event seen", "The place to resume from, %.40q, is not a leaf number.", text)
	}
	q.since = since
	return q, nil
}

// follower writes one stream.
type follower struct {
	h   *Handler
	out *http.ResponseController
	w   http.ResponseWriter
	at  uint64 // last leaf seen
}

func (f *follower) follow(ctx context.Context, stream api.Stream, wanted func(api.Record) bool) {
	header := f.w.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("Cache-Control", "no-store")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("X-Accel-Buffering", "no")
	f.w.WriteHeader(http.StatusOK)
	if !f.write(fmt.Appendf(nil, "retry: 1000\nid: %d\n\n", f.at)) {
		return
	}
	beat := time.Now().Add(f.h.cfg.Heartbeat)
	for {
		within, cancel := context.WithDeadline(ctx, beat)
		rec, err := stream.Next(within)
		cancel()
		switch {
		case err == nil:
			f.at = rec.Index
			if wanted(rec) && !f.write(message(rec)) {
				return
			}
			if time.Now().Before(beat) {
				continue
			}
		case ctx.Err() != nil:
			f.cut(machine.Refuse(api.CodeStopping, "reconnect, here or at another node", "The node is stopping."))
			return
		case !errors.Is(err, context.DeadlineExceeded):
			f.end(err)
			return
		}
		if !f.write(fmt.Appendf(nil, ": heartbeat\nid: %d\n\n", f.at)) {
			return
		}
		beat = time.Now().Add(f.h.cfg.Heartbeat)
	}
}

// write sends one message and reports whether the stream goes on.
func (f *follower) write(text []byte) bool {
	start := time.Now()
	_ = f.out.SetWriteDeadline(start.Add(2 * f.h.cfg.Patience)) // not every writer has deadlines; a real connection has
	if _, err := f.w.Write(text); err != nil {
		return false
	}
	if err := f.out.Flush(); err != nil {
		return false
	}
	if time.Since(start) <= f.h.cfg.Patience {
		return true
	}
	f.cut(machine.Refuse(api.CodeSlowReader, "read faster, or follow less with for=me; resume with Last-Event-ID", "The reader took too long."))
	return false
}

// end tells why the backend ended the stream.
func (f *follower) end(err error) {
	if r, ok := machine.IsRefusal(err); ok {
		f.cut(r)
		return
	}
	f.h.cfg.Log.Error("event stream failed", "err", err)
	f.cut(machine.Refuse(api.CodeInternal, "reconnect, or try another node", "The node could not go on with the stream."))
}

// cut is the last message of a stream that the node ends.
func (f *follower) cut(r *machine.Refusal) {
	data, err := json.Marshal(struct {
		*machine.Refusal
		ResumeAfter uint64 `json:"resume_after"`
	}{r, f.at})
	if err != nil {
		return
	}
	_ = f.out.SetWriteDeadline(time.Now().Add(f.h.cfg.Patience))
	_, _ = f.w.Write(fmt.Appendf(nil, "event: cut\ndata: %s\n\n", data)) // best effort: the connection ends anyway
	_ = f.out.Flush()
}

func message(rec api.Record) []byte {
	return fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", rec.Index, rec.Type, canon.MustMarshal(rec))
}

func (h *Handler) fail(w http.ResponseWriter, status int, err error) {
	r, ok := machine.IsRefusal(err)
	if !ok {
		h.cfg.Log.Error("event stream not opened", "err", err)
		status, r = http.StatusInternalServerError, machine.Refuse(api.CodeInternal, "look into the node's log, or try another node", "The node could not open the stream.")
	}
	refuse(w, status, r)
}

func refuse(w http.ResponseWriter, status int, r *machine.Refusal) {
	if status == http.StatusUnauthorized {
		w.Header().Set("WWW-Authenticate", "Bearer")
	}
	api.WriteRefusal(w, status, r)
}
