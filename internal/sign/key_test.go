package sign_test

import (
	"crypto/ed25519"
	"crypto/rand"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
	"github.com/mr-tron/base58"
	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
)

func keyOf(t testing.TB, name string) sign.Key {
	t.Helper()
	seed := canon.Hash([]byte("sign test " + name))
	k, err := sign.KeyFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

func TestSmallOrderAndNonCanonicalKeysAreRefused(t *testing.T) {
	for name, text := range map[string]string{
		"identity":                       "0100000000000000000000000000000000000000000000000000000000000000",
		"order 2":                        "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"order 4":                        "0000000000000000000000000000000000000000000000000000000000000000",
		"order 4, negative":              "0000000000000000000000000000000000000000000000000000000000000080",
		"order 8":                        "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc05",
		"order 8, negative":              "26e8958fc2b227b045c3f489f2ef98f0d5dfac05d3c63339b13802886d53fc85",
		"order 8, other":                 "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac037a",
		"order 8, other negative":        "c7176a703d4dd84fba3c0b760d10670f2a2053fa2c39ccc64ec7fd7792ac03fa",
		"identity with a sign":           "0100000000000000000000000000000000000000000000000000000000000080",
		"identity as p+1":                "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"zero as p":                      "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"p+3, a point of large order":    "f0ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff7f",
		"not on the curve":               "0200000000000000000000000000000000000000000000000000000000000000",
		"too short":                      "0300",
		"too long":                       strings.Repeat("03", 33),
		"none":                           "",
		"order 2 with a sign":            "ecffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"p+1 with a sign, the identity":  "eeffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
		"p with a sign, a point of four": "edffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff",
	} {
		raw, err := hex.DecodeString(text)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sign.NewPublicKey(raw); !errors.Is(err, sign.ErrBadKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestTheIdentityKeyCouldSignAnythingElsewhere(t *testing.T) {
	// Why small-order keys are refused: crypto/ed25519 itself takes this.
	identity := append([]byte{1}, make([]byte, 31)...)
	forged := append(append([]byte{}, identity...), make([]byte, 32)...)
	if !ed25519.Verify(identity, []byte("whatever"), forged) {
		t.Skip("the standard library has become stricter")
	}
	if _, err := (sign.JWK{Kty: "OKP", Crv: "Ed25519", X: base64.RawURLEncoding.EncodeToString(identity)}).Public(); !errors.Is(err, sign.ErrBadKey) || errors.Is(err, sign.ErrJWKShape) {
		t.Fatal(err)
	}
}

func TestAJWKIsReadInOneShapeOnly(t *testing.T) {
	good := keyOf(t, "a").Public()
	text := string(canon.MustMarshal(good.JWK()))
	if got, err := sign.ParseJWK([]byte(text)); err != nil || got != good {
		t.Fatal(err)
	}
	bare := strings.Replace(text, `"kid":"`+good.KID()+`",`, "", 1)
	if got, err := sign.ParseJWK([]byte(bare)); err != nil || got != good {
		t.Fatal(err)
	}
	x := good.X()
	for name, c := range map[string]struct {
		text  string
		shape bool
	}{
		"more":                {strings.Replace(text, "{", `{"use":"sig",`, 1), true},
		"private":             {strings.Replace(text, "{", `{"d":"`+x+`",`, 1), true},
		"no kty":              {strings.Replace(text, `"kty":"OKP",`, "", 1), true},
		"no x":                {`{"crv":"Ed25519","kty":"OKP"}`, true},
		"null kid":            {strings.Replace(text, `"`+good.KID()+`"`, "null", 1), true},
		"empty kid":           {strings.Replace(text, good.KID(), "", 1), true},
		"other case":          {strings.Replace(text, "kty", "Kty", 1), true},
		"twice":               {strings.Replace(text, "{", `{"crv":"Ed25519",`, 1), true},
		"EC":                  {strings.Replace(text, "OKP", "EC", 1), true},
		"X25519":              {strings.Replace(text, "Ed25519", "X25519", 1), true},
		"padded":              {strings.Replace(text, x, x+"=", 1), true},
		"line break":          {strings.Replace(text, x, x[:20]+`\n`+x[20:], 1), true},
		"carriage return":     {strings.Replace(text, x, x+`\r`, 1), true},
		"short":               {strings.Replace(text, x, x[:42], 1), true},
		"standard alphabet":   {strings.Replace(text, x, "+"+x[1:], 1), true},
		"spare bits":          {strings.Replace(text, x, x[:42]+string(x[42]+1), 1), true},
		"kid of another":      {strings.Replace(text, good.KID(), keyOf(t, "b").KID(), 1), false},
		"kid of another sort": {strings.Replace(text, good.KID(), "key-1", 1), false},
		"not JSON":            {text + "}", true},
		"a list":              {"[" + text + "]", true},
		"nothing":             {"", true},
	} {
		_, err := sign.ParseJWK([]byte(c.text))
		if !errors.Is(err, sign.ErrBadKey) || errors.Is(err, sign.ErrJWKShape) != c.shape {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAStoredKeyIsTheOneItsKidNames(t *testing.T) {
	k, other := keyOf(t, "a").Public(), keyOf(t, "b").Public()
	got, err := sign.StoredKey(k.X(), k.KID())
	if err != nil || got != k {
		t.Fatalf("%v, %v", got, err)
	}
	for name, x := range map[string]string{"another key": other.X(), "padded": k.X() + "=", "cut": k.X()[:42], "empty": "", "no base64": strings.Repeat("!", 43)} {
		if _, err := sign.StoredKey(x, k.KID()); !errors.Is(err, sign.ErrBadKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAKeyFileHoldsOneKey(t *testing.T) {
	k := keyOf(t, "a")
	text, err := json.Marshal(k)
	if err != nil {
		t.Fatal(err)
	}
	got, err := sign.ParseKey(text)
	if err != nil || got.KID() != k.KID() || string(got.Seed()) != string(k.Seed()) || string(got.Private()) != string(k.Private()) {
		t.Fatal(err)
	}
	other := keyOf(t, "b")
	for name, changed := range map[string]string{
		"another x":   strings.Replace(string(text), k.Public().X(), other.Public().X(), 1),
		"another d":   strings.Replace(string(text), base64.RawURLEncoding.EncodeToString(k.Seed()), base64.RawURLEncoding.EncodeToString(other.Seed()), 1),
		"another kid": strings.Replace(string(text), k.KID(), other.KID(), 1),
		"no d":        string(canon.MustMarshal(k.Public().JWK())),
		"short d":     strings.Replace(string(text), base64.RawURLEncoding.EncodeToString(k.Seed()), "AAAA", 1),
		"d with text": strings.Replace(string(text), base64.RawURLEncoding.EncodeToString(k.Seed()), "not base64!", 1),
		"more":        strings.Replace(string(text), "{", `{"use":"sig",`, 1),
		"not JSON":    string(text)[1:],
	} {
		if _, err := sign.ParseKey([]byte(changed)); !errors.Is(err, sign.ErrBadKey) {
			t.Errorf("%s: %v", name, err)
		} else if strings.Contains(err.Error(), base64.RawURLEncoding.EncodeToString(k.Seed())) {
			t.Errorf("%s: the error shows the secret", name)
		}
	}
	if _, err := sign.KeyFromSeed(make([]byte, 31)); !errors.Is(err, sign.ErrBadKey) {
		t.Error(err)
	}
	if a, err := sign.NewKey(rand.Reader); err != nil || a.Public().IsZero() {
		t.Error(err)
	}
	if _, err := sign.NewKey(strings.NewReader("short")); err == nil {
		t.Error("made a key of too little randomness")
	}
	if !(sign.PublicKey{}).IsZero() {
		t.Error("the zero value is a key")
	}
}

// Peer ids as go-libp2p v0.52 makes them, of the seeds of RFC 8032 and two plain ones.
var peerIDs = map[string]string{
	"9d61b19deffd5a60ba844af492ec2cc44449c5697b326919703bac031cae7f60": "12D3KooWQK1wnefoLrcVHbbnf5tLzbopUd3K3bFAoJpA7YJgL5pV",
	"4ccd089b28ff96da9db6c346ec114e0f5b8a319f35aba624da8cf6ed4fb8a6fb": "12D3KooWDwTirQce1RRKnasT5fPVFgzXCy6SiRgSwrwPGLC7zE91",
	"0000000000000000000000000000000000000000000000000000000000000000": "12D3KooWDpJ7As7BWAwRMfu1VU2WCqNjvq387JEYKDBj4kx6nXTN",
	"ffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffffff": "12D3KooWHoSyTgntm77sXShoeX9uNkqKNMhHxKtskaHqnA54SrSG",
}

func TestPeerIDsAreThoseOfLibp2p(t *testing.T) {
	for seed, want := range peerIDs {
		raw, err := hex.DecodeString(seed)
		if err != nil {
			t.Fatal(err)
		}
		k, err := sign.KeyFromSeed(raw)
		if err != nil {
			t.Fatal(err)
		}
		if got := k.Public().PeerID(); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		if got, err := sign.ParsePeerID(want); err != nil || got != k.Public() {
			t.Errorf("%s: %v", want, err)
		}
	}
	for name, id := range map[string]string{
		"none":             "",
		"RSA":              "QmYyQSo1c1Ym7orWxLYvCrM2EmxFTANf8wXmmE7DWjhx5N",
		"secp256k1":        "16Uiu2HAmLhLvBoYaoZfaMUKuibM6ac163GwKY74c5kiSLg5KvLpY",
		"CID":              "bafzaajaiaejcal72gwuz2or47oyxxn6b3rkwdmmkrxgkjxzy3rt5kczyn7lcm3l",
		"small order":      base58.Encode([]byte("\x00\x24\x08\x01\x12\x20\x01" + strings.Repeat("\x00", 31))),
		"a letter changed": "12D3KooWQK1wnefoLrcVHbbnf5tLzbopUd3K3bFAoJpA7YJgL5p0",
		"another type":     base58.Encode([]byte("\x00\x24\x08\x02\x12\x20" + string(keyOf(t, "a").Public().Bytes()))),
		"cut":              "12D3KooWQK1wnefoLrcVHbbnf5tLzbopUd3K3bFAoJpA7YJgL5p",
		"space":            " 2D3KooWQK1wnefoLrcVHbbnf5tLzbopUd3K3bFAoJpA7YJgL5pV",
	} {
		if _, err := sign.ParsePeerID(id); !errors.Is(err, sign.ErrBadKey) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestEveryKeySurvivesItsSpellings(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		k, err := sign.KeyFromSeed(rapid.SliceOfN(rapid.Byte(), 32, 32).Draw(rt, "seed"))
		if err != nil {
			rt.Fatal(err)
		}
		public := k.Public()
		id := public.PeerID()
		if len(id) != 52 || !strings.HasPrefix(id, "12D3KooW") {
			rt.Fatal(id)
		}
		fromID, err1 := sign.ParsePeerID(id)
		fromX, err2 := sign.ParseX(public.X())
		fromJWK, err3 := public.JWK().Public()
		fromRaw, err4 := sign.NewPublicKey(public.Bytes())
		if err := errors.Join(err1, err2, err3, err4); err != nil || fromID != public || fromX != public || fromJWK != public || fromRaw != public {
			rt.Fatal(err)
		}
	})
}

func FuzzParseJWK(f *testing.F) {
	f.Add(canon.MustMarshal(keyOf(f, "a").Public().JWK()))
	f.Add([]byte(`{"crv":"Ed25519","kty":"OKP","x":"AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := sign.ParseJWK(text)
		if err != nil {
			if !errors.Is(err, sign.ErrBadKey) || !k.IsZero() {
				t.Fatalf("%v, key %v", err, k)
			}
			return
		}
		if again, err := k.JWK().Public(); err != nil || again != k {
			t.Fatalf("%s does not survive: %v", text, err)
		}
		var other jose.JSONWebKey // what we take, a lenient reader reads alike
		if err := other.UnmarshalJSON(text); err != nil {
			t.Fatalf("go-jose refuses %s: %v", text, err)
		}
		if raw, ok := other.Key.(ed25519.PublicKey); !ok || string(raw) != string(k.Bytes()) {
			t.Fatalf("go-jose reads another key in %s", text)
		}
	})
}

func FuzzParseKey(f *testing.F) {
	text, err := json.Marshal(keyOf(f, "a"))
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"crv":"Ed25519","d":"","kty":"OKP","x":""}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		k, err := sign.ParseKey(text)
		if err != nil {
			if !errors.Is(err, sign.ErrBadKey) {
				t.Fatal(err)
			}
			return
		}
		again, err := json.Marshal(k)
		if err != nil {
			t.Fatal(err)
		}
		if same, err := sign.ParseKey(again); err != nil || same.KID() != k.KID() || string(same.Seed()) != string(k.Seed()) {
			t.Fatalf("%s does not survive: %v", text, err)
		}
	})
}

func FuzzParsePeerID(f *testing.F) {
	for _, id := range peerIDs {
		f.Add(id)
	}
	f.Fuzz(func(t *testing.T, id string) {
		k, err := sign.ParsePeerID(id)
		if err != nil && !errors.Is(err, sign.ErrBadKey) {
			t.Fatal(err)
		}
		if err == nil && k.PeerID() != id {
			t.Fatalf("%q was read as %q", id, k.PeerID())
		}
	})
}
