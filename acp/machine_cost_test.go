package acp_test

import (
	"encoding/json"
	"testing"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// counting is a Tx that counts keys read or written.
type counting struct {
	machinetest.Mem
	touched int
}

func (c *counting) Get(k []byte) ([]byte, error) { c.touched++; return c.Mem.Get(k) }
func (c *counting) Put(k, v []byte) error        { c.touched++; return c.Mem.Put(k, v) }
func (c *counting) Delete(k []byte) error        { c.touched++; return c.Mem.Delete(k) }
func (c *counting) Range(from, to []byte, f func(k, v []byte) (bool, error)) error {
	return c.Mem.Range(from, to, func(k, v []byte) (bool, error) { c.touched++; return f(k, v) })
}

// spy lets the bench drive a machine through a counting Tx.
type spy struct {
	*acp.Machine
	touched *int
}

func (s spy) Apply(tx machine.Tx, ctx machine.Ctx, v machine.Verified) (any, []machine.Event, error) {
	c := &counting{Mem: tx.(machinetest.Mem)}
	answer, events, err := s.Machine.Apply(c, ctx, v)
	*s.touched = c.touched
	return answer, events, err
}

func TestNoActionLooksAtOtherProposals(t *testing.T) {
	touched := 0
	b := newBench(t)
	b.Machine = spy{acp.New(), &touched}
	var last string
	for range 300 {
		last = submit(b, m{"expires_in_ms": 100_000})
	}
	if touched > 12 {
		t.Errorf("a submission touched %d keys among 300 proposals", touched)
	}
	respond(b, "A", last, "endorse", 1)
	if touched > 6 {
		t.Errorf("a response touched %d keys", touched)
	}
	respond(b, "B", last, "endorse", 1)
	if touched > 20 {
		t.Errorf("a resolution touched %d keys", touched)
	}
	c := &counting{Mem: b.Tx}
	if _, ok, err := b.Machine.Next(c); !ok || err != nil || c.touched != 1 {
		t.Errorf("Next touched %d keys: %v, %v", c.touched, ok, err)
	}
	c = &counting{Mem: b.Tx}
	if asks, err := b.Machine.Asks(c, b.Ctx(), "outsider"); err != nil || len(asks) != 0 || c.touched > 5 {
		t.Errorf("asking somebody without a grant touched %d keys: %v, %v", c.touched, asks, err)
	}
	c = &counting{Mem: b.Tx}
	if page, err := b.Machine.Queries()[1].Run(c, b.Ctx(), "A", json.RawMessage(`{"limit":5}`)); err != nil || c.touched > 12 {
		t.Errorf("a page of 5 touched %d keys: %v, %v", c.touched, page, err)
	}
}

func TestEventsAreAnAuditLog(t *testing.T) {
	b := newBench(t)
	id := submit(b, m{"quorum": 1})
	b.Must("A", "acp.respond", m{"proposal_id": id, "response_type": "endorse", "confidence": 0.25, "reason": "fine"})
	b.Must("op", "acp.configure", m{"hypotheses": "auto"})
	want := []string{"acp.submitted", "acp.responded", "acp.decided", "acp.configured"}
	for i, e := range b.Events {
		if e.Type != want[i] {
			t.Fatalf("event %d is %s, want %s", i, e.Type, want[i])
		}
		var data map[string]any
		decode(t, canonical(t, e.Data), &data)
		if data["action_id"] == "" || data["action_id"] == nil {
			t.Errorf("%s names no action: %v", e.Type, data)
		}
		if hash, _ := data["payload_hash"].(string); len(hash) != 64 && e.Type != "acp.configured" {
			t.Errorf("%s has no payload hash: %v", e.Type, data)
		}
		if e.Type == "acp.decided" {
			if _, err := acp.DecodeDecisionEvent(canonical(t, e.Data)); err != nil {
				t.Errorf("its decision event: %v", err)
			}
			if data["caused_by"] != id || len(e.To) != 2 {
				t.Errorf("lineage %v, to %v", data["caused_by"], e.To)
			}
		} else if data["actor"] == nil {
			t.Errorf("%s names no actor", e.Type)
		}
	}
}
