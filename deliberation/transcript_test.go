package deliberation_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Transcripts in testdata read as descriptions of a round. Each command is
// what one participant does; what follows is what the machine made of it.
//
//	open [domain=risk] [rule=majority] [participants=(ann,bob)]
//	WHO position|challenge|support NAME [on=NAME] [answer="…"] [value=0.9] [width=0.2] [final]
//	WHO evidence on=NAME value=0.9 [width=0.2] [final]
//	WHO confirm|reject NAME
//	WHO stand NAME|answer="…"
//	WHO done|resolve
//	voters certify signers=(0,1,2)
//	op outcome answer="…"
//	wait ms=1000
//	strengths, asks
func TestTranscripts(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return
		}
		p := &play{rig: newRig(t), names: map[string]string{}}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			p.out.Reset()
			p.run(t, d)
			p.tell()
			return p.out.String()
		})
	})
}

type play struct {
	*rig
	out   strings.Builder
	round string
	names map[string]string // name → argument id
	told  int               // events told so far
}

func (p *play) run(t *testing.T, d *datadriven.TestData) {
	switch d.Cmd {
	case "open":
		p.act("ann", "open", p.opening(d))
	case "wait":
		var ms int64
		d.ScanArgs(t, "ms", &ms)
		p.Advance(ms)
	case "strengths":
		p.strengths()
	case "asks":
		p.inbox()
	case "voters":
		f := p.frozen(p.round)
		var signers []int
		for _, v := range list(d, "signers") {
			n, err := strconv.Atoi(v)
			if err != nil {
				t.Fatal(err)
			}
			signers = append(signers, n)
		}
		p.act("n1", "certify", obj{"round": p.round, "certificate": p.certificate(f, p.complete(f.Seq), signers...)})
	default:
		p.participant(t, d)
	}
}

func (p *play) opening(d *datadriven.TestData) obj {
	body := obj{"title": "Lend?", "domain": "risk", "windows": obj{"collect_ms": 30000, "confirm_ms": 30000, "evidence_ms": 30000}}
	for _, a := range d.CmdArgs {
		switch a.Key {
		case "participants":
			body[a.Key] = a.Vals
		default:
			body[a.Key] = a.Vals[0]
		}
	}
	return body
}

func list(d *datadriven.TestData, key string) []string {
	for _, a := range d.CmdArgs {
		if a.Key == key {
			return a.Vals
		}
	}
	return nil
}

// participant runs "WHO verb [NAME] …".
func (p *play) participant(t *testing.T, d *datadriven.TestData) {
	verb, name := d.CmdArgs[0].Key, ""
	if len(d.CmdArgs) > 1 && len(d.CmdArgs[1].Vals) == 0 && d.CmdArgs[1].Key != "final" {
		name = d.CmdArgs[1].Key
	}
	body := obj{"round": p.round}
	item := obj{"type": "performance", "confidence": 0.0, "timestamp": "2026-01-15T00:00:00Z"}
	for _, a := range d.CmdArgs[1:] {
		switch a.Key {
		case "on":
			body[map[string]string{"evidence": "argument"}[verb]+map[bool]string{true: "target"}[verb != "evidence"]] = p.names[a.Vals[0]]
		case "answer":
			body["answer"] = a.Vals[0]
		case "value", "width":
			f, err := strconv.ParseFloat(a.Vals[0], 64)
			if err != nil {
				t.Fatal(err)
			}
			item[map[string]string{"value": "value", "width": "confidence"}[a.Key]] = f
			body["evidence"] = []obj{item}
		case "probability":
			body["probability"] = json.RawMessage(a.Vals[0])
		case "final":
			body["final"] = true
		}
	}
	switch verb {
	case "confirm", "reject":
		body["winner"], body["accept"] = p.names[name], verb == "confirm"
		verb = "confirm"
	case "stand":
		body = obj{"round": p.round, "standing": obj{"answers": []any{body["answer"]}, "expires_ms": int64(p.Now) + 60_000}}
		verb = "confirm"
	}
	if id := p.act(d.Cmd, verb, body).Argument; id != "" && name != "" {
		p.names[name] = id
	}
}

func (p *play) act(actor, verb string, body obj) deliberation.Answer {
	raw, err := p.Do(actor, "deliberatic."+verb, body)
	if r, ok := machine.IsRefusal(err); ok {
		fmt.Fprintf(&p.out, "refused: %s\n", p.readable(r.Code+": "+r.Message))
		return deliberation.Answer{}
	}
	if err != nil {
		p.t.Fatal(err)
	}
	a := p.answer(raw)
	p.round = a.Round
	if a.Argument != "" && a.Status == "" {
		p.names["…"] = a.Argument
	}
	if a.Status != "" {
		fmt.Fprintf(&p.out, "%s\n", a.Status)
	}
	return a
}

// readable puts names in place of ids.
func (p *play) readable(text string) string {
	text = strings.ReplaceAll(text, p.round, "ROUND")
	for name, id := range p.names {
		if name != "…" {
			text = strings.ReplaceAll(text, id, name)
		}
	}
	return text
}

// tell writes the events since the last command.
func (p *play) tell() {
	for ; p.told < len(p.Events); p.told++ {
		e := p.Events[p.told]
		var data map[string]any
		if err := json.Unmarshal(canon.MustMarshal(e.Data), &data); err != nil {
			p.t.Fatal(err)
		}
		fmt.Fprintf(&p.out, "%s", strings.TrimPrefix(e.Type, "deliberatic."))
		for _, k := range p.fields(e.Type) {
			if v, ok := data[k]; ok && v != nil {
				fmt.Fprintf(&p.out, " %s=%s", strings.TrimSuffix(k, "_nano"), p.value(k, v))
			}
		}
		p.out.WriteString("\n")
	}
	if p.out.Len() == 0 {
		p.out.WriteString("ok\n")
	}
}

// fields are the members of an event that the transcript shows.
func (p *play) fields(typ string) []string {
	return map[string][]string{
		"deliberatic.opened":         {"title", "domain", "participants", "rule"},
		"deliberatic.positioned":     {"agent", "answer"},
		"deliberatic.challenged":     {"agent", "target"},
		"deliberatic.supported":      {"agent", "target"},
		"deliberatic.related":        {"agent", "from", "relation", "to", "cross_reference"},
		"deliberatic.evidence_added": {"agent", "argument", "outcome"},
		"deliberatic.finished":       {"agent"},
		"deliberatic.evaluated":      {"closed_by", "path", "why", "outcome"},
		"deliberatic.confirmed":      {"agent", "winner", "accept", "standing", "count"},
		"deliberatic.prepared":       {"why", "survivors"},
		"deliberatic.frozen":         {"epoch", "seq"},
		"deliberatic.certified":      {"certificate"},
		"deliberatic.decided":        {"status", "reason", "winner", "answer", "path", "why", "gap_nano", "tau_nano", "confirmations", "certificate", "dissents"},
		"deliberatic.rated":          {"changes"},
		"deliberatic.learned":        {"answer", "calibrated", "vindicated"},
	}[typ]
}

func (p *play) value(k string, v any) string {
	nano := func(x any) string { return strconv.FormatFloat(x.(float64)/1e9, 'g', -1, 64) }
	switch m, _ := v.(map[string]any); {
	case strings.HasSuffix(k, "_nano"):
		return nano(v)
	case k == "outcome":
		gap := "none"
		if m["gap_nano"] != nil {
			gap = nano(m["gap_nano"])
		}
		return fmt.Sprintf("(winner %s, gap %s)", p.readable(m["winner"].(string)), gap)
	case k == "count" || k == "confirmations":
		return fmt.Sprintf("%v:%v of %v", m["accepts"], m["rejects"], m["participants"])
	case k == "certificate":
		return fmt.Sprintf("(view %v, %v of %v voters)", m["view"], m["signers"], m["voters"])
	case k == "dissents":
		var out []string
		for _, d := range v.([]any) {
			out = append(out, d.(map[string]any)["agent"].(string))
		}
		return fmt.Sprint(out)
	case k == "changes":
		var out []string
		for _, c := range v.([]any) {
			c := c.(map[string]any)
			if c["domain"] != nil {
				out = append(out, fmt.Sprintf("%s %v→%v", c["agent"], c["before_micro"].(float64)/1e6, c["after_micro"].(float64)/1e6))
			}
		}
		return fmt.Sprint(out)
	}
	return p.readable(string(canon.MustMarshal(v)))
}

func (p *play) strengths() {
	e := p.explain(p.round)
	var lines []string
	for _, a := range e.Arguments {
		line := fmt.Sprintf("%s by %s: %g·%g", p.readable(a.ID), a.Author, float64(a.WeightNano)/1e9, float64(a.RhoNano)/1e9)
		for _, s := range a.Shares {
			line += fmt.Sprintf(" %+g %s %s", float64(s.ShareNano)/1e9, s.Relation, p.readable(s.From))
		}
		lines = append(lines, fmt.Sprintf("%s = %g", line, float64(a.SigmaNano)/1e9))
	}
	slices.Sort(lines)
	fmt.Fprintln(&p.out, strings.Join(lines, "\n"))
	if e.Flip != nil {
		fmt.Fprintf(&p.out, "%s would win if %s weighed beyond %g\n", p.readable(e.Flip.Then), p.readable(e.Flip.Argument), float64(e.Flip.ToNano)/1e9)
	}
}

func (p *play) inbox() {
	for _, who := range append(slices.Clone(agents), "op") {
		if asked := p.asked(who); len(asked) > 0 {
			fmt.Fprintf(&p.out, "%s: %s\n", who, strings.Join(asked, ", "))
		}
	}
}
