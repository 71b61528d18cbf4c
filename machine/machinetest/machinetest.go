// Package machinetest runs one machine without a cluster: an in-memory Tx, a
// World made of tables, and a driver that applies signed actions the way
// package fsm does. It is for tests of machines.
package machinetest

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"sort"
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Genesis is the cluster id of every test world.
const Genesis = "00000000000000000000000000000000000000000000000000000000000000ff"

// Mem is an in-memory Tx.
type Mem map[string][]byte

// Get implements machine.Tx.
func (m Mem) Get(k []byte) ([]byte, error) { return m[string(k)], nil }

// Put implements machine.Tx; it copies the value.
func (m Mem) Put(k, v []byte) error { m[string(k)] = bytes.Clone(append([]byte{}, v...)); return nil }

// Delete implements machine.Tx.
func (m Mem) Delete(k []byte) error { delete(m, string(k)); return nil }

// Range implements machine.Tx.
func (m Mem) Range(from, to []byte, f func(k, v []byte) (bool, error)) error {
	keys := make([]string, 0, len(m))
	for k := range m {
		if k >= string(from) && (to == nil || k < string(to)) {
			keys = append(keys, k)
		}
	}
	sort.Strings(keys)
	for _, k := range keys {
		if more, err := f([]byte(k), m[k]); err != nil || !more {
			return err
		}
	}
	return nil
}

// World is a machine.World of tables.
type World struct {
	Principals  map[string]machine.Principal
	Grants      map[string]map[string]machine.Grant // principal, exact domain
	Committees  map[uint64]machine.Committee
	Checkpoints map[uint64]machine.Checkpoint
}

// Principal implements machine.World.
func (w *World) Principal(id string) (machine.Principal, bool, error) {
	p, ok := w.Principals[id]
	return p, ok, nil
}

// Grant implements machine.World.
func (w *World) Grant(principal, domain string) (machine.Grant, bool, error) {
	g, ok := w.Grants[principal][domain]
	return g, ok, nil
}

// Holders implements machine.World.
func (w *World) Holders(domain string) ([]string, error) {
	var out []string
	for id, grants := range w.Grants {
		if _, ok := grants[domain]; ok && w.Principals[id].Active {
			out = append(out, id)
		}
	}
	sort.Strings(out)
	return out, nil
}

// Committee implements machine.World.
func (w *World) Committee(epoch uint64) (machine.Committee, bool, error) {
	c, ok := w.Committees[epoch]
	return c, ok, nil
}

// Checkpoint implements machine.World.
func (w *World) Checkpoint(seq uint64) (machine.Checkpoint, bool, error) {
	c, ok := w.Checkpoints[seq]
	return c, ok, nil
}

// Bench drives one machine.
type Bench struct {
	T       testing.TB
	Machine machine.Machine
	Tx      Mem
	World   *World
	Now     machine.Stamp
	Seq     uint64
	Events  []machine.Event // all events so far
	keys    map[string]sign.Key
}

// New makes a bench at stamp 1,000,000 with an empty world.
func New(t testing.TB, m machine.Machine) *Bench {
	return &Bench{T: t, Machine: m, Tx: Mem{}, Now: 1_000_000, keys: map[string]sign.Key{}, World: &World{
		Principals:  map[string]machine.Principal{},
		Grants:      map[string]map[string]machine.Grant{},
		Committees:  map[uint64]machine.Committee{},
		Checkpoints: map[uint64]machine.Checkpoint{},
	}}
}

// Add registers a principal of a kind under operator "op".
func (b *Bench) Add(kind machine.PrincipalKind, ids ...string) {
	for _, id := range ids {
		b.World.Principals[id] = machine.Principal{ID: id, Kind: kind, Operator: "op", Active: true}
	}
}

// Grant gives a principal authority and trust in an exact domain.
func (b *Bench) Grant(id, domain, authority, trust string) {
	if b.World.Grants[id] == nil {
		b.World.Grants[id] = map[string]machine.Grant{}
	}
	b.World.Grants[id][domain] = machine.Grant{Principal: id, Pattern: domain, Authority: authority, Trust: trust}
}

// Ctx is the context of the next entry.
func (b *Bench) Ctx() machine.Ctx {
	return machine.Ctx{Genesis: Genesis, Epoch: 1, Seq: b.Seq + 1, Now: b.Now, World: b.World}
}

// Key is a principal's signing key, made from its id.
func (b *Bench) Key(id string) sign.Key {
	if k, ok := b.keys[id]; ok {
		return k
	}
	seed := canon.Hash([]byte("machinetest " + id))
	k, err := sign.KeyFromSeed(seed[:])
	if err != nil {
		b.T.Fatal(err)
	}
	b.keys[id] = k
	return k
}

// Use makes key the principal's signing key: for nodes, whose id embeds theirs.
func (b *Bench) Use(id string, key sign.Key) { b.keys[id] = key }

// Do signs and applies one action as its own entry, after whatever is due.
// On a refusal nothing is written. The answer is canonical JSON.
func (b *Bench) Do(actor, kind string, body any) (json.RawMessage, error) {
	b.T.Helper()
	b.Tick()
	var entropy [10]byte
	sum := canon.Hash(fmt.Appendf(nil, "%d %s %s", b.Seq, actor, kind))
	copy(entropy[:], sum[:])
	id, err := ulid.New(uint64(b.Now), bytes.NewReader(entropy[:]))
	if err != nil {
		b.T.Fatal(err)
	}
	key := b.Key(actor)
	action, err := key.Sign(Genesis, id.String(), kind, actor, body)
	if err != nil {
		return nil, err
	}
	text, err := action.Encode()
	if err != nil {
		b.T.Fatal(err)
	}
	verified, err := sign.Verify(text, key.Public())
	if err != nil {
		return nil, err
	}
	saved := b.save()
	answer, events, err := b.Machine.Apply(b.Tx, b.Ctx(), verified)
	b.Seq++
	if err != nil {
		b.Tx = saved
		var refusal *machine.Refusal
		if !errors.As(err, &refusal) {
			b.T.Fatalf("%s by %s: not a refusal: %v", kind, actor, err)
		}
		return nil, err
	}
	b.Events = append(b.Events, events...)
	out, err := canon.Marshal(answer)
	if err != nil {
		b.T.Fatal(err)
	}
	return out, nil
}

// Must is Do that fails the test on a refusal.
func (b *Bench) Must(actor, kind string, body any) json.RawMessage {
	b.T.Helper()
	out, err := b.Do(actor, kind, body)
	if err != nil {
		b.T.Fatalf("%s by %s: %v", kind, actor, err)
	}
	return out
}

// Refused is Do that fails the test unless the action is refused with code
// and leaves the state untouched.
func (b *Bench) Refused(code, actor, kind string, body any) {
	b.T.Helper()
	b.Tick()
	before := b.save()
	_, err := b.Do(actor, kind, body)
	refusal, ok := machine.IsRefusal(err)
	if !ok || refusal.Code != code {
		b.T.Fatalf("%s by %s: got %v, want refusal %s", kind, actor, err, code)
	}
	if len(before) != len(b.Tx) {
		b.T.Fatalf("%s by %s: a refusal changed the state", kind, actor)
	}
	for k, v := range before {
		if !bytes.Equal(v, b.Tx[k]) {
			b.T.Fatalf("%s by %s: a refusal changed key %q", kind, actor, k)
		}
	}
}

// Tick runs Due at Now when the machine's Next asks for it.
func (b *Bench) Tick() {
	b.T.Helper()
	next, ok, err := b.Machine.Next(b.Tx)
	if err != nil {
		b.T.Fatal(err)
	}
	if !ok || next > b.Now {
		return
	}
	events, err := b.Machine.Due(b.Tx, b.Ctx())
	if err != nil {
		b.T.Fatal(err)
	}
	b.Seq++
	b.Events = append(b.Events, events...)
	if again, ok, err := b.Machine.Next(b.Tx); err == nil && ok && again <= b.Now {
		b.T.Fatalf("after Due at %d the machine is due at %d again", b.Now, again)
	}
}

// Advance moves time on and runs what is due.
func (b *Bench) Advance(ms int64) {
	b.T.Helper()
	b.Now += machine.Stamp(ms)
	b.Tick()
}

// Query runs one of the machine's queries and decodes its answer into v.
func (b *Bench) Query(name, principal string, params, v any) error {
	b.T.Helper()
	for _, q := range b.Machine.Queries() {
		if q.Name != name {
			continue
		}
		text, err := canon.Marshal(params)
		if err != nil {
			b.T.Fatal(err)
		}
		out, err := q.Run(b.Tx, b.Ctx(), principal, text)
		if err != nil {
			return err
		}
		if text, err = canon.Marshal(out); err != nil {
			b.T.Fatal(err)
		}
		return json.Unmarshal(text, v)
	}
	b.T.Fatalf("no query %q", name)
	return nil
}

func (b *Bench) save() Mem {
	out := make(Mem, len(b.Tx))
	for k, v := range b.Tx {
		out[k] = bytes.Clone(v)
	}
	return out
}
