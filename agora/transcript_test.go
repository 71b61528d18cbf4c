package agora_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// TestTranscripts runs testdata/*.txt: a round's life as its events tell it.
//
//	world                       one line a principal: KIND ID
//	do actor=A kind=agora.K     the body
//	advance ms=N
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		b := machinetest.New(t, agora.New())
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			seen := len(b.Events)
			var out strings.Builder
			switch d.Cmd {
			case "world":
				for line := range strings.Lines(d.Input) {
					f := strings.Fields(line)
					b.Add(machine.PrincipalKind(f[0]), f[1])
				}
			case "do":
				var actor, kind string
				d.ScanArgs(t, "actor", &actor)
				d.ScanArgs(t, "kind", &kind)
				var body map[string]any
				decode(t, []byte(d.Input), &body)
				answer, err := b.Do(actor, kind, body)
				if r, ok := machine.IsRefusal(err); ok {
					fmt.Fprintf(&out, "refused %s\n", r.Code)
				} else {
					var r agora.Result
					decode(t, answer, &r)
					fmt.Fprintf(&out, "%s: %d yes, %d no, %d abstain, %d of %d\n", r.Status, r.Tally.Yes, r.Tally.No, r.Tally.Abstain, r.Tally.Cast, r.Tally.Registered)
				}
			case "advance":
				var ms int64
				d.ScanArgs(t, "ms", &ms)
				b.Advance(ms)
			default:
				d.Fatalf(t, "no command %s", d.Cmd)
			}
			for _, e := range b.Events[seen:] {
				if e.Type == "agora.resolved" {
					fmt.Fprintf(&out, "%s %s\n", e.Type, resolutionOf(t, e.Data))
				} else {
					fmt.Fprintln(&out, e.Type)
				}
			}
			if out.Len() == 0 {
				return "ok\n"
			}
			return out.String()
		})
	})
}

func resolutionOf(t *testing.T, data any) string {
	text, err := canon.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	var e struct{ Resolution agora.Resolution }
	decode(t, text, &e)
	out := fmt.Sprintf("%s at %d", e.Resolution.Outcome, e.Resolution.ResolvedAt)
	for _, d := range e.Resolution.Dissent {
		out += fmt.Sprintf(", %s: %s", d.AgentID, d.Kind)
	}
	return out
}
