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
	fieldCache  sync.Map // reflect.Type -> map[string]reflect.Type
)

// exactNames walks a text beside the type it will be decoded into and refuses
// a member whose name is not exactly that of a field: encoding/json would
// match "ID" to a field named "id".
func exactNames(raw []byte, t reflect.Type) error {
	for t != nil && t.Kind() == reflect.Pointer {
		t = t.Elem()
	}
	if t == nil || t == rawMessage || t.Implements(unmarshaler) || reflect.PointerTo(t).Implements(unmarshaler) {
		return nil
	}
	raw = bytes.TrimLeft(raw, " \t\r\n")
	if len(raw) == 0 {
		return nil
	}
	switch {
	case t.Kind() == reflect.Struct && raw[0] == '{':
		fields := fieldsOf(t)
		return eachMember(raw, func(name string, value json.RawMessage) error {
			ft, ok := fields[name]
			if !ok {
				return &Error{Code: UnknownField, Offset: -1, Detail: `there is no member "` + name + `"`}
			}
			return exactNames(value, ft)
		})
	case t.Kind() == reflect.Map && raw[0] == '{' && holdsStruct(t.Elem()):
		return eachMember(raw, func(_ string, value json.RawMessage) error { return exactNames(value, t.Elem()) })
	case (t.Kind() == reflect.Slice || t.Kind() == reflect.Array) && raw[0] == '[' && holdsStruct(t.Elem()):
		var items []json.RawMessage
		if err := json.Unmarshal(raw, &items); err != nil {
			return &Error{Code: NotJSON, Offset: -1, Detail: err.Error()}
		}
		for _, item := range items {
			if err := exactNames(item, t.Elem()); err != nil {
				return err
			}
		}
	}
	return nil
}

func eachMember(raw []byte, visit func(name string, value json.RawMessage) error) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(raw, &members); err != nil {
		return &Error{Code: NotJSON, Offset: -1, Detail: err.Error()}
	}
	var first error
	least := ""
	for name, value := range members { // order: the least name's error is kept
		if err := visit(name, value); err != nil && (first == nil || name < least) {
			first, least = err, name
		}
	}
	return first
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

func fieldsOf(t reflect.Type) map[string]reflect.Type {
	if got, ok := fieldCache.Load(t); ok {
		return got.(map[string]reflect.Type)
	}
	fields := map[string]reflect.Type{}
	collectFields(t, fields)
	fieldCache.Store(t, fields)
	return fields
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
