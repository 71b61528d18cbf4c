package registry

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

func decoder[T body](raw json.RawMessage) error { _, err := decode[T](raw); return err }

var decoders = []struct {
	name   string
	decode func(json.RawMessage) error
}{
	{KindRegister, decoder[Register]}, {KindRotate, decoder[Rotate]}, {KindRevoke, decoder[Revoke]},
	{KindGrant, decoder[Grant]}, {KindUngrant, decoder[Ungrant]},
	{"registry.get", decoder[getParams]}, {"registry.list", decoder[listParams]}, {"registry.grants", decoder[grantsParams]},
}

func texts(t testing.TB) (jwk, kid, jws string) {
	key := keyOf(t, "x")
	return string(canon.MustMarshal(key.Public().JWK())), key.KID(), strings.Repeat("h", 90) + ".." + strings.Repeat("s", 86)
}

// cases are good and bad bodies of every kind and query.
func cases(t testing.TB) map[string][2][]string {
	jwk, kid, jws := texts(t)
	bare := strings.Replace(jwk, `"kid":"`+kid+`",`, "", 1)
	register := func(id, kind, jwk, more string) string {
		return fmt.Sprintf(`{"id":%s,"kind":%s,"jwk":%s,"proof":"%s"%s}`, id, kind, jwk, jws, more)
	}
	rotate := func(jwk, proof string) string { return fmt.Sprintf(`{"id":"a","jwk":%s,"proof":%s}`, jwk, proof) }
	grant := func(pattern, authority, trust string) string {
		return fmt.Sprintf(`{"principal":"a","pattern":%s,"authority":%s,"trust":%s}`, pattern, authority, trust)
	}
	badKeys := []string{`{}`, `null`, `"x"`, strings.Replace(jwk, "OKP", "EC", 1), strings.Replace(jwk, "Ed25519", "X25519", 1),
		strings.Replace(jwk, `"crv"`, `"d":"x","crv"`, 1), strings.Replace(jwk, kid, "", 1), strings.Replace(jwk, kid, "short", 1),
		strings.Replace(jwk, `"kty"`, `"Kty"`, 1), strings.Replace(bare, `"}`, `="}`, 1), strings.Replace(bare, `"x":"`, `"x":"A`, 1)}
	bad := map[string][]string{}
	for _, k := range badKeys {
		bad[KindRegister] = append(bad[KindRegister], register(`"a"`, `"agent"`, k, ""))
		bad[KindRotate] = append(bad[KindRotate], rotate(k, `"`+jws+`"`))
	}
	long := strings.Repeat("ä", 128)
	return map[string][2][]string{
		KindRegister: {
			{register(`"a"`, `"agent"`, jwk, ""), register(`"A.b_c:d@e/f-1"`, `"human"`, bare, `,"name":"Ä ω"`), register(`"a"`, `"agent"`, jwk, `,"name":"`+long+`"`)},
			append(bad[KindRegister], register(`""`, `"agent"`, jwk, ""), register(`"a b"`, `"agent"`, jwk, ""), register(`"`+strings.Repeat("a", 129)+`"`, `"agent"`, jwk, ""), register(`null`, `"agent"`, jwk, ""),
				register(`1`, `"agent"`, jwk, ""), register(`"a"`, `"operator"`, jwk, ""), register(`"a"`, `"node"`, jwk, ""), register(`"a"`, `"agent"`, jwk, `,"name":""`), register(`"a"`, `"agent"`, jwk, `,"name":null`),
				register(`"a"`, `"agent"`, jwk, `,"name":"a\nb"`), register(`"a"`, `"agent"`, jwk, `,"name":"`+long+`ä"`), register(`"a"`, `"agent"`, jwk, `,"operator":"op0"`), register(`"a"`, `"agent"`, jwk, `,"ID":"b"`), `{}`, `[]`, `null`)},
		KindRotate: {{rotate(jwk, `"`+jws+`"`), rotate(bare, `"`+jws+`"`)},
			append(bad[KindRotate], rotate(jwk, `""`), rotate(jwk, `"a.b.c"`), rotate(jwk, `"`+jws+`s"`), rotate(jwk, `null`), `{"id":"a"}`)},
		KindRevoke: {{`{"id":"a","reason":"x"}`, `{"id":"a","reason":"` + strings.Repeat("ω", 512) + `","kid":"` + kid + `"}`},
			{`{"id":"a"}`, `{"id":"a","reason":""}`, `{"id":"a","reason":"a\tb"}`, `{"id":"a","reason":"` + strings.Repeat("ω", 513) + `"}`, `{"id":"a","reason":"x","kid":""}`, `{"id":"a","reason":"x","kid":"y"}`, `{"reason":"x"}`}},
		KindGrant: {{grant(`"*"`, "0", "1"), grant(`"risk"`, `"0.70"`, "0.5"), grant(`"risk.*"`, "1e-7", `"1.000000000000000000"`), grant(`"a..b.*"`, `"0"`, `"1"`), grant(`"`+strings.Repeat("a", 128)+`.*"`, "1.0", "0.0")},
			{grant(`"**"`, "0", "1"), grant(`"risk*"`, "0", "1"), grant(`"*.risk"`, "0", "1"), grant(`".*"`, "0", "1"), grant(`""`, "0", "1"), grant(`"`+strings.Repeat("a", 129)+`"`, "0", "1"),
				grant(`"x"`, "1.0000001", "1"), grant(`"x"`, "-0.1", "1"), grant(`"x"`, "0", "null"), grant(`"x"`, "true", "1"), grant(`"x"`, `""`, "1"), grant(`"x"`, `"1e-3"`, "1"), grant(`"x"`, `".5"`, "1"),
				grant(`"x"`, `"0."`, "1"), grant(`"x"`, `"00.5"`, "1"), grant(`"x"`, `"1.0000000000000000000"`, "1"), grant(`"x"`, `"1.1"`, "1"), grant(`"x"`, "1e300", "1"), `{"principal":"a","pattern":"x","authority":1}`}},
		KindUngrant:       {{`{"principal":"a","pattern":"x.*"}`}, {`{"principal":"a","pattern":"x*"}`, `{"principal":"","pattern":"x"}`, `{"principal":"a"}`}},
		"registry.get":    {{`{"id":"a"}`}, {`{}`, `{"id":""}`, `{"id":"a","x":1}`}},
		"registry.list":   {{`{}`, `{"kind":"operator","operator":"op0","domain":"risk","after":"a","limit":500}`}, {`{"kind":"node"}`, `{"kind":""}`, `{"limit":0}`, `{"limit":501}`, `{"limit":1.5}`, `{"domain":"a b"}`, `{"after":""}`, `{"operator":"ä"}`, `{"x":1}`}},
		"registry.grants": {{`{}`, `{"principal":"a","domain":"risk","after":"a","limit":1}`}, {`{"principal":""}`, `{"limit":-1}`, `{"domain":"risk.*x"}`, `{"after":null}`, `{"kind":"agent"}`}},
	}
}

func TestSchemasAndDecodersAgree(t *testing.T) {
	all := cases(t)
	for _, d := range decoders {
		c := all[d.name]
		if len(c[0]) == 0 || len(c[1]) == 0 {
			t.Fatalf("%s has no cases", d.name)
		}
		t.Run(d.name, func(t *testing.T) { machinetest.Agree(t, schemaOf(d.name), d.decode, c[0], c[1]) })
	}
}

func FuzzSchemasAndDecodersAgree(f *testing.F) {
	var schemas []*jsonschema.Schema
	all := cases(f)
	for i, d := range decoders {
		schemas = append(schemas, machinetest.Schema(f, schemaOf(d.name)))
		for _, text := range append(all[d.name][0], all[d.name][1]...) {
			f.Add(uint8(i), []byte(text))
		}
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		i := int(which) % len(decoders)
		machinetest.AgreeOn(t, schemas[i], decoders[i].decode, text)
	})
}

func TestEveryKindAndQueryHasASchema(t *testing.T) {
	m := New()
	if m.Name() != Name {
		t.Error(m.Name())
	}
	for _, k := range m.Kinds() {
		if machinetest.Schema(t, k.Schema) == nil || k.Summary == "" || len(k.By) == 0 || k.Strangers || !strings.HasPrefix(k.Name, Name+".") {
			t.Errorf("%s is not described", k.Name)
		}
	}
	for _, q := range m.Queries() {
		if machinetest.Schema(t, q.Schema) == nil || q.Summary == "" || q.Run == nil {
			t.Errorf("%s is not described", q.Name)
		}
	}
}

func TestMalformedBodiesAreRefusedByTheMachine(t *testing.T) {
	b := newBench(t, 1, Limits{})
	for _, k := range New().Kinds() {
		b.Refused(machine.CodeMalformed, "op0", k.Name, map[string]any{"more": 1})
	}
	b.Refused(machine.CodeUnknownKind, "op0", "registry.forget", struct{}{})
	if _, ok, err := b.Machine.Next(b.Tx); ok || err != nil {
		t.Error("the registry waits for something", err)
	}
}
