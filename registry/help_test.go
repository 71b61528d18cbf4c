package registry

import (
	"fmt"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// bench is a machinetest.Bench whose state begins with operators op0, op1, ….
type bench struct {
	*machinetest.Bench
	t testing.TB
}

func newBench(t testing.TB, operators int, limits Limits) bench {
	t.Helper()
	b := bench{machinetest.New(t, New()), t}
	var founding []Operator
	for i := range operators {
		id := fmt.Sprintf("op%d", i)
		founding = append(founding, Operator{ID: id, Name: "Operator " + id, JWK: b.Key(id).Public().JWK()})
	}
	if err := Init(b.Tx, founding, limits); err != nil {
		t.Fatal(err)
	}
	return b
}

func keyOf(t testing.TB, name string) sign.Key {
	t.Helper()
	seed := canon.Hash([]byte("registry test " + name))
	k, err := sign.KeyFromSeed(seed[:])
	if err != nil {
		t.Fatal(err)
	}
	return k
}

// registration is [bench.registrationBy] op0.
func (b bench) registration(id string, kind machine.PrincipalKind) Register {
	return b.registrationBy("op0", id, kind)
}

// registrationBy is the body with which an operator registers id with the key that the bench signs with for it.
func (b bench) registrationBy(operator, id string, kind machine.PrincipalKind) Register {
	b.t.Helper()
	body, err := NewRegister(machinetest.Genesis, operator, id, kind, "", b.Key(id))
	if err != nil {
		b.t.Fatal(err)
	}
	return body
}

func (b bench) register(operator string, ids ...string) {
	b.t.Helper()
	for _, id := range ids {
		b.Must(operator, KindRegister, b.registrationBy(operator, id, machine.Agent))
	}
}

func (b bench) rotation(id string, next sign.Key) Rotate {
	b.t.Helper()
	body, err := NewRotate(machinetest.Genesis, id, next)
	if err != nil {
		b.t.Fatal(err)
	}
	return body
}

func (b bench) grant(operator, principal, pattern, authority, trust string) {
	b.t.Helper()
	b.Must(operator, KindGrant, Grant{principal, pattern, NewDecimal(authority), NewDecimal(trust)})
}

// status is what a key is to a principal now.
func (b bench) status(id string, key sign.Key) KeyStatus {
	b.t.Helper()
	got, status, err := Key(b.Tx, id, key.KID())
	if err != nil {
		b.t.Fatal(err)
	}
	if known := status != KeyUnknown && status != KeyUnknownPrincipal; known != (got == key.Public()) || !known != got.IsZero() {
		b.t.Fatalf("%s, but key %v", status, got)
	}
	return status
}

func code(err error) string {
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return fmt.Sprint(err)
}
