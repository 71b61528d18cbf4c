package registry

import (
	"strings"
	"testing"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

func TestAnOperatorRegistersAgentsAndHumansWithTheirKeys(t *testing.T) {
	b := newBench(t, 2, Limits{})
	body := b.registrationBy("op1", "alice", machine.Human)
	body.Name = "Alice Ω"
	b.Must("op1", KindRegister, body)
	p, ok, err := Lookup(b.Tx, "alice")
	if want := (machine.Principal{ID: "alice", Kind: machine.Human, Operator: "op1", Name: "Alice Ω", Active: true}); err != nil || !ok || p != want {
		t.Fatalf("%+v, %v, %v", p, ok, err)
	}
	if s := b.status("alice", b.Key("alice")); s != KeyActive || s.Refusal("alice", "") != nil {
		t.Fatal(s)
	}
	e := b.Events[0]
	if e.Type != "registry.registered" || e.Subject != "alice" || strings.Join(e.To, ",") != "alice,op1" {
		t.Fatalf("%+v", e)
	}
	if _, ok, err := Lookup(b.Tx, "bob"); ok || err != nil {
		t.Fatal("bob is known", err)
	}
	b.Refused(machine.CodeAlreadyExists, "op0", KindRegister, b.registration("alice", machine.Agent))
	b.Refused(machine.CodeAlreadyExists, "op0", KindRegister, b.registration("op1", machine.Agent))
}

func TestOnlyOperatorsRegister(t *testing.T) {
	b := newBench(t, 1, Limits{})
	b.register("op0", "alice")
	b.Refused(machine.CodeNotAuthorized, "alice", KindRegister, b.registration("bob", machine.Agent))
	b.Refused(machine.CodeNotAuthorized, "nobody", KindRegister, b.registration("bob", machine.Agent))
}

func TestANodesIDIsNotForPrincipals(t *testing.T) {
	b := newBench(t, 1, Limits{})
	id := keyOf(t, "node").Public().PeerID()
	b.Refused(machine.CodeMalformed, "op0", KindRegister, b.registration(id, machine.Agent))
	if err := Init(machinetest.Mem{}, []Operator{{ID: id, JWK: keyOf(t, "x").Public().JWK()}}, Limits{}); err == nil {
		t.Fatal("an operator took a node's id")
	}
}

func TestAKeyMustBeHeldAndGoodAndNew(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.register("op0", "alice")
	with := func(change func(*Register)) Register {
		r := b.registration("bob", machine.Agent)
		change(&r)
		return r
	}
	identity := "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	b.Refused(CodeBadKey, "op0", KindRegister, with(func(r *Register) { r.JWK = sign.JWK{Kty: "OKP", Crv: "Ed25519", X: identity} }))
	b.Refused(CodeBadKey, "op0", KindRegister, with(func(r *Register) { r.JWK.KID = b.Key("alice").KID() }))
	b.Refused(CodeBadKey, "op0", KindRegister, with(func(r *Register) { r.JWK.X = r.JWK.X[:42] + "_" })) // another spelling
	b.Refused(CodeKeyInUse, "op0", KindRegister, with(func(r *Register) { r.JWK = b.Key("alice").Public().JWK() }))
	b.Refused(CodeKeyInUse, "op0", KindRegister, with(func(r *Register) { r.JWK = b.Key("op0").Public().JWK() }))
	// The proof binds cluster, id and key.
	b.Refused(CodeBadProof, "op0", KindRegister, with(func(r *Register) { r.ID = "carol" }))
	b.Refused(CodeBadProof, "op0", KindRegister, with(func(r *Register) { r.JWK = keyOf(t, "other").Public().JWK() }))
	b.Refused(CodeBadProof, "op0", KindRegister, with(func(r *Register) { r.JWK.KID = "" })) // not the jwk that was signed
	b.Refused(CodeBadProof, "op1", KindRegister, b.registration("bob", machine.Agent))       // bob asked op0
	elsewhere, err := NewRegister(strings.Repeat("1", 64), "op0", "bob", machine.Agent, "", b.Key("bob"))
	if err != nil {
		t.Fatal(err)
	}
	b.Refused(CodeBadProof, "op0", KindRegister, elsewhere)
	jws, err := b.Key("bob").Detached(sign.TypAction, ProofPayload(machinetest.Genesis, "op0", "bob", b.Key("bob").Public().JWK()))
	if err != nil {
		t.Fatal(err)
	}
	b.Refused(CodeBadProof, "op0", KindRegister, with(func(r *Register) { r.Proof = jws })) // made for another purpose
	// A jwk without kid is fine when that is what was signed.
	bare := b.registration("bob", machine.Agent)
	bare.JWK.KID = ""
	if bare.Proof, err = b.Key("bob").Detached(sign.TypProof, ProofPayload(machinetest.Genesis, "op0", "bob", bare.JWK)); err != nil {
		t.Fatal(err)
	}
	b.Must("op0", KindRegister, bare)
}

func TestRotationStopsTheOldKeyAtOnce(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.register("op0", "alice")
	first, second, third := b.Key("alice"), keyOf(t, "second"), keyOf(t, "third")
	b.Must("alice", KindRotate, b.rotation("alice", second)) // by itself
	if s := b.status("alice", first); s != KeyRotated || s.Refusal("alice", first.KID()).Code != machine.CodeRevoked {
		t.Fatal(s)
	}
	if s := b.status("alice", second); s != KeyActive {
		t.Fatal(s)
	}
	b.Must("op0", KindRotate, b.rotation("alice", third)) // by its operator
	if s := b.status("alice", second); s != KeyRotated {
		t.Fatal(s)
	}
	b.Refused(machine.CodeNotAuthorized, "op1", KindRotate, b.rotation("alice", keyOf(t, "fourth")))
	b.Refused(CodeKeyInUse, "op0", KindRotate, b.rotation("alice", first))
	b.Refused(CodeKeyInUse, "op0", KindRotate, b.rotation("alice", third))
	b.Refused(machine.CodeNotFound, "op0", KindRotate, b.rotation("nobody", keyOf(t, "fourth")))
	stolen := b.rotation("alice", keyOf(t, "fourth"))
	stolen.Proof = b.rotation("bob", keyOf(t, "fourth")).Proof
	b.Refused(CodeBadProof, "op0", KindRotate, stolen)
	b.Must("op1", KindRotate, b.rotation("op1", keyOf(t, "op1 next"))) // operators rotate their own
	if s := b.status("op1", keyOf(t, "op1 next")); s != KeyActive {
		t.Fatal(s)
	}
}

func TestARevokedKeyIsReplacedByTheOperator(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.register("op0", "alice")
	first, second := b.Key("alice"), keyOf(t, "second")
	b.Refused(machine.CodeNotAuthorized, "op1", KindRevoke, Revoke{ID: "alice", KID: first.KID(), Reason: "stolen"})
	b.Refused(machine.CodeNotFound, "op0", KindRevoke, Revoke{ID: "alice", KID: second.KID(), Reason: "stolen"})
	b.Refused(machine.CodeNotFound, "op0", KindRevoke, Revoke{ID: "alice", KID: b.Key("op0").KID(), Reason: "stolen"})
	b.Must("op0", KindRevoke, Revoke{ID: "alice", KID: first.KID(), Reason: "stolen"})
	if s := b.status("alice", first); s != KeyRevoked || s.Refusal("alice", first.KID()).Code != machine.CodeRevoked {
		t.Fatal(s)
	}
	if p, _, _ := Lookup(b.Tx, "alice"); !p.Active {
		t.Fatal("a principal without a key is still registered")
	}
	b.Refused(machine.CodeRevoked, "op0", KindRevoke, Revoke{ID: "alice", KID: first.KID(), Reason: "again"})
	b.Must("op0", KindRotate, b.rotation("alice", second))
	if b.status("alice", first) != KeyRevoked || b.status("alice", second) != KeyActive {
		t.Fatal("the new key is not the one that counts")
	}
	b.Must("op0", KindRotate, b.rotation("alice", keyOf(t, "third")))
	b.Must("alice", KindRevoke, Revoke{ID: "alice", KID: second.KID(), Reason: "was leaked too"}) // an old one
	if b.status("alice", second) != KeyRevoked || b.status("alice", keyOf(t, "third")) != KeyActive {
		t.Fatal("revoking an old key touched the active one")
	}
}

func TestARevokedPrincipalNeverActsAgain(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.register("op0", "alice", "bob")
	b.grant("op0", "alice", "risk.*", "0.5", "0.5")
	b.Refused(machine.CodeNotAuthorized, "op1", KindRevoke, Revoke{ID: "alice", Reason: "no"})
	b.Refused(machine.CodeNotAuthorized, "bob", KindRevoke, Revoke{ID: "alice", Reason: "no"})
	b.Refused(machine.CodeNotFound, "op0", KindRevoke, Revoke{ID: "carol", Reason: "no"})
	b.Must("op0", KindRevoke, Revoke{ID: "alice", Reason: "gone"})
	if s := b.status("alice", b.Key("alice")); s != KeyPrincipalRevoked || s.Refusal("alice", "").Code != machine.CodeRevoked {
		t.Fatal(s)
	}
	if p, ok, _ := Lookup(b.Tx, "alice"); !ok || p.Active {
		t.Fatalf("%+v", p)
	}
	if _, ok, err := GrantFor(b.Tx, "alice", "risk"); ok || err != nil {
		t.Fatal("it still holds a grant", err)
	}
	if h, err := Holders(b.Tx, "risk"); err != nil || len(h) != 0 {
		t.Fatalf("%v, %v", h, err)
	}
	b.Refused(machine.CodeRevoked, "op0", KindRevoke, Revoke{ID: "alice", Reason: "again"})
	b.Refused(machine.CodeRevoked, "op0", KindRotate, b.rotation("alice", keyOf(t, "second")))
	b.Refused(machine.CodeRevoked, "op0", KindGrant, Grant{"alice", "risk", NewDecimal("1"), NewDecimal("1")})
	b.Refused(machine.CodeRevoked, "op0", KindUngrant, Ungrant{"alice", "risk.*"})
	b.Refused(machine.CodeAlreadyExists, "op0", KindRegister, b.registration("alice", machine.Agent))
	again := b.registration("alice2", machine.Agent)
	again.JWK = b.Key("alice").Public().JWK()
	b.Refused(CodeKeyInUse, "op0", KindRegister, again)
	b.Must("bob", KindRevoke, Revoke{ID: "bob", Reason: "I leave"}) // by itself
}

func TestAnOperatorCannotBeRevoked(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.Refused(machine.CodeNotAuthorized, "op0", KindRevoke, Revoke{ID: "op0", Reason: "x"})
	b.Refused(machine.CodeNotAuthorized, "op1", KindRevoke, Revoke{ID: "op0", Reason: "x"})
	b.Refused(machine.CodeNotAuthorized, "op0", KindRevoke, Revoke{ID: "op0", KID: b.Key("op0").KID(), Reason: "x"})
	first := b.Key("op0")
	b.Must("op0", KindRotate, b.rotation("op0", keyOf(t, "next")))
	b.Must("op0", KindRevoke, Revoke{ID: "op0", KID: first.KID(), Reason: "was stolen"})
	if b.status("op0", first) != KeyRevoked || b.status("op0", keyOf(t, "next")) != KeyActive {
		t.Fatal("the operator lost its key")
	}
}

func TestTheElectorateOfAnOperatorIsLimited(t *testing.T) {
	b := newBench(t, 2, Limits{MaxPrincipalsPerOperator: 2})
	b.register("op0", "a", "b")
	b.Refused(CodeElectorateLimit, "op0", KindRegister, b.registration("c", machine.Agent))
	b.register("op1", "d") // each operator has its own
	b.Must("op0", KindRevoke, Revoke{ID: "a", KID: b.Key("a").KID(), Reason: "a key is no principal"})
	b.Refused(CodeElectorateLimit, "op0", KindRegister, b.registration("c", machine.Agent))
	b.Must("op0", KindRevoke, Revoke{ID: "a", Reason: "makes room"})
	b.register("op0", "c")
	b.Refused(CodeElectorateLimit, "op0", KindRegister, b.registration("e", machine.Human))
}

func TestAKeyOfAnotherIsNoKeyOfMine(t *testing.T) {
	b := newBench(t, 1, Limits{})
	b.register("op0", "alice", "bob")
	for actor, want := range map[string]KeyStatus{"alice": KeyUnknown, "nobody": KeyUnknownPrincipal} {
		_, got, err := Key(b.Tx, actor, b.Key("bob").KID())
		if err != nil || got != want {
			t.Errorf("%s: %s, %v", actor, got, err)
		}
	}
	if r := KeyUnknown.Refusal("alice", "x"); r.Code != machine.CodeBadSignature {
		t.Error(r)
	}
	if r := KeyUnknownPrincipal.Refusal("nobody", "x"); r.Code != machine.CodeUnknownActor {
		t.Error(r)
	}
}

func TestInitRefusesOperatorsThatShareAnIDOrAKey(t *testing.T) {
	a, b := keyOf(t, "a").Public().JWK(), keyOf(t, "b").Public().JWK()
	for name, ops := range map[string][]Operator{
		"id":      {{ID: "x", JWK: a}, {ID: "x", JWK: b}},
		"key":     {{ID: "x", JWK: a}, {ID: "y", JWK: a}},
		"bad id":  {{ID: "", JWK: a}},
		"bad key": {{ID: "x"}},
	} {
		if err := Init(machinetest.Mem{}, ops, Limits{}); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
