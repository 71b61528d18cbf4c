package standard_test

import (
	"testing"
	"time"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/machine"
)

// However much falls due at once, after an outage or by malice, the entry that
// finds it applies.
func TestAnyNumberOfDeadlinesMayFallDueInOneEntry(t *testing.T) {
	w := newWorld(t)
	const rounds, batch = 1500, 250
	deadline := time.Now().Add(10 * time.Minute).UnixMilli()
	for range rounds / batch {
		var actions [][]byte
		for range batch {
			actions = append(actions, w.action("author", "agora.propose", map[string]any{"action": map[string]any{}, "voters": []string{"author"},
				"quorum": map[string]any{"type": "count", "value": 1}, "deadline_ms": deadline}))
		}
		w.mustApply(w.entry(actions...))
	}
	e, err := fsm.DecodeEntry(w.entry())
	if err != nil {
		t.Fatal(err)
	}
	e.Stamp = machine.Stamp(deadline + 1)
	out := w.mustApply(e.Encode())
	if len(out.Records) < 1+rounds {
		t.Fatalf("%d leaves, want one for each of %d rounds", len(out.Records), rounds)
	}
}

// mustApply applies one entry of which no action may be refused.
func (w *world) mustApply(raw []byte) (out fsm.Outcome) {
	w.Helper()
	err := w.store.Update(func(tx machine.Tx) (err error) {
		out, err = w.f.Apply(tx, fsm.Decode(raw))
		return err
	})
	for _, a := range out.Answers {
		if err == nil && a.Refusal != nil {
			err = a.Refusal
		}
	}
	if err != nil {
		w.Fatal(err)
	}
	return out
}
