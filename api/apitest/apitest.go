// Package apitest is a node in memory for tests of doors and clients: it
// checks signatures and keeps events, and answers what the test tells it to.
package apitest

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"sync"
	"testing"
	"time"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

// Cluster is the genesis hash of every test cluster.
const Cluster = "00000000000000000000000000000000000000000000000000000000000000ff"

// Backend is an api.Backend of tables and functions. Set the fields before
// use, or change them under Lock.
type Backend struct {
	sync.Mutex
	Actions  []machine.Kind
	Reads    []machine.Query
	OnSubmit func(a machine.Action) (any, error)                                           // default: answers the body
	OnQuery  func(name, principal string, params json.RawMessage, stale bool) (any, error) // default: answers its arguments
	OnAsks   func(principal string, stale bool) ([]machine.Ask, error)                     // default: the table Inbox
	Inbox    map[string][]machine.Ask
	State    api.Status
	Nodes    []api.Peer
	Proofs   []api.Guilt
	Slow     error // what a stream ends with once it has handed out the records so far; nil: it goes on

	keys    map[string]map[string]sign.PublicKey
	answers map[string]api.Answer
	texts   map[string]string
	records []api.Record
	changed chan struct{}
	seq     uint64
}

// New makes a ready node that knows nobody.
func New() *Backend {
	return &Backend{
		Inbox:   map[string][]machine.Ask{},
		State:   api.Status{NodeID: "node-1", ClusterID: Cluster, Role: "leader", Leader: "node-1", Term: 1, Voters: []string{"node-1"}, Ready: true, DecisionLog: api.DecisionLog{Size: 1}},
		keys:    map[string]map[string]sign.PublicKey{},
		answers: map[string]api.Answer{},
		texts:   map[string]string{},
		changed: make(chan struct{}),
	}
}

// AddKey registers a principal with a fresh key.
func (b *Backend) AddKey(t testing.TB, principal string) sign.Key {
	t.Helper()
	k, err := sign.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	b.Register(principal, k.Public())
	return k
}

// Register gives a principal a further key.
func (b *Backend) Register(principal string, k sign.PublicKey) {
	b.Lock()
	defer b.Unlock()
	if b.keys[principal] == nil {
		b.keys[principal] = map[string]sign.PublicKey{}
	}
	b.keys[principal][k.KID()] = k
}

// Bearer is an Authorization header for a principal, good for a minute.
func Bearer(t testing.TB, k sign.Key, principal string) string {
	t.Helper()
	text, err := token.Make(k, Cluster, principal, time.Now(), time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	return "Bearer " + text
}

// Emit adds a record to the decision log and wakes its followers.
func (b *Backend) Emit(typ, subject string, to []string, data any) uint64 {
	b.Lock()
	defer b.Unlock()
	b.seq++
	index := b.State.DecisionLog.Size + 1 // one leaf for the entry
	b.State.DecisionLog.Size = index + 1
	b.records = append(b.records, api.Record{Index: index, Seq: b.seq, StampMS: machine.Stamp(1000 + b.seq), Type: typ, Subject: subject, To: to, Data: canon.MustMarshal(data)})
	close(b.changed)
	b.changed = make(chan struct{})
	return index
}

// Submit implements api.Backend.
func (b *Backend) Submit(ctx context.Context, action []byte) (api.Answer, error) {
	if err := ctx.Err(); err != nil {
		return api.Answer{}, err
	}
	a, err := sign.Decode(action)
	if err != nil {
		return api.Answer{}, err
	}
	if a.Cluster != Cluster {
		return api.Answer{}, machine.Refuse(machine.CodeWrongCluster, "sign for this cluster", "The action is for another cluster.")
	}
	key, err := b.Key(ctx, a.Actor, a.KID)
	if err != nil {
		return api.Answer{}, err
	}
	if _, err := sign.Verify(action, key); err != nil {
		return api.Answer{}, machine.Refuse(machine.CodeBadSignature, "sign the canonical text", "The signature does not verify.")
	}
	b.Lock()
	defer b.Unlock()
	if first, ok := b.answers[a.ID]; ok {
		if b.texts[a.ID] != string(action) {
			return api.Answer{}, machine.Refuse(machine.CodeIDReused, "use a new id", "The id was used with another body.")
		}
		return first, nil
	}
	var result any = a.Body
	if b.OnSubmit != nil {
		if result, err = b.OnSubmit(a); err != nil {
			return api.Answer{}, err
		}
	}
	b.seq++
	answer := api.Answer{Seq: b.seq, StampMS: machine.Stamp(1000 + b.seq), ActionID: a.ID, Result: canon.MustMarshal(result), Finality: api.Ordered}
	b.answers[a.ID], b.texts[a.ID] = answer, string(action)
	return answer, nil
}

// Query implements api.Backend.
func (b *Backend) Query(ctx context.Context, name, principal string, params json.RawMessage, stale bool) (json.RawMessage, error) {
	b.Lock()
	defer b.Unlock()
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if b.OnQuery != nil {
		v, err := b.OnQuery(name, principal, params, stale)
		if err != nil {
			return nil, err
		}
		return canon.Marshal(v)
	}
	return canon.Marshal(map[string]any{"name": name, "principal": principal, "params": params, "stale": stale})
}

// Asks implements api.Backend.
func (b *Backend) Asks(_ context.Context, principal string, stale bool) ([]machine.Ask, error) {
	b.Lock()
	defer b.Unlock()
	if b.OnAsks != nil {
		return b.OnAsks(principal, stale)
	}
	return b.Inbox[principal], nil
}

// Ask puts one more ask into a principal's inbox.
func (b *Backend) Ask(principal string, a machine.Ask) {
	b.Lock()
	defer b.Unlock()
	b.Inbox[principal] = append(b.Inbox[principal], a)
}

// Kinds implements api.Backend.
func (b *Backend) Kinds() []machine.Kind { return b.Actions }

// Queries implements api.Backend.
func (b *Backend) Queries() []machine.Query { return b.Reads }

// Key implements api.Backend.
func (b *Backend) Key(_ context.Context, actor, kid string) (sign.PublicKey, error) {
	b.Lock()
	defer b.Unlock()
	if b.keys[actor] == nil {
		return sign.PublicKey{}, machine.Refuse(machine.CodeUnknownActor, "register it first", "Nobody is registered as %q.", actor)
	}
	k, ok := b.keys[actor][kid]
	if !ok {
		return sign.PublicKey{}, machine.Refuse(machine.CodeRevoked, "use an active key", "The key is not active.")
	}
	return k, nil
}

// Status implements api.Backend.
func (b *Backend) Status(context.Context) (api.Status, error) {
	b.Lock()
	defer b.Unlock()
	return b.State, nil
}

// Peers implements api.Backend.
func (b *Backend) Peers(context.Context) ([]api.Peer, error) {
	b.Lock()
	defer b.Unlock()
	return b.Nodes, nil
}

// Guilt implements api.Backend.
func (b *Backend) Guilt(context.Context) ([]api.Guilt, error) {
	b.Lock()
	defer b.Unlock()
	return b.Proofs, nil
}

// Subscribe implements api.Backend.
func (b *Backend) Subscribe(_ context.Context, since uint64) (api.Stream, error) {
	return &stream{b: b, at: since}, nil
}

type stream struct {
	b  *Backend
	at uint64
}

func (s *stream) Next(ctx context.Context) (api.Record, error) {
	for {
		rec, ok, wait, end := s.next()
		switch {
		case ok:
			return rec, nil
		case end != nil:
			return api.Record{}, end
		}
		select {
		case <-wait:
		case <-ctx.Done():
			return api.Record{}, ctx.Err()
		}
	}
}

func (s *stream) next() (rec api.Record, ok bool, wait <-chan struct{}, end error) {
	s.b.Lock()
	defer s.b.Unlock()
	for _, r := range s.b.records {
		if r.Index > s.at {
			s.at = r.Index
			return r, true, nil, nil
		}
	}
	return api.Record{}, false, s.b.changed, s.b.Slow
}

func (s *stream) Close() {}
