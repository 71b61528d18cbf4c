package membership

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"github.com/deliberd/deliberd/machine/machinetest"
)

func decoder[T body](raw json.RawMessage) error { _, err := decode[T](raw); return err }

func TestSchemasAndDecodersAgree(t *testing.T) {
	x, y, z := keyOf(t, "x").Public().X(), keyOf(t, "y").Public().X(), keyOf(t, "z").Public().X()
	node := nodeID(t, "x")
	jws := strings.Repeat("h", 90) + ".." + strings.Repeat("s", 86)
	invite := func(key, role, expires, more string) string {
		return fmt.Sprintf(`{"key":%s,"role":%s,"expires_in_ms":%s%s}`, key, role, expires, more)
	}
	join := func(more string) string {
		return fmt.Sprintf(`{"invitation":"%s","role":"voter","pbft_key":"%s","attest_key":"%s","proof":"%s"%s}`, x, y, z, jws, more)
	}
	many := `["/a"`
	for i := range MaxAddrs {
		many += fmt.Sprintf(`,"/%d"`, i)
	}
	key := `"` + x + `"`
	for kind, c := range map[string]struct {
		decode    func(json.RawMessage) error
		good, bad []string
	}{
		KindInvite: {decoder[Invite],
			[]string{invite(key, `"voter"`, "1", ""), invite(key, `"observer"`, "604800000", `,"operator":"a/b@c"`), invite(key, `"observer"`, "1e3", "")},
			[]string{invite(key, `"voter"`, "0", ""), invite(key, `"voter"`, "604800001", ""), invite(key, `"voter"`, "1.5", ""), invite(key, `"voter"`, `"1"`, ""),
				invite(key, `"voter"`, "1e21", ""), invite(key, `"joining"`, "1", ""), invite(key, `null`, "1", ""), invite(`"short"`, `"voter"`, "1", ""), invite(`7`, `"voter"`, "1", ""),
				invite(key, `"voter"`, "1", `,"operator":""`), invite(key, `"voter"`, "1", `,"operator":null`), invite(key, `"voter"`, "1", `,"operator":"a b"`),
				invite(key, `"voter"`, "1", `,"more":1`), invite(key, `"voter"`, "1", `,"Operator":"a"`), `{"role":"voter","expires_in_ms":1}`, `{}`, `[]`, `null`, `"x"`}},
		KindApprove: {decoder[Approve], []string{`{"change":"01KE0000000000000000000001"}`},
			[]string{`{"change":"01ke0000000000000000000001"}`, `{"change":"81KE0000000000000000000001"}`, `{"change":"01KE000000000000000000000"}`, `{"change":""}`, `{}`, `{"change":null}`}},
		KindJoin: {decoder[Join], []string{join(""), join(`,"addrs":["/ip4/10.0.0.1/tcp/1","/dns4/x"]`)},
			[]string{join(`,"addrs":[]`), join(`,"addrs":null`), join(`,"addrs":["/a","/a"]`), join(`,"addrs":["a"]`), join(`,"addrs":["/"]`), join(`,"addrs":["/a b"]`), join(`,"addrs":["/ä"]`),
				join(`,"addrs":` + many + `]`), join(`,"addrs":["/` + strings.Repeat("a", 256) + `"]`), join(`,"x":1`), strings.Replace(join(""), "..", ".", 1), strings.Replace(join(""), "voter", "removed", 1),
				strings.Replace(join(""), `"proof"`, `"Proof"`, 1), `{}`}},
		KindReady:             {decoder[Ready], []string{`{}`}, []string{`{"x":1}`, `null`, `[]`}},
		KindRemove:            {decoder[Remove], []string{`{"node":"` + node + `"}`}, []string{`{"node":"` + node[:51] + `"}`, `{"node":"` + node[:51] + `0"}`, `{"node":"agent"}`, `{}`}},
		KindAddress:           {decoder[Address], []string{`{"addrs":["/a"]}`}, []string{`{"addrs":[]}`, `{}`, `{"addrs":null}`, `{"addrs":[1]}`, `{"addrs":"/a"}`, `{"addrs":["/a","/a"]}`}},
		"cluster.members":     {decoder[noParams], []string{`{}`}, []string{`{"x":1}`}},
		"cluster.genesis":     {decoder[noParams], []string{`{}`}, []string{`{"x":1}`}},
		"cluster.changes":     {decoder[noParams], []string{`{}`}, []string{`{"x":1}`}},
		"cluster.invitations": {decoder[invitationsParams], []string{`{}`, `{"state":"open"}`, `{"state":"pending_approval"}`}, []string{`{"state":""}`, `{"state":"closed"}`, `{"state":null}`, `{"x":1}`}},
	} {
		t.Run(kind, func(t *testing.T) { machinetest.Agree(t, schemaOf(kind), c.decode, c.good, c.bad) })
	}
}

func TestEveryKindAndQueryHasASchema(t *testing.T) {
	for _, k := range New().Kinds() {
		if machinetest.Schema(t, k.Schema) == nil || k.Summary == "" || len(k.By) == 0 || !strings.HasPrefix(k.Name, Name+".") {
			t.Errorf("%s is not described", k.Name)
		}
		if k.Strangers != (k.Name == KindJoin) {
			t.Errorf("%s: strangers %v", k.Name, k.Strangers)
		}
	}
	for _, q := range New().Queries() {
		if machinetest.Schema(t, q.Schema) == nil || q.Summary == "" || q.Run == nil {
			t.Errorf("%s is not described", q.Name)
		}
	}
}

func TestMalformedBodiesAreRefusedByTheMachine(t *testing.T) {
	c := newCluster(t, 1, 0)
	for _, k := range New().Kinds() {
		actor := "op0"
		if k.Name == KindJoin || k.Name == KindReady || k.Name == KindAddress {
			actor = nodeID(t, "node0")
		}
		c.Refused("malformed", actor, k.Name, map[string]any{"more": 1})
	}
	c.Refused("out_of_range", "op0", KindInvite, Invite{Key: keyOf(t, "x").Public().X(), Role: RoleVoter, ExpiresInMS: MaxExpiryMS + 1})
	c.Refused("unknown_kind", "op0", "cluster.dissolve", struct{}{})
}

func FuzzSchemasAndDecodersAgree(f *testing.F) {
	x, node := keyOf(f, "x").Public().X(), nodeID(f, "x")
	decoders := []struct {
		name   string
		decode func(json.RawMessage) error
		text   string
	}{
		{KindInvite, decoder[Invite], `{"key":"` + x + `","role":"voter","expires_in_ms":1000,"operator":"op0"}`},
		{KindApprove, decoder[Approve], `{"change":"01KE0000000000000000000001"}`},
		{KindJoin, decoder[Join], `{"invitation":"` + x + `","role":"observer","pbft_key":"` + x + `","attest_key":"` + x + `","addrs":["/ip4/1.2.3.4"],"proof":"` + strings.Repeat("h", 90) + ".." + strings.Repeat("s", 86) + `"}`},
		{KindReady, decoder[Ready], `{}`},
		{KindRemove, decoder[Remove], `{"node":"` + node + `"}`},
		{KindAddress, decoder[Address], `{"addrs":["/a","/b"]}`},
		{"cluster.invitations", decoder[invitationsParams], `{"state":"used"}`},
	}
	var schemas []*jsonschema.Schema
	for i, d := range decoders {
		schemas = append(schemas, machinetest.Schema(f, schemaOf(d.name)))
		f.Add(uint8(i), []byte(d.text))
	}
	f.Fuzz(func(t *testing.T, which uint8, text []byte) {
		i := int(which) % len(decoders)
		machinetest.AgreeOn(t, schemas[i], decoders[i].decode, text)
	})
}
