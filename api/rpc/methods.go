package rpc

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// register fills the table of methods from the machines and the door's own.
func (h *Handler) register() error {
	h.methods = map[string]method{}
	add := func(name string, m method) error {
		if _, dup := h.methods[name]; dup {
			return fmt.Errorf("rpc: two methods are named %q", name)
		}
		h.methods[name] = m
		return nil
	}
	for _, k := range h.cfg.Backend.Kinds() {
		if err := add(k.Name, h.submit); err != nil {
			return err
		}
	}
	for _, q := range h.cfg.Backend.Queries() {
		if err := add(q.Name, h.query); err != nil {
			return err
		}
	}
	for _, own := range h.own() {
		if err := add(own.name, own.run); err != nil {
			return err
		}
	}
	listing, err := h.describe()
	h.listing = listing
	return err
}

// own is a method that comes from no machine.
type own struct {
	name, summary string
	auth          auth
	schema        string // of the params
	run           method
}

func (h *Handler) own() []own {
	return []own{
		{"agent.inbox", "List what I am asked now, or wait for a change.", bearerAuth, inboxSchema, h.inbox},
		{"cluster.guilt", "List the proofs of two votes in one slot that this node holds against voters.", bearerAuth, emptySchema, readsNode(h, h.cfg.Backend.Guilt)},
		{"cluster.peers", "List the nodes this node knows.", bearerAuth, emptySchema, readsNode(h, h.cfg.Backend.Peers)},
		{"cluster.status", "Describe this node and its view of the cluster.", noAuth, emptySchema, h.status},
		{"rpc.discover", "List the methods as an OpenRPC document.", noAuth, emptySchema, h.discover},
	}
}

const emptySchema = `{"type":"object","additionalProperties":false}`

// submit takes a signed action. The canonical text of it is what is ordered.
func (h *Handler) submit(ctx context.Context, c call) (any, error) {
	action, err := sign.Decode(c.Params)
	if err != nil {
		return nil, &wireError{badParams(machine.Refuse(machine.CodeMalformed,
			"send the whole signed action {cluster, id, kind, actor, kid, v, body, sig} as params", "The action is malformed: %s.", actionDetail(err)))}
	}
	if action.Kind != c.Method {
		return nil, &wireError{badParams(machine.Refuse("kind_mismatch", "call the method that is named like the action's kind",
			"The method is %q, the action's kind %q.", c.Method, action.Kind))}
	}
	text := []byte(c.Params)
	if canon.CheckCanonical(text) != nil {
		if text, err = action.Encode(); err != nil {
			return nil, err
		}
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	return h.cfg.Backend.Submit(ctx, text)
}

func (h *Handler) query(ctx context.Context, c call) (any, error) {
	principal, err := h.reader(ctx, c)
	if err != nil {
		return nil, err
	}
	params, stale, err := takeStale(c.Params)
	if err != nil {
		return nil, err
	}
	ctx, cancel := context.WithTimeout(ctx, h.cfg.Timeout)
	defer cancel()
	return h.cfg.Backend.Query(ctx, c.Method, principal, params, stale)
}

// readsNode is a read of what this node itself knows, which takes no params.
func readsNode[T any](h *Handler, read func(context.Context) (T, error)) method {
	return func(ctx context.Context, c call) (any, error) {
		if _, err := h.reader(ctx, c); err != nil {
			return nil, err
		}
		if err := decode(c.Params, &struct{}{}); err != nil {
			return nil, err
		}
		return read(ctx)
	}
}

func (h *Handler) status(ctx context.Context, c call) (any, error) {
	if err := decode(c.Params, &struct{}{}); err != nil {
		return nil, err
	}
	return h.cfg.Backend.Status(ctx)
}

func (h *Handler) discover(_ context.Context, c call) (any, error) {
	return h.listing, decode(c.Params, &struct{}{})
}

// reader authenticates a read and returns who reads.
func (h *Handler) reader(ctx context.Context, c call) (string, error) {
	principal, err := h.cfg.Tokens.Reader(ctx, c.bearer)
	if r, ok := machine.IsRefusal(err); ok {
		return "", &wireError{fromRefusal(Unauthenticated, r)}
	}
	return principal, err
}

// takeStale cuts the reserved member "stale" out of a query's params.
func takeStale(params json.RawMessage) (json.RawMessage, bool, error) {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(params, &members); err != nil {
		return nil, false, err
	}
	text, ok := members["stale"]
	if !ok {
		return params, false, nil
	}
	if string(text) != "true" && string(text) != "false" {
		return nil, false, &wireError{badParams(machine.Refuse(machine.CodeMalformed, "use true or false", "The member stale is not true or false."))}
	}
	delete(members, "stale")
	rest, err := canon.Marshal(members)
	return rest, string(text) == "true", err
}

// decode reads the params of the door's own methods, strictly.
func decode(params json.RawMessage, v any) error {
	if err := canon.DecodeChecked(params, v); err != nil {
		return &wireError{badParams(machine.Refuse(machine.CodeMalformed, "rpc.discover shows the schema of the params", "The params are malformed: %s.", detail(err)))}
	}
	return nil
}
