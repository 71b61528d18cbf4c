package agora_test

import (
	"encoding/json"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// decoders are what every kind's body goes through, with its schema's name.
var decoders = map[string]func(json.RawMessage) error{
	"propose":  func(b json.RawMessage) error { _, err := agora.DecodePropose(b); return err },
	"vote":     func(b json.RawMessage) error { _, err := agora.DecodeVote(b); return err },
	"veto":     func(b json.RawMessage) error { _, err := agora.DecodeVeto(b); return err },
	"evaluate": func(b json.RawMessage) error { _, err := agora.DecodeEvaluate(b); return err },
}

func TestSchemaAndDecodeAgreeOnBodies(t *testing.T) {
	long := strings.Repeat("x", 1025)
	round := func(quorum, rest string) string {
		return `{"action":{},"quorum":` + quorum + `,"voters":["a","b","c"]` + rest + `}`
	}
	const two = `{"type":"count","value":2}`
	for name, cases := range map[string]map[string]bool{
		"propose": {
			round(two, ""): true,
			round(two, `,"auto_evaluate":true,"deadline_in_ms":5,"id":"deploy 2026-09-15","vetoers":["s"]`): true,
			round(two, `,"deadline_ms":1736935200000`):                                                      true,
			round(`{"type":"fraction","value":0.6666666666666666}`, ""):                                     true,
			round(`{"type":"fraction","value":1}`, ""):                                                      true,
			round(`{"type":"fraction","value":"2/3"}`, ""):                                                  true,
			round(`{"type":"fraction","value":{"den":3,"num":2}}`, ""):                                      true,
			`{"action":{},"quorum":` + two + `,"voters":["a",{"id":"b","weight":3}]}`:                       true,
			round(`{"type":"count","value":0}`, ""):                                                         false,
			round(`{"type":"count","value":1.5}`, ""):                                                       false,
			round(`{"type":"count","value":"2"}`, ""):                                                       false,
			round(`{"type":"fraction","value":0}`, ""):                                                      false,
			round(`{"type":"fraction","value":1.1}`, ""):                                                    false,
			round(`{"type":"fraction","value":"2/ 3"}`, ""):                                                 false,
			round(`{"type":"fraction","value":"02/3"}`, ""):                                                 false,
			round(`{"type":"fraction","value":"2"}`, ""):                                                    false,
			round(`{"type":"fraction","value":{"num":2}}`, ""):                                              false,
			round(`{"type":"fraction","value":{"den":3,"num":2,"x":1}}`, ""):                                false,
			round(`{"type":"other","value":1}`, ""):                                                         false,
			round(`{"type":"count"}`, ""):                                                                   false,
			round(`null`, ""):                                                                               false,
			round(two, `,"deadline_in_ms":5,"deadline_ms":5`):                                               false,
			round(two, `,"deadline_in_ms":0`):                                                               false,
			round(two, `,"id":""`):                                                                          false,
			round(two, `,"id":"a\u0001"`):                                                                   false,
			round(two, `,"vetoers":null`):                                                                   false,
			round(two, `,"vetoers":["s","s"]`):                                                              false,
			round(two, `,"x":1`):                                                                            false,
			`{"action":{},"quorum":` + two + `,"voters":[]}`:                                                false,
			`{"action":{},"quorum":` + two + `,"voters":["a","a"]}`:                                         false,
			`{"action":{},"quorum":` + two + `,"voters":[{"id":"a","weight":0}]}`:                           false,
			`{"action":{},"quorum":` + two + `,"voters":[{"weight":1}]}`:                                    false,
			`{"action":[],"quorum":` + two + `,"voters":["a"]}`:                                             false,
			`{"quorum":` + two + `,"voters":["a"]}`:                                                         false,
			`{"action":{},"voters":["a"]}`:                                                                  false,
			`[]`:                                                                                            false,
		},
		"vote": {
			`{"choice":"yes","round_id":"r"}`:                        true,
			`{"choice":"abstain","reason":"why","round_id":"r"}`:     true,
			`{"choice":"maybe","round_id":"r"}`:                      false,
			`{"choice":"no","reason":null,"round_id":"r"}`:           false,
			`{"choice":"no","reason":"` + long + `","round_id":"r"}`: false,
			`{"choice":"no"}`:  false,
			`{"round_id":"r"}`: false,
		},
		"veto": {
			`{"reason":"unsafe","round_id":"r"}`:       true,
			`{"reason":"","round_id":"r"}`:             false,
			`{"reason":" \t","round_id":"r"}`:          false,
			`{"reason":null,"round_id":"r"}`:           false,
			`{"reason":"` + long + `","round_id":"r"}`: false,
			`{"round_id":"r"}`:                         false,
			`{"reason":"unsafe"}`:                      false,
		},
		"evaluate": {
			`{"round_id":"r"}`:         true,
			`{"now":1,"round_id":"r"}`: false,
			`{"round_id":""}`:          false,
			`{}`:                       false,
		},
	} {
		schema, err := agora.Schema(name)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(t *testing.T) { machinetest.Cases(t, schema, decoders[name], cases) })
	}
}

func TestBodiesEncodeToWhatDecodes(t *testing.T) {
	for _, q := range []agora.Quorum{agora.Count(1), agora.Fraction(2.0 / 3), agora.Rational(2, 3)} {
		in := agora.ProposeBody{Action: json.RawMessage(`{}`), Voters: []agora.Voter{{ID: "a"}, {ID: "b", Weight: 3}}, Quorum: q}
		text, err := canon.Marshal(in)
		if err != nil {
			t.Fatal(err)
		}
		out, err := agora.DecodePropose(text)
		if err != nil || out.Quorum != q || out.Voters[0].Weight != 1 || out.Voters[1] != in.Voters[1] {
			t.Fatalf("%s: %+v, %v", text, out, err)
		}
	}
}

func FuzzBodies(f *testing.F) {
	f.Add(`{"action":{},"auto_evaluate":true,"deadline_in_ms":5,"id":"r","quorum":{"type":"fraction","value":"2/3"},"vetoers":["s"],"voters":["a",{"id":"b","weight":3}]}`)
	f.Add(`{"action":{},"quorum":{"type":"count","value":2},"voters":["a","b"]}`)
	f.Add(`{"choice":"no","reason":"why","round_id":"r"}`)
	machinetest.FuzzDecoders(f, agora.Schema, decoders)
}

func FuzzQuorum(f *testing.F) {
	for _, text := range []string{`{"type":"count","value":2}`, `{"type":"fraction","value":0.1}`, `{"type":"fraction","value":"2/3"}`, `{"type":"fraction","value":{"num":1,"den":3}}`} {
		f.Add(text, uint64(10))
	}
	f.Fuzz(func(t *testing.T, text string, registered uint64) {
		q, err := agora.ParseQuorum([]byte(text))
		if err != nil {
			return
		}
		again, err := json.Marshal(q)
		if err != nil {
			t.Fatal(err)
		}
		if p, err := agora.ParseQuorum(again); err != nil || p != q {
			t.Fatalf("%s reads as %v, writes as %s, reads as %v (%v)", text, q, again, p, err)
		}
		registered %= 1 << 20
		n, ok := q.Needed(registered)
		if ok && (!q.Met(n, registered) || n > 0 && q.Met(n-1, registered)) {
			t.Fatalf("%s of %d voters: %d is not the least number", text, registered, n)
		}
	})
}
