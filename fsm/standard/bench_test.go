//go:build unix

package standard_test

import (
	"bytes"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"syscall"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/fsm/standard"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/registry"
	"github.com/deliberd/deliberd/store"
)

// BenchmarkACPResponses takes entries of ACP responses through what every node
// does with them: "prepare" decodes them, finds the keys and checks the
// signatures; "apply" applies them to a real store, in entries of 64 and
// alone. It reports the process's CPU time an action.
func BenchmarkACPResponses(b *testing.B) {
	b.Run("prepare", func(b *testing.B) {
		w := newWorld(b)
		entries := w.responses(b.N, 64)
		defer perAction(b)()
		for _, e := range entries {
			w.prepare(e)
		}
	})
	for _, batch := range []int{64, 1} {
		b.Run(fmt.Sprintf("apply-%d", batch), func(b *testing.B) {
			w := newWorld(b)
			var prepared []*fsm.Prepared
			for _, e := range w.responses(b.N, batch) {
				prepared = append(prepared, w.prepare(e))
			}
			defer perAction(b)()
			for _, p := range prepared {
				w.apply(p)
			}
		})
	}
}

// perAction reports the CPU time from now until its result is called.
func perAction(b *testing.B) func() {
	used := cpuTime()
	b.ResetTimer()
	return func() {
		b.ReportMetric(float64((cpuTime()-used).Microseconds())/float64(b.N), "cpu-µs/action")
	}
}

// responses are entries of batch responses each, n or a few more in all.
func (w *world) responses(n, batch int) (entries [][]byte) {
	const agents = 256
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

// BenchmarkFastVerdict applies, each in an entry of its own, the moderator's
// resolve of rounds of five whose standing confirmations make the verdict.
func BenchmarkFastVerdict(b *testing.B) {
	w := newWorld(b)
	agents := []string{"a1", "a2", "a3", "a4", "a5"}
	w.register(agents...)
	var prepared []*fsm.Prepared
	for range b.N {
		prepared = append(prepared, w.prepare(w.clearRound(agents)))
	}
	defer perAction(b)()
	for _, p := range prepared {
		w.apply(p)
	}
}

// clearRound prepares a round and returns the entry that resolves it.
func (w *world) clearRound(agents []string) []byte {
	type object = map[string]any
	do := func(actor, kind string, body any) string {
		return w.apply(w.prepare(w.entry(w.action(actor, "deliberatic."+kind, body)))).Answers[0].ActionID
	}
	evidence := func(value float64) []object {
		return []object{{"type": "performance", "value": value, "confidence": 0.1, "timestamp": "2026-01-15T10:00:00Z"}}
	}
	hour := object{"collect_ms": 3_600_000, "confirm_ms": 3_600_000, "evidence_ms": 3_600_000}
	round := do(agents[0], "open", object{"title": "Which link?", "domain": "ops", "participants": agents, "windows": hour})
	first := do(agents[0], "position", object{"round": round, "answer": "north", "text": "measured", "evidence": evidence(0.95), "probability": 0.9})
	second := do(agents[1], "position", object{"round": round, "answer": "south", "text": "measured", "evidence": evidence(0.3), "probability": 0.6})
	do(agents[2], "support", object{"round": round, "target": first, "text": "spare capacity", "evidence": evidence(0.1)})
	do(agents[3], "challenge", object{"round": round, "target": second, "text": "down twice", "evidence": evidence(0.1)})
	for _, id := range agents[2:] {
		do(id, "confirm", object{"round": round, "standing": object{"winners": []string{first}, "expires_ms": time.Now().Add(time.Hour).UnixMilli()}})
	}
	moderator := ""
	params := fmt.Appendf(nil, `{"round":%q}`, round)
	err := w.store.View(func(tx machine.Tx) error {
		text, err := w.f.Query(tx, "deliberatic.get", agents[0], params)
		var view deliberation.View
		if err == nil {
			err = json.Unmarshal(text, &view)
		}
		moderator = view.Moderator
		return err
	})
	if err != nil {
		w.Fatal(err)
	}
	return w.entry(w.action(moderator, "deliberatic.resolve", object{"round": round}))
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
