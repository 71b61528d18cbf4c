package registry

import (
	"embed"
	"encoding/json"
	"regexp"
	"strings"
	"unicode/utf8"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

//go:embed schema/*.json
var schemas embed.FS

// schemaOf returns the JSON Schema of a kind's body or a query's parameters.
func schemaOf(name string) json.RawMessage { return machine.MustSchema(schemas, name) }

// Register is the body of registry.register. [NewRegister] makes one.
type Register struct {
	ID    string                `json:"id"`   // 1 to 128 of [A-Za-z0-9._:@/-], no peer id
	Kind  machine.PrincipalKind `json:"kind"` // agent or human
	Name  string                `json:"name,omitempty"`
	JWK   sign.JWK              `json:"jwk"`
	Proof string                `json:"proof"` // detached JWS, see [ProofPayload]
}

// Rotate is the body of registry.rotate. [NewRotate] makes one.
type Rotate struct {
	ID    string   `json:"id"`
	JWK   sign.JWK `json:"jwk"`
	Proof string   `json:"proof"` // detached JWS by the new key, see [ProofPayload]
}

// Revoke is the body of registry.revoke: of one key, or without KID of the whole principal.
type Revoke struct {
	ID     string `json:"id"`
	KID    string `json:"kid,omitempty"`
	Reason string `json:"reason"` // 1 to 512 characters
}

// Grant is the body of registry.grant. A grant under the same pattern is replaced.
type Grant struct {
	Principal string  `json:"principal"`
	Pattern   string  `json:"pattern"`
	Authority Decimal `json:"authority"`
	Trust     Decimal `json:"trust"`
}

// Ungrant is the body of registry.ungrant.
type Ungrant struct {
	Principal string `json:"principal"`
	Pattern   string `json:"pattern"`
}

// ProofPayload is what a new key signs (typ sign.TypProof) to show that it is
// held: the canonical JSON of {cluster, id, jwk}, jwk as it stands in the body.
// To register it also names the operator, so that nobody who sees the action
// can take id and key for himself; to rotate, operator is empty and left out.
func ProofPayload(cluster, operator, id string, jwk sign.JWK) []byte {
	return canon.MustMarshal(struct {
		Cluster  string   `json:"cluster"`
		ID       string   `json:"id"`
		JWK      sign.JWK `json:"jwk"`
		Operator string   `json:"operator,omitempty"`
	}{cluster, id, jwk, operator})
}

// NewRegister makes the body that registers a key's holder; an operator signs the action.
func NewRegister(cluster, operator, id string, kind machine.PrincipalKind, name string, key sign.Key) (Register, error) {
	jwk := key.Public().JWK()
	proof, err := key.Detached(sign.TypProof, ProofPayload(cluster, operator, id, jwk))
	return Register{ID: id, Kind: kind, Name: name, JWK: jwk, Proof: proof}, err
}

// NewRotate makes the body that gives a principal the key next; the principal signs the
// action with its current key, or its operator does.
func NewRotate(cluster, id string, next sign.Key) (Rotate, error) {
	jwk := next.Public().JWK()
	proof, err := next.Detached(sign.TypProof, ProofPayload(cluster, "", id, jwk))
	return Rotate{ID: id, JWK: jwk, Proof: proof}, err
}

var (
	idPattern  = regexp.MustCompile(`^[A-Za-z0-9._:@/-]{1,128}$`)
	kidPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{43}$`)
	jwsPattern = regexp.MustCompile(`^[A-Za-z0-9_-]{1,512}\.\.[A-Za-z0-9_-]{86}$`)
)

// ValidID reports whether id has the shape of a principal's id.
func ValidID(id string) bool { return idPattern.MatchString(id) }

// body is a decoded body that can judge its own shape: nil or why not.
type body interface{ shape() *machine.Refusal }

func decode[T body](raw json.RawMessage) (T, error) { return machine.DecodeExact(raw, T.shape) }

func params[T body](raw json.RawMessage) (T, error) { return machine.DecodeExactParams(raw, T.shape) }

func (b Register) shape() *machine.Refusal {
	switch {
	case !ValidID(b.ID):
		return machine.Malformed("id is not 1 to 128 characters of A-Z a-z 0-9 . _ : @ / -")
	case b.Kind != machine.Agent && b.Kind != machine.Human:
		return machine.Malformed("kind is neither agent nor human")
	case b.Name != "" && !validText(b.Name, 128):
		return machine.Malformed("name is longer than 128 characters or holds a control character")
	}
	return keyShape(b.JWK, b.Proof)
}

func (b Rotate) shape() *machine.Refusal {
	if !ValidID(b.ID) {
		return machine.Malformed("id is not the id of a principal")
	}
	return keyShape(b.JWK, b.Proof)
}

func (b Revoke) shape() *machine.Refusal {
	switch {
	case !ValidID(b.ID):
		return machine.Malformed("id is not the id of a principal")
	case b.KID != "" && !kidPattern.MatchString(b.KID):
		return machine.Malformed("kid is not an RFC 7638 thumbprint")
	case !validText(b.Reason, 512):
		return machine.Malformed("reason is empty, longer than 512 characters or holds a control character")
	}
	return nil
}

func (b Grant) shape() *machine.Refusal {
	if r := patternShape(b.Principal, b.Pattern); r != nil {
		return r
	}
	if r := b.Authority.shape("authority"); r != nil {
		return r
	}
	return b.Trust.shape("trust")
}

func (b Ungrant) shape() *machine.Refusal { return patternShape(b.Principal, b.Pattern) }

func patternShape(principal, pattern string) *machine.Refusal {
	switch {
	case !ValidID(principal):
		return machine.Malformed("principal is not the id of a principal")
	case !ValidPattern(pattern):
		return machine.Malformed(`pattern is not a domain, a domain with ".*", or "*"`)
	}
	return nil
}

// keyShape judges what a schema can judge; whether the key is a good one is
// [sign.JWK.Public]'s to say.
func keyShape(jwk sign.JWK, proof string) *machine.Refusal {
	switch {
	case jwk.Kty != "OKP" || jwk.Crv != "Ed25519" || !kidPattern.MatchString(jwk.X):
		return machine.Malformed("jwk is not an Ed25519 JWK: kty OKP, crv Ed25519, x of 43 base64url characters")
	case jwk.KID != "" && !kidPattern.MatchString(jwk.KID):
		return machine.Malformed("jwk.kid is not an RFC 7638 thumbprint")
	case !jwsPattern.MatchString(proof):
		return machine.Malformed("proof is not a detached compact JWS (header..signature)")
	}
	return nil
}

// validText reports whether s has 1 to most characters, none of them a control character.
func validText(s string, most int) bool {
	return s != "" && utf8.RuneCountInString(s) <= most && !strings.ContainsFunc(s, func(r rune) bool { return r < 0x20 || r == 0x7f })
}
