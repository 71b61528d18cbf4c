package client

import (
	"errors"
	"fmt"
	"strings"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/machine"
)

// Error is why a call failed: the cluster's refusal, or a code of this
// package (unreachable, bad_answer, no_identity, bad_identity, bad_endpoint).
type Error struct {
	Code    string         `json:"code"`           // stable
	Message string         `json:"message"`        // a sentence
	Fix     string         `json:"fix"`            // what to do next
	Data    map[string]any `json:"data,omitempty"` // values the reader needs, such as the id to support instead
	cause   error
}

// Codes of this package.
const (
	CodeUnreachable = api.CodeUnreachable // no node could be reached; a write may or may not have been ordered
	CodeBadAnswer   = "bad_answer"        // what answered is no deliberd node
	CodeNoIdentity  = "no_identity"       // the call needs an identity and the client has none
	CodeBadEndpoint = "bad_endpoint"
)

func (e *Error) Error() string {
	return fmt.Sprintf("%s (%s)", strings.TrimSuffix(e.Message, "."), e.Code)
}

// Unwrap is the transport's error, if there was one.
func (e *Error) Unwrap() error { return e.cause }

// CodeOf is the code of an [*Error], and empty for any other error.
func CodeOf(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Code
	}
	return ""
}

// fromRefusal makes an [*Error] of a refusal found without a node.
func fromRefusal(err error) error {
	if r, ok := machine.IsRefusal(err); ok {
		return &Error{Code: r.Code, Message: r.Message, Fix: r.Fix, Data: r.Data}
	}
	return err
}

// elsewhere reports whether another node, or the same a little later, may answer.
func (e *Error) elsewhere() bool {
	return api.Unavailable(e.Code)
}
