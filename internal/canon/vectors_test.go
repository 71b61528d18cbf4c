package canon_test

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/vectors"
)

func TestVectorsJCS(t *testing.T) {
	type vector struct {
		ID, Kind, Input, Expected, Reason, Text, Expect, Canonical string
		IEEE754                                                    string `json:"ieee754"`
		InputHex                                                   string `json:"input_hex"`
		ExpectedHex                                                string `json:"expected_utf8_hex"`
		SHA256                                                     string
	}
	vectors.Run(t, "jcs", map[string]func(*testing.T, json.RawMessage){
		"number": func(t *testing.T, raw json.RawMessage) {
			v := vectors.As[vector](t, raw)
			got, err := canon.Marshal(double(t, v.IEEE754))
			if err != nil || string(got) != v.Expected {
				t.Fatalf("got %s, %v; want %s", got, err, v.Expected)
			}
		},
		"number_refuse": func(t *testing.T, raw json.RawMessage) {
			v := vectors.As[vector](t, raw)
			if got, err := canon.Marshal(double(t, v.IEEE754)); err == nil {
				t.Fatalf("took it for %s", got)
			}
		},
		"canonicalize": func(t *testing.T, raw json.RawMessage) {
			v := vectors.As[vector](t, raw)
			got, err := canon.Canonicalize([]byte(v.Input))
			if err != nil || string(got) != v.Expected || hex.EncodeToString(got) != v.ExpectedHex {
				t.Fatalf("got %s, %v; want %s", got, err, v.Expected)
			}
			if err := canon.CheckCanonical(got); err != nil && err.(*canon.Error).Code != canon.IntegerRange {
				t.Fatalf("its own canonical form is refused: %v", err)
			}
			if sum := canon.Hash(got); v.SHA256 != "" && hex.EncodeToString(sum[:]) != v.SHA256 {
				t.Fatalf("hash %x, want %s", sum, v.SHA256)
			}
		},
		"reject": func(t *testing.T, raw json.RawMessage) {
			v := vectors.As[vector](t, raw)
			text := []byte(v.Input)
			if v.InputHex != "" {
				var err error
				if text, err = hex.DecodeString(v.InputHex); err != nil {
					t.Fatal(err)
				}
			}
			got, err := canon.Canonicalize(text)
			refusal, ok := err.(*canon.Error)
			if !ok {
				t.Fatalf("accepted as %s (%v)", got, err)
			}
			if string(refusal.Code) != v.Reason {
				t.Fatalf("refused as %s, want %s", refusal.Code, v.Reason)
			}
		},
		"integer_field": func(t *testing.T, raw json.RawMessage) {
			v := vectors.As[vector](t, raw)
			got, err := canon.Integer([]byte(v.Text))
			if (err == nil) != (v.Expect == "accept") {
				t.Fatalf("got %d, %v; want %s", got, err, v.Expect)
			}
			if err == nil && strconv.FormatUint(got, 10) != v.Canonical {
				t.Fatalf("got %d, want %s", got, v.Canonical)
			}
		},
	})
}

func double(t *testing.T, bits string) float64 {
	t.Helper()
	u, err := strconv.ParseUint(bits, 16, 64)
	if err != nil {
		t.Fatal(err)
	}
	return math.Float64frombits(u)
}

func TestDecodeRefusesNamesThatDifferInCase(t *testing.T) {
	var v struct {
		ID   string `json:"id"`
		List []struct {
			Name string `json:"name"`
		} `json:"list"`
	}
	for _, text := range []string{`{"ID":"x"}`, `{"list":[{"Name":"x"}]}`, `{"id":"a","more":1}`} {
		err := canon.Decode([]byte(text), &v)
		if refusal, ok := err.(*canon.Error); !ok || refusal.Code != canon.UnknownField {
			t.Errorf("%s: got %v, want unknown_field", text, err)
		}
	}
	if err := canon.Decode([]byte(`{"id":"x","list":[{"name":"y"}]}`), &v); err != nil {
		t.Error(err)
	}
}

func TestCheckIntegersRefusesWhatADoubleRounds(t *testing.T) {
	for text, ok := range map[string]bool{`{"a":9007199254740991}`: true, `{"a":9007199254740992}`: false, `[-9007199254740993]`: false, `[1e30]`: true} {
		if err := canon.CheckIntegers([]byte(text)); (err == nil) != ok {
			t.Errorf("%s: %v", text, err)
		}
	}
}

func FuzzCanonicalize(f *testing.F) {
	for _, seed := range []string{`{"b":1,"a":[1e3,"\ud83d\ude00",null]}`, `{"a":1,"\u0061":2}`, `[-0,1.5e-7]`, "\"\xff\""} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		once, err := canon.Canonicalize(raw)
		if err != nil {
			if json.Valid(raw) {
				if _, ok := err.(*canon.Error); !ok {
					t.Fatalf("untyped refusal %v", err)
				}
			}
			return
		}
		if !json.Valid(raw) {
			t.Fatalf("accepted %q, which is no JSON", raw)
		}
		if (canon.CheckCanonical(raw) == nil) != (string(once) == string(raw) && canon.CheckIntegers(raw) == nil) {
			t.Fatalf("CheckCanonical(%q) = %v, but its form is %q", raw, canon.CheckCanonical(raw), once)
		}
		twice, err := canon.Canonicalize(once)
		if err != nil || string(twice) != string(once) {
			t.Fatalf("not idempotent: %s, then %s (%v)", once, twice, err)
		}
	})
}
