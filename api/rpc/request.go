package rpc

import (
	"bytes"
	"encoding/json"
	"errors"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

const (
	maxBatch  = 100 // requests
	maxID     = 256 // bytes of a request id's JSON
	maxMethod = 128 // bytes
)

// request is one call. A call without id is a notification: it runs and is
// not answered.
type request struct {
	ID           json.RawMessage
	Notification bool
	Method       string
	Params       json.RawMessage // an object; {} when the call has none
	err          *rpcError       // set when the call is not valid
}

type envelope struct {
	JSONRPC *string         `json:"jsonrpc"`
	Method  *string         `json:"method"`
	Params  json.RawMessage `json:"params"`
	ID      json.RawMessage `json:"id"`
}

// parse reads a body. A single error stands for the whole body; errors of one
// call inside a batch are kept with that call.
func parse(body []byte) (calls []request, batch bool, fail *rpcError) {
	if err := canon.Check(body); err != nil {
		return nil, false, parseError(err)
	}
	body = bytes.TrimSpace(body)
	if body[0] != '[' {
		return []request{parseOne(body)}, false, nil
	}
	var texts []json.RawMessage
	if err := json.Unmarshal(body, &texts); err != nil {
		return nil, false, parseError(err)
	}
	switch {
	case len(texts) == 0:
		return nil, true, invalid("empty_batch", "put at least one request into the batch", "The batch is empty.")
	case len(texts) > maxBatch:
		return nil, true, invalid("batch_too_large", "send at most 100 requests at once", "The batch holds %d requests.", len(texts))
	}
	for _, text := range texts {
		calls = append(calls, parseOne(text))
	}
	return calls, true, nil
}

func parseOne(text json.RawMessage) request {
	var e envelope
	if text[0] != '{' {
		return request{ID: null, err: invalid("invalid_request", shapeFix, "A request is an object.")}
	}
	if err := canon.DecodeChecked(text, &e); err != nil {
		return request{ID: idOf(text), err: invalid("invalid_request", shapeFix, "The request has a wrong member: %s.", detail(err))}
	}
	r := request{ID: e.ID, Notification: !hasMember(text, "id"), Params: e.Params}
	if r.Notification || !goodID(e.ID) {
		r.ID = null
	}
	switch {
	case !r.Notification && !goodID(e.ID):
		r.err = invalid("invalid_request", "use a string, a whole number or null as id", "The request's id is not a string, a whole number or null of at most %d bytes.", maxID)
	case e.JSONRPC == nil || *e.JSONRPC != "2.0":
		r.err = invalid("invalid_request", shapeFix, "The member jsonrpc is not \"2.0\".")
	case e.Method == nil || *e.Method == "" || len(*e.Method) > maxMethod:
		r.err = invalid("invalid_request", shapeFix, "The member method is not a name of 1 to %d bytes.", maxMethod)
	case len(e.Params) > 0 && e.Params[0] == '[':
		r.err = badParams(machine.Refuse("params_by_name", "send params as an object with named members", "Params by position are not supported."))
	case len(e.Params) > 0 && e.Params[0] != '{':
		r.err = invalid("invalid_request", shapeFix, "The member params is not an object.")
	}
	if r.err != nil {
		// Only a request that is valid can be a notification.
		r.Notification = false
		return r
	}
	r.Method = *e.Method
	if len(r.Params) == 0 {
		r.Params = json.RawMessage("{}")
	}
	return r
}

const shapeFix = `send {"jsonrpc":"2.0","id":1,"method":"…","params":{…}}`

var null = json.RawMessage("null")

// goodID accepts null, a string and a number without fraction or exponent.
func goodID(id json.RawMessage) bool {
	switch {
	case len(id) == 0 || len(id) > maxID:
		return false
	case id[0] == '"', string(id) == "null":
		return true
	}
	return (id[0] == '-' || id[0] >= '0' && id[0] <= '9') && !bytes.ContainsAny(id, ".eE")
}

// idOf finds the id of a request that is otherwise of no good shape.
func idOf(text json.RawMessage) json.RawMessage {
	var members map[string]json.RawMessage
	if json.Unmarshal(text, &members) != nil || !goodID(members["id"]) {
		return null
	}
	return members["id"]
}

func hasMember(text json.RawMessage, name string) bool {
	var members map[string]json.RawMessage
	if err := json.Unmarshal(text, &members); err != nil {
		return false
	}
	_, ok := members[name]
	return ok
}

// detail is what a strict decoder complains about, without package names.
func detail(err error) string {
	var c *canon.Error
	if errors.As(err, &c) {
		return strings.TrimSuffix(c.Detail, ".")
	}
	return err.Error()
}

// actionDetail is what is wrong with an action.
func actionDetail(err error) string {
	if text, ok := strings.CutPrefix(err.Error(), sign.ErrMalformed.Error()+": "); ok {
		return text
	}
	return detail(err)
}
