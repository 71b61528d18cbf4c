package sign

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/internal/canon"
)

// Version is the action format spoken by this build.
const Version = 1

// ErrMalformed is an action of the wrong shape.
var ErrMalformed = errors.New("malformed_action")

// Action is one signed request to the cluster: a detached JWS (typ
// "deliberd-action") over the canonical JSON of everything but Sig.
type Action struct {
	Cluster string          `json:"cluster"` // genesis hash, 64 hex digits
	ID      string          `json:"id"`      // ULID, made by the actor: a retry with the same id gets the first answer
	Kind    string          `json:"kind"`    // machine and verb: "acp.submit"
	Actor   string          `json:"actor"`   // principal id: agent, human, operator or node
	KID     string          `json:"kid"`     // RFC 7638 thumbprint of the signing key
	V       int             `json:"v"`       // format version, 1
	Body    json.RawMessage `json:"body"`    // the kind's own fields, an object
	Sig     string          `json:"sig"`     // detached JWS
}

// Payload is what Sig signs: the canonical JSON of the action without sig.
func (a Action) Payload() ([]byte, error) {
	return canon.Marshal(struct {
		Cluster string          `json:"cluster"`
		ID      string          `json:"id"`
		Kind    string          `json:"kind"`
		Actor   string          `json:"actor"`
		KID     string          `json:"kid"`
		V       int             `json:"v"`
		Body    json.RawMessage `json:"body"`
	}{a.Cluster, a.ID, a.Kind, a.Actor, a.KID, a.V, a.Body})
}

// Sign makes a signed action of the current version. body is encoded to
// canonical JSON; it must be an object.
func (k Key) Sign(cluster, id, kind, actor string, body any) (Action, error) {
	text, err := canon.Marshal(body)
	if err != nil {
		return Action{}, err
	}
	a := Action{Cluster: cluster, ID: id, Kind: kind, Actor: actor, KID: k.KID(), V: Version, Body: text}
	payload, err := a.Payload()
	if err != nil {
		return Action{}, err
	}
	a.Sig, err = k.Detached(TypAction, payload)
	return a, err
}

// Encode is the action's canonical JSON: what travels and what is replicated.
func (a Action) Encode() ([]byte, error) { return canon.Marshal(a) }

// Decode reads one action, strictly, and checks its shape. It does not verify
// the signature. Errors are [*canon.Error] or [ErrMalformed].
func Decode(raw []byte) (Action, error) {
	if err := canon.CheckIntegers(raw); err != nil {
		return Action{}, err
	}
	var a Action
	if err := canon.DecodeChecked(raw, &a); err != nil {
		return Action{}, err
	}
	return a, a.check()
}

func (a Action) check() error {
	switch {
	case a.V != Version:
		return fmt.Errorf("%w: v is %d, this build speaks %d", ErrMalformed, a.V, Version)
	case len(a.Cluster) != 64:
		return fmt.Errorf("%w: cluster is not a genesis hash of 64 hex digits", ErrMalformed)
	case a.Kind == "" || len(a.Kind) > 64:
		return fmt.Errorf("%w: kind is empty or longer than 64 bytes", ErrMalformed)
	case a.Actor == "" || len(a.Actor) > 128:
		return fmt.Errorf("%w: actor is empty or longer than 128 bytes", ErrMalformed)
	case len(a.Body) == 0 || a.Body[0] != '{':
		return fmt.Errorf("%w: body is not an object", ErrMalformed)
	}
	if id, err := ulid.ParseStrict(a.ID); err != nil || id.String() != a.ID {
		return fmt.Errorf("%w: id is not a ULID in upper case", ErrMalformed)
	}
	return nil
}

// Verified is an action whose signature has been checked under a key. Only
// [Verify] makes one, so that unverified input cannot reach a machine.
type Verified struct {
	action Action
	text   []byte
	hash   [32]byte
}

// Action is the verified action.
func (v Verified) Action() Action { return v.action }

// Text is the action's canonical JSON.
func (v Verified) Text() []byte { return v.text }

// Hash is the SHA-256 of Text: two submissions under one id are the same
// action exactly if their hashes are equal.
func (v Verified) Hash() [32]byte { return v.hash }

// Verify decodes one action in canonical JSON and checks its signature under
// key, which the caller has found to belong to the actor. Errors are
// [*canon.Error], [ErrMalformed] or [ErrBadSignature].
func Verify(text []byte, key PublicKey) (Verified, error) {
	if err := canon.CheckCanonical(text); err != nil {
		return Verified{}, err
	}
	var a Action
	if err := canon.DecodeChecked(text, &a); err != nil {
		return Verified{}, err
	}
	if err := a.check(); err != nil {
		return Verified{}, err
	}
	if a.KID != key.kid {
		return Verified{}, fmt.Errorf("%w: kid is %q, the key's is %q", ErrBadSignature, a.KID, key.kid)
	}
	payload, err := withoutSig(text, a.Sig)
	if err != nil {
		return Verified{}, err
	}
	if err := key.VerifyDetached(TypAction, payload, a.Sig); err != nil {
		return Verified{}, err
	}
	return Verified{action: a, text: text, hash: sha256.Sum256(text)}, nil
}

// withoutSig cuts the member sig out of a canonical action. Members stand in
// order, so it is the one before v, which is the last.
func withoutSig(text []byte, sig string) ([]byte, error) {
	quoted, err := canon.Marshal(sig)
	if err != nil {
		return nil, err
	}
	member := append(append([]byte(`"sig":`), quoted...), ',')
	at := bytes.LastIndex(text, member)
	if at < 0 {
		return nil, fmt.Errorf("%w: no sig", ErrMalformed)
	}
	return append(append(make([]byte, 0, len(text)-len(member)), text[:at]...), text[at+len(member):]...), nil
}
