//go:build unix

package standard_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"syscall"
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

// BenchmarkACPResponses takes entries of 64 ACP responses through what every
// node does with them: "prepare" decodes them, finds the keys and checks the
// signatures; "apply" applies them to a real store. It reports the process's
// CPU time an action.
func BenchmarkACPResponses(b *testing.B) {
	b.Run("prepare", func(b *testing.B) {
		w := newWorld(b)
		entries := w.responses(b.N)
		used := cpuTime()
		b.ResetTimer()
		for _, e := range entries {
			w.prepare(e)
		}
		b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/action")
	})
	b.Run("apply", func(b *testing.B) {
		w := newWorld(b)
		var prepared []*fsm.Prepared
		for _, e := range w.responses(b.N) {
			prepared = append(prepared, w.prepare(e))
		}
		used := cpuTime()
		b.ResetTimer()
		for _, p := range prepared {
			w.apply(p)
		}
		b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/action")
	})
}

// responses are entries that hold n responses and up to 63 more.
func (w *world) responses(n int) (entries [][]byte) {
	const agents, batch = 256, 64
	var names []string
	for i := range agents {
		names = append(names, fmt.Sprintf("agent-%03d", i))
	}
	w.register(names...)
	var actions [][]byte
	for i := 0; len(entries)*batch < n; i++ {
		if i%agents == 0 {
			submit := w.action("author", "acp.submit", map[string]any{"type": "proposal", "domain": "ops", "quorum": 1_000_000_000, "payload": map[string]any{}})
			w.proposal = w.apply(w.prepare(w.entry(submit))).Answers[0].ActionID
		}
		actions = append(actions, w.action(names[i%agents], "acp.respond", map[string]any{"proposal_id": w.proposal, "response_type": "endorse", "confidence": 0.9, "reason": "fine"}))
		if len(actions) == batch {
			entries = append(entries, w.entry(actions...))
			actions = nil
		}
	}
	return entries
}

type world struct {
	testing.TB
	f       *fsm.FSM
	store   *store.Store
	keys    map[string]sign.Key
	cluster string
	n       int

	proposal string // the newest
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

func (w *world) register(ids ...string) {
	var registrations, grants [][]byte
	for _, id := range ids {
		w.keys[id] = key(id)
		body, err := registry.NewRegister(w.cluster, "op", id, machine.Agent, "", w.keys[id])
		if err != nil {
			w.Fatal(err)
		}
		registrations = append(registrations, w.action("op", "registry.register", body))
		grants = append(grants, w.action("op", "registry.grant", registry.Grant{Principal: id, Pattern: "*", Authority: registry.NewDecimal("0.9"), Trust: registry.NewDecimal("0.8")}))
	}
	w.apply(w.prepare(w.entry(registrations...)))
	w.apply(w.prepare(w.entry(grants...)))
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

func (w *world) prepare(entry []byte) *fsm.Prepared {
	p := fsm.Decode(entry)
	if err := w.store.View(func(tx machine.Tx) error { return w.f.FindKeys(tx, p) }); err != nil {
		w.Fatal(err)
	}
	for i := range p.Len() {
		w.f.Verify(p, i)
	}
	return p
}

func (w *world) apply(p *fsm.Prepared) (out fsm.Outcome) {
	err := w.store.Update(func(tx machine.Tx) (err error) {
		out, err = w.f.Apply(tx, p)
		for _, a := range out.Answers {
			if a.Refusal != nil {
				return a.Refusal
			}
		}
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return out
}

// cpuTime is what this process has used so far, user and system.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
