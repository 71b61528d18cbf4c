package fsm_test

import (
	"bytes"
	"crypto/rand"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"testing"

	"github.com/oklog/ulid/v2"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// counter is a machine that adds numbers, and clears its sum at a deadline.
type counter struct{ name string }

func (c counter) Name() string { return c.name }
func (c counter) Kinds() []machine.Kind {
	return []machine.Kind{{Name: c.name + ".add", By: []machine.PrincipalKind{machine.Agent}}}
}
func (c counter) Queries() []machine.Query {
	return []machine.Query{{Name: c.name + ".sum", Run: func(tx machine.Tx, _ machine.Ctx, _ string, _ json.RawMessage) (any, error) {
		return sum(tx)
	}}}
}

func sum(tx machine.Tx) (uint64, error) {
	raw, err := tx.Get([]byte("sum"))
	if err != nil || raw == nil {
		return 0, err
	}
	return binary.BigEndian.Uint64(raw), nil
}

func (c counter) Apply(tx machine.Tx, ctx machine.Ctx, v machine.Verified) (any, []machine.Event, error) {
	var body struct {
		N       uint64        `json:"n"`
		ClearAt machine.Stamp `json:"clear_at"`
	}
	if err := canon.DecodeChecked(v.Action().Body, &body); err != nil {
		return nil, nil, machine.Refuse(machine.CodeMalformed, "", "%v", err)
	}
	total, err := sum(tx)
	if err != nil {
		return nil, nil, err
	}
	total += body.N
	if err := tx.Put([]byte("sum"), binary.BigEndian.AppendUint64(nil, total)); err != nil {
		return nil, nil, err
	}
	if body.N == 13 { // after writing, so that the test sees the write dropped
		return nil, nil, machine.Refuse("unlucky", "", "13").With("n", body.N)
	}
	if body.ClearAt > 0 {
		if err := tx.Put([]byte("clear"), binary.BigEndian.AppendUint64(nil, uint64(body.ClearAt))); err != nil {
			return nil, nil, err
		}
	}
	return map[string]uint64{"sum": total}, []machine.Event{{Type: c.name + ".added", Subject: "x", Data: map[string]any{"n": body.N}}}, nil
}

func (c counter) Next(tx machine.Tx) (machine.Stamp, bool, error) {
	raw, err := tx.Get([]byte("clear"))
	if err != nil || raw == nil {
		return 0, false, err
	}
	return machine.Stamp(binary.BigEndian.Uint64(raw)), true, nil
}
func (c counter) Due(tx machine.Tx, _ machine.Ctx) ([]machine.Event, error) {
	if err := tx.Delete([]byte("clear")); err != nil {
		return nil, err
	}
	return []machine.Event{{Type: c.name + ".cleared", Subject: "x", Data: struct{}{}}}, tx.Delete([]byte("sum"))
}

// React counts what another counter added, once per event and without events of its own.
func (c counter) React(tx machine.Tx, _ machine.Ctx, e machine.Event) ([]machine.Event, error) {
	if c.name != "b" || e.Type != "a.added" {
		return nil, nil
	}
	if data, ok := e.Data.(map[string]any); ok && data["n"] == uint64(17) {
		return nil, machine.Refuse("superstitious", "", "17")
	}
	total, err := sum(tx)
	if err != nil {
		return nil, err
	}
	return []machine.Event{{Type: "b.heard", Subject: "x", Data: struct{}{}}}, tx.Put([]byte("sum"), binary.BigEndian.AppendUint64(nil, total+100))
}
func (c counter) Asks(machine.Tx, machine.Ctx, string) ([]machine.Ask, error) { return nil, nil }

// book is a Directory and a Membership of fixed principals.
type book struct{ keys map[string]sign.Key }

func (b book) Lookup(_ machine.Tx, id string) (machine.Principal, bool, error) {
	_, ok := b.keys[id]
	return machine.Principal{ID: id, Kind: machine.Agent, Active: id != "gone"}, ok, nil
}
func (b book) Key(_ machine.Tx, actor, kid string) (sign.PublicKey, bool, bool, error) {
	k, ok := b.keys[actor]
	return k.Public(), true, ok && k.KID() == kid, nil
}
func (b book) Grant(machine.Tx, string, string) (machine.Grant, bool, error) {
	return machine.Grant{}, false, nil
}
func (b book) Holders(machine.Tx, string) ([]string, error) { return nil, nil }
func (b book) NodeKey(string) (sign.PublicKey, bool)        { return sign.PublicKey{}, false }
func (b book) Epoch(machine.Tx) (uint64, error)             { return 1, nil }
func (b book) Committee(machine.Tx, uint64) (machine.Committee, bool, error) {
	return machine.Committee{}, false, nil
}

type rig struct {
	*testing.T
	f    *fsm.FSM
	tx   machinetest.Mem
	book book
	now  machine.Stamp
	n    int
	log  [][]byte
}

var cluster = fmt.Sprintf("%064x", 7)

func newRig(t *testing.T) *rig {
	r := &rig{T: t, tx: machinetest.Mem{}, now: 10_000_000, book: book{map[string]sign.Key{}}}
	for _, id := range []string{"ann", "bob", "gone"} {
		seed := canon.Hash([]byte(id))
		r.book.keys[id], _ = sign.KeyFromSeed(seed[:])
	}
	r.f = r.machine()
	if err := r.f.Init(r.tx, cluster, r.now, nil); err != nil {
		t.Fatal(err)
	}
	return r
}

func (r *rig) machine() *fsm.FSM {
	f, err := fsm.New(fsm.Config{Machines: []machine.Machine{counter{"a"}, counter{"b"}}, Directory: r.book, DirectoryName: "a", Membership: r.book, MembershipName: "b"})
	if err != nil {
		r.Fatal(err)
	}
	f.SetParams(fsm.Params{IDWindow: 1000, IDFuture: 100, DumpEvery: 5})
	return f
}

func (r *rig) id(at machine.Stamp) string {
	r.n++
	return ulid.MustNew(uint64(at), bytes.NewReader(fmt.Appendf(nil, "%010d", r.n))).String()
}

func (r *rig) action(actor, id string, body any) []byte {
	a, err := r.book.keys[actor].Sign(cluster, id, "a.add", actor, body)
	if err != nil {
		r.Fatal(err)
	}
	text, err := a.Encode()
	if err != nil {
		r.Fatal(err)
	}
	return text
}

func (r *rig) apply(actions ...[]byte) fsm.Outcome {
	r.Helper()
	e := fsm.Entry{Stamp: r.now, Epoch: 1, Actions: actions}
	e.Genesis[31] = 7
	return r.raw(e.Encode())
}

func (r *rig) raw(entry []byte) fsm.Outcome {
	r.Helper()
	r.log = append(r.log, entry)
	p := fsm.Decode(entry)
	if err := r.f.FindKeys(r.tx, p); err != nil {
		r.Fatal(err)
	}
	for i := range p.Len() {
		r.f.Verify(p, i)
	}
	out, err := r.f.Apply(r.tx, p)
	if err != nil {
		r.Fatal(err)
	}
	return out
}

func (r *rig) sum(name string) string {
	out, err := r.f.Query(r.tx, name+".sum", "ann", nil)
	if err != nil {
		r.Fatal(err)
	}
	return string(out)
}

func (r *rig) wantCode(out fsm.Outcome, code string) {
	r.Helper()
	got := ""
	if ref := out.Answers[0].Refusal; ref != nil {
		got = ref.Code
	}
	if got != code {
		r.Fatalf("got %q, want %q (%+v)", got, code, out.Answers[0])
	}
}

func TestARetryGetsTheFirstAnswerAndAnotherBodyIsRefused(t *testing.T) {
	r := newRig(t)
	id := r.id(r.now)
	first := r.apply(r.action("ann", id, map[string]int{"n": 5}))
	again := r.apply(r.action("ann", id, map[string]int{"n": 5}))
	if string(again.Answers[0].Result) != string(first.Answers[0].Result) || !again.Answers[0].Repeated || again.Answers[0].Seq != first.Answers[0].Seq {
		t.Fatalf("retry got %+v", again.Answers[0])
	}
	r.wantCode(r.apply(r.action("ann", id, map[string]int{"n": 6})), machine.CodeIDReused)
	if r.sum("a") != "5" {
		t.Fatalf("sum %s", r.sum("a"))
	}
	r.wantCode(r.apply(r.action("bob", id, map[string]int{"n": 1})), "") // ids belong to their actor
}

func TestAnEntryWhoseTransactionIsDroppedLeavesNoTrace(t *testing.T) {
	r := newRig(t)
	add := func(n int) []byte { return r.action("ann", r.id(r.now), map[string]int{"n": n}) }
	one, two := r.f, r.machine()
	for n := range 5 {
		r.f = one
		r.apply(add(n))
		before := maps.Clone(r.tx)
		r.apply(add(100 + n))
		r.tx, r.log = before, r.log[:len(r.log)-1]
		r.f = two // the log grows as much as it did in what was dropped
		r.apply(add(200 + n))
	}
	r.f = one
	last := r.apply(add(7))
	other := newRig(t)
	for _, entry := range r.log {
		if out := other.raw(entry); out.Head.Seq == last.Head.Seq && (out.Head != last.Head || out.Checkpoint != last.Checkpoint) {
			t.Fatalf("%+v, without what was dropped %+v", last.Head, out.Head)
		}
	}
}

func TestARefusalDropsItsWritesAndIsRepeatedWithItsCode(t *testing.T) {
	r := newRig(t)
	id := r.id(r.now)
	out := r.apply(r.action("ann", id, map[string]int{"n": 13}))
	r.wantCode(out, "unlucky")
	if r.sum("a") != "0" || len(out.Records) != 1 {
		t.Fatalf("sum %s, %d leaves", r.sum("a"), len(out.Records))
	}
	again := r.apply(r.action("ann", id, map[string]int{"n": 13}))
	r.wantCode(again, "unlucky")
	if again.Answers[0].Refusal.Data["n"] == nil {
		t.Fatal("the repeated refusal lost its data")
	}
}

func TestARefusalByWhoeverReactsLeavesNeitherWritesNorEvents(t *testing.T) {
	r := newRig(t)
	out := r.apply(r.action("ann", r.id(r.now), map[string]int{"n": 17}))
	r.wantCode(out, "superstitious")
	if r.sum("a") != "0" || r.sum("b") != "0" || len(out.Records) != 1 {
		t.Fatalf("sums %s and %s, %d leaves", r.sum("a"), r.sum("b"), len(out.Records))
	}
}

func TestIdsOutsideTheWindowAreRefusedAndOldOnesForgotten(t *testing.T) {
	r := newRig(t)
	r.wantCode(r.apply(r.action("ann", r.id(r.now-1001), map[string]int{"n": 1})), machine.CodeIDTooOld)
	r.wantCode(r.apply(r.action("ann", r.id(r.now+101), map[string]int{"n": 1})), machine.CodeIDFromFuture)
	id := r.id(r.now)
	r.wantCode(r.apply(r.action("ann", id, map[string]int{"n": 1})), "")
	r.now += 2000
	r.apply()
	for k := range r.tx {
		if k[0] == 'i' {
			t.Fatalf("still kept: %q", k)
		}
	}
	r.wantCode(r.apply(r.action("ann", id, map[string]int{"n": 1})), machine.CodeIDTooOld)
}

func TestOnlyAuthenticActionsOfThoseWhoMaySendThemAreApplied(t *testing.T) {
	r := newRig(t)
	good := r.action("ann", r.id(r.now), map[string]int{"n": 1})
	bad := bytes.Replace(good, []byte(`"n":1`), []byte(`"n":2`), 1)
	r.wantCode(r.apply(bad), machine.CodeBadSignature)
	r.wantCode(r.apply(r.action("gone", r.id(r.now), map[string]int{"n": 1})), machine.CodeRevoked)
	r.wantCode(r.apply([]byte(`{"a":1}`)), machine.CodeMalformed)
	stranger, _ := sign.NewKey(rand.Reader)
	r.book.keys["eve"] = stranger
	text := r.action("eve", r.id(r.now), map[string]int{"n": 1})
	delete(r.book.keys, "eve")
	r.wantCode(r.apply(text), machine.CodeUnknownActor)
	if r.sum("a") != "0" {
		t.Fatalf("sum %s", r.sum("a"))
	}
	for k := range r.tx {
		if k[0] == 'i' {
			t.Fatalf("an unauthentic action took an id: %q", k)
		}
	}
}

func TestTimeRunsWhatIsDueBeforeActionsAndNeverGoesBack(t *testing.T) {
	r := newRig(t)
	r.apply(r.action("ann", r.id(r.now), map[string]any{"n": 5, "clear_at": r.now + 50}))
	r.now += 50
	out := r.apply(r.action("ann", r.id(r.now), map[string]int{"n": 2}))
	if r.sum("a") != "2" || out.Records[1].Type != "a.cleared" || out.Records[2].Type != "a.added" || out.Records[3].Type != "b.heard" {
		t.Fatalf("sum %s, records %+v", r.sum("a"), out.Records)
	}
	late := r.now
	r.now -= 40
	if out := r.apply(); out.Head.Stamp != late {
		t.Fatalf("time went back to %d", out.Head.Stamp)
	}
}

func TestAForeignOrBrokenEntryIsANoOpWithALeaf(t *testing.T) {
	r := newRig(t)
	text := r.action("ann", r.id(r.now), map[string]int{"n": 1})
	for code, e := range map[string]fsm.Entry{
		machine.CodeWrongCluster: {Stamp: r.now, Actions: [][]byte{text}},
		"stale_generation":       {Genesis: [32]byte{31: 7}, Generation: 1, Stamp: r.now, Actions: [][]byte{text}},
	} {
		out := r.raw(e.Encode())
		r.wantCode(out, code)
		if len(out.Records) != 1 {
			t.Fatalf("%d leaves", len(out.Records))
		}
	}
	if out := r.raw([]byte("rubbish")); len(out.Records) != 1 || len(out.Answers) != 0 {
		t.Fatalf("%+v", out)
	}
	r.wantCode(r.apply(text), "") // the action itself is still good
}

func TestEveryLeafIsProvableAndTheLogIsConsistentAtEverySize(t *testing.T) {
	r := newRig(t)
	var heads []fsm.Head
	for i := range 20 {
		heads = append(heads, r.apply(r.action("ann", r.id(r.now), map[string]int{"n": i})).Head)
	}
	last := heads[len(heads)-1]
	root, _ := hex.DecodeString(last.Root)
	for i := range last.Size {
		text, err := fsm.RecordText(r.tx, i)
		if err != nil || text == nil {
			t.Fatal(i, err)
		}
		p, err := fsm.Inclusion(r.tx, i, last.Size)
		if err != nil {
			t.Fatal(err)
		}
		if err := proof.VerifyInclusion(rfc6962.DefaultHasher, i, last.Size, rfc6962.DefaultHasher.HashLeaf(text), unhex(t, p.Hashes), root); err != nil {
			t.Fatal(i, err)
		}
	}
	for _, h := range heads {
		p, err := fsm.Consistency(r.tx, h.Size, last.Size)
		if err != nil {
			t.Fatal(err)
		}
		old, _ := hex.DecodeString(h.Root)
		if err := proof.VerifyConsistency(rfc6962.DefaultHasher, h.Size, last.Size, unhex(t, p.Hashes), old, root); err != nil {
			t.Fatal(h.Size, err)
		}
	}
	if _, err := fsm.Inclusion(r.tx, last.Size, last.Size); err == nil {
		t.Fatal("proved a leaf that is not there")
	}
	if _, err := fsm.Inclusion(r.tx, 0, last.Size+5); err == nil {
		t.Fatal("proved a log longer than it is")
	}
}

func unhex(t *testing.T, in []string) [][]byte {
	var out [][]byte
	for _, s := range in {
		b, err := hex.DecodeString(s)
		if err != nil {
			t.Fatal(err)
		}
		out = append(out, b)
	}
	return out
}

func TestTheSameEntriesGiveTheSameHeadWithoutPreparedSignatures(t *testing.T) {
	r := newRig(t)
	for i := range 12 {
		r.now += machine.Stamp(i * 200)
		id := r.id(r.now)
		r.apply(r.action("ann", id, map[string]int{"n": i}), r.action("bob", r.id(r.now), map[string]any{"n": 13 - i, "clear_at": r.now + 300}), []byte("{}"))
	}
	want, err := fsm.ReadHead(r.tx)
	if err != nil {
		t.Fatal(err)
	}
	tx := machinetest.Mem{}
	f := r.machine()
	if err := f.Init(tx, cluster, 10_000_000, nil); err != nil {
		t.Fatal(err)
	}
	for _, raw := range r.log {
		if _, err := f.Apply(tx, fsm.Decode(raw)); err != nil {
			t.Fatal(err)
		}
	}
	got, _ := fsm.ReadHead(tx)
	if got != want {
		t.Fatalf("got %+v, want %+v", got, want)
	}
}

func FuzzDecodeEntry(f *testing.F) {
	f.Add(fsm.Entry{Stamp: 5, Actions: [][]byte{[]byte("{}"), nil}}.Encode())
	f.Add(fsm.Entry{}.Encode())
	f.Fuzz(func(t *testing.T, raw []byte) {
		e, err := fsm.DecodeEntry(raw)
		if err == nil && !bytes.Equal(e.Encode(), raw) {
			t.Fatalf("two spellings of one entry: %x and %x", raw, e.Encode())
		}
	})
}
