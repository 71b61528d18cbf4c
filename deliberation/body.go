package deliberation

import (
	"bytes"
	"encoding/json"
	"errors"

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
	blank, ok := bodies[kind]
	if !ok {
		return nil, machine.Refuse(machine.CodeUnknownKind, "", "%q is no kind of this machine", kind)
	}
	into := blank()
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
	if bytes.Contains(body, []byte("null")) && !nullsAllowed(body, false) {
		return malformed("leave a member out instead", "null stands where a value should")
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

// free are the members that hold any JSON value.
var free = map[string]bool{"answer": true, "answers": true, "options": true, "facts": true, "task": true, "certificate": true}

// nullsAllowed reports whether null stands only inside free members:
// encoding/json would take it for an absent member.
func nullsAllowed(raw json.RawMessage, inside bool) bool {
	switch {
	case inside || len(raw) == 0:
		return true
	case raw[0] == '{':
		var members map[string]json.RawMessage
		if json.Unmarshal(raw, &members) != nil {
			return true // the decoder says what is wrong
		}
		for name, v := range members {
			if !nullsAllowed(v, free[name]) {
				return false
			}
		}
		return true
	case raw[0] == '[':
		var items []json.RawMessage
		if json.Unmarshal(raw, &items) != nil {
			return true
		}
		for _, v := range items {
			if !nullsAllowed(v, false) {
				return false
			}
		}
		return true
	}
	return string(raw) != "null"
}
