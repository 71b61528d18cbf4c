package token

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

const cluster = "00000000000000000000000000000000000000000000000000000000000000ff"

var noon = time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)

// bench is one principal "ada" and a verifier at noon.
type bench struct {
	key sign.Key
	ver Verifier
}

func newBench(t testing.TB) *bench {
	t.Helper()
	key, err := sign.KeyFromSeed([]byte("0123456789abcdef0123456789abcdef"))
	if err != nil {
		t.Fatal(err)
	}
	return &bench{key: key, ver: Verifier{Cluster: cluster, Now: func() time.Time { return noon },
		Key: func(_ context.Context, actor, kid string) (sign.PublicKey, error) {
			if actor != "ada" || kid != key.KID() {
				return sign.PublicKey{}, machine.Refuse(machine.CodeUnknownActor, "register", "unknown")
			}
			return key.Public(), nil
		}}}
}

func (b *bench) code(text string) string {
	_, err := b.ver.Verify(context.Background(), text)
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return fmt.Sprint(err)
}

// forge signs any payload text with any header type.
func (b *bench) forge(t testing.TB, typ, payload string) string {
	t.Helper()
	d, err := b.key.Detached(typ, []byte(payload))
	if err != nil {
		t.Fatal(err)
	}
	return strings.Replace(d, "..", "."+base64.RawURLEncoding.EncodeToString([]byte(payload))+".", 1)
}

func TestATokenTellsWhoReadsUntilItExpires(t *testing.T) {
	b := newBench(t)
	text, err := Make(b.key, cluster, "ada", noon, MaxLife)
	if err != nil {
		t.Fatal(err)
	}
	for _, at := range []time.Duration{-Skew, 0, time.Hour, time.Hour + Skew - time.Second} {
		b.ver.Now = func() time.Time { return noon.Add(at) }
		claims, err := b.ver.Verify(context.Background(), text)
		if err != nil || claims.Sub != "ada" {
			t.Errorf("at %s: %+v, %v", at, claims, err)
		}
	}
	b.ver.Now = func() time.Time { return noon.Add(time.Hour + Skew) }
	if got := b.code(text); got != CodeExpired {
		t.Errorf("an hour and the skew later: %s", got)
	}
	b.ver.Now = func() time.Time { return noon.Add(-Skew - time.Second) }
	if got := b.code(text); got != CodeNotYet {
		t.Errorf("before its time: %s", got)
	}
}

func TestABadTokenIsRefusedWithItsCode(t *testing.T) {
	b := newBench(t)
	good, err := Make(b.key, cluster, "ada", noon, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	claims := func(cluster, sub string, iat, exp int64) string {
		return string(canon.MustMarshal(Claims{cluster, sub, iat, exp}))
	}
	at := noon.Unix()
	parts := strings.Split(good, ".")
	other, err := sign.NewKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	stranger, err := Make(other, cluster, "ada", noon, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	flipped := []byte(parts[2])
	flipped[3] ^= 1
	for name, c := range map[string]struct{ text, code string }{
		"nothing":                 {"", CodeMissing},
		"no JWS":                  {"abc", CodeMalformed},
		"four parts":              {good + ".x", CodeMalformed},
		"padded payload":          {parts[0] + "." + parts[1] + "=." + parts[2], CodeMalformed},
		"payload with a newline":  {parts[0] + "." + parts[1] + "\n." + parts[2], CodeMalformed},
		"too long":                {strings.Repeat("a", 3000) + ".." + "b", CodeMalformed},
		"claims not canonical":    {b.forge(t, sign.TypToken, `{"sub":"ada","cluster":"`+cluster+`","iat":1,"exp":2}`), CodeMalformed},
		"a claim too many":        {b.forge(t, sign.TypToken, fmt.Sprintf(`{"aud":"x","cluster":%q,"exp":%d,"iat":%d,"sub":"ada"}`, cluster, at+60, at)), CodeMalformed},
		"no subject":              {b.forge(t, sign.TypToken, claims(cluster, "", at, at+60)), CodeMalformed},
		"ends before it starts":   {b.forge(t, sign.TypToken, claims(cluster, "ada", at, at-1)), CodeMalformed},
		"lives too long":          {b.forge(t, sign.TypToken, claims(cluster, "ada", at, at+3601)), CodeTooLong},
		"lives for an age":        {b.forge(t, sign.TypToken, claims(cluster, "ada", at, 253402300799)), CodeTooLong},
		"another cluster":         {b.forge(t, sign.TypToken, claims(strings.Repeat("1", 64), "ada", at, at+60)), machine.CodeWrongCluster},
		"an action's type":        {b.forge(t, sign.TypAction, claims(cluster, "ada", at, at+60)), machine.CodeBadSignature},
		"somebody else's key":     {stranger, machine.CodeUnknownActor},
		"flipped signature":       {parts[0] + "." + parts[1] + "." + string(flipped), machine.CodeBadSignature},
		"claims of another token": {parts[0] + "." + strings.Split(b.forge(t, sign.TypToken, claims(cluster, "ada", at, at+61)), ".")[1] + "." + parts[2], machine.CodeBadSignature},
	} {
		if got := b.code(c.text); got != c.code {
			t.Errorf("%s: %s, want %s", name, got, c.code)
		}
	}
	if got := b.code(good); got != "<nil>" {
		t.Errorf("the good one: %s", got)
	}
}

func TestATokenIsNotMadeForLongerThanAnHour(t *testing.T) {
	b := newBench(t)
	for _, life := range []time.Duration{0, -time.Second, MaxLife + 1} {
		if text, err := Make(b.key, cluster, "ada", noon, life); err == nil {
			t.Errorf("life %s: made %q", life, text)
		}
	}
}

func TestOnlyABearerHeaderCarriesAToken(t *testing.T) {
	for header, code := range map[string]string{
		"":             CodeMissing,
		"Bearer":       CodeMalformed,
		"Bearer ":      CodeMalformed,
		"Basic abc":    CodeMalformed,
		"Bearer a b":   CodeMalformed,
		"bearer a.b.c": "",
	} {
		_, err := Bearer(header)
		got := ""
		if r, ok := machine.IsRefusal(err); ok {
			got = r.Code
		}
		if got != code {
			t.Errorf("%q: %q, want %q", header, got, code)
		}
	}
}

func FuzzVerifyNeverTakesWhatWasNotSigned(f *testing.F) {
	b := newBench(f)
	good, err := Make(b.key, cluster, "ada", noon, time.Minute)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good)
	f.Add("..")
	f.Add(strings.ReplaceAll(good, "-", "+"))
	f.Fuzz(func(t *testing.T, text string) {
		claims, err := b.ver.Verify(context.Background(), text)
		if err == nil && text != good {
			t.Fatalf("took %q as %+v", text, claims)
		}
	})
}
