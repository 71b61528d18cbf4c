package model

import (
	"crypto/sha256"
	"encoding/binary"
	"reflect"
	"sort"
	"testing"

	"github.com/deliberd/deliberd/pbft"
)

// skipped are the fields that a fingerprint of an engine leaves out, by type.
// All others are in it, so a field added to the engine later makes more states
// and never hides any.
var skipped = map[string]map[string]string{
	"Engine": {
		"cfg": "constant", "committee": "constant", "instance": "constant", "domain": "constant", "key": "constant", "self": "constant",
		"now": "a timer that runs may end at any time", "left": "as now", "resendIn": "as now", "answered": "as now",
		"sent": "nothing but what is sent again",
	},
	"Vote":         {"Key": "constant", "Proof": "checked when the vote was cast or taken; any valid one is as good"},
	"verifiedVote": {"prepared": "as Proof", "newView": "as Proof; whom it shows to be in the view is in ballots", "refused": "votes filed are not refused"},
	"cast":         {"proof": "any valid signature is as good"},
	"Prepared":     {"Votes": "as proof"},
	"Certificate":  {"Instance": "constant", "Votes": "as proof"},
	"ballots":      {"guilty": "says only that a guilt proof was handed out"},
	"Ready":        {"Prepared": "is Engine.locked", "Resend": "as sent", "Answers": "goes to others", "Guilt": "goes to others", "Decided": "is Engine.cert"},
}

// fingerprint is a hash of everything that an engine can act upon.
func fingerprint(e *pbft.Engine) [16]byte {
	var buf [2048]byte
	h := sha256.Sum256(appendValue(buf[:0], reflect.ValueOf(e).Elem()))
	return [16]byte(h[:16])
}

// appendValue writes a value without ambiguity between values of one type.
func appendValue(b []byte, v reflect.Value) []byte {
	switch v.Kind() {
	case reflect.Bool:
		if v.Bool() {
			return append(b, 1)
		}
		return append(b, 0)
	case reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64, reflect.Uint:
		return binary.AppendUvarint(b, v.Uint())
	case reflect.Int, reflect.Int64:
		return binary.AppendVarint(b, v.Int())
	case reflect.Array:
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
		return b
	case reflect.Slice:
		b = binary.AppendUvarint(b, uint64(v.Len()))
		for i := range v.Len() {
			b = appendValue(b, v.Index(i))
		}
		return b
	case reflect.Pointer:
		if v.IsNil() {
			return append(b, 0)
		}
		return appendValue(append(b, 1), v.Elem())
	case reflect.Map:
		return appendMap(b, v)
	case reflect.Struct:
		for _, i := range fieldsOf(v.Type()) {
			b = appendValue(b, v.Field(i))
		}
		return b
	}
	panic("an engine holds a " + v.Type().String())
}

func appendMap(b []byte, v reflect.Value) []byte {
	var entries []string
	for it := v.MapRange(); it.Next(); {
		entries = append(entries, string(appendValue(appendValue(nil, it.Key()), it.Value())))
	}
	sort.Strings(entries)
	b = binary.AppendUvarint(b, uint64(len(entries)))
	for _, e := range entries {
		b = append(b, e...)
	}
	return b
}

var fieldCache = map[reflect.Type][]int{}

// fieldsOf are the fields of a type that are not skipped.
func fieldsOf(t reflect.Type) []int {
	if f, ok := fieldCache[t]; ok {
		return f
	}
	fields := []int{}
	for i := range t.NumField() {
		if skipped[t.Name()][t.Field(i).Name] == "" {
			fields = append(fields, i)
		}
	}
	fieldCache[t] = fields
	return fields
}

func TestEverySkippedFieldExists(t *testing.T) {
	types := map[string]reflect.Type{}
	collectTypes(types, reflect.TypeFor[pbft.Engine]())
	for name, fields := range skipped {
		for field := range fields {
			if types[name] == nil {
				t.Errorf("an engine has no %s any more", name)
			} else if _, ok := types[name].FieldByName(field); !ok {
				t.Errorf("%s has no field %s any more", name, field)
			}
		}
	}
}

// collectTypes finds the struct types within a type.
func collectTypes(out map[string]reflect.Type, t reflect.Type) {
	switch t.Kind() {
	case reflect.Pointer, reflect.Slice, reflect.Array:
		collectTypes(out, t.Elem())
	case reflect.Map:
		collectTypes(out, t.Key())
		collectTypes(out, t.Elem())
	case reflect.Struct:
		if out[t.Name()] != nil {
			return
		}
		out[t.Name()] = t
		for i := range t.NumField() {
			collectTypes(out, t.Field(i).Type)
		}
	}
}
