package semantics

import (
	"bytes"
	"encoding/json"
	"testing"

	"github.com/deliberd/deliberd/machine"
)

const problemText = `{
 "arguments": [
  {"id": "p", "weight": 0.8, "rho": 1.25},
  {"id": "q", "evidence": [{"value": 0.9, "confidence": 0.2}]},
  {"id": "c", "evidence": []}
 ],
 "attacks": [["c", "p"], ["q", "p"]],
 "supports": [["c", "q"]],
 "positions": [{"id": "p", "delta": 0.05}, {"id": "q"}],
 "tau": 0.2, "gamma_minus": 0.5, "empty_weight": 0.1
}`

func TestAProblemFileIsReadComputedAndDecided(t *testing.T) {
	p, err := Parse([]byte(problemText))
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Solve()
	if err != nil {
		t.Fatal(err)
	}
	// c = 0.1, q = 0.81 + 0.06 = 0.87, p = 1 − 0.05 − 0.435 = 0.515, with its delta 0.565.
	d := a.Decision
	if d.Winner != "q" || d.Second != "p" || d.Gap != 305_000_000 || d.Tau != 200_000_000 || d.Path != Fast {
		t.Fatalf("%+v", d)
	}
	text, err := json.Marshal(a)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"base":1000000000`, `"sigma":515000000`, `"share":-435000000`, `"path":"fast"`, `"method":"fixed-point"`} {
		if !bytes.Contains(text, []byte(want)) {
			t.Errorf("%s is not in %s", want, text)
		}
	}
}

func TestAProblemWithoutPositionsDecidesAmongAllArguments(t *testing.T) {
	p, err := Parse([]byte(`{"arguments":[{"id":"b","weight":0.5},{"id":"a","weight":0.5}]}`))
	if err != nil {
		t.Fatal(err)
	}
	a, err := p.Solve()
	if err != nil || a.Decision.Winner != "a" || a.Decision.Path != Conflict || a.Decision.Tau != DefaultTau {
		t.Fatalf("%+v %v", a, err)
	}
}

func TestBadProblemFilesAreRefusedByCode(t *testing.T) {
	one := `{"id":"a","weight":0.5}`
	cases := map[string]struct{ text, code string }{
		"no JSON":                 {`graph`, machine.CodeMalformed},
		"no arguments":            {`{}`, machine.CodeMalformed},
		"an unknown member":       {`{"arguments":[` + one + `],"tao":1}`, machine.CodeMalformed},
		"a member in other case":  {`{"Arguments":[` + one + `]}`, machine.CodeMalformed},
		"a member twice":          {`{"arguments":[],"arguments":[` + one + `]}`, machine.CodeMalformed},
		"a weight that is text":   {`{"arguments":[{"id":"a","weight":"0.5"}]}`, machine.CodeMalformed},
		"neither weight nor more": {`{"arguments":[{"id":"a"}]}`, machine.CodeMalformed},
		"weight and evidence":     {`{"arguments":[{"id":"a","weight":1,"evidence":[]}]}`, machine.CodeMalformed},
		"an edge of three":        {`{"arguments":[` + one + `],"attacks":[["a","a","a"]]}`, machine.CodeMalformed},
		"a null edge":             {`{"arguments":[` + one + `],"attacks":[null]}`, machine.CodeMalformed},
		"text after the end":      {`{"arguments":[` + one + `]}{}`, machine.CodeMalformed},
		"a null argument":         {`{"arguments":[null]}`, machine.CodeMalformed},
		"no id":                   {`{"arguments":[{"weight":1}]}`, machine.CodeOutOfRange},
		"weight above one":        {`{"arguments":[{"id":"a","weight":2}]}`, machine.CodeOutOfRange},
		"rho above two":           {`{"arguments":[{"id":"a","weight":1,"rho":3}]}`, machine.CodeOutOfRange},
		"value above one":         {`{"arguments":[{"id":"a","evidence":[{"value":2,"confidence":0}]}]}`, machine.CodeOutOfRange},
		"gamma of zero":           {`{"arguments":[` + one + `],"gamma_plus":0}`, machine.CodeOutOfRange},
		"gamma of one":            {`{"arguments":[` + one + `],"gamma_minus":1}`, machine.CodeOutOfRange},
		"an unknown method":       {`{"arguments":[` + one + `],"method":"vibes"}`, machine.CodeOutOfRange},
		"a negative tau":          {`{"arguments":[` + one + `],"tau":-1}`, machine.CodeOutOfRange},
		"a huge delta":            {`{"arguments":[` + one + `],"positions":[{"id":"a","delta":1e9}]}`, machine.CodeOutOfRange},
		"a self-attack":           {`{"arguments":[` + one + `],"attacks":[["a","a"]]}`, CodeSelfAttack},
		"a self-support":          {`{"arguments":[` + one + `],"supports":[["a","a"]]}`, CodeSelfSupport},
		"a missing argument":      {`{"arguments":[` + one + `],"supports":[["a","b"]]}`, CodeMissingArgument},
		"a missing position":      {`{"arguments":[` + one + `],"positions":[{"id":"b"}]}`, CodeMissingArgument},
		"one id twice":            {`{"arguments":[` + one + `,` + one + `]}`, CodeDuplicateArgument},
		"one position twice":      {`{"arguments":[` + one + `],"positions":[{"id":"a"},{"id":"a"}]}`, CodeDuplicateArgument},
	}
	for name, c := range cases {
		_, err := Parse([]byte(c.text))
		if r, ok := machine.IsRefusal(err); !ok || r.Code != c.code || r.Fix == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(problemText))
	f.Add([]byte(`{"arguments":[{"id":"a","weight":0.5},{"id":"b","weight":1e-300}],"attacks":[["a","b"],["b","a"]],"method":"rectified"}`))
	f.Add([]byte(`{"arguments":[{"id":"a","weight":1}],"gamma_plus":0.99999999,"method":"literal-jacobi","positions":[]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := Parse(text)
		if err != nil {
			if _, ok := machine.IsRefusal(err); !ok {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		p.Options.Budget = 10_000
		a, err := p.Solve()
		if err != nil {
			t.Fatalf("what Parse accepts must have an answer: %v", err)
		}
		if _, err := json.Marshal(a); err != nil {
			t.Fatal(err)
		}
	})
}
