package rpc

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Error numbers of JSON-RPC 2.0 section 5.1, and this door's own.
const (
	ParseError      = -32700 // the body is no strict JSON
	InvalidRequest  = -32600 // not a request
	MethodNotFound  = -32601
	InvalidParams   = -32602 // params of the wrong shape
	InternalError   = -32603 // the node's own trouble
	Refused         = -32000 // the state machine refused: data.code says why
	Unauthenticated = -32001 // a read without a good token
	Unavailable     = -32002 // this node cannot serve now: try another or later
)

// rpcError is the error member of a response.
type rpcError struct {
	Number  int       `json:"code"`
	Message string    `json:"message"`
	Data    errorData `json:"data"`
}

// errorData is what every error carries.
type errorData struct {
	Code    string         `json:"code"` // stable
	Fix     string         `json:"fix"`  // what to do next
	Details map[string]any `json:"details,omitempty"`
}

type response struct {
	JSONRPC string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *rpcError       `json:"error,omitempty"`
}

func fromRefusal(number int, r *machine.Refusal) *rpcError {
	fix := r.Fix
	if fix == "" {
		fix = "nothing can be done about this request"
	}
	return &rpcError{Number: number, Message: r.Message, Data: errorData{Code: r.Code, Fix: fix, Details: r.Data}}
}

func invalid(code, fix, format string, args ...any) *rpcError {
	return fromRefusal(InvalidRequest, machine.Refuse(code, fix, format, args...))
}

func badParams(r *machine.Refusal) *rpcError { return fromRefusal(InvalidParams, r) }

func parseError(err error) *rpcError {
	code, at := string(canon.NotJSON), ""
	var c *canon.Error
	if errors.As(err, &c) {
		code = string(c.Code)
		if c.Offset >= 0 {
			at = fmt.Sprintf(" at byte %d", c.Offset)
		}
	}
	fix := "send strict JSON: UTF-8, every member once, at most 64 levels"
	if code == string(canon.TooLarge) {
		fix = "send at most 1 MiB"
	}
	return fromRefusal(ParseError, machine.Refuse(code, fix, "The body is refused%s: %s.", at, detail(err)))
}

// numbers of the codes that are not the state machine's answer.
var numbers = map[string]int{
	api.CodeInternal:       InternalError,
	machine.CodeMalformed:  InvalidParams,
	machine.CodeOutOfRange: InvalidParams,
}

// numberOf classes a refusal.
func numberOf(r *machine.Refusal) int {
	if n, ok := numbers[r.Code]; ok {
		return n
	}
	if api.Unavailable(r.Code) {
		return Unavailable
	}
	return Refused
}
