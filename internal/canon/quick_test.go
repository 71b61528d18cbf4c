package canon

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/gowebpki/jcs"
	"pgregory.net/rapid"
)

// agree holds the fast check against the plain one and against gowebpki/jcs.
func agree(raw []byte) error {
	if quick, plain := isCanonical(raw), notCanonical(raw); quick != (plain == nil) {
		return fmt.Errorf("isCanonical(%q) is %v, but %v", raw, quick, plain)
	}
	want, err := jcs.Transform(raw)
	if isCanonical(raw) && (err != nil || !bytes.Equal(want, raw)) {
		return fmt.Errorf("isCanonical(%q), but jcs says %q, %v", raw, want, err)
	}
	var compact bytes.Buffer
	if json.Compact(&compact, raw) != nil {
		return nil
	}
	if sorted := ordered(compact.Bytes()); isCanonical(sorted) && (err != nil || !bytes.Equal(want, sorted)) {
		return fmt.Errorf("ordered(%q) is %q, but jcs says %q, %v", &compact, sorted, want, err)
	}
	return nil
}

func TestWhatLacksOrderOnlyIsPutInOrder(t *testing.T) {
	for text, want := range map[string]string{
		`{"b":1,"a":2}`: `{"a":2,"b":1}`, `[{"c":{"b":[{"z":1,"y":{}}],"a":[]},"a":"}"},[],"\"",{"b":",","a":-1.5}]`: `[{"a":"}","c":{"a":[],"b":[{"y":{},"z":1}]}},[],"\"",{"a":-1.5,"b":","}]`,
		`7`: `7`, `"{"`: `"{"`, `{"a b":1,"a":2,"a!":3}`: `{"a":2,"a b":1,"a!":3}`,
	} {
		if got := string(ordered([]byte(text))); got != want || !isCanonical([]byte(want)) {
			t.Errorf("%s is put in order as %s, want %s", text, got, want)
		}
	}
}

var texts = []string{
	`{}`, `[]`, ` {} `, `"a"`, `0`, `-0`, `-1`, `1e400`, `1e-400`, `1.0`, `0.1`, `-0.1`, `-0.0`, `1e21`, `1E+2`, `00`, `-`, `01`, `1.`, `.1`, `1e`, `123456789012345`, `1234567890123456`, `9007199254740992`, `-9007199254740992`,
	`true`, `false`, `null`, `tru`, `nullx`, `true `, `[true,false,null]`, `[1, 2]`, `[1,]`, `[,1]`, `[1 2]`, `{"a":1}`, `{"a":1,}`, `{"a" :1}`, `{"a": 1}`, `{"b":1,"a":2}`, `{"a":1,"a":2}`, `{"a":1,"\u0061":2}`,
	`{"c":{"b":1,"a":[{"z":1,"y":2}]},"a":0,"b":[]}`, `{"\u20ac":1,"\r":2,"1":3,"\ud83d\ude00":4,"\u0080":5,"\u00f6":6,"\ufb33":7}`, `{"\ufb33":1,"\ud83d\ude00":2}`, `{"\ud83d\ude00":1,"\ufb33":2}`, "{\"\U0001F600\":1,\"\ufb33\":2}", "{\"\ufb33\":1,\"\U0001F600\":2}",
	`"\ud800"`, `"\udc00\ud800"`, `"\ud83d\ude00"`, `"\u000a"`, `"\n"`, `"\u001f"`, `"\u001F"`, `"\u0008"`, `"\u000b"`, `"\/"`, `"/"`, `"\""`, `"\x"`, `"\u12"`, `"\`, `"\u`, `"`, "\"\x00\"", "\"\x7f\"", "\"\xff\"", "\"\xc3\"", "\xff", "\"\u2028\"", `"\u2028"`, "[\"\xe2\x82\"]",
	`{"a"`, `{"a":`, `{"a":1`, `{1:2}`, `{"a":1 "b":2}`, `[`, `{`, ``, ` `, "\ufeff{}", `1 2`, `{"":1}`, `{"":1,"":2}`, `{"a":1,"":2}`, strings.Repeat("[", 64) + strings.Repeat("]", 64), strings.Repeat("[", 65) + strings.Repeat("]", 65), strings.Repeat(`{"b":0,"a":`, 64) + "1" + strings.Repeat("}", 64),
}

func TestTheFastCodeAgreesWithThePlainCode(t *testing.T) {
	for _, text := range texts {
		if err := agree([]byte(text)); err != nil {
			t.Error(err)
		}
	}
}

func TestTheFastCodeAgreesOnDrawnValues(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var out strings.Builder
		drawJSON(t, &out, 4)
		if err := agree([]byte(out.String())); err != nil {
			t.Fatal(err)
		}
	})
}

var drawnNames = rapid.OneOf(rapid.StringMatching(`[a-c]{0,2}`), rapid.StringOfN(rapid.SampledFrom([]rune("a\"\\\n\x1f/é\ufb33\U0001F600\u2028")), 0, 3, -1))

// drawJSON writes a value as encoding/json spells strings and numbers, with
// members in any order, some twice, and some white space.
func drawJSON(t *rapid.T, out *strings.Builder, depth int) {
	put := func(v any) {
		text, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		out.Write(text)
	}
	kind := rapid.IntRange(0, 6).Draw(t, "kind")
	if depth == 0 {
		kind = min(kind, 4)
	}
	switch kind {
	case 0:
		put(rapid.Int64().Draw(t, "int"))
	case 1:
		put(rapid.Float64().Filter(func(f float64) bool { return f-f == 0 }).Draw(t, "float"))
	case 2:
		put(drawnNames.Draw(t, "text"))
	case 3:
		out.WriteString(rapid.SampledFrom([]string{"true", "false", "null", "0", "-0", "1e2", `"\u0061"`}).Draw(t, "word"))
	case 4:
		put(rapid.IntRange(-100, 100).Draw(t, "small"))
	case 5:
		out.WriteByte('[')
		for i := range rapid.IntRange(0, 4).Draw(t, "items") {
			if i > 0 {
				out.WriteByte(',')
			}
			drawJSON(t, out, depth-1)
		}
		out.WriteByte(']')
	case 6:
		out.WriteByte('{')
		for i := range rapid.IntRange(0, 20).Draw(t, "members") {
			if i > 0 {
				out.WriteString(rapid.SampledFrom([]string{",", ",", ",", ", "}).Draw(t, "comma"))
			}
			put(fmt.Sprint(drawnNames.Draw(t, "name"), rapid.SampledFrom([]string{"", fmt.Sprint(i)}).Draw(t, "number")))
			out.WriteByte(':')
			drawJSON(t, out, depth-1)
		}
		out.WriteByte('}')
	}
}

func FuzzTransform(f *testing.F) {
	for _, text := range texts {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		if err := agree(raw); err != nil {
			t.Fatal(err)
		}
	})
}

func TestManyNamesAreComparedToo(t *testing.T) {
	for _, n := range []int{1, fewNames, fewNames + 1, 100} {
		var out strings.Builder
		for i := range n {
			fmt.Fprintf(&out, `,"%d":{"%d":0}`, i, i)
		}
		good := "{" + out.String()[1:] + "}"
		bad := fmt.Sprintf(`%s,"%d":0}`, good[:len(good)-1], n/2)
		if err := Check([]byte(good)); err != nil {
			t.Error(err)
		}
		var refused *Error
		if err := Check([]byte(bad)); !errors.As(err, &refused) || refused.Code != DuplicateMember {
			t.Errorf("%d names: %v", n, err)
		}
	}
}
