package machine

import (
	"errors"
	"fmt"
)

// Refusal is why an action or query was not accepted: a stable code, one
// sentence, and what to do next. Refusing changes no state. Message and Fix
// are for people and are not part of the decision log.
type Refusal struct {
	Code    string         `json:"code"`
	Message string         `json:"message"`
	Fix     string         `json:"fix,omitempty"`
	Data    map[string]any `json:"data,omitempty"` // values the reader needs, such as the id to support instead
}

func (r *Refusal) Error() string {
	if r.Fix == "" {
		return r.Code + ": " + r.Message
	}
	return r.Code + ": " + r.Message + "; " + r.Fix
}

// Refuse makes a refusal. fix says what to do next and may be empty only
// where nothing can be done.
func Refuse(code, fix, format string, args ...any) *Refusal {
	return &Refusal{Code: code, Message: fmt.Sprintf(format, args...), Fix: fix}
}

// With adds a value to the refusal's data.
func (r *Refusal) With(name string, value any) *Refusal {
	if r.Data == nil {
		r.Data = map[string]any{}
	}
	r.Data[name] = value
	return r
}

// IsRefusal reports whether err is a refusal, and which.
func IsRefusal(err error) (*Refusal, bool) {
	var r *Refusal
	ok := errors.As(err, &r)
	return r, ok
}

// Codes shared by all machines.
const (
	CodeMalformed     = "malformed"          // not the shape the kind's schema wants
	CodeOutOfRange    = "out_of_range"       // a number outside its stated range
	CodeNotFound      = "not_found"          // no such round, proposal, agent, …
	CodeNotAuthorized = "not_authorized"     // the principal may not do this
	CodeAlreadyExists = "already_exists"     // the id is taken
	CodeUnknownActor  = "unknown_actor"      // the principal is not registered
	CodeRevoked       = "revoked"            // the principal or its key has been revoked
	CodeBadSignature  = "bad_signature"      // the signature does not verify under the actor's key
	CodeWrongCluster  = "wrong_cluster"      // the action names another genesis
	CodeIDReused      = "id_reused"          // this id has been used with another body
	CodeIDTooOld      = "id_too_old"         // the ULID's time is before the replicated window
	CodeIDFromFuture  = "id_from_the_future" // the ULID's time is ahead of replicated time
	CodeUnknownKind   = "unknown_kind"       // no machine takes this kind
	CodeGrantExceeded = "authority_exceeds_grant"
	CodeNoGrant       = "no_grant" // the principal holds nothing in this domain
)
