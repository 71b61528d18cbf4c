package canon

import (
	"encoding/json"
	"reflect"
	"testing"

	"pgregory.net/rapid"
)

// inner and outer use every way in which a type holds structs.
type inner struct {
	A string           `json:"a"`
	B map[string]inner `json:"b"`
}

type embedded struct {
	E int `json:"e"`
}

type outer struct {
	embedded
	A    inner             `json:"a"`
	B    *inner            `json:"b"`
	C    []inner           `json:"c"`
	D    [][]*inner        `json:"é"`
	Raw  json.RawMessage   `json:"raw"`
	Any  any               `json:"any"`
	Text map[string]string `json:"text"`
	N    int
	Skip int `json:"-"`
	//lint:ignore U1000 it is there to be passed over
	none int
}

// plainNames is exactNames by means of encoding/json.
func plainNames(raw json.RawMessage, t reflect.Type) bool {
	for t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	var members map[string]json.RawMessage
	var items []json.RawMessage
	isObject, isList := json.Unmarshal(raw, &members) == nil && members != nil, json.Unmarshal(raw, &items) == nil && items != nil
	switch {
	case t == rawMessage || reflect.PointerTo(t).Implements(unmarshaler):
	case t.Kind() == reflect.Struct && isObject:
		fields := map[string]reflect.Type{}
		collectFields(t, fields)
		for name, value := range members { // order: all must hold
			if ft, ok := fields[name]; !ok || !plainNames(value, ft) {
				return false
			}
		}
	case t.Kind() == reflect.Map && isObject:
		for _, value := range members { // order: all must hold
			if !plainNames(value, t.Elem()) {
				return false
			}
		}
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && isList:
		for _, value := range items {
			if !plainNames(value, t.Elem()) {
				return false
			}
		}
	}
	return true
}

func sameNames(t testing.TB, raw []byte) {
	if Check(raw) != nil {
		return
	}
	err := exactNames(raw, reflect.TypeFor[*outer]())
	if want := plainNames(raw, reflect.TypeFor[outer]()); want != (err == nil) {
		t.Fatalf("%s: %v, but by encoding/json %v", raw, err, want)
	}
}

func TestEveryNameIsExactlyAField(t *testing.T) {
	for text, want := range map[string]bool{
		`{"a":{"a":"x","b":{"any name":{"a":"y"}}},"e":1,"N":2}`: true, ` { "c" : [ { "a" : "}" } , { } ] , "N" : 1 } `: true,
		`{"raw":{"A":1},"any":{"A":[{"B":1}]},"text":{"A":"b"}}`: true, `{"\u0061":{"\u0062":{}}}`: true, `{"é":[[{"a":"\"]"},null]],"b":null}`: true,
		`[]`: true, `1`: true, `"x"`: true, `null`: true, `{"c":{"z":1},"é":7}`: true,
		`{"A":1}`: false, `{"a":{"A":1}}`: false, `{"b":{"z":1}}`: false, `{"c":[{},{"z":1}]}`: false, `{"é":[[],[{"z":1}]]}`: false, `{"a":{"b":{"x":{"z":1}}}}`: false,
		`{"n":1}`: false, `{"Skip":1}`: false, `{"-":1}`: false, `{"none":1}`: false, `{"embedded":{}}`: false, `{"E":1}`: false, `{"":1}`: false,
		`{"text":{"a":1},"z":1}`: false, `{"any":[1,{"a":"x,}"},"\\"],"z":1}`: false,
	} {
		if err := exactNames([]byte(text), reflect.TypeFor[*outer]()); (err == nil) != want {
			t.Errorf("%s: %v", text, err)
		}
		sameNames(t, []byte(text))
	}
}

func TestNamesAreWalkedAsEncodingJSONReadsThem(t *testing.T) {
	name := rapid.SampledFrom([]string{"a", "a", "b", "b", "c", "e", "é", "raw", "any", "text", "N", "z"})
	var draw func(t *rapid.T, depth int) any
	draw = func(t *rapid.T, depth int) any {
		switch rapid.IntRange(min(depth, 1), 3+2*min(depth, 1)).Draw(t, "kind") {
		case 0, 1:
			return rapid.SampledFrom([]any{nil, true, 1.5, "}", "]\"{[,:"}).Draw(t, "scalar")
		case 2, 3:
			if depth == 0 {
				return ""
			}
			list := []any{}
			for range rapid.IntRange(0, 3).Draw(t, "items") {
				list = append(list, draw(t, depth-1))
			}
			return list
		}
		object := map[string]any{}
		for range rapid.IntRange(0, 3).Draw(t, "members") {
			object[name.Draw(t, "name")] = draw(t, depth-1)
		}
		return object
	}
	rapid.Check(t, func(rt *rapid.T) {
		value := draw(rt, 4)
		compact, err := json.Marshal(value)
		if err != nil {
			rt.Fatal(err)
		}
		spaced, err := json.MarshalIndent(value, " ", "\t")
		if err != nil {
			rt.Fatal(err)
		}
		sameNames(t, compact)
		sameNames(t, spaced)
	})
}

func FuzzExactNames(f *testing.F) {
	f.Add([]byte(`{"a":{"a":"x","b":{"any name":{"a":"y"}}},"e":1,"N":2,"c":[{"a":"}"},{}],"raw":{"A":1}}`))
	f.Add([]byte(`{"\u0061":{"\u0062":{}}, "\u00e9":[[{"A":1}]]}`))
	f.Add([]byte(`{"\u00e9":[["A":1}]]}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		sameNames(t, raw)
		_ = exactNames(raw, reflect.TypeFor[*outer]()) // whatever the text, it ends
	})
}
