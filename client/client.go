package client

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// What calls return; see package api.
type (
	Answer = api.Answer
	Record = api.Record
	Status = api.Status
	Peer   = api.Peer
	Guilt  = api.Guilt
	Ask    = machine.Ask
	Action = machine.Action
)

// Client speaks to a cluster.
type Client struct {
	endpoints []string
	at        atomic.Uint32 // the endpoint that answered last
	http      *http.Client
	patience  time.Duration
	me        *Identity

	mu      sync.Mutex
	ids     ulid.MonotonicReader
	cluster string // genesis hash; empty until it is known
	token   string
	renew   time.Time
}

// Option changes a client.
type Option func(*Client)

// As makes the client sign and read as a principal. Without it only Status works.
func As(me *Identity) Option { return func(c *Client) { c.me = me } }

// WithHTTP takes another HTTP client, for TLS settings or proxies. It must
// have no timeout of its own: long polls and streams last.
func WithHTTP(h *http.Client) Option { return func(c *Client) { c.http = h } }

// WithPatience sets how long a call goes on trying while nodes cannot serve
// (no leader, starting); 10 s otherwise. Where there are several nodes, one
// that does not answer within a quarter of it is passed over at first. The
// call's context can end it sooner.
func WithPatience(d time.Duration) Option { return func(c *Client) { c.patience = d } }

// New makes a client of the nodes at these base URLs (http or https). It errs
// with bad_endpoint.
func New(endpoints []string, options ...Option) (*Client, error) {
	c := &Client{http: &http.Client{}, patience: 10 * time.Second, ids: ulid.Monotonic(rand.Reader, 0)}
	for _, text := range endpoints {
		u, err := url.Parse(strings.TrimSuffix(text, "/"))
		if err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" || u.RawQuery != "" || u.Fragment != "" {
			return nil, &Error{Code: CodeBadEndpoint, Message: fmt.Sprintf("The node's address %q is no http or https URL.", text), Fix: "use a URL such as http://127.0.0.1:7700"}
		}
		c.endpoints = append(c.endpoints, u.String())
	}
	if len(c.endpoints) == 0 {
		return nil, &Error{Code: CodeBadEndpoint, Message: "No node is named.", Fix: "give at least one URL such as http://127.0.0.1:7700"}
	}
	for _, o := range options {
		o(c)
	}
	return c, nil
}

// Me is the identity the client acts as, or nil.
func (c *Client) Me() *Identity { return c.me }

// NewID makes a ULID that is above all this client made before.
func (c *Client) NewID() (string, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id, err := ulid.New(ulid.Now(), c.ids)
	return id.String(), err
}

// Do signs a body as an action of a kind, submits it and waits for the answer.
func (c *Client) Do(ctx context.Context, kind string, body any) (Answer, error) {
	a, err := c.Sign(ctx, kind, body)
	if err != nil {
		return Answer{}, err
	}
	return c.Submit(ctx, a)
}

// Sign makes an action with a fresh id, for [Client.Submit]. Keep it to be
// able to repeat a write whose outcome is not known.
func (c *Client) Sign(ctx context.Context, kind string, body any) (Action, error) {
	if c.me == nil {
		return Action{}, noIdentity()
	}
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return Action{}, err
	}
	id, err := c.NewID()
	if err != nil {
		return Action{}, err
	}
	return c.me.key.Sign(cluster, id, kind, c.me.ID, body)
}

// Submit sends a signed action until a node answers it. Submitting the same
// action again is safe and gets the first answer. When the outcome is not
// known the error's code is unreachable, timeout or no_leader, and its data
// holds the action_id.
func (c *Client) Submit(ctx context.Context, a Action) (Answer, error) {
	text, err := a.Encode()
	if err != nil {
		return Answer{}, err
	}
	var answer Answer
	err = c.call(ctx, a.Kind, text, false, 0, &answer)
	if e, ok := err.(*Error); ok && e.elsewhere() {
		if e.Data == nil {
			e.Data = map[string]any{}
		}
		e.Data["action_id"] = a.ID
	}
	return answer, err
}

// ReadOption changes one read.
type ReadOption func(map[string]json.RawMessage)

// Stale reads the node's own state, which may be behind, without asking the leader.
func Stale() ReadOption {
	return func(params map[string]json.RawMessage) { params["stale"] = json.RawMessage("true") }
}

// Query runs a query and decodes its result into out; params may be nil.
func (c *Client) Query(ctx context.Context, name string, params, out any, options ...ReadOption) error {
	members := map[string]json.RawMessage{}
	if params != nil {
		text, err := canon.Marshal(params)
		if err != nil {
			return err
		}
		if err := json.Unmarshal(text, &members); err != nil {
			return err
		}
	}
	for _, o := range options {
		o(members)
	}
	text, err := canon.Marshal(members)
	if err != nil {
		return err
	}
	return c.call(ctx, name, text, true, 0, out)
}

// Status describes the node that answers. It needs no identity.
func (c *Client) Status(ctx context.Context) (Status, error) {
	var st Status
	return st, c.call(ctx, "cluster.status", json.RawMessage("{}"), false, 0, &st)
}

// Peers lists the nodes that the answering node knows.
func (c *Client) Peers(ctx context.Context) ([]Peer, error) {
	var out []Peer
	return out, c.call(ctx, "cluster.peers", json.RawMessage("{}"), true, 0, &out)
}

// Guilt lists the proofs against voters that the answering node holds; each
// verifies against the voters of its instance's epoch.
func (c *Client) Guilt(ctx context.Context) ([]Guilt, error) {
	var out []Guilt
	return out, c.call(ctx, "cluster.guilt", json.RawMessage("{}"), true, 0, &out)
}

// Inbox lists what I am asked now. With a wait (60 s at most) it returns as
// soon as the inbox differs from version, the one of the last answer; an empty
// version waits until anything is asked.
func (c *Client) Inbox(ctx context.Context, wait time.Duration, version string) ([]Ask, string, error) {
	params := map[string]any{"wait_ms": wait.Milliseconds()}
	if version != "" {
		params["version"] = version
	}
	text, err := canon.Marshal(params)
	if err != nil {
		return nil, "", err
	}
	var box struct {
		Asks    []Ask  `json:"asks"`
		Version string `json:"version"`
	}
	err = c.call(ctx, "agent.inbox", text, true, wait, &box)
	return box.Asks, box.Version, err
}

// Cluster is the cluster's id (genesis hash): the identity's, or else the one
// the first node that answers names.
func (c *Client) Cluster(ctx context.Context) (string, error) {
	if c.me != nil && c.me.Cluster != "" {
		return c.me.Cluster, nil
	}
	c.mu.Lock()
	known := c.cluster
	c.mu.Unlock()
	if known != "" {
		return known, nil
	}
	st, err := c.Status(ctx)
	if err != nil {
		return "", err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.cluster == "" {
		c.cluster = st.ClusterID
	}
	return c.cluster, nil
}

func noIdentity() *Error {
	return &Error{Code: CodeNoIdentity, Message: "This call needs to know who calls.", Fix: "give an identity file (client.As, or --as on the command line)"}
}
