package token

import (
	"context"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

const (
	// MaxLife is the longest time from iat to exp.
	MaxLife = time.Hour
	// Skew is how far two clocks may be apart.
	Skew = 60 * time.Second
	// maxLength bounds the text of a token; a real one has about 400 bytes.
	maxLength = 2048
)

// Codes of the refusals of [Verifier.Verify], besides bad_signature,
// wrong_cluster and what the key lookup refuses with.
const (
	CodeMissing   = "token_missing"
	CodeExpired   = "token_expired"
	CodeMalformed = "token_malformed"
	CodeNotYet    = "token_not_yet_valid"
	CodeTooLong   = "token_life_too_long"
)

const again = "make a new one with `deliberd agent token`"

// Claims is what a token says. Times are Unix seconds.
type Claims struct {
	Cluster string `json:"cluster"` // genesis hash
	Sub     string `json:"sub"`     // principal
	IAT     int64  `json:"iat"`
	EXP     int64  `json:"exp"`
}

// Make signs a token for a principal, good from now for life (more than 0,
// at most [MaxLife]).
func Make(key sign.Key, cluster, sub string, now time.Time, life time.Duration) (string, error) {
	if life <= 0 || life > MaxLife {
		return "", machine.Refuse(CodeTooLong, "ask for a life between 1s and 1h", "A token cannot live for %s.", life)
	}
	payload, err := canon.Marshal(Claims{Cluster: cluster, Sub: sub, IAT: now.Unix(), EXP: now.Add(life).Unix()})
	if err != nil {
		return "", err
	}
	detached, err := key.Detached(sign.TypToken, payload)
	if err != nil {
		return "", err
	}
	return strings.Replace(detached, "..", "."+base64.RawURLEncoding.EncodeToString(payload)+".", 1), nil
}

// Verifier checks tokens for one cluster.
type Verifier struct {
	Cluster string                                                               // genesis hash
	Key     func(ctx context.Context, actor, kid string) (sign.PublicKey, error) // refuses with unknown_actor or revoked
	Now     func() time.Time
}

// Verify checks a token's text and returns what it says. It refuses with a
// [*machine.Refusal]; other errors are those of the key lookup.
func (v Verifier) Verify(ctx context.Context, text string) (Claims, error) {
	if text == "" {
		return Claims{}, missing()
	}
	claims, payload, detached, err := split(text)
	if err != nil {
		return Claims{}, err
	}
	if claims.Cluster != v.Cluster {
		return Claims{}, machine.Refuse(machine.CodeWrongCluster, "use an identity of this cluster: see `deliberd status`",
			"The token is for cluster %.16q, this is %.16q.", claims.Cluster, v.Cluster)
	}
	if err := claims.checkTimes(v.Now()); err != nil {
		return Claims{}, err
	}
	kid, err := sign.HeaderKID(detached)
	if err != nil {
		return Claims{}, badSignature(err)
	}
	key, err := v.Key(ctx, claims.Sub, kid)
	if err != nil {
		return Claims{}, err
	}
	if err := key.VerifyDetached(sign.TypToken, payload, detached); err != nil {
		return Claims{}, badSignature(err)
	}
	return claims, nil
}

// Bearer takes the token out of an Authorization header.
func Bearer(header string) (string, error) {
	if header == "" {
		return "", missing()
	}
	scheme, text, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") || text == "" || strings.ContainsAny(text, " \t") {
		return "", malformed("The Authorization header is not \"Bearer TOKEN\".")
	}
	return text, nil
}

// split takes a compact JWS apart: claims, their text, and the JWS with the
// payload removed.
func split(text string) (Claims, []byte, string, error) {
	parts := strings.Split(text, ".")
	if len(text) > maxLength || len(parts) != 3 {
		return Claims{}, nil, "", malformed("The token is not a compact JWS of three parts.")
	}
	if strings.ContainsAny(parts[1], "\r\n") {
		return Claims{}, nil, "", malformed("The token's payload is not strict base64url.")
	}
	payload, err := base64.RawURLEncoding.Strict().DecodeString(parts[1])
	if err != nil {
		return Claims{}, nil, "", malformed("The token's payload is not strict base64url.")
	}
	if err := canon.CheckCanonical(payload); err != nil {
		return Claims{}, nil, "", malformed("The token's claims are not canonical JSON.")
	}
	var c Claims
	if err := canon.DecodeChecked(payload, &c); err != nil || c.Sub == "" {
		return Claims{}, nil, "", malformed("The token's claims are not exactly {cluster, sub, iat, exp}.")
	}
	return c, payload, parts[0] + ".." + parts[2], nil
}

func (c Claims) checkTimes(now time.Time) error {
	const year10000 = 253402300800
	switch {
	case c.IAT < 0 || c.EXP <= c.IAT || c.EXP >= year10000:
		return malformed("The token's times are out of order or range.")
	case c.EXP-c.IAT > int64(MaxLife/time.Second):
		return machine.Refuse(CodeTooLong, again+" that lives for an hour at most",
			"The token lives for %d s, at most %s is accepted.", c.EXP-c.IAT, MaxLife)
	case !now.Before(time.Unix(c.EXP, 0).Add(Skew)):
		return machine.Refuse(CodeExpired, again, "The token expired at %s.", time.Unix(c.EXP, 0).UTC().Format(time.RFC3339))
	case time.Unix(c.IAT, 0).After(now.Add(Skew)):
		return machine.Refuse(CodeNotYet, "set this machine's clock, or "+again,
			"The token was issued at %s, which has not come yet.", time.Unix(c.IAT, 0).UTC().Format(time.RFC3339))
	}
	return nil
}

func missing() error {
	return machine.Refuse(CodeMissing, "send Authorization: Bearer TOKEN; `deliberd agent token` makes one", "Reading needs a bearer token.")
}

func malformed(message string) error { return machine.Refuse(CodeMalformed, again, "%s", message) }

func badSignature(err error) error {
	if errors.Is(err, sign.ErrBadSignature) {
		return machine.Refuse(machine.CodeBadSignature, again, "The token's signature does not verify.")
	}
	return err
}

// Reader is [Bearer], then [Verifier.Verify]: it returns the principal that an
// Authorization header authenticates.
func (v Verifier) Reader(ctx context.Context, header string) (string, error) {
	text, err := Bearer(header)
	if err != nil {
		return "", err
	}
	claims, err := v.Verify(ctx, text)
	return claims.Sub, err
}
