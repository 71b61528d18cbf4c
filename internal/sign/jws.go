package sign

import (
	"crypto/ed25519"
	"encoding/base64"
	"fmt"
	"strings"

	"github.com/go-jose/go-jose/v4"

	"github.com/deliberd/deliberd/internal/canon"
)

// Header types (typ) in use. A signature made for one purpose never verifies
// for another.
const (
	TypAction     = "deliberd-action"     // an [Action]
	TypToken      = "deliberd-token"      // a bearer token
	TypGenesis    = "deliberd-genesis"    // a founder's signature of a genesis
	TypInvitation = "deliberd-invitation" // an invited node's proof
	TypProof      = "deliberd-proof"      // a new key's proof that it is held
	TypJOSE       = "JOSE"                // Coalition Protocol envelopes, §5
)

// header is the whole protected header: exactly these members.
type header struct {
	Alg string `json:"alg"`
	KID string `json:"kid"`
	Typ string `json:"typ"`
}

// Detached signs payload, which is canonical JSON, and returns the compact
// JWS with its payload removed (RFC 7515 appendix F): header..signature.
func (k Key) Detached(typ string, payload []byte) (string, error) {
	signer, err := jose.NewSigner(
		jose.SigningKey{Algorithm: jose.EdDSA, Key: jose.JSONWebKey{Key: k.private, KeyID: k.KID()}},
		(&jose.SignerOptions{}).WithType(jose.ContentType(typ)))
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	jws, err := signer.Sign(payload)
	if err != nil {
		return "", fmt.Errorf("sign: %w", err)
	}
	return jws.DetachedCompactSerialize()
}

// VerifyDetached checks a detached JWS over payload under one key. The header
// must be exactly {alg: EdDSA, kid: the key's, typ}. It errs with
// [ErrBadSignature].
//
// go-jose would also take extra header members, jku, white space and a
// non-canonical last base64 character, so the header is read here and the
// signature checked with the one rule of this package.
func (k PublicKey) VerifyDetached(typ string, payload []byte, jws string) error {
	head, sig, err := k.split(typ, jws)
	if err != nil {
		return err
	}
	if head.parsed.KID != k.kid {
		return fmt.Errorf("%w: made by key %q, expected %q", ErrBadSignature, head.parsed.KID, k.kid)
	}
	if head.parsed.Typ != typ {
		return fmt.Errorf("%w: typ is %q, expected %q", ErrBadSignature, head.parsed.Typ, typ)
	}
	input := make([]byte, 0, len(head.encoded)+1+base64.RawURLEncoding.EncodedLen(len(payload)))
	input = append(append(input, head.encoded...), '.')
	input = base64.RawURLEncoding.AppendEncode(input, payload)
	if k.IsZero() || !verifyPlain(k.raw[:], input, sig) {
		return fmt.Errorf("%w: it does not verify", ErrBadSignature)
	}
	return nil
}

// split is splitDetached that recognises the one header it expects.
func (k PublicKey) split(typ, jws string) (protected, []byte, error) {
	want := header{Alg: "EdDSA", KID: k.kid, Typ: typ}
	text := append(append(append(append(make([]byte, 0, 128), `{"alg":"EdDSA","kid":"`...), k.kid...), `","typ":"`...), typ...)
	encoded := base64.RawURLEncoding.AppendEncode(make([]byte, 0, 192), append(text, `"}`...))
	rest, same := strings.CutPrefix(jws, string(encoded))
	if same {
		if last, ok := strings.CutPrefix(rest, ".."); ok {
			sig, err := signature(last)
			return protected{string(encoded), want}, sig, err
		}
	}
	return splitDetached(jws)
}

type protected struct {
	encoded string
	parsed  header
}

func splitDetached(jws string) (protected, []byte, error) {
	parts := strings.Split(jws, ".")
	if len(parts) != 3 || parts[1] != "" {
		return protected{}, nil, fmt.Errorf("%w: not a detached compact JWS (header..signature)", ErrBadSignature)
	}
	text, err := strictBase64(parts[0])
	if err != nil {
		return protected{}, nil, fmt.Errorf("%w: the header is not strict base64url", ErrBadSignature)
	}
	var h header
	if err := canon.Decode(text, &h); err != nil {
		return protected{}, nil, fmt.Errorf("%w: the header must be exactly {alg, kid, typ}: %w", ErrBadSignature, err)
	}
	if h.Alg != "EdDSA" {
		return protected{}, nil, fmt.Errorf("%w: alg is %q, expected EdDSA", ErrBadSignature, h.Alg)
	}
	sig, err := signature(parts[2])
	return protected{parts[0], h}, sig, err
}

func signature(encoded string) ([]byte, error) {
	sig, err := strictBase64(encoded)
	if err != nil || len(sig) != ed25519.SignatureSize {
		return nil, fmt.Errorf("%w: the signature is not 64 bytes of strict base64url", ErrBadSignature)
	}
	return sig, nil
}

// HeaderKID reads the kid that a detached JWS claims, unverified: to look up
// the key to verify with.
func HeaderKID(jws string) (string, error) {
	head, _, err := splitDetached(jws)
	return head.parsed.KID, err
}
