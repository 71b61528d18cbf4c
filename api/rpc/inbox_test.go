package rpc

import (
	"context"
	"encoding/json"
	"errors"
	"testing"
	"time"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/machine"
)

func (h *house) box(params map[string]any) Inbox {
	h.t.Helper()
	r := h.call("agent.inbox", params)
	if r.Error != nil {
		h.t.Fatalf("%+v", r.Error)
	}
	var box Inbox
	if err := json.Unmarshal(r.Result, &box); err != nil {
		h.t.Fatal(err)
	}
	return box
}

func TestAnInboxAnswersAtOnceWithWhatIsAsked(t *testing.T) {
	h := newHouse(t, nil)
	if box := h.box(map[string]any{}); box.Asks == nil || len(box.Asks) != 0 || len(box.Version) != 64 {
		t.Errorf("%+v", box)
	}
	h.b.Ask("ada", machine.Ask{Ask: "vote", Kind: "agora.vote", Subject: "r1"})
	h.b.Ask("bob", machine.Ask{Ask: "vote", Kind: "agora.vote", Subject: "r2"})
	box := h.box(map[string]any{"wait_ms": 60000})
	if len(box.Asks) != 1 || box.Asks[0].Subject != "r1" {
		t.Errorf("%+v", box)
	}
}

func TestAPollWakesWhenAnEventConcernsItsReader(t *testing.T) {
	h := newHouse(t, nil)
	h.b.Ask("ada", machine.Ask{Ask: "vote", Subject: "r1"})
	known := h.box(map[string]any{}).Version

	looks := make(chan struct{}, 100)
	var asked []machine.Ask
	h.b.Lock()
	asked = h.b.Inbox["ada"]
	h.b.OnAsks = func(string, bool) ([]machine.Ask, error) {
		looks <- struct{}{}
		return asked, nil
	}
	h.b.Unlock()
	answer := make(chan Inbox)
	go func() { answer <- h.box(map[string]any{"wait_ms": 60000, "version": known}) }()
	<-looks // the poll has looked once and waits

	h.b.Emit("acp.submitted", "p1", []string{"bob"}, 1)
	h.b.Lock()
	asked = append([]machine.Ask{{Ask: "response", Subject: "p2"}}, asked...)
	h.b.Unlock()
	h.b.Emit("acp.submitted", "p2", []string{"ada"}, 1)
	if box := <-answer; len(box.Asks) != 2 || box.Version == known {
		t.Errorf("%+v", box)
	}
}

func TestAPollEndsWhenItsTimeIsOver(t *testing.T) {
	h := newHouse(t, nil)
	start := time.Now()
	if box := h.box(map[string]any{"wait_ms": 50}); len(box.Asks) != 0 {
		t.Errorf("%+v", box)
	}
	if took := time.Since(start); took < 50*time.Millisecond {
		t.Errorf("answered after %s", took)
	}
}

func TestPollsAreCountedAndStopWithTheNode(t *testing.T) {
	stop := make(chan struct{})
	h := newHouse(t, func(c *Config) { c.MaxPollsEach, c.Stop = 1, stop })
	looks := make(chan struct{}, 100)
	h.b.OnAsks = func(string, bool) ([]machine.Ask, error) { looks <- struct{}{}; return nil, nil }
	ended := make(chan reply)
	go func() { ended <- h.call("agent.inbox", map[string]any{"wait_ms": 60000}) }()
	<-looks
	if r := h.call("agent.inbox", map[string]any{"wait_ms": 60000}); r.Error == nil || r.Error.Number != Unavailable || r.Error.Data.Code != api.CodeBusy {
		t.Errorf("a second poll: %+v", r.Error)
	}
	if r := h.call("agent.inbox", map[string]any{}); r.Error != nil {
		t.Errorf("a look without waiting: %+v", r.Error)
	}
	close(stop)
	if r := <-ended; r.Error == nil || r.Error.Data.Code != api.CodeStopping {
		t.Errorf("%+v", r.Error)
	}
}

func TestAPollReportsAStreamThatBreaks(t *testing.T) {
	h := newHouse(t, nil)
	h.b.Slow = machine.Refuse(api.CodeSlowReader, "resume", "Too slow.")
	if r := h.call("agent.inbox", map[string]any{"wait_ms": 60000}); r.Error == nil || r.Error.Data.Code != api.CodeSlowReader {
		t.Errorf("%+v", r.Error)
	}
	if err := awaitConcern(canceled(), nothing{}, "ada", time.Minute); !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

func canceled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

// nothing is a stream without records.
type nothing struct{}

func (nothing) Next(ctx context.Context) (api.Record, error) {
	<-ctx.Done()
	return api.Record{}, ctx.Err()
}
func (nothing) Close() {}
