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
		doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
		if err != nil {
			t.Fatalf("%s: %v", text, err)
		}
		want := i < len(good)
		if err := s.Validate(doc); (err == nil) != want {
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
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		t.Fatalf("%s: %v", raw, err)
	}
	schema, decoder := s.Validate(doc), decode(raw)
	if (schema == nil) != (decoder == nil) {
		t.Fatalf("%s\nschema: %v\ndecoder: %v", raw, schema, decoder)
	}
}
