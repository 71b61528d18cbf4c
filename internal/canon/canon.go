// Package canon is the one canonical JSON of deliberd: RFC 8785 (JCS) texts,
// their SHA-256, and a strict decoder.
//
// encoding/json is lax where signatures must be strict: it takes the last of
// duplicate members, matches names case-insensitively, and turns lone
// surrogates and bad UTF-8 into U+FFFD. Everything that is signed, hashed or
// replicated passes through [Check] first, which refuses all of these.
package canon

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"

	"github.com/gowebpki/jcs"
)

// Limits of every JSON text accepted anywhere.
const (
	// MaxBytes is the longest text accepted, 1 MiB.
	MaxBytes = 1 << 20
	// MaxDepth is the deepest nesting accepted.
	MaxDepth = 64
	// MaxInteger is the largest integer that every JSON reader carries exactly, 2^53 - 1.
	MaxInteger = 1<<53 - 1
)

// Code names what is wrong with a text. Codes are stable.
type Code string

// The codes of an [Error].
const (
	NotJSON         Code = "not_json"
	DuplicateMember Code = "duplicate_member"
	LoneSurrogate   Code = "lone_surrogate"
	InvalidUTF8     Code = "invalid_utf8"
	NumberOverflow  Code = "number_overflow"
	IntegerRange    Code = "integer_out_of_range"
	TooDeep         Code = "too_deep"
	TooLarge        Code = "too_large"
	UnknownField    Code = "unknown_field"
	WrongType       Code = "wrong_type"
)

// Error is why a text was refused, and where.
type Error struct {
	Code   Code
	Offset int // byte offset into the text, -1 when unknown
	Detail string
}

func (e *Error) Error() string {
	if e.Offset < 0 {
		return fmt.Sprintf("%s: %s", e.Code, e.Detail)
	}
	return fmt.Sprintf("%s at byte %d: %s", e.Code, e.Offset, e.Detail)
}

// Detail is what is wrong in words, without code and place.
func Detail(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Detail
	}
	return err.Error()
}

// Canonicalize returns the RFC 8785 form of one JSON text.
// It errs with an [*Error] on anything [Check] refuses.
func Canonicalize(raw []byte) ([]byte, error) {
	if isCanonical(raw) {
		return bytes.Clone(raw), nil
	}
	if err := Check(raw); err != nil {
		return nil, err
	}
	return inOrder(raw)
}

// inOrder is the RFC 8785 form of a text that is known to be JSON.
func inOrder(raw []byte) ([]byte, error) {
	out, err := jcs.Transform(raw)
	if err != nil {
		return nil, &Error{Code: NotJSON, Offset: -1, Detail: err.Error()}
	}
	return out, nil
}

// Marshal encodes v with encoding/json and returns its canonical form. Mostly
// that lacks the order of members only.
func Marshal(v any) ([]byte, error) {
	var buf bytes.Buffer
	enc := json.NewEncoder(&buf)
	enc.SetEscapeHTML(false)
	if err := enc.Encode(v); err != nil {
		return nil, fmt.Errorf("encode: %w", err)
	}
	text := bytes.TrimSuffix(buf.Bytes(), []byte("\n"))
	if isCanonical(text) {
		return text, nil
	}
	if sorted := ordered(text); isCanonical(sorted) {
		return sorted, nil
	}
	return inOrder(text)
}

// MustMarshal is [Marshal] for values that cannot fail to encode: structs of
// strings, integers and finite numbers. It panics otherwise.
func MustMarshal(v any) []byte {
	out, err := Marshal(v)
	if err != nil {
		panic(err)
	}
	return out
}

// Hash is the SHA-256 of a text.
func Hash(text []byte) [32]byte { return sha256.Sum256(text) }

// HexHash is the lowercase hex SHA-256 of the canonical form of v.
func HexHash(v any) (string, error) {
	text, err := Marshal(v)
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:]), nil
}

// Decode fills v from one JSON text, strictly: what [Check] refuses, an
// unknown member, a member whose name differs in case only, and a value of
// the wrong type are errors. v is a pointer to a struct or any other value.
func Decode(raw []byte, v any) error {
	if err := Check(raw); err != nil {
		return err
	}
	return DecodeChecked(raw, v)
}

// DecodeChecked is [Decode] for a text that has passed [Check] already.
func DecodeChecked(raw []byte, v any) error {
	if err := exactNames(raw, reflect.TypeOf(v)); err != nil {
		return err
	}
	if err := json.Unmarshal(raw, v); err != nil { // unknown members are found above
		var typ *json.UnmarshalTypeError
		if errors.As(err, &typ) {
			return &Error{Code: WrongType, Offset: int(typ.Offset), Detail: fmt.Sprintf("%s wants %s, got %s", typ.Field, typ.Type, typ.Value)}
		}
		return &Error{Code: WrongType, Offset: -1, Detail: err.Error()}
	}
	return nil
}
