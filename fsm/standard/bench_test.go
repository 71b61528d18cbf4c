package standard_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/fsm/standard"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/registry"
	"github.com/deliberd/deliberd/store"
)

// BenchmarkApplyACPResponses applies entries of 64 ACP responses to a real
// store; signatures are checked beforehand. It reports CPU-bound µs an action.
func BenchmarkApplyACPResponses(b *testing.B) {
	w := newWorld(b)
	proposal := w.answerID(w.action("author", "acp.submit", map[string]any{"type": "proposal", "domain": "ops", "quorum": 1_000_000_000, "payload": map[string]any{}}))
	const batch = 64
	var entries [][]byte
	for i := 0; i < b.N; i += batch {
		var actions [][]byte
		for k := range batch {
			// responders are registered outside the measured part
			id := fmt.Sprintf("a%d", i+k)
			w.register(id)
			actions = append(actions, w.action(id, "acp.respond", map[string]any{"proposal_id": proposal, "response_type": "endorse", "confidence": 0.9, "reason": "fine"}))
		}
		entries = append(entries, w.entry(actions...))
	}
	var prepared []*fsm.Prepared
	for _, e := range entries {
		p := fsm.Decode(e)
		if err := w.store.View(func(tx machine.Tx) error { return w.f.FindKeys(tx, p) }); err != nil {
			b.Fatal(err)
		}
		for i := range p.Len() {
			w.f.Verify(p, i)
		}
		prepared = append(prepared, p)
	}
	b.ResetTimer()
	for _, p := range prepared {
		err := w.store.Update(func(tx machine.Tx) error {
			out, err := w.f.Apply(tx, p)
			for _, a := range out.Answers {
				if a.Refusal != nil {
					return a.Refusal
				}
			}
			return err
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	b.ReportMetric(float64(b.Elapsed().Microseconds())/float64(b.N), "µs/action")
}

type world struct {
	testing.TB
	f       *fsm.FSM
	store   *store.Store
	keys    map[string]sign.Key
	cluster string
	n       int
}

func key(name string) sign.Key {
	seed := canon.Hash([]byte(name))
	k, err := sign.KeyFromSeed(seed[:])
	if err != nil {
		panic(err)
	}
	return k
}

func newWorld(b testing.TB) *world {
	op, node := key("op"), key("node")
	g := membership.Genesis{V: 1, Name: "bench", CreatedAt: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"), Nonce: "AAAAAAAAAAAAAAAAAAAAAAAA",
		Operators: []membership.Operator{{ID: "op", JWK: op.Public().JWK()}}, Params: membership.DefaultParameters(),
		Voters: []membership.Voter{{Node: node.Public().PeerID(), Operator: "op", PBFTKey: key("pbft").Public().X(), AttestKey: key("attest").Public().X()}}}
	if err := g.SignBy(op); err != nil {
		b.Fatal(err)
	}
	f, err := standard.New(nil)
	if err != nil {
		b.Fatal(err)
	}
	s, err := store.Open(b.TempDir())
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = s.Close() })
	if err := s.Update(func(tx machine.Tx) error { return standard.Init(f, tx, g) }); err != nil {
		b.Fatal(err)
	}
	w := &world{TB: b, f: f, store: s, keys: map[string]sign.Key{"op": op}, cluster: g.Hash()}
	w.register("author")
	return w
}

func (w *world) register(id string) {
	w.keys[id] = key(id)
	body, err := registry.NewRegister(w.cluster, id, machine.Agent, "", w.keys[id])
	if err != nil {
		w.Fatal(err)
	}
	w.answerID(w.action("op", "registry.register", body))
	w.answerID(w.action("op", "registry.grant", registry.Grant{Principal: id, Pattern: "*", Authority: registry.NewDecimal("0.9"), Trust: registry.NewDecimal("0.8")}))
}

func (w *world) action(actor, kind string, body any) []byte {
	w.n++
	id := ulid.MustNew(ulid.Now(), bytes.NewReader(fmt.Appendf(nil, "%010d", w.n)))
	a, err := w.keys[actor].Sign(w.cluster, id.String(), kind, actor, body)
	if err != nil {
		w.Fatal(err)
	}
	text, err := a.Encode()
	if err != nil {
		w.Fatal(err)
	}
	return text
}

func (w *world) entry(actions ...[]byte) []byte {
	e := fsm.Entry{Epoch: 1, Stamp: machine.Stamp(time.Now().UnixMilli()), Actions: actions}
	raw, err := hex.DecodeString(w.cluster)
	if err != nil {
		w.Fatal(err)
	}
	copy(e.Genesis[:], raw)
	return e.Encode()
}

// answerID applies one action in an entry of its own and returns its id.
func (w *world) answerID(text []byte) string {
	var id string
	err := w.store.Update(func(tx machine.Tx) error {
		out, err := w.f.Apply(tx, fsm.Decode(w.entry(text)))
		if err == nil && out.Answers[0].Refusal != nil {
			err = out.Answers[0].Refusal
		}
		if err == nil {
			id = out.Answers[0].ActionID
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return id
}
