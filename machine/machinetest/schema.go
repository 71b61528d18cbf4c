package machinetest

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deliberd/deliberd/internal/canon"
)

// Schema compiles a JSON Schema that refers to no other.
func Schema(t testing.TB, raw json.RawMessage) *jsonschema.Schema {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	c.UseLoader(jsonschema.SchemeURLLoader{}) // nothing is fetched
	c.DefaultDraft(jsonschema.Draft2020)
	c.AssertFormat()
	if err := c.AddResource("urn:deliberd:test", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("urn:deliberd:test")
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// Valid judges a text, which is JSON, by a schema.
func Valid(t testing.TB, s *jsonschema.Schema, text []byte) error {
	t.Helper()
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(text))
	if err != nil {
		t.Fatalf("%s: %v", text, err)
	}
	return s.Validate(doc)
}

// Cases fails the test unless a schema and a decoder both accept the texts
// that are true, as they stand, and both refuse the others.
func Cases(t testing.TB, schema json.RawMessage, decode func(json.RawMessage) error, cases map[string]bool) {
	t.Helper()
	s := Schema(t, schema)
	for text, want := range cases {
		if err := Valid(t, s, []byte(text)); (err == nil) != want {
			t.Errorf("schema on %.200s: %v", text, err)
		}
		if err := decode(json.RawMessage(text)); (err == nil) != want {
			t.Errorf("decoder on %.200s: %v", text, err)
		}
	}
}

// FuzzDecoders runs texts past every decoder: none takes what its schema
// refuses. Texts that are no JSON are skipped.
func FuzzDecoders(f *testing.F, schema func(name string) (json.RawMessage, error), decoders map[string]func(json.RawMessage) error) {
	f.Helper()
	schemas := map[string]*jsonschema.Schema{}
	for name := range decoders {
		raw, err := schema(name)
		if err != nil {
			f.Fatal(err)
		}
		schemas[name] = Schema(f, raw)
	}
	f.Fuzz(func(t *testing.T, body string) {
		text, err := canon.Canonicalize([]byte(body))
		if err != nil {
			return
		}
		for name, decode := range decoders {
			if decode(text) == nil {
				if err := Valid(t, schemas[name], text); err != nil {
					t.Fatalf("%s takes what its schema refuses: %s: %v", name, text, err)
				}
			}
		}
	})
}

// Agree fails the test unless a schema and a decoder both accept every good
// text and both refuse every bad one. Texts are brought into canonical form
// first, as they are inside an action.
func Agree(t testing.TB, schema json.RawMessage, decode func(json.RawMessage) error, good, bad []string) {
	t.Helper()
	s := Schema(t, schema)
	for i, text := range append(append([]string{}, good...), bad...) {
		raw, err := canon.Canonicalize([]byte(text))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := i < len(good)
		if err := Valid(t, s, raw); (err == nil) != want {
			t.Errorf("schema, accept=%v: %s: %v", want, text, err)
		}
		if err := decode(raw); (err == nil) != want {
			t.Errorf("decoder, accept=%v: %s: %v", want, text, err)
		}
	}
}

// AgreeOn fails the test when a schema accepts a text that the decoder
// refuses, or the other way round. It is for fuzz targets: a text that is no
// JSON is skipped.
func AgreeOn(t testing.TB, s *jsonschema.Schema, decode func(json.RawMessage) error, text []byte) {
	t.Helper()
	raw, err := canon.Canonicalize(text)
	if err != nil || canon.CheckIntegers(raw) != nil {
		return
	}
	schema, decoder := Valid(t, s, raw), decode(raw)
	if (schema == nil) != (decoder == nil) {
		t.Fatalf("%s\nschema: %v\ndecoder: %v", raw, schema, decoder)
	}
}
