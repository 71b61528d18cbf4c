package model

import (
	"encoding/binary"
	"hash/maphash"
	"reflect"
	"testing"
	"unsafe"

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
	"ballots":      {"guilty": "says only that a guilt proof was made"},
	"Ready":        {"Prepared": "is Engine.locked", "Resend": "as sent", "Answers": "goes to others", "Guilt": "goes to others", "Decided": "is Engine.cert"},
}

// encoder writes the value of one type at an address without ambiguity. Encoders
// are made once by reflection and read memory afterwards: an exploration
// encodes millions of engines.
type encoder func(b []byte, at unsafe.Pointer) []byte

var encodeEngine = encoderOf(reflect.TypeFor[pbft.Engine]())

// appendEngine writes everything that an engine can act upon.
func appendEngine(b []byte, e *pbft.Engine) []byte { return encodeEngine(b, unsafe.Pointer(e)) }

// header is a slice in memory.
type header struct {
	data     unsafe.Pointer
	len, cap int
}

func encoderOf(t reflect.Type) encoder {
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8, reflect.Uint64, reflect.Int:
		return func(b []byte, at unsafe.Pointer) []byte { return append(b, unsafe.Slice((*byte)(at), t.Size())...) }
	case reflect.Array:
		if t == reflect.TypeFor[pbft.Digest]() { // the first bytes tell the model's digests apart
			return func(b []byte, at unsafe.Pointer) []byte { return append(b, unsafe.Slice((*byte)(at), 2)...) }
		}
		elem := encoderOf(t.Elem())
		return func(b []byte, at unsafe.Pointer) []byte {
			for i := range t.Len() {
				b = elem(b, unsafe.Add(at, uintptr(i)*t.Elem().Size()))
			}
			return b
		}
	case reflect.Slice:
		elem, size := encoderOf(t.Elem()), t.Elem().Size()
		return func(b []byte, at unsafe.Pointer) []byte {
			h := (*header)(at)
			b = append(b, byte(h.len))
			for i := range h.len {
				b = elem(b, unsafe.Add(h.data, uintptr(i)*size))
			}
			return b
		}
	case reflect.Pointer:
		elem := encoderOf(t.Elem())
		return func(b []byte, at unsafe.Pointer) []byte {
			p := *(*unsafe.Pointer)(at)
			if p == nil {
				return append(b, 0)
			}
			return elem(append(b, 1), p)
		}
	case reflect.Map:
		return mapEncoder(t)
	case reflect.Struct:
		return structEncoder(t)
	}
	panic("an engine holds a " + t.String())
}

func structEncoder(t reflect.Type) encoder {
	type field struct {
		offset uintptr
		encode encoder
	}
	var fields []field
	for i := range t.NumField() {
		if f := t.Field(i); skipped[t.Name()][f.Name] == "" {
			fields = append(fields, field{f.Offset, encoderOf(f.Type)})
		}
	}
	return func(b []byte, at unsafe.Pointer) []byte {
		for _, f := range fields {
			b = f.encode(b, unsafe.Add(at, f.offset))
		}
		return b
	}
}

// mapEncoder writes a sum over the entries, so that their order does not matter.
func mapEncoder(t reflect.Type) encoder {
	encodeKey, encodeElem := encoderOf(t.Key()), encoderOf(t.Elem())
	key, elem := reflect.New(t.Key()), reflect.New(t.Elem())
	return func(b []byte, at unsafe.Pointer) []byte {
		sum, m := uint64(0), reflect.NewAt(t, at).Elem()
		for it := m.MapRange(); it.Next(); {
			key.Elem().SetIterKey(it)
			elem.Elem().SetIterValue(it)
			var buf [128]byte
			sum += maphash.Bytes(seed, encodeElem(encodeKey(buf[:0], key.UnsafePointer()), elem.UnsafePointer()))
		}
		return binary.BigEndian.AppendUint64(append(b, byte(m.Len())), sum)
	}
}

var seed = maphash.MakeSeed()

// shared are the types behind pointers that copies of an engine may share:
// package pbft never changes one once it is made.
var shared = map[string]bool{"Committee": true, "Frame": true, "Prepared": true, "NewView": true, "Certificate": true}

// replaced are the struct types whose values package pbft replaces and never
// changes in place.
var replaced = map[string]bool{"Vote": true, "cast": true, "ownVote": true, "slot": true, "Config": true, "Instance": true, "Domain": true, "Guilt": true}

// copier makes what a copied value refers to its own.
type copier func(at unsafe.Pointer)

var ownEngine = copierOf(reflect.TypeFor[pbft.Engine]())

// copyEngine copies an engine with all that it may change. Lists of votes stay
// shared but leave no room to append in place; whoever explores checks that an
// engine is the same after its copies have gone their ways.
func copyEngine(e *pbft.Engine) *pbft.Engine {
	c := *e
	ownEngine(unsafe.Pointer(&c))
	return &c
}

// copierOf is the copier of a type, nil when its values refer to nothing that changes.
func copierOf(t reflect.Type) copier {
	switch t.Kind() {
	case reflect.Bool, reflect.Uint8, reflect.Uint64, reflect.Int, reflect.String:
		return nil
	case reflect.Pointer:
		if shared[t.Elem().Name()] {
			return nil
		}
	case reflect.Array:
		elem := copierOf(t.Elem())
		if elem == nil {
			return nil
		}
		return func(at unsafe.Pointer) {
			for i := range t.Len() {
				elem(unsafe.Add(at, uintptr(i)*t.Elem().Size()))
			}
		}
	case reflect.Slice:
		return sliceCopier(t)
	case reflect.Map:
		return func(at unsafe.Pointer) {
			m := reflect.NewAt(t, at).Elem()
			c := reflect.MakeMapWithSize(t, m.Len())
			for it := m.MapRange(); it.Next(); {
				c.SetMapIndex(it.Key(), it.Value())
			}
			m.Set(c)
		}
	case reflect.Struct:
		return structCopier(t)
	}
	panic("an engine holds a " + t.String())
}

func structCopier(t reflect.Type) copier {
	if replaced[t.Name()] {
		return nil
	}
	var copiers []copier
	for i := range t.NumField() {
		f := t.Field(i)
		if c := copierOf(f.Type); c != nil {
			copiers = append(copiers, func(at unsafe.Pointer) { c(unsafe.Add(at, f.Offset)) })
		}
	}
	if copiers == nil {
		return nil
	}
	return func(at unsafe.Pointer) {
		for _, c := range copiers {
			c(at)
		}
	}
}

func sliceCopier(t reflect.Type) copier {
	elem, size := copierOf(t.Elem()), t.Elem().Size()
	return func(at unsafe.Pointer) {
		h := (*header)(at)
		h.cap = h.len
		if elem == nil && t.Elem().Kind() == reflect.Struct || h.len == 0 {
			return
		}
		v := reflect.NewAt(t, at).Elem()
		c := reflect.MakeSlice(t, h.len, h.len)
		reflect.Copy(c, v)
		v.Set(c)
		for i := range h.len {
			if elem != nil {
				elem(unsafe.Add(h.data, uintptr(i)*size))
			}
		}
	}
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
