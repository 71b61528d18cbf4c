package deliberation_test

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/santhosh-tekuri/jsonschema/v6"
)

// compiled compiles the schema of every kind; it fails on a bad one.
func compiled(t testing.TB) map[string]*jsonschema.Schema {
	t.Helper()
	out := map[string]*jsonschema.Schema{}
	for _, k := range deliberation.New().Kinds() {
		out[k.Name] = compile(t, k.Name, k.Schema)
	}
	return out
}

func compile(t testing.TB, name string, text json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	c := jsonschema.NewCompiler()
	c.AssertFormat()
	if err := c.AddResource("mem:"+name, doc); err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	s, err := c.Compile("mem:" + name)
	if err != nil {
		t.Fatalf("%s: %v", name, err)
	}
	return s
}

func valid(t testing.TB, s *jsonschema.Schema, text []byte) bool {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return s.Validate(doc) == nil
}

const id = "01ARZ3NDEKTSV4RRFFQ69G5FAV"

// bodies are good and bad bodies of every kind.
var bodies = map[string]struct{ good, bad []string }{
	"deliberatic.open": {
		good: []string{
			`{"domain":"risk","title":"Lend?"}`,
			`{"participants":["ann","bob","cid"],"title":"x"}`,
			`{"domain":"a.b-c_d","empty_weight":0,"gamma_minus":0.5,"gamma_plus":0.1,"method":"rectified","minimum":1,"on_rejected":"human","options":[1,null,"x"],"question":"?","reviewers":["hal"],"rule":"supermajority","task":{"a":null},"tau":0.2,"title":"x","weight_method":"discounted-gm","windows":{"collect_ms":1,"confirm_ms":2,"evidence_ms":3,"review_ms":4}}`,
			`{"domain":"risk","tau_nano":0,"title":"x","windows":{}}`,
		},
		bad: []string{
			`{}`, `[]`, `{"title":"x"}`, `{"domain":"risk","title":""}`, `{"domain":"risk","title":" "}`, `{"domain":"risk."," title":"x"}`, `{"domain":".","title":"x"}`,
			`{"domain":"risk","title":null}`, `{"domain":null,"participants":["a","b","c"],"title":"x"}`, `{"domain":"risk","tau":1,"tau_nano":1,"title":"x"}`,
			`{"domain":"risk","tau":11,"title":"x"}`, `{"domain":"risk","tau_nano":0.5,"title":"x"}`, `{"domain":"risk","title":"x","windows":{"collect_ms":0}}`,
			`{"domain":"risk","title":"x","windows":null}`, `{"domain":"risk","title":"x","windows":{"x":1}}`, `{"domain":"risk","options":[1],"title":"x"}`,
			`{"domain":"risk","options":[1,1],"title":"x"}`, `{"domain":"risk","options":[],"title":"x"}`, `{"domain":"risk","reviewers":["hal"],"title":"x"}`,
			`{"domain":"risk","on_rejected":"no_verdict","reviewers":["hal"],"title":"x"}`, `{"domain":"risk","participants":["a","a"],"title":"x"}`,
			`{"domain":"risk","participants":[""],"title":"x"}`, `{"domain":"risk","task":[],"title":"x"}`, `{"domain":"risk","minimum":257,"title":"x"}`,
			`{"domain":"risk","gamma_plus":0,"title":"x"}`, `{"Domain":"risk","domain":"risk","title":"x"}`, `{"domain":"risk","rule":"x","title":"x"}`, `{"domain":"risk","rule":"","title":"x"}`,
		},
	},
	"deliberatic.position": {
		good: []string{
			`{"answer":1,"round":"` + id + `"}`, `{"answer":null,"round":"x"}`, `{"answer":{"a":[null]},"facts":{"a":null},"final":false,"probability":1,"round":"x","text":""}`,
			`{"answer":1,"evidence":[],"round":"x"}`,
			`{"answer":1,"evidence":[{"confidence":0,"sample_size":1,"source":"https://x","timestamp":"2026-01-15T00:00:00.123+01:00","type":"latency","value":1}],"round":"x"}`,
		},
		bad: []string{
			`{"answer":1}`, `{"round":"x"}`, `{"answer":1,"round":""}`, `{"answer":1,"probability":null,"round":"x"}`, `{"answer":1,"probability":1.5,"round":"x"}`,
			`{"answer":1,"facts":[],"round":"x"}`, `{"answer":1,"evidence":null,"round":"x"}`, `{"answer":1,"evidence":[null],"round":"x"}`, `{"answer":1,"evidence":[{}],"round":"x"}`,
			`{"answer":1,"evidence":[{"confidence":0,"timestamp":"2026-01-15T00:00:00Z","type":"latency","value":null}],"round":"x"}`,
			`{"answer":1,"evidence":[{"confidence":0,"timestamp":"2026-13-15T00:00:00Z","type":"latency","value":1}],"round":"x"}`,
			`{"answer":1,"evidence":[{"confidence":0,"timestamp":"2026-01-15t00:00:00z","type":"latency","value":1}],"round":"x"}`,
			`{"answer":1,"evidence":[{"confidence":0,"timestamp":"2026-01-15T00:00:00Z","type":"latency","value":1,"x":1}],"round":"x"}`,
			`{"answer":1,"final":1,"round":"x"}`, `{"answer":1,"round":"x","text":null}`,
		},
	},
	"deliberatic.challenge": {
		good: []string{`{"round":"x","target":"y"}`, `{"evidence":[],"final":true,"round":"x","target":"y","text":"z"}`},
		bad:  []string{`{"round":"x"}`, `{"target":"y"}`, `{"answer":1,"round":"x","target":"y"}`, `{"round":"x","target":1}`, `{"round":"x","target":""}`},
	},
	"deliberatic.support": {
		good: []string{`{"round":"x","target":"y"}`},
		bad:  []string{`{"round":"x","target":"y","weight":1}`, `{}`},
	},
	"deliberatic.relate": {
		good: []string{`{"from":"a","relation":"attack","round":"x","to":"b"}`, `{"final":true,"from":"a","relation":"support","round":"x","to":"a"}`},
		bad:  []string{`{"from":"a","relation":"likes","round":"x","to":"b"}`, `{"from":"a","round":"x","to":"b"}`, `{"relation":"attack","round":"x","to":"b"}`},
	},
	"deliberatic.evidence": {
		good: []string{`{"argument":"a","evidence":[{"confidence":1,"timestamp":"2024-02-29T23:59:59Z","type":"external","value":0}],"round":"x"}`},
		bad:  []string{`{"argument":"a","evidence":[],"round":"x"}`, `{"argument":"a","round":"x"}`, `{"evidence":[],"round":"x"}`, `{"argument":"a","evidence":[{"confidence":1,"timestamp":"2023-02-29T23:59:59Z","type":"external","value":0}],"round":"x"}`},
	},
	"deliberatic.done":    {good: []string{`{"round":"x"}`}, bad: []string{`{}`, `{"round":null}`, `{"round":"x","x":1}`, `{"round":"` + strings.Repeat("x", 129) + `"}`}},
	"deliberatic.resolve": {good: []string{`{"round":"x"}`}, bad: []string{`{}`, `{"round":1}`}},
	"deliberatic.confirm": {
		good: []string{
			`{"accept":false,"round":"x","winner":"y"}`, `{"accept":true,"outcome_hash":"` + strings.Repeat("0a", 32) + `","round":"x","winner":"y"}`,
			`{"round":"x","standing":{"answers":[null],"expires_ms":9}}`, `{"round":"x","standing":{"expires_ms":9,"winners":["y"]}}`,
		},
		bad: []string{
			`{"round":"x"}`, `{"accept":true,"round":"x"}`, `{"round":"x","winner":"y"}`, `{"accept":null,"round":"x","winner":"y"}`, `{"round":"x","standing":null}`,
			`{"round":"x","standing":{"expires_ms":9}}`, `{"round":"x","standing":{"expires_ms":9,"winners":[]}}`, `{"round":"x","standing":{"winners":["y"]}}`,
			`{"accept":true,"round":"x","standing":{"expires_ms":9,"winners":["y"]},"winner":"y"}`, `{"outcome_hash":"x","round":"x","standing":{"expires_ms":9,"winners":["y"]}}`,
			`{"accept":true,"outcome_hash":"0A","round":"x","winner":"y"}`, `{"round":"x","standing":{"expires_ms":1.5,"winners":["y"]}}`,
		},
	},
	"deliberatic.certify": {good: []string{`{"certificate":{},"round":"x"}`}, bad: []string{`{"round":"x"}`, `{"certificate":[],"round":"x"}`, `{"certificate":null,"round":"x"}`}},
	"deliberatic.review":  {good: []string{`{"round":"x"}`, `{"reason":"r","round":"x","winner":"w"}`}, bad: []string{`{}`, `{"round":"x","winner":null}`, `{"round":"x","winner":""}`, `{"round":"x","winner":"` + strings.Repeat("x", 129) + `"}`}},
	"deliberatic.outcome": {
		good: []string{`{"answer":null,"round":"x"}`, `{"round":"x","vindicated":["a"]}`, `{"answer":1,"round":"x","vindicated":["a","b"]}`},
		bad:  []string{`{"round":"x"}`, `{"round":"x","vindicated":[]}`, `{"round":"x","vindicated":["a","a"]}`, `{"round":"x","vindicated":[""]}`, `{"answer":1}`},
	},
}

func TestSchemaAndDecodeAgreeOnGoodAndBadBodies(t *testing.T) {
	schemas := compiled(t)
	for kind, schema := range schemas {
		cases, ok := bodies[kind]
		if !ok || len(cases.good) == 0 || len(cases.bad) == 0 {
			t.Errorf("%s has no bodies to try", kind)
		}
		for _, text := range cases.good {
			if _, err := deliberation.Decode(kind, []byte(text)); err != nil || !valid(t, schema, []byte(text)) {
				t.Errorf("%s: %s: decode says %v, schema %v", kind, text, err, valid(t, schema, []byte(text)))
			}
		}
		for _, text := range cases.bad {
			_, err := deliberation.Decode(kind, []byte(text))
			if _, ok := machine.IsRefusal(err); !ok || valid(t, schema, []byte(text)) {
				t.Errorf("%s: %s: decode says %v, schema %v", kind, text, err, valid(t, schema, []byte(text)))
			}
		}
	}
	if _, err := deliberation.Decode("deliberatic.dance", []byte(`{}`)); err == nil {
		t.Error("an unknown kind decodes")
	}
}

func TestTheSchemasOfQueriesCompile(t *testing.T) {
	for _, q := range deliberation.New().Queries() {
		compile(t, "query "+q.Name, q.Schema)
	}
}

// FuzzBodies: no text makes Decode panic, what Decode takes the schema takes
// too, and applying it to a live round is an answer or a refusal.
func FuzzBodies(f *testing.F) {
	for kind, cases := range bodies {
		for _, text := range append(cases.good, cases.bad...) {
			f.Add(kind, []byte(text))
		}
	}
	schemas := compiled(f)
	r := newRig(f)
	round := r.open(nil)
	ann := r.position("ann", round, "yes", 0.9)
	f.Fuzz(func(t *testing.T, kind string, text []byte) {
		_, err := deliberation.Decode(kind, text)
		if err != nil {
			if _, ok := machine.IsRefusal(err); !ok {
				t.Fatalf("%s: %s: %v", kind, text, err)
			}
			return
		}
		if !valid(t, schemas[kind], text) {
			t.Fatalf("%s: %s: decodes against its schema", kind, text)
		}
		text = bytes.ReplaceAll(bytes.ReplaceAll(text, []byte(`"x"`), []byte(`"`+round+`"`)), []byte(`"y"`), []byte(`"`+ann+`"`))
		body, err := canon.Canonicalize(text)
		if err != nil {
			return
		}
		bench := *r
		inner := *r.Bench
		inner.T, bench.t, bench.Bench = t, t, &inner
		inner.Tx = maps.Clone(r.Tx)
		_, _ = bench.Do("bob", kind, json.RawMessage(body)) // fails the test on anything but a refusal
	})
}
