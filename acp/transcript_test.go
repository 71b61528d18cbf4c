package acp_test

import (
	"fmt"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// TestTranscripts runs testdata/*.txt: a proposal's life as its events tell it.
//
//	world                     one line a principal: KIND ID [DOMAIN AUTHORITY TRUST]
//	do actor=A kind=acp.K     the body, where $p stands for the last proposal
//	advance ms=N
//	asks of=A
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		b := machinetest.New(t, acp.New())
		last := ""
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			seen, err := len(b.Events), error(nil)
			switch d.Cmd {
			case "world":
				for line := range strings.Lines(d.Input) {
					f := strings.Fields(line)
					b.Add(machine.PrincipalKind(f[0]), f[1])
					if len(f) == 5 {
						b.Grant(f[1], f[2], f[3], f[4])
					}
				}
			case "do":
				var actor, kind string
				d.ScanArgs(t, "actor", &actor)
				d.ScanArgs(t, "kind", &kind)
				var body map[string]any
				decode(t, []byte(strings.ReplaceAll(d.Input, "$p", last)), &body)
				_, err = b.Do(actor, kind, body)
			case "advance":
				var ms int64
				d.ScanArgs(t, "ms", &ms)
				b.Advance(ms)
			case "asks":
				var of string
				d.ScanArgs(t, "of", &of)
				return strings.ReplaceAll(strings.Join(asksOf(b, of), "\n"), last, "$p") + "\n"
			default:
				d.Fatalf(t, "no command %s", d.Cmd)
			}
			var out strings.Builder
			if r, ok := machine.IsRefusal(err); ok {
				fmt.Fprintf(&out, "refused %s\n", r.Code)
			}
			for _, e := range b.Events[seen:] {
				if e.Type == "acp.submitted" {
					last = e.Subject
				}
				fmt.Fprintf(&out, "%s %s\n", e.Type, told(t, e.Data))
			}
			if out.Len() == 0 {
				return "ok\n"
			}
			return out.String()
		})
	})
}

// told picks what a reader of a transcript wants of an event.
func told(t *testing.T, data any) string {
	var all map[string]any
	decode(t, canonical(t, data), &all)
	var out []string
	for _, name := range []string{"type", "actor", "response_type", "weight", "outcome", "trigger", "escalation", "policy", "auto"} {
		if v, ok := all[name]; ok {
			out = append(out, fmt.Sprintf("%s=%v", name, v))
		}
	}
	if exact, ok := all["exact"].(map[string]any); ok {
		out = append(out, fmt.Sprintf("for=%v against=%v", exact["votes_for"], exact["votes_against"]))
	}
	if at, ok := all["decided_at"].(string); ok {
		out = append(out, "at="+strconv.FormatInt(int64(mustTime(t, at).Stamp()), 10))
	}
	return strings.Join(out, " ")
}
