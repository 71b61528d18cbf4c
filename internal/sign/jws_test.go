package sign_test

import (
	"crypto/ed25519"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math/big"
	"slices"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"

	"github.com/deliberd/deliberd/internal/sign"
)

var payload = []byte(`{"a":1}`)

// headed signs payload under any header text, as a dishonest or sloppy signer would.
func headed(k sign.Key, header string) string {
	input := base64.RawURLEncoding.EncodeToString([]byte(header)) + "." + base64.RawURLEncoding.EncodeToString(payload)
	sig := ed25519.Sign(k.Private(), []byte(input))
	return strings.SplitN(input, ".", 2)[0] + ".." + base64.RawURLEncoding.EncodeToString(sig)
}

func TestADetachedSignatureVerifiesUnderItsKeyTextAndPurposeOnly(t *testing.T) {
	k, other := keyOf(t, "a"), keyOf(t, "b")
	jws, err := k.Detached(sign.TypAction, payload)
	if err != nil {
		t.Fatal(err)
	}
	if err := k.Public().VerifyDetached(sign.TypAction, payload, jws); err != nil {
		t.Fatal(err)
	}
	if got, err := sign.HeaderKID(jws); err != nil || got != k.KID() {
		t.Fatalf("%s, %v", got, err)
	}
	for name, err := range map[string]error{
		"another key":     other.Public().VerifyDetached(sign.TypAction, payload, jws),
		"no key":          sign.PublicKey{}.VerifyDetached(sign.TypAction, payload, jws),
		"another purpose": k.Public().VerifyDetached(sign.TypToken, payload, jws),
		"another text":    k.Public().VerifyDetached(sign.TypAction, []byte(`{"a":2}`), jws),
		"no text":         k.Public().VerifyDetached(sign.TypAction, nil, jws),
	} {
		if !errors.Is(err, sign.ErrBadSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheHeaderIsExactlyAlgKidAndTyp(t *testing.T) {
	k := keyOf(t, "a")
	header := func(alg, kid, typ, more string) string {
		return fmt.Sprintf(`{"alg":%s,"kid":%s,"typ":%s%s}`, alg, kid, typ, more)
	}
	alg, kid, typ := `"EdDSA"`, `"`+k.KID()+`"`, `"JOSE"`
	for _, good := range []string{
		header(alg, kid, typ, ""),
		`{"typ":"JOSE","kid":` + kid + `,"alg":"EdDSA"}`, // the order of members and white space are free
		" {\"alg\": \"EdDSA\",\n\"kid\":" + kid + `,"typ":"JOS\u0045"}`,
	} {
		if err := k.Public().VerifyDetached(sign.TypJOSE, payload, headed(k, good)); err != nil {
			t.Errorf("%s: %v", good, err)
		}
	}
	for name, bad := range map[string]string{
		"no alg": `{"kid":` + kid + `,"typ":"JOSE"}`, "no kid": `{"alg":"EdDSA","typ":"JOSE"}`, "no typ": `{"alg":"EdDSA","kid":` + kid + `}`,
		"none": header(`"none"`, kid, typ, ""), "Ed25519": header(`"Ed25519"`, kid, typ, ""), "case": header(`"eddsa"`, kid, typ, ""),
		"jku": header(alg, kid, typ, `,"jku":"https://x.example"`), "jwk": header(alg, kid, typ, `,"jwk":{}`), "crit": header(alg, kid, typ, `,"crit":["exp"],"exp":1`),
		"b64": header(alg, kid, typ, `,"b64":false,"crit":["b64"]`), "cty": header(alg, kid, typ, `,"cty":"json"`), "null": header(alg, kid, typ, `,"x5u":null`),
		"twice": header(alg, kid, typ, `,"typ":"JOSE"`), "other name": `{"Alg":"EdDSA","kid":` + kid + `,"typ":"JOSE"}`, "a number": header("1", kid, typ, ""),
		"other kid": header(alg, `"x"`, typ, ""), "other typ": header(alg, kid, `"deliberd-action"`, ""), "typ in lower case": header(alg, kid, `"jose"`, ""),
		"list": `["EdDSA"]`, "text": `EdDSA`, "nothing": ``, "two": header(alg, kid, typ, "") + "{}", "bad UTF-8": "{\"alg\":\"EdDSA\",\"kid\":" + kid + ",\"typ\":\"JOSE\xff\"}",
	} {
		if err := k.Public().VerifyDetached(sign.TypJOSE, payload, headed(k, bad)); !errors.Is(err, sign.ErrBadSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestASignatureHasOneSpelling(t *testing.T) {
	k := keyOf(t, "a")
	jws, err := k.Detached(sign.TypJOSE, payload)
	if err != nil {
		t.Fatal(err)
	}
	head, sig, _ := strings.Cut(jws, "..")
	for name, bad := range map[string]string{
		"payload inside":  head + "." + base64.RawURLEncoding.EncodeToString(payload) + "." + sig,
		"one dot":         head + "." + sig,
		"three dots":      jws + ".",
		"padded":          jws + "==",
		"line break":      jws + "\n",
		"break in header": head[:8] + "\r\n" + head[8:] + ".." + sig,
		"space":           " " + jws,
		"spare bits":      jws[:len(jws)-1] + spare(jws[len(jws)-1]),
		"no signature":    head + "..",
		"no header":       ".." + sig,
		"short":           jws[:len(jws)-2],
		"long":            jws + "AA",
		"half as high":    head + ".." + base64.RawURLEncoding.EncodeToString(addOrder(t, sig)),
		"nothing":         "",
	} {
		if err := k.Public().VerifyDetached(sign.TypJOSE, payload, bad); !errors.Is(err, sign.ErrBadSignature) {
			t.Errorf("%s: %v", name, err)
		}
	}
	if spare(jws[len(jws)-1]) == jws[len(jws)-1:] {
		t.Fatal("the last character has no other spelling")
	}
	// Every character counts.
	for at := range jws {
		changed := jws[:at] + swap(jws[at]) + jws[at+1:]
		if err := k.Public().VerifyDetached(sign.TypJOSE, payload, changed); err == nil {
			t.Fatalf("changed at %d, still verifies", at)
		}
	}
}

const alphabet = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-_"

// spare is the next character of the alphabet: after the last of 64 bytes it
// differs in bits that are not part of them.
func spare(c byte) string { return string(alphabet[strings.IndexByte(alphabet, c)+1]) }

func swap(c byte) string {
	if c == 'A' {
		return "B"
	}
	return "A"
}

// addOrder adds the group's order to the scalar: the same equation holds, in
// another spelling.
func addOrder(t *testing.T, sig string) []byte {
	raw, err := base64.RawURLEncoding.DecodeString(sig)
	if err != nil {
		t.Fatal(err)
	}
	order, _ := new(big.Int).SetString("7237005577332262213973186563042994240857116359379907606001950938285454250989", 10)
	s := slices.Clone(raw[32:])
	slices.Reverse(s)
	sum := new(big.Int).Add(new(big.Int).SetBytes(s), order).FillBytes(make([]byte, 32))
	slices.Reverse(sum)
	return append(raw[:32:32], sum...)
}

func FuzzVerifyDetached(f *testing.F) {
	k := keyOf(f, "a")
	good, err := k.Detached(sign.TypJOSE, payload)
	if err != nil {
		f.Fatal(err)
	}
	f.Add(good, payload)
	f.Add(headed(k, `{"alg":"EdDSA","kid":"`+k.KID()+`","typ":"JOSE","jku":"x"}`), payload)
	f.Add("..", []byte{})
	f.Fuzz(func(t *testing.T, jws string, text []byte) {
		err := k.Public().VerifyDetached(sign.TypJOSE, text, jws)
		if err != nil {
			if !errors.Is(err, sign.ErrBadSignature) {
				t.Fatal(err)
			}
			return
		}
		// What we take, a lenient verifier takes too.
		other, err := jose.ParseDetached(jws, text, []jose.SignatureAlgorithm{jose.EdDSA})
		if err != nil {
			t.Fatalf("go-jose refuses %q: %v", jws, err)
		}
		if err := other.DetachedVerify(text, k.Public().Bytes()); err != nil {
			t.Fatalf("go-jose does not verify %q: %v", jws, err)
		}
	})
}

// FuzzHeader signs whatever header it is given: only the three members pass.
func FuzzHeader(f *testing.F) {
	k := keyOf(f, "a")
	f.Add(`{"alg":"EdDSA","kid":"` + k.KID() + `","typ":"JOSE"}`)
	f.Add(`{"alg":"EdDSA","kid":"` + k.KID() + `","typ":"JOSE","crit":[]}`)
	f.Fuzz(func(t *testing.T, header string) {
		if k.Public().VerifyDetached(sign.TypJOSE, payload, headed(k, header)) != nil {
			return
		}
		var members map[string]string
		if err := json.Unmarshal([]byte(header), &members); err != nil || len(members) != 3 ||
			members["alg"] != "EdDSA" || members["kid"] != k.KID() || members["typ"] != "JOSE" {
			t.Fatalf("accepted %q", header)
		}
	})
}
