package sign

import (
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
	return decode(raw)
}

func decode(checked []byte) (Action, error) {
	var a Action
	if err := canon.DecodeChecked(checked, &a); err != nil {
		return Action{}, err
	}
	return a, a.check()
}

// Unverified is an action as it came: of the right shape, by whomever.
type Unverified struct {
	action Action
	text   []byte
	hash   [32]byte
	wrong  error // why the text is not canonical
}

// Read is [Decode] for an action that will be verified. text must not change
// afterwards. A text that is not canonical is read too; it verifies under no key.
func Read(text []byte) (Unverified, error) {
	wrong := canon.CheckCanonical(text)
	if wrong != nil {
		if err := canon.CheckIntegers(text); err != nil {
			return Unverified{}, err
		}
	}
	a, err := decode(text)
	return Unverified{action: a, text: text, hash: sha256.Sum256(text), wrong: wrong}, err
}

// Action is what the action says.
func (u Unverified) Action() Action { return u.action }

// Hash is the SHA-256 of the text.
func (u Unverified) Hash() [32]byte { return u.hash }

// Verify checks the signature under key, which the caller has found to belong
// to the actor. Errors are [*canon.Error] or [ErrBadSignature].
func (u Unverified) Verify(key PublicKey) (Verified, error) {
	if u.wrong != nil {
		return Verified{}, u.wrong
	}
	if u.action.KID != key.kid {
		return Verified{}, fmt.Errorf("%w: kid is %q, the key's is %q", ErrBadSignature, u.action.KID, key.kid)
	}
	payload, err := withoutSig(u.text, u.action.Sig)
	if err != nil {
		return Verified{}, err
	}
	if err := key.VerifyDetached(TypAction, payload, u.action.Sig); err != nil {
		return Verified{}, err
	}
	return Verified{action: u.action, text: u.text, hash: u.hash}, nil
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
// [Unverified.Verify] makes one, so that unverified input cannot reach a machine.
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
	u, err := Read(text)
	if err != nil {
		return Verified{}, err
	}
	return u.Verify(key)
}

// withoutSig cuts the member sig out of a canonical action. Members stand in
// order, so it is the one before v, which is the last. A sig that would not
// stand unescaped in the text is no signature.
func withoutSig(text []byte, sig string) ([]byte, error) {
	const before, after = `"sig":"`, `",`
	size := len(before) + len(sig) + len(after)
	for at := len(text) - size; at >= 0; at-- {
		if text[at] != '"' {
			continue
		}
		member := text[at : at+size]
		if string(member[:len(before)]) == before && string(member[len(before):size-len(after)]) == sig && string(member[size-len(after):]) == after {
			return append(append(make([]byte, 0, len(text)-size), text[:at]...), text[at+size:]...), nil
		}
	}
	return nil, fmt.Errorf("%w: no sig", ErrMalformed)
}
