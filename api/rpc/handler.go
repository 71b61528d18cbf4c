package rpc

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"mime"
	"net/http"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

// Config is what a handler needs.
type Config struct {
	Backend api.Backend
	Tokens  token.Verifier
	Log     *slog.Logger

	// MaxPolls bounds the long polls waiting at once at this door, 1,024
	// when 0; MaxPollsEach those of one principal, 8 when 0.
	MaxPolls, MaxPollsEach int
	// Stop ends waiting polls when it is closed; nil is never.
	Stop <-chan struct{}
	// Timeout bounds one call besides a poll's own wait, 8 s when 0: a client that waits longer hears why nothing happens.
	Timeout time.Duration
}

// Handler serves POST /rpc.
type Handler struct {
	cfg     Config
	methods map[string]method
	listing json.RawMessage // answer of rpc.discover
	polls   *api.Gate
	bodies  *semaphore.Weighted // bytes of bodies that may still begin to arrive
}

// method runs one call.
type method func(ctx context.Context, c call) (any, error)

// call is one request with what the door knows about it.
type call struct {
	request
	bearer string // Authorization header
	batch  bool
}

// New makes the handler; it errs when two machines claim one method name.
func New(cfg Config) (*Handler, error) {
	if cfg.MaxPolls == 0 {
		cfg.MaxPolls = 1024
	}
	if cfg.MaxPollsEach == 0 {
		cfg.MaxPollsEach = 8
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 8 * time.Second
	}
	h := &Handler{cfg: cfg, polls: api.NewGate(cfg.MaxPolls, cfg.MaxPollsEach), bodies: semaphore.NewWeighted(maxBodies)}
	return h, h.register()
}

// ServeHTTP implements http.Handler.
func (h *Handler) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodPost {
		w.Header().Set("Allow", http.MethodPost)
		fail(w, http.StatusMethodNotAllowed, invalid("method_not_allowed", "use POST", "This door takes POST only."))
		return
	}
	if typ, _, err := mime.ParseMediaType(r.Header.Get("Content-Type")); err != nil || typ != "application/json" {
		fail(w, http.StatusUnsupportedMediaType, invalid("unsupported_media_type", "send Content-Type: application/json", "The body is not declared as application/json."))
		return
	}
	body, ok := h.readBody(w, r)
	if !ok {
		return
	}
	calls, batch, bad := parse(body)
	if bad != nil {
		fail(w, http.StatusOK, bad)
		return
	}
	var out []response
	for _, one := range calls {
		answer := h.run(r.Context(), call{request: one, bearer: r.Header.Get("Authorization"), batch: batch})
		if !one.Notification {
			out = append(out, answer)
		}
	}
	switch {
	case len(out) == 0:
		w.WriteHeader(http.StatusNoContent)
	case batch:
		write(w, http.StatusOK, out)
	default:
		write(w, http.StatusOK, out[0])
	}
}

// maxBodies bounds the bytes of all bodies that are arriving at once, from
// senders nobody has authenticated yet.
const maxBodies = 64 << 20

// bodyTime bounds how long a body may take to arrive, and an answer to leave.
const bodyTime = 8 * time.Second

// readBody reports whether there is a whole body; if not it has answered.
func (h *Handler) readBody(w http.ResponseWriter, r *http.Request) ([]byte, bool) {
	size := r.ContentLength
	if size < 0 || size > canon.MaxBytes {
		size = canon.MaxBytes
	}
	if !h.bodies.TryAcquire(size) {
		fail(w, http.StatusServiceUnavailable, fromRefusal(Unavailable, machine.Refuse(api.CodeBusy, "try again in a moment, or at another node", "Too many requests are arriving at once.")))
		return nil, false
	}
	defer h.bodies.Release(size)
	conn := http.NewResponseController(w)
	_ = conn.SetReadDeadline(time.Now().Add(bodyTime)) // not every writer has deadlines; a real connection has
	body, err := io.ReadAll(http.MaxBytesReader(w, r.Body, canon.MaxBytes))
	_ = conn.SetReadDeadline(time.Time{})
	var large *http.MaxBytesError
	switch {
	case errors.As(err, &large):
		fail(w, http.StatusRequestEntityTooLarge, parseError(&canon.Error{Code: canon.TooLarge, Offset: -1, Detail: "more than 1 MiB"}))
	case err != nil:
		fail(w, http.StatusBadRequest, invalid("body_incomplete", "send the whole body within 8 s", "The body did not arrive."))
	}
	return body, err == nil
}

func (h *Handler) run(ctx context.Context, c call) response {
	out := response{JSONRPC: "2.0", ID: c.ID}
	if c.err != nil {
		out.Error = c.err
		return out
	}
	m, ok := h.methods[c.Method]
	if !ok {
		out.Error = fromRefusal(MethodNotFound, machine.Refuse("method_not_found", "rpc.discover lists the methods", "There is no method %q.", c.Method))
		return out
	}
	result, err := m(ctx, c)
	if err != nil && errors.Is(err, context.Canceled) && isStopped(h.cfg.Stop) {
		err = errStopping
	}
	if err == nil {
		out.Result, err = encode(result)
	}
	if err != nil {
		out.Error, out.Result = h.errorOf(c, err), nil
	}
	return out
}

func isStopped(stop <-chan struct{}) bool {
	select {
	case <-stop:
		return true
	default:
		return false
	}
}

// errorOf turns a method's error into the wire's. Texts of unexpected errors
// stay in the log.
func (h *Handler) errorOf(c call, err error) *rpcError {
	var e *wireError
	if errors.As(err, &e) {
		return e.rpcError
	}
	if r, ok := machine.IsRefusal(err); ok {
		return fromRefusal(numberOf(r), r)
	}
	if errors.Is(err, context.DeadlineExceeded) || errors.Is(err, context.Canceled) {
		return fromRefusal(Unavailable, machine.Refuse(api.CodeTimeout, "repeat the request; a write keeps its id and runs once", "The node did not answer in time."))
	}
	h.cfg.Log.Error("rpc call failed", "method", c.Method, "err", err)
	return fromRefusal(InternalError, machine.Refuse(api.CodeInternal, "look into the node's log, or try another node", "The node could not carry this out."))
}

// wireError carries an error that already has its number.
type wireError struct{ *rpcError }

func (e *wireError) Error() string { return e.Data.Code + ": " + e.Message }

func fail(w http.ResponseWriter, status int, e *rpcError) {
	write(w, status, response{JSONRPC: "2.0", ID: null, Error: e})
}

// encode is json.Marshal without the escaping meant for HTML: texts reach the
// reader as they were written.
func encode(v any) (json.RawMessage, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	err := enc.Encode(v)
	return bytes.TrimSpace(buf.Bytes()), err
}

func write(w http.ResponseWriter, status int, v any) {
	_ = http.NewResponseController(w).SetWriteDeadline(time.Now().Add(bodyTime)) // as in readBody
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.Header().Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(status)
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	_ = enc.Encode(v) // the client is gone: nobody to tell
}
