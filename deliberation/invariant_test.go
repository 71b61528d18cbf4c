package deliberation_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/merkle"
	"pgregory.net/rapid"
)

// op is one step of a random round: time, then perhaps an action.
type op struct {
	ms          int64
	actor, verb string
	body        obj
}

// player draws the steps of one round and remembers what it may refer to.
type player struct {
	*rapid.T
	round string
	args  []string
}

func (p *player) step() op {
	o := op{ms: rapid.SampledFrom([]int64{0, 0, 0, 0, 1, 300, 1000}).Draw(p.T, "ms")}
	o.actor = rapid.SampledFrom(agents).Draw(p.T, "actor")
	o.verb = rapid.SampledFrom([]string{"position", "position", "challenge", "support", "relate", "evidence", "evidence", "done", "done", "resolve", "confirm", "confirm", "confirm", "standing", "certify", "review", "outcome"}).Draw(p.T, "verb")
	arg := func() string { return rapid.SampledFrom(append(p.args, "missing")).Draw(p.T, "argument") }
	ev := func() []obj {
		return evidence(rapid.Float64Range(0, 1).Draw(p.T, "value"), rapid.Float64Range(0, 1).Draw(p.T, "width"))
	}
	o.body = obj{"round": p.round}
	switch o.verb {
	case "position":
		o.body["answer"], o.body["evidence"], o.body["probability"] = rapid.IntRange(0, 3).Draw(p.T, "answer"), ev(), 0.5
	case "challenge", "support":
		o.body["target"], o.body["evidence"] = arg(), ev()
	case "relate":
		o.body["from"], o.body["to"], o.body["relation"] = arg(), arg(), rapid.SampledFrom([]string{"attack", "support"}).Draw(p.T, "relation")
	case "evidence":
		o.body["argument"], o.body["evidence"] = arg(), ev()
	case "confirm":
		o.body["winner"], o.body["accept"] = arg(), rapid.Bool().Draw(p.T, "accept")
	case "standing":
		o.verb, o.body["standing"] = "confirm", obj{"answers": []any{rapid.IntRange(0, 3).Draw(p.T, "answer")}, "expires_ms": 1 << 40}
	case "review", "outcome":
		o.actor = "op"
		if o.verb == "outcome" {
			o.body["answer"] = rapid.IntRange(0, 3).Draw(p.T, "answer")
		} else if w := arg(); rapid.Bool().Draw(p.T, "choose") {
			o.body["winner"] = w
		}
	case "certify":
		o.actor = "n1"
	}
	return o
}

// play applies one step; a certificate is made when the round wants one.
func (r *rig) play(o op) (json.RawMessage, error) {
	r.Advance(o.ms)
	if o.verb == "certify" {
		list, err := deliberation.Frozen(r.Tx)
		if err != nil {
			r.t.Fatal(err)
		}
		o.body["certificate"] = obj{}
		for _, f := range list {
			o.body["certificate"] = r.certificate(f, r.complete(f.Seq), 0, 1, 2)
		}
	}
	return r.Do(o.actor, "deliberatic."+o.verb, o.body)
}

func TestARoundKeepsItsPromisesWhateverHappens(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		r := newRig(t)
		r.t = t
		opening := obj{"title": "Lend?", "domain": "risk", "windows": obj{"collect_ms": 1000, "confirm_ms": 1000, "evidence_ms": 1000, "review_ms": 1000}}
		opening["rule"] = rapid.SampledFrom([]string{"majority", "majority", "supermajority"}).Draw(rt, "rule")
		opening["on_rejected"] = rapid.SampledFrom([]string{"no_verdict", "human"}).Draw(rt, "on_rejected")
		p := &player{T: rt, round: r.do("ann", "open", opening).Round}
		w := &watcher{t: rt, r: r, round: p.round}
		var ops []op
		for range rapid.IntRange(5, 40).Draw(rt, "steps") {
			o := p.step()
			ops = append(ops, o)
			answer, err := r.play(o)
			if err == nil && (o.verb == "position" || o.verb == "challenge" || o.verb == "support") {
				p.args = append(p.args, r.answer(answer).Argument)
			}
			w.look()
		}
		for range 4 { // time alone ends every phase but the frozen one
			ops = append(ops, op{ms: 1000, actor: "n1", verb: "certify", body: obj{"round": p.round}})
			_, _ = r.play(ops[len(ops)-1])
			w.look()
		}
		w.end()
		replayed(rt, r, opening, ops)
	})
}

// watcher holds what must not change once it is so.
type watcher struct {
	t      *rapid.T
	r      *rig
	round  string
	frozen string // outcome hash
	root   string
	last   deliberation.Phase
}

var phaseOrder = map[deliberation.Phase]int{"collecting": 0, "fast": 1, "prepare": 2, "frozen": 3, "certified": 4, "review": 5, "verdict": 6, "no_verdict": 6}

func (w *watcher) look() {
	v := w.r.view(w.round)
	st := v.State
	if phaseOrder[st.Phase] < phaseOrder[w.last] {
		w.t.Fatalf("from %s back to %s", w.last, st.Phase)
	}
	w.last = st.Phase
	if st.Phase == deliberation.PhaseFrozen || st.Phase == deliberation.PhaseCertified || st.Freeze != nil {
		if w.frozen == "" {
			w.frozen = st.Outcome.Hash
		}
		if st.Outcome.Hash != w.frozen || st.Freeze.OutcomeHash != w.frozen {
			w.t.Fatal("the outcome changed after the freeze")
		}
	}
	if (v.Verdict != nil) != st.Phase.Ended() {
		w.t.Fatalf("phase %s, verdict %+v", st.Phase, v.Verdict)
	}
	if v.Verdict != nil {
		if w.root == "" {
			w.root = v.Verdict.EvidenceRoot
		}
		if v.Verdict.EvidenceRoot != w.root {
			w.t.Fatal("the verdict changed")
		}
	}
	if (st.Deadline == 0) != (st.Phase.Ended() || st.Phase == deliberation.PhaseFrozen) {
		w.t.Fatalf("phase %s, deadline %d", st.Phase, st.Deadline)
	}
	if next, ok, err := w.r.Machine.Next(w.r.Tx); err != nil || ok != (st.Deadline != 0) || ok && next != st.Deadline {
		w.t.Fatalf("next %d %v %v, deadline %d", next, ok, err, st.Deadline)
	}
}

func (w *watcher) end() {
	if !w.last.Ended() {
		w.t.Fatalf("the round hangs in phase %s", w.last)
	}
	decided := 0
	for _, e := range w.r.Events {
		if e.Type == "deliberatic.decided" {
			decided++
		}
	}
	if decided != 1 {
		w.t.Fatalf("%d verdicts", decided)
	}
	root, err := merkle.ParseHash(w.root)
	if err != nil {
		w.t.Fatal(err)
	}
	if _, err := merkle.Verify(w.r.export(w.round), &root); err != nil {
		w.t.Fatal(err)
	}
	for k := range w.r.Tx {
		if bytes.ContainsAny([]byte(k[:1]), "tfow") {
			w.t.Fatalf("an ended round leaves key %q", k)
		}
	}
	for _, who := range append([]string{"op", "hal"}, agents...) {
		asks, err := w.r.Machine.Asks(w.r.Tx, w.r.Ctx(), who)
		if err != nil || len(asks) != 0 {
			w.t.Fatalf("%s is asked %v (%v)", who, asks, err)
		}
	}
}

// replayed applies the same steps to a fresh machine: the same state and events.
func replayed(t *rapid.T, r *rig, opening obj, ops []op) {
	again := newRig(r.t)
	again.do("ann", "open", opening)
	for _, o := range ops {
		delete(o.body, "certificate")
		_, _ = again.play(o)
	}
	if len(again.Tx) != len(r.Tx) {
		t.Fatalf("%d keys, then %d", len(r.Tx), len(again.Tx))
	}
	for k, v := range r.Tx {
		if !bytes.Equal(v, again.Tx[k]) {
			t.Fatalf("key %q differs on replay", k)
		}
	}
	if a, b := eventText(r.Events), eventText(again.Events); a != b {
		t.Fatalf("events differ on replay:\n%s\n%s", a, b)
	}
}

func eventText(events []machine.Event) string {
	var out bytes.Buffer
	for _, e := range events {
		fmt.Fprintf(&out, "%s %s %v %s\n", e.Type, e.Subject, e.To, canon.MustMarshal(e.Data))
	}
	return out.String()
}

func TestEvidenceAfterTheFreezeNeverChangesTheRoot(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		var roots []string
		for _, tries := range []bool{false, true} {
			r := newRig(t)
			round, first, second := r.close(nil)
			r.done(round, agents...)
			if tries {
				for range rapid.IntRange(1, 5).Draw(rt, "tries") {
					who := rapid.SampledFrom([][2]string{{"ann", first}, {"bob", second}}).Draw(rt, "who")
					if _, err := r.Do(who[0], "deliberatic.evidence", obj{"round": round, "argument": who[1], "evidence": evidence(rapid.Float64Range(0, 1).Draw(rt, "value"), 0)}); err == nil {
						rt.Fatal("evidence is taken after the freeze")
					}
				}
			}
			roots = append(roots, r.certify(round).Verdict.EvidenceRoot)
		}
		if roots[0] != roots[1] {
			rt.Fatalf("roots %v", roots)
		}
	})
}
