package canon

import (
	"bytes"
	"encoding/json"
	"reflect"
	"strings"
	"sync"
)

var (
	unmarshaler = reflect.TypeFor[json.Unmarshaler]()
	rawMessage  = reflect.TypeFor[json.RawMessage]()
)

// exactNames walks a text beside the type it will be decoded into and refuses
// a member whose name is not exactly that of a field: encoding/json would
// match "ID" to a field named "id". The text has passed [Check]; where it is
// no JSON after all the walk ends, and the decoder says so.
func exactNames(raw []byte, t reflect.Type) error {
	w := walker{raw: raw}
	w.space()
	return w.value(t)
}

// walker goes through a text that is known to be JSON.
type walker struct {
	raw []byte
	at  int
}

func (w *walker) space() {
	for w.at < len(w.raw) {
		switch w.raw[w.at] {
		case ' ', '\t', '\r', '\n':
			w.at++
		default:
			return
		}
	}
}

func (w *walker) peek() byte {
	if w.at < len(w.raw) {
		return w.raw[w.at]
	}
	return 0
}

// value walks one value that will be decoded into a t.
func (w *walker) value(t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	shape := shapeOf(t)
	switch {
	case w.peek() == '{' && (shape.fields != nil || shape.holds && shape.kind == reflect.Map):
		return w.members(shape)
	case w.peek() == '[' && shape.holds && shape.kind != reflect.Map:
		return w.items(shape.elem)
	}
	w.skip()
	return nil
}

func (w *walker) members(shape *shape) error {
	for w.next('}') {
		start := w.at
		if w.peek() != '"' {
			w.at = len(w.raw)
			return nil
		}
		w.skip()
		inside := shape.elem
		if shape.fields != nil {
			var known bool
			if inside, known = shape.field(w.raw[start:w.at]); !known {
				name := w.raw[start:w.at]
				return &Error{Code: UnknownField, Offset: -1, Detail: "there is no member " + string(name)}
			}
		}
		w.space()
		w.at++ // the colon
		w.space()
		if err := w.value(inside); err != nil {
			return err
		}
	}
	return nil
}

func (w *walker) items(t reflect.Type) error {
	for w.next(']') {
		if err := w.value(t); err != nil {
			return err
		}
	}
	return nil
}

// next moves from an opening bracket or the end of an item to the next item;
// false at the closing bracket, which it passes, and where the text is no JSON.
func (w *walker) next(end byte) bool {
	w.space()
	switch w.peek() {
	case '{', '[', ',':
		w.at++
		w.space()
		if w.peek() != end && w.at < len(w.raw) {
			return true
		}
		w.at++
	case end:
		w.at++
	default:
		w.at = len(w.raw)
	}
	return false
}

// skip passes one value.
func (w *walker) skip() {
	for depth := 0; w.at < len(w.raw); {
		switch w.raw[w.at] {
		case '"':
			w.text()
		case '{', '[':
			depth++
			w.at++
			continue
		case '}', ']':
			if depth == 0 {
				return // the end of a number or literal before it
			}
			depth--
			w.at++
		case ',', ':', ' ', '\t', '\r', '\n':
			if depth == 0 {
				return
			}
			w.at++
			continue
		default:
			w.at++
			continue
		}
		if depth == 0 {
			return
		}
	}
}

// text passes one string.
func (w *walker) text() {
	for w.at++; w.at < len(w.raw); w.at++ {
		switch w.raw[w.at] {
		case '\\':
			w.at++
		case '"':
			w.at++
			return
		}
	}
}

// shape is what the walk needs to know of a type.
type shape struct {
	kind   reflect.Kind
	fields map[string]reflect.Type // of a struct that decodes itself by its fields
	elem   reflect.Type            // of a map, slice or array
	holds  bool                    // elem holds such structs
}

var shapes sync.Map // reflect.Type -> *shape

func shapeOf(t reflect.Type) *shape {
	if t == nil {
		return &shape{}
	}
	if got, ok := shapes.Load(t); ok {
		return got.(*shape)
	}
	s := &shape{kind: t.Kind()}
	switch {
	case t == rawMessage || t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler):
		s.kind = reflect.Invalid
	case s.kind == reflect.Struct:
		s.fields = map[string]reflect.Type{}
		collectFields(t, s.fields)
	case s.kind == reflect.Map || s.kind == reflect.Slice || s.kind == reflect.Array:
		s.elem, s.holds = t.Elem(), holdsStruct(t.Elem())
	}
	shapes.Store(t, s)
	return s
}

// field finds the field of a quoted name.
func (s *shape) field(quoted []byte) (reflect.Type, bool) {
	if len(quoted) < 2 {
		return nil, false
	}
	name := quoted[1 : len(quoted)-1]
	if bytes.IndexByte(name, '\\') >= 0 {
		name = []byte(unquoted(name))
	}
	t, ok := s.fields[string(name)]
	return t, ok
}

func holdsStruct(t reflect.Type) bool {
	for t.Kind() == reflect.Pointer || t.Kind() == reflect.Slice || t.Kind() == reflect.Array || t.Kind() == reflect.Map {
		if t == rawMessage {
			return false
		}
		t = t.Elem()
	}
	return t.Kind() == reflect.Struct
}

func collectFields(t reflect.Type, into map[string]reflect.Type) {
	for i := range t.NumField() {
		f := t.Field(i)
		tag := f.Tag.Get("json")
		name, _, _ := strings.Cut(tag, ",")
		if f.Anonymous && name == "" {
			ft := f.Type
			if ft.Kind() == reflect.Pointer {
				ft = ft.Elem()
			}
			if ft.Kind() == reflect.Struct {
				collectFields(ft, into)
				continue
			}
		}
		if tag == "-" || !f.IsExported() {
			continue
		}
		if name == "" {
			name = f.Name
		}
		into[name] = f.Type
	}
}
