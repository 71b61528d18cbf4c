package canon_test

import (
	"errors"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
)

type exact struct {
	ID   string   `json:"id"`
	Name string   `json:"name,omitempty"`
	N    int      `json:"n"`
	List []string `json:"list,omitempty"`
	In   struct {
		X string `json:"x"`
	} `json:"in"`
}

func TestDecodeExactTakesOneSpellingOfARecord(t *testing.T) {
	for text, want := range map[string]canon.Code{
		`{"id":"","in":{"x":"1"},"n":0}`:                              "",
		"{ \"n\": 1e1, \"in\": {\"x\":\"\\u0031\"},\n\"id\": \"a\" }": "",
		`{"id":"a","in":{"x":"1"},"list":["b"],"n":1,"name":"c"}`:     "",
		`{"id":"a","in":{"x":"1"}}`:                                   canon.NotExact,
		`{"id":"a","n":1}`:                                            canon.NotExact,
		`{"id":"a","in":{},"n":1}`:                                    canon.NotExact,
		`{"id":null,"in":{"x":"1"},"n":1}`:                            canon.NotExact,
		`{"id":"a","in":{"x":null},"n":1}`:                            canon.NotExact,
		`{"id":"a","in":null,"n":1}`:                                  canon.NotExact,
		`{"id":"a","in":{"x":"1"},"n":1,"name":""}`:                   canon.NotExact,
		`{"id":"a","in":{"x":"1"},"list":[],"n":1}`:                   canon.NotExact,
		`{"id":"a","in":{"x":"1"},"list":[null],"n":1}`:               canon.NotExact,
		`null`:                                           canon.NotExact,
		`{"id":"a","in":{"x":"1"},"n":1,"z":1}`:          canon.UnknownField,
		`{"id":"a","in":{"X":"1"},"n":1}`:                canon.UnknownField,
		`{"id":"a","in":{"x":"1"},"n":"1"}`:              canon.WrongType,
		`{"id":"a","in":{"x":"1"},"n":1.5}`:              canon.WrongType,
		`{"id":"a","id":"a","in":{"x":"1"}}`:             canon.DuplicateMember,
		`{"id":"a","in":{"x":"1"},"n":9007199254740993}`: canon.IntegerRange,
		`[]`: canon.WrongType,
	} {
		var v exact
		err := canon.DecodeExact([]byte(text), &v)
		var refused *canon.Error
		if want == "" && err != nil || want != "" && (!errors.As(err, &refused) || refused.Code != want) {
			t.Errorf("%s: got %v, want %q", text, err, want)
		}
	}
}

func FuzzDecodeExact(f *testing.F) {
	f.Add([]byte(`{"id":"a","in":{"x":"1"},"list":["b"],"n":1,"name":"c"}`))
	f.Add([]byte(`{"id":null,"in":{},"n":1}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		var v exact
		if canon.DecodeExact(raw, &v) != nil {
			return
		}
		text, err := canon.Canonicalize(raw)
		if err != nil {
			t.Fatal(err)
		}
		if again, err := canon.Marshal(v); err != nil || string(again) != string(text) {
			t.Fatalf("%q was read as %q (%v)", raw, again, err)
		}
	})
}
