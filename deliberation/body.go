package deliberation

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// action is what a handler gets of a signed action.
type action struct {
	id    string
	actor string
	body  json.RawMessage
}

// decode fills a body struct strictly and checks its shape.
func (a *action) decode(into shaped) error { return decode(a.body, into) }

// shaped is a body that can judge what needs no state: the same as its schema.
type shaped interface{ shape() error }

// Decode reads the body of a kind ("deliberatic.position"), strictly, and
// checks everything that needs no state: what Apply checks first. It returns a
// pointer to the kind's body struct, or a refusal: malformed, out_of_range, too_large, too_many, unknown_kind.
func Decode(kind string, body json.RawMessage) (any, error) {
	empty, ok := bodies[kind]
	if !ok {
		return nil, machine.Refuse(machine.CodeUnknownKind, "", "%q is no kind of this machine", kind)
	}
	into := empty()
	if err := canon.Check(body); err != nil {
		return nil, malformed("send JSON", "the body is no JSON")
	}
	if err := decode(body, into); err != nil {
		return nil, err
	}
	return into, nil
}

// bodies makes an empty body of each kind.
var bodies = map[string]func() shaped{
	"deliberatic.open":      func() shaped { return &OpenBody{} },
	"deliberatic.position":  func() shaped { return &PositionBody{} },
	"deliberatic.challenge": func() shaped { return &ArgueBody{} },
	"deliberatic.support":   func() shaped { return &ArgueBody{} },
	"deliberatic.relate":    func() shaped { return &RelateBody{} },
	"deliberatic.evidence":  func() shaped { return &EvidenceBody{} },
	"deliberatic.done":      func() shaped { return &DoneBody{} },
	"deliberatic.resolve":   func() shaped { return &ResolveBody{} },
	"deliberatic.confirm":   func() shaped { return &ConfirmBody{} },
	"deliberatic.certify":   func() shaped { return &CertifyBody{} },
	"deliberatic.review":    func() shaped { return &ReviewBody{} },
	"deliberatic.outcome":   func() shaped { return &OutcomeBody{} },
}

func decode(body json.RawMessage, into shaped) error {
	if (bytes.Contains(body, []byte("null")) || bytes.Contains(body, []byte(`""`))) && blank("", body) {
		return malformed("leave the member out instead", "null or an empty string stands where a value should")
	}
	if err := canon.DecodeChecked(body, into); err != nil {
		var c *canon.Error
		if errors.As(err, &c) {
			return malformed("compare with the kind's schema", "the body is not of this kind's shape: %s", c.Detail)
		}
		return malformed("compare with the kind's schema", "the body is not of this kind's shape")
	}
	return into.shape()
}

// names checks that ids are there and of sane length. Whether they name
// anything is for the state to say.
func names(ids ...string) error {
	for _, id := range ids {
		if id == "" || len(id) > maxID {
			return malformed("give the id that opening or arguing answered", "an id is missing or longer than %d bytes", maxID)
		}
	}
	return nil
}

const maxID = 128

// free are the members that hold any JSON value, texts those that may be empty.
var (
	free  = map[string]bool{"answer": true, "answers": true, "options": true, "facts": true, "task": true, "certificate": true}
	texts = map[string]bool{"text": true, "question": true, "reason": true, "source": true}
)

// blank reports whether null or an empty string stands where a value should:
// encoding/json would take it for an absent member.
func blank(name string, raw json.RawMessage) bool {
	raw = bytes.TrimSpace(raw)
	switch {
	case free[name] || len(raw) == 0:
		return false
	case raw[0] == '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return false // the decoder says what is wrong
		}
		for member, v := range members { // order: any blank member will do
			if blank(member, v) {
				return true
			}
		}
		return false
	case raw[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return false
		}
		return slices.ContainsFunc(items, func(v json.RawMessage) bool { return blank(name, v) })
	}
	return string(raw) == "null" || string(raw) == `""` && !texts[name]
}
