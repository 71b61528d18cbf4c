package main

import (
	"strconv"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/deliberd/deliberd/deliberation"
)

// widthHelp says what the protocol calls confidence.
const widthHelp = "the width of the confidence interval, 0 (certain) to 1 (unknown): larger means weaker"

// evidenceFlags take evidence in two ways: --evidence with all of an item,
// repeated, or --type, --value, --width and so on for one item.
type evidenceFlags struct {
	whole                                  []string
	typ, value, width, samples, source, at string
}

func (e *evidenceFlags) register(f *pflag.FlagSet) {
	f.StringArrayVar(&e.whole, "evidence", nil, "an item, such as type=performance,value=0.9,width=0.2[,samples=N][,source=URI][,at=TIME]; repeat it")
	f.StringVar(&e.typ, "type", "", "of one item: performance, resource, schema, latency, historical or external")
	f.StringVar(&e.value, "value", "", "of one item: its value, normalized to 0 … 1")
	f.StringVar(&e.width, "width", "", "of one item: "+widthHelp)
	f.StringVar(&e.samples, "samples", "", "of one item: its sample size")
	f.StringVar(&e.source, "source", "", "of one item: where it comes from, a URI")
	f.StringVar(&e.at, "at", "", "of one item: when it was observed, RFC 3339 (default now)")
}

// items are the evidence that was given. With some, none is an error.
func (e *evidenceFlags) items(some bool) ([]deliberation.EvidenceItem, error) {
	var out []deliberation.EvidenceItem
	for _, text := range e.whole {
		one, err := parseEvidence(text)
		if err != nil {
			return nil, err
		}
		item, err := one.item()
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	if e.typ+e.value+e.width+e.samples+e.source+e.at != "" {
		item, err := e.item()
		if err != nil {
			return nil, err
		}
		out = append(out, item)
	}
	if some && len(out) == 0 {
		return nil, usage("give evidence: --evidence type=performance,value=0.9,width=0.2, or --type, --value and --width")
	}
	return out, nil
}

// parseEvidence reads "type=…,value=…,width=…". A source may hold commas when
// it stands last.
func parseEvidence(text string) (*evidenceFlags, error) {
	var e evidenceFlags
	for rest := text; rest != ""; {
		var part string
		if strings.HasPrefix(rest, "source=") {
			part, rest = rest, ""
		} else {
			part, rest, _ = strings.Cut(rest, ",")
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, usage("--evidence %q: %q is not name=value", text, part)
		}
		to := map[string]*string{"type": &e.typ, "value": &e.value, "width": &e.width, "samples": &e.samples, "source": &e.source, "at": &e.at}[name]
		switch {
		case name == "confidence":
			return nil, usage("--evidence %q: use width for what the protocol calls confidence: it is %s", text, widthHelp)
		case to == nil:
			return nil, usage("--evidence %q: %q is none of type, value, width, samples, source, at", text, name)
		case *to != "":
			return nil, usage("--evidence %q: %s is given twice", text, name)
		}
		*to = value
	}
	return &e, nil
}

func (e *evidenceFlags) item() (deliberation.EvidenceItem, error) {
	out := deliberation.EvidenceItem{Type: e.typ, Source: e.source, Timestamp: e.at}
	known := false
	for _, t := range deliberation.EvidenceTypes {
		known = known || t == e.typ
	}
	if !known {
		return out, usage("the type of evidence is %q; use one of %s", e.typ, strings.Join(deliberation.EvidenceTypes[:], ", "))
	}
	value, err := strconv.ParseFloat(e.value, 64)
	if err != nil || !(value >= 0 && value <= 1) {
		return out, usage("the value of evidence is %q; normalize it to a number from 0 to 1", e.value)
	}
	width, err := strconv.ParseFloat(e.width, 64)
	if err != nil || !(width >= 0 && width <= 1) {
		return out, usage("the width of evidence is %q; give %s", e.width, widthHelp)
	}
	out.Value, out.Confidence = &value, &width
	if e.samples != "" {
		n, err := strconv.ParseInt(e.samples, 10, 53)
		if err != nil || n < 1 {
			return out, usage("the sample size of evidence is %q; give a whole number from 1, or leave it out", e.samples)
		}
		out.SampleSize = &n
	}
	if out.Timestamp == "" {
		out.Timestamp = time.Now().UTC().Format("2006-01-02T15:04:05Z")
	} else if _, err := time.Parse(time.RFC3339Nano, out.Timestamp); err != nil {
		return out, usage("the time of evidence is %q; write it like 2026-01-15T00:00:00Z", e.at)
	}
	return out, nil
}
