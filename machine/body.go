package machine

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/deliberd/deliberd/internal/canon"
)

// DecodeBody fills v from an action's body, which has passed canon's checks
// already. An unknown member, a value of the wrong type, and a member that is
// null are refused as malformed: an optional member is left out instead.
func DecodeBody(body json.RawMessage, v any) error {
	if err := canon.DecodeChecked(body, v); err != nil {
		return Refuse(CodeMalformed, "send the members that the kind's schema names", "what was sent is not of the schema's shape: %s", canon.Detail(err))
	}
	return refuseNull(body)
}

// DecodeParams is [DecodeBody] for a query's parameters, which come unchecked.
// No parameters at all are an empty object.
func DecodeParams(params json.RawMessage, v any) error {
	if len(bytes.TrimSpace(params)) == 0 {
		params = json.RawMessage("{}")
	}
	if err := canon.Check(params); err != nil {
		return Refuse(CodeMalformed, "send one JSON object", "%v", err)
	}
	return DecodeBody(params, v)
}

// DecodeExact reads a body that has one spelling only (see canon.DecodeExact)
// and lets shape judge it: what the kind's schema accepts, and nothing else.
func DecodeExact[T any](body json.RawMessage, shape func(T) *Refusal) (T, error) {
	var v T
	if err := canon.DecodeExact(body, &v); err != nil {
		return v, Malformed("%v", err)
	}
	if r := shape(v); r != nil {
		return v, r
	}
	return v, nil
}

// DecodeExactParams is [DecodeExact] for a query's parameters. No parameters
// at all are an empty object.
func DecodeExactParams[T any](params json.RawMessage, shape func(T) *Refusal) (T, error) {
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	return DecodeExact(params, shape)
}

// Malformed is the refusal of what is not the shape that a schema describes.
func Malformed(format string, args ...any) *Refusal {
	return Refuse(CodeMalformed, "send what the kind's schema describes", format, args...)
}

// Decoded reads an action's body and hands it to what applies it; s is the
// machine's view of its keys.
func Decoded[S, B any](s S, ctx Ctx, a Action, decode func(json.RawMessage) (B, error),
	do func(S, Ctx, Action, B) (any, []Event, error),
) (any, []Event, error) {
	body, err := decode(a.Body)
	if err != nil {
		return nil, nil, err
	}
	return do(s, ctx, a, body)
}

func refuseNull(body json.RawMessage) error {
	if !bytes.Contains(body, []byte("null")) {
		if first := bytes.TrimLeft(body, " \t\r\n"); len(first) > 0 && first[0] == '{' {
			return nil
		}
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(body, &members); err != nil || members == nil {
		return Refuse(CodeMalformed, "send one JSON object", "not an object")
	}
	var nulls []string
	for name, value := range members { // order: sorted below
		if string(bytes.TrimSpace(value)) == "null" {
			nulls = append(nulls, name)
		}
	}
	if len(nulls) == 0 {
		return nil
	}
	slices.Sort(nulls)
	return Refuse(CodeMalformed, "leave the member out", "%q is null", nulls[0])
}
