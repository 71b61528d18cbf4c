package sign_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
)

const (
	cluster = "00000000000000000000000000000000000000000000000000000000000000ff"
	ulid    = "01KE0000000000000000000001"
)

func signedText(t testing.TB, k sign.Key, body any) string {
	t.Helper()
	a, err := k.Sign(cluster, ulid, "acp.submit", "agent-1", body)
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestAnActionVerifiesAsItWasSigned(t *testing.T) {
	k := keyOf(t, "a")
	text := signedText(t, k, map[string]any{"title": "Grüße <&> \u2028", "n": 1.5, "list": []int{1, 2}})
	v, err := sign.Verify([]byte(text), k.Public())
	if err != nil {
		t.Fatal(err)
	}
	a := v.Action()
	if a.Actor != "agent-1" || a.Kind != "acp.submit" || a.ID != ulid || a.Cluster != cluster || a.KID != k.KID() || a.V != 1 {
		t.Fatalf("%+v", a)
	}
	if string(v.Text()) != text || v.Hash() != canon.Hash([]byte(text)) {
		t.Fatal("another text or hash")
	}
	if d, err := sign.Decode([]byte(text)); err != nil || d.Sig != a.Sig {
		t.Fatal(err)
	}
	if _, err := sign.Verify([]byte(text), keyOf(t, "b").Public()); !errors.Is(err, sign.ErrBadSignature) {
		t.Fatal(err)
	}
}

func TestEveryMemberOfAnActionIsSigned(t *testing.T) {
	k := keyOf(t, "a")
	text := signedText(t, k, map[string]any{"n": 1})
	for old, changed := range map[string]string{
		`"actor":"agent-1"`: `"actor":"agent-2"`, `"body":{"n":1}`: `"body":{"n":2}`, cluster: strings.Repeat("0", 64),
		ulid: "01KE0000000000000000000002", `"acp.submit"`: `"acp.respond"`,
	} {
		if _, err := sign.Verify([]byte(strings.Replace(text, old, changed, 1)), k.Public()); !errors.Is(err, sign.ErrBadSignature) {
			t.Errorf("%s: %v", changed, err)
		}
	}
	other := keyOf(t, "b")
	stolen := strings.Replace(text, k.KID(), other.KID(), 1)
	if _, err := sign.Verify([]byte(stolen), other.Public()); !errors.Is(err, sign.ErrBadSignature) {
		t.Errorf("under another's key: %v", err)
	}
}

func TestTheKidOfAnActionIsTheKeyThatSigned(t *testing.T) {
	k, other := keyOf(t, "a"), keyOf(t, "b")
	var a sign.Action
	if err := json.Unmarshal([]byte(signedText(t, k, map[string]any{"n": 1})), &a); err != nil {
		t.Fatal(err)
	}
	a.KID = other.KID() // the signature below is by k and says so
	payload, err := a.Payload()
	if err != nil {
		t.Fatal(err)
	}
	if a.Sig, err = k.Detached(sign.TypAction, payload); err != nil {
		t.Fatal(err)
	}
	text, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range []sign.PublicKey{k.Public(), other.Public()} {
		if _, err := sign.Verify(text, key); !errors.Is(err, sign.ErrBadSignature) {
			t.Errorf("under %s: %v", key.KID(), err)
		}
	}
}

func TestABodyCannotPassForTheSignature(t *testing.T) {
	k := keyOf(t, "a")
	first := signedText(t, k, map[string]any{"n": 1})
	var a sign.Action
	if err := json.Unmarshal([]byte(first), &a); err != nil {
		t.Fatal(err)
	}
	// A body that holds the very member which verification cuts out.
	text := signedText(t, k, map[string]any{"a": 1, "sig": a.Sig, "v": 1})
	if _, err := sign.Verify([]byte(text), k.Public()); err != nil {
		t.Fatal(err)
	}
	forged := strings.Replace(first, `"body":{"n":1}`, `"body":{"sig":"`+a.Sig+`","v":1}`, 1)
	if _, err := sign.Verify([]byte(forged), k.Public()); !errors.Is(err, sign.ErrBadSignature) {
		t.Fatal(err)
	}
}

func TestAnActionOfAnotherShapeIsRefused(t *testing.T) {
	k := keyOf(t, "a")
	text := signedText(t, k, map[string]any{"n": 1})
	for name, c := range map[string]struct {
		text string
		code canon.Code // "": sign.ErrMalformed
	}{
		"version":          {strings.Replace(text, `"v":1`, `"v":2`, 1), ""},
		"no version":       {strings.Replace(text, `,"v":1`, ``, 1), ""},
		"cluster":          {strings.Replace(text, cluster, "ff", 1), ""},
		"no kind":          {strings.Replace(text, "acp.submit", "", 1), ""},
		"long kind":        {strings.Replace(text, "acp.submit", strings.Repeat("k", 65), 1), ""},
		"no actor":         {strings.Replace(text, "agent-1", "", 1), ""},
		"long actor":       {strings.Replace(text, "agent-1", strings.Repeat("a", 129), 1), ""},
		"no body":          {strings.Replace(text, `"body":{"n":1},`, ``, 1), ""},
		"body is a list":   {strings.Replace(text, `{"n":1}`, `[1]`, 1), ""},
		"body is null":     {strings.Replace(text, `{"n":1}`, `null`, 1), ""},
		"lower case id":    {strings.Replace(text, ulid, strings.ToLower(ulid), 1), ""},
		"short id":         {strings.Replace(text, ulid, ulid[1:], 1), ""},
		"overflowing id":   {strings.Replace(text, ulid, "8"+ulid[1:], 1), ""},
		"unknown member":   {strings.Replace(text, `"v":1`, `"v":1,"w":1`, 1), canon.UnknownField},
		"other case":       {strings.Replace(text, `"actor"`, `"Actor"`, 1), canon.UnknownField},
		"duplicate member": {strings.Replace(text, `"v":1`, `"v":1,"v":1`, 1), canon.DuplicateMember},
		"duplicate inside": {strings.Replace(text, `{"n":1}`, `{"n":1,"n":2}`, 1), canon.DuplicateMember},
		"version as text":  {strings.Replace(text, `"v":1`, `"v":"1"`, 1), canon.WrongType},
		"big integer":      {strings.Replace(text, `{"n":1}`, `{"n":9007199254740993}`, 1), canon.IntegerRange},
		"lone surrogate":   {strings.Replace(text, `{"n":1}`, `{"n":"\ud800"}`, 1), canon.LoneSurrogate},
		"too large":        {strings.Replace(text, `{"n":1}`, `{"n":"`+strings.Repeat("x", canon.MaxBytes)+`"}`, 1), canon.TooLarge},
		"too deep":         {strings.Replace(text, `{"n":1}`, `{"n":`+strings.Repeat("[", 64)+strings.Repeat("]", 64)+`}`, 1), canon.TooDeep},
		"not JSON":         {text[1:], canon.NotJSON},
	} {
		_, decodeErr := sign.Decode([]byte(c.text))
		_, verifyErr := sign.Verify([]byte(c.text), k.Public())
		for _, err := range []error{decodeErr, verifyErr} {
			var refused *canon.Error
			if c.code == "" && !errors.Is(err, sign.ErrMalformed) || c.code != "" && (!errors.As(err, &refused) || refused.Code != c.code && refused.Code != canon.NotCanonical) {
				t.Errorf("%s: %v", name, err)
			}
		}
	}
}

func TestOnlyTheCanonicalTextOfAnActionVerifies(t *testing.T) {
	k := keyOf(t, "a")
	text := signedText(t, k, map[string]any{"n": 1, "s": "/"})
	for name, changed := range map[string]string{
		"white space": " " + text, "line break": text + "\n", "number": strings.Replace(text, `"n":1`, `"n":1.0`, 1),
		"escape": strings.Replace(text, `"s":"/"`, `"s":"\/"`, 1), "order": strings.Replace(text, `{"n":1,"s":"/"}`, `{"s":"/","n":1}`, 1),
	} {
		var refused *canon.Error
		if _, err := sign.Verify([]byte(changed), k.Public()); !errors.As(err, &refused) || refused.Code != canon.NotCanonical {
			t.Errorf("%s: %v", name, err)
		}
		if _, err := sign.Decode([]byte(changed)); err != nil {
			t.Errorf("%s is not readable at all: %v", name, err)
		}
	}
}

func TestAnotherSpellingOfAnActionIsReadAndVerifiesUnderNoKey(t *testing.T) {
	k := keyOf(t, "a")
	text := signedText(t, k, map[string]any{"n": 1})
	good, err := sign.Read([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	v, err := good.Verify(k.Public())
	if err != nil || v.Hash() != good.Hash() || v.Hash() != canon.Hash([]byte(text)) || v.Action().ID != good.Action().ID || string(v.Text()) != text {
		t.Fatalf("%+v, %v", v, err)
	}
	if _, err := good.Verify(keyOf(t, "b").Public()); !errors.Is(err, sign.ErrBadSignature) {
		t.Fatal(err)
	}
	spaced, err := sign.Read([]byte(" " + text))
	if err != nil || spaced.Action().ID != good.Action().ID {
		t.Fatal(err)
	}
	var refused *canon.Error
	if _, err := spaced.Verify(k.Public()); !errors.As(err, &refused) || refused.Code != canon.NotCanonical {
		t.Fatal(err)
	}
	if _, err := sign.Read([]byte(text[1:])); !errors.As(err, &refused) {
		t.Fatal(err)
	}
}

func TestABodyThatIsNoObjectIsNotAccepted(t *testing.T) {
	k := keyOf(t, "a")
	for _, body := range []any{1, "x", []int{1}, nil} {
		if _, err := sign.Verify([]byte(signedText(t, k, body)), k.Public()); !errors.Is(err, sign.ErrMalformed) {
			t.Errorf("%v: %v", body, err)
		}
	}
	if _, err := k.Sign(cluster, ulid, "acp.submit", "agent-1", func() {}); err == nil {
		t.Error("signed what cannot be encoded")
	}
}

func TestWhateverIsSignedVerifies(t *testing.T) {
	k := keyOf(t, "a")
	rapid.Check(t, func(rt *rapid.T) {
		body := rapid.MapOf(rapid.String(), rapid.OneOf(
			rapid.String().AsAny(), rapid.Float64Range(-1e15, 1e15).AsAny(), rapid.Bool().AsAny(), rapid.SliceOf(rapid.String()).AsAny())).Draw(rt, "body")
		a, err := k.Sign(cluster, ulid, rapid.StringN(1, 16, 64).Draw(rt, "kind"), rapid.StringN(1, 30, 128).Draw(rt, "actor"), body)
		if err != nil {
			rt.Fatal(err)
		}
		text, err := a.Encode()
		if err != nil {
			rt.Fatal(err)
		}
		if _, err := sign.Verify(text, k.Public()); err != nil {
			rt.Fatalf("%s: %v", text, err)
		}
	})
}

func FuzzDecode(f *testing.F) {
	k := keyOf(f, "a")
	f.Add([]byte(signedText(f, k, map[string]any{"n": 1})))
	f.Add([]byte(`{"v":1,"body":{}}`))
	f.Fuzz(func(t *testing.T, raw []byte) {
		a, err := sign.Decode(raw)
		v, verr := sign.Verify(raw, k.Public())
		if err != nil {
			var refused *canon.Error
			if !errors.As(err, &refused) && !errors.Is(err, sign.ErrMalformed) {
				t.Fatal(err)
			}
			if verr == nil {
				t.Fatalf("%q verifies but is not readable: %v", raw, err)
			}
			return
		}
		text, err := a.Encode()
		if err != nil {
			t.Fatal(err)
		}
		again, err := sign.Decode(text)
		if err != nil {
			t.Fatalf("%q does not survive: %v", raw, err)
		}
		if twice, err := again.Encode(); err != nil || string(twice) != string(text) {
			t.Fatalf("%q, then %q, %v", text, twice, err)
		}
		if verr == nil && (string(text) != string(raw) || v.Action().Sig != a.Sig) {
			t.Fatalf("%q verifies as another action", raw)
		}
	})
}
