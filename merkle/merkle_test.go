package merkle

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"testing"

	"github.com/cbergoon/merkletree"
	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

type m = map[string]any

func record(positions, challenges int) Record {
	r := Record{
		RoundMetadata:       m{"round": "01J0000000000000000000000R", "domain": "hydraulics", "tau": 150000000},
		ConstitutionalCheck: m{"violations": []any{}},
		GradedSemantics:     m{"strengths": m{"p0": 700000000}},
		ConsensusVote:       m{"path": "fast", "confirmed": []any{"a", "b"}},
		Verdict:             m{"winner": "p0"},
		DissentRecords:      []any{},
	}
	for i := range positions {
		r.Positions = append(r.Positions, m{"id": fmt.Sprintf("p%d", i), "text": "naïve ☃ \"quoted\" \n", "evidence": []any{m{"type": "latency", "value": 0.5}}})
	}
	for i := range challenges {
		r.Challenges = append(r.Challenges, m{"id": fmt.Sprintf("c%d", i), "relation": "attack", "target": "p0"})
	}
	return r
}

func build(t testing.TB, r Record) *Chain {
	t.Helper()
	c, err := Build(r)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func code(t *testing.T, err error) string {
	t.Helper()
	var f *Failure
	if errors.As(err, &f) {
		return f.Code
	}
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	t.Fatalf("neither a failure nor a refusal: %v", err)
	return ""
}

// dumbRoot is the tree written down again without the library.
func dumbRoot(hashes [][]byte) []byte {
	if len(hashes)%2 == 1 {
		hashes = append(hashes, hashes[len(hashes)-1])
	}
	for len(hashes) > 1 {
		if len(hashes)%2 == 1 {
			hashes = append(hashes, hashes[len(hashes)-1])
		}
		var up [][]byte
		for i := 0; i < len(hashes); i += 2 {
			sum := sha256.Sum256(append(append([]byte(nil), hashes[i]...), hashes[i+1]...))
			up = append(up, sum[:])
		}
		hashes = up
	}
	return hashes[0]
}

func TestLeavesStandInTheOrderOfTheSpecificationAndListsById(t *testing.T) {
	r := record(0, 0)
	r.Positions = []any{m{"id": "p2"}, m{"id": "p10"}, m{"id": "p1"}}
	r.Challenges = []any{m{"id": "x"}, m{"id": "b"}}
	var got []string
	for i, l := range build(t, r).Leaves() {
		id, _ := idOf(l.Data)
		got = append(got, string(l.Kind)+" "+id)
		if l.Index != i || l.Count != 11 {
			t.Errorf("leaf %d says %d of %d", i, l.Index, l.Count)
		}
	}
	want := []string{"round_metadata ", "position p1", "position p10", "position p2", "challenge b", "challenge x",
		"constitutional_check ", "graded_semantics ", "consensus_vote ", "verdict ", "dissent_records "}
	if strings.Join(got, "|") != strings.Join(want, "|") {
		t.Fatalf("leaves %q", got)
	}
}

func TestALeafHashesTheCanonicalJSONOfKindIndexCountAndData(t *testing.T) {
	for _, l := range build(t, record(3, 2)).Leaves() {
		text, err := canon.Marshal(m{"kind": l.Kind, "index": l.Index, "count": l.Count, "data": l.Data})
		if err != nil {
			t.Fatal(err)
		}
		if want := Hash(canon.Hash(text)); want != l.Hash {
			t.Errorf("leaf %d hashes to %s, want %s", l.Index, l.Hash, want)
		}
	}
}

func TestTheRootIsThatOfAPlainBinaryTree(t *testing.T) {
	for positions := range 9 {
		for challenges := range 4 {
			c := build(t, record(positions, challenges))
			var hashes [][]byte
			for _, l := range c.Leaves() {
				hashes = append(hashes, l.Hash[:])
			}
			if root := c.Root(); !bytes.Equal(root[:], dumbRoot(hashes)) {
				t.Fatalf("%d leaves: root %s", len(hashes), root)
			}
		}
	}
}

func TestTheOrderInWhichARoundListsItsPartsDoesNotMatter(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := record(rapid.IntRange(0, 6).Draw(t, "p"), rapid.IntRange(0, 6).Draw(t, "c"))
		a, err := Build(r)
		if err != nil {
			t.Fatal(err)
		}
		r.Positions = rapid.Permutation(r.Positions).Draw(t, "positions")
		r.Challenges = rapid.Permutation(r.Challenges).Draw(t, "challenges")
		b, err := Build(r)
		if err != nil || a.Root() != b.Root() || !bytes.Equal(a.Encode(), b.Encode()) {
			t.Fatalf("%v", err)
		}
	})
}

// The tree of cbergoon/merkletree gives [a b c] and [a b c c] one root, and
// lets two inner hashes pass for one leaf. Here neither works.
func TestTheDuplicateLastLeafAttackFails(t *testing.T) {
	leaf := func(b byte) merkletree.Content { return content{0, sha256.Sum256([]byte{b})} }
	short, _ := merkletree.NewTree([]merkletree.Content{leaf('a'), leaf('b'), leaf('c')})
	long, _ := merkletree.NewTree([]merkletree.Content{leaf('a'), leaf('b'), leaf('c'), leaf('c')})
	if !bytes.Equal(short.MerkleRoot(), long.MerkleRoot()) {
		t.Fatal("the library has changed: the attack this test knows does not exist any more")
	}

	c := build(t, record(1, 0)) // 7 leaves: the last one is duplicated
	forged := append(append([]Leaf(nil), c.leaves...), c.leaves[6])
	tree, err := grow(forged)
	if err != nil {
		t.Fatal(err)
	}
	root := c.Root()
	if !bytes.Equal(tree.MerkleRoot(), root[:]) {
		t.Fatal("the forged list should have the same bare root")
	}
	if _, err := Verify(encode(forged, root), &root); code(t, err) != CodeStructure {
		t.Fatalf("accepted as is, or for another reason: %v", err)
	}
	// Making the forged list consistent changes every leaf, and so the root.
	resealed, err := seal(append([]Leaf(nil), forged...))
	if err != nil {
		t.Fatal(err)
	}
	if resealed.Root() == root {
		t.Fatal("a longer chain has the same root")
	}
	for i, l := range resealed.leaves {
		if l.Hash == forged[i].Hash {
			t.Errorf("leaf %d is the same in both chains", i)
		}
	}
}

func TestAnInnerNodeDoesNotPassForALeaf(t *testing.T) {
	c := build(t, record(2, 0)) // 8 leaves
	root := c.Root()
	p, err := c.Proof(2)
	if err != nil {
		t.Fatal(err)
	}
	inner := p
	inner.Path = p.Path[1:] // start one level up
	if code(t, inner.Verify(root)) != CodeStructure {
		t.Fatal("a path that starts at an inner node")
	}
	long := p
	long.Path = append(append([]Step(nil), p.Path...), p.Path[0])
	if code(t, long.Verify(root)) != CodeStructure {
		t.Fatal("a path that goes on above the root")
	}
}

func TestEveryLeafHasAProofAndNoOtherPassesForIt(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c, err := Build(record(rapid.IntRange(0, 12).Draw(t, "p"), rapid.IntRange(0, 12).Draw(t, "c")))
		if err != nil {
			t.Fatal(err)
		}
		i := rapid.IntRange(0, len(c.leaves)-1).Draw(t, "leaf")
		p, err := c.Proof(i)
		if err != nil {
			t.Fatal(err)
		}
		text, _ := json.Marshal(p)
		var back Proof
		if err := json.Unmarshal(text, &back); err != nil {
			t.Fatal(err)
		}
		if err := back.Verify(c.Root()); err != nil {
			t.Fatal(err)
		}
		spoil := map[string]func(*Proof){
			"data":     func(p *Proof) { p.Leaf.Data = json.RawMessage(`{"id":"other"}`) },
			"spacing":  func(p *Proof) { p.Leaf.Data = append([]byte(" "), p.Leaf.Data...) },
			"index":    func(p *Proof) { p.Leaf.Index = (p.Leaf.Index + 1) % p.Leaf.Count },
			"count":    func(p *Proof) { p.Leaf.Count++ },
			"kind":     func(p *Proof) { p.Leaf.Kind = "other" },
			"hash":     func(p *Proof) { p.Leaf.Hash[3] ^= 4 },
			"step":     func(p *Proof) { p.Path[0].Hash[0] ^= 1 },
			"side":     func(p *Proof) { p.Path[0].Left = !p.Path[0].Left },
			"no path":  func(p *Proof) { p.Path = nil },
			"negative": func(p *Proof) { p.Leaf.Index = -1 },
			"empty":    func(p *Proof) { p.Leaf.Data = nil },
		}
		name := rapid.SampledFrom([]string{"data", "spacing", "index", "count", "kind", "hash", "step", "side", "no path", "negative", "empty"}).Draw(t, "spoil")
		spoil[name](&back)
		if back.Verify(c.Root()) == nil {
			t.Fatalf("a proof with another %s passes", name)
		}
	})
}

func TestAProofOfAnotherRootFails(t *testing.T) {
	c := build(t, record(2, 1))
	p, err := c.Proof(1)
	if err != nil {
		t.Fatal(err)
	}
	root := build(t, record(3, 1)).Root()
	if code(t, p.Verify(root)) != CodeRoot {
		t.Fatal("passes")
	}
	if _, err := c.Proof(9); code(t, err) != machine.CodeOutOfRange {
		t.Fatal(err)
	}
	if _, err := c.Proof(-1); code(t, err) != machine.CodeOutOfRange {
		t.Fatal(err)
	}
}

func TestAnExportIsCanonicalAndReadsBack(t *testing.T) {
	c := build(t, record(3, 2))
	file := c.Encode()
	if err := canon.CheckCanonical(file); err != nil {
		t.Fatal(err)
	}
	back, err := Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(back.Encode(), file) || back.Root() != c.Root() {
		t.Fatal("another chain comes back")
	}
	root := c.Root()
	if r, err := Verify(file, &root); err != nil || !r.Proven || r.Result != "proven" || r.Leaves != 11 || r.Root != root {
		t.Fatalf("%+v, %v", r, err)
	}
	if r, err := Verify(file, nil); err != nil || r.Proven || r.Result != "consistent, unproven" {
		t.Fatalf("%+v, %v", r, err)
	}
	root[31] ^= 1
	if _, err := Verify(file, &root); code(t, err) != CodeRoot {
		t.Fatal(err)
	}
}

func TestEveryFlippedByteIsFoundAndItsLeafNamed(t *testing.T) {
	c := build(t, record(2, 1))
	file := c.Encode()
	root := c.Root()
	owner := owners(c)
	for at := range file {
		for _, bits := range []byte{0x01, 0x20, 0x80, 0xff} {
			spoiled := append([]byte(nil), file...)
			spoiled[at] ^= bits
			_, err := Verify(spoiled, &root)
			if err == nil {
				t.Fatalf("byte %d ^ %#x is not found", at, bits)
			}
			var f *Failure
			if !errors.As(err, &f) {
				t.Fatalf("byte %d: %v", at, err)
			}
			if want := owner(at); want >= 0 && f.Leaf != want {
				t.Fatalf("byte %d ^ %#x belongs to leaf %d, but: %v\n%s", at, bits, want, err, spoiled[max(0, at-30):min(len(file), at+30)])
			}
			if _, err := Verify(spoiled, nil); err == nil {
				t.Fatalf("byte %d ^ %#x is not found without a root", at, bits)
			}
		}
	}
}

// owners tells to which leaf a byte of the export belongs; −1 to none.
func owners(c *Chain) func(int) int {
	type span struct{ from, to int }
	var spans []span
	end := len(head)
	for i, l := range c.leaves {
		if i > 0 {
			end++
		}
		from := end
		end += len(l.encode(nil))
		spans = append(spans, span{from + 1, end - 1}) // inside the braces
	}
	return func(at int) int {
		for i, s := range spans {
			if at >= s.from && at < s.to {
				return i
			}
		}
		return -1
	}
}

func TestAFileThatIsNotItsCanonicalFormIsRefused(t *testing.T) {
	file := string(build(t, record(1, 1)).Encode())
	cases := map[string]string{
		"a final newline":       file + "\n",
		"white space":           strings.Replace(file, `,"leaves"`, `, "leaves"`, 1),
		"another member":        strings.Replace(file, `,"leaves"`, `,"extra":1,"leaves"`, 1),
		"a member in a leaf":    strings.Replace(file, `{"count":8`, `{"a":1,"count":8`, 1),
		"a member twice":        strings.Replace(file, `{"count":8`, `{"count":8,"count":8`, 1),
		"another case":          strings.Replace(file, `"kind":"verdict"`, `"Kind":"verdict"`, 1),
		"uppercase hex":         file[:len(file)-66] + strings.ToUpper(file[len(file)-66:]),
		"another number":        strings.Replace(file, `"count":8`, `"count":8.0`, 1),
		"an escaped letter":     strings.Replace(file, `"kind":"verdict"`, `"kind":"\u0076erdict"`, 1),
		"spelling inside data":  strings.Replace(file, `"value":0.5`, `"value":0.50`, 1),
		"order inside data":     strings.Replace(file, `{"type":"latency","value":0.5}`, `{"value":0.5,"type":"latency"}`, 1),
		"members out of order":  `{"leaves":[],"format":"` + Format + `","root":""}`,
		"no leaves":             `{"format":"` + Format + `","leaves":[],"root":"` + strings.Repeat("0", 64) + `"}`,
		"another format":        strings.Replace(file, "chain/1", "chain/2", 1),
		"nothing":               "",
		"an array":              "[]",
		"two texts":             file + file,
		"a leaf that is null":   strings.Replace(file, `"leaves":[`, `"leaves":[null,`, 1),
		"a leaf without data":   strings.Replace(file, `"leaves":[`, `"leaves":[{},`, 1),
		"a number for a leaf":   strings.Replace(file, `"leaves":[`, `"leaves":[7,`, 1),
		"a lone surrogate":      strings.Replace(file, `"latency"`, `"\ud800"`, 1),
		"an unfinished text":    file[:len(file)/2],
		"text after the leaves": strings.Replace(file, `],"root"`, `],"roof":1,"root"`, 1),
	}
	for name, text := range cases {
		if text == file {
			t.Errorf("%s: the case changes nothing", name)
		}
		if _, err := Parse([]byte(text)); err == nil {
			t.Errorf("%s: accepted", name)
		} else if c := code(t, err); c != CodeNotCanonical && c != CodeMalformed && c != CodeStructure {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestLeavesOutOfPlaceAreRefusedEvenWhenTheyHash(t *testing.T) {
	one := func(k Kind, data string) Leaf { return Leaf{Kind: k, Data: json.RawMessage(data)} }
	good := []Leaf{one(RoundMetadata, `{}`), one(Position, `{"id":"a"}`), one(Position, `{"id":"b"}`), one(Challenge, `{"id":"a"}`),
		one(ConstitutionalCheck, `{}`), one(GradedSemantics, `{}`), one(ConsensusVote, `{}`), one(Verdict, `{}`), one(DissentRecords, `[]`)}
	sealed := func(change func([]Leaf) []Leaf) []byte {
		leaves := change(append([]Leaf(nil), good...))
		for i := range leaves {
			leaves[i].Index = i
		}
		c, err := seal(leaves)
		if err != nil {
			t.Fatal(err)
		}
		return c.Encode()
	}
	swap := func(i, j int) func([]Leaf) []Leaf {
		return func(l []Leaf) []Leaf { l[i], l[j] = l[j], l[i]; return l }
	}
	if _, err := Parse(sealed(func(l []Leaf) []Leaf { return l })); err != nil {
		t.Fatal(err)
	}
	cases := map[string]func([]Leaf) []Leaf{
		"no verdict":               func(l []Leaf) []Leaf { return append(l[:7], l[8]) },
		"two verdicts":             func(l []Leaf) []Leaf { return append(l[:8], l[7], l[8]) },
		"verdict before vote":      swap(6, 7),
		"positions unsorted":       swap(1, 2),
		"a position twice":         func(l []Leaf) []Leaf { l[2] = l[1]; return l },
		"challenge before":         swap(2, 3),
		"a position without id":    func(l []Leaf) []Leaf { l[1].Data = json.RawMessage(`{}`); return l },
		"a position with number":   func(l []Leaf) []Leaf { l[1].Data = json.RawMessage(`{"id":1}`); return l },
		"an unknown kind":          func(l []Leaf) []Leaf { l[4].Kind = "opinion"; return l },
		"nothing after the rounds": func(l []Leaf) []Leaf { return l[:1] },
	}
	for name, change := range cases {
		if _, err := Parse(sealed(change)); err == nil || code(t, err) != CodeStructure {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestARecordThatCannotBecomeAChainIsRefused(t *testing.T) {
	cases := map[string]struct {
		change func(*Record)
		code   string
	}{
		"two positions with one id": {func(r *Record) { r.Positions = append(r.Positions, m{"id": "p0"}) }, machine.CodeAlreadyExists},
		"a position without id":     {func(r *Record) { r.Positions = append(r.Positions, m{"text": "x"}) }, machine.CodeMalformed},
		"a position with empty id":  {func(r *Record) { r.Positions = append(r.Positions, m{"id": ""}) }, machine.CodeMalformed},
		"a challenge that is text":  {func(r *Record) { r.Challenges = append(r.Challenges, "c") }, machine.CodeMalformed},
		"a value without JSON":      {func(r *Record) { r.Verdict = func() {} }, machine.CodeMalformed},
		"an integer beyond 2^53":    {func(r *Record) { r.Verdict = json.RawMessage(`{"n":9007199254740993}`) }, machine.CodeMalformed},
		"a leaf beyond 1 MiB":       {func(r *Record) { r.Verdict = strings.Repeat("x", canon.MaxBytes) }, machine.CodeMalformed},
	}
	for name, c := range cases {
		r := record(1, 1)
		c.change(&r)
		if _, err := Build(r); err == nil || code(t, err) != c.code {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAChainLargerThanOneJSONTextMayBeExports(t *testing.T) {
	r := record(0, 0)
	for i := range 30 {
		r.Positions = append(r.Positions, m{"id": fmt.Sprintf("p%02d", i), "text": strings.Repeat("word ", 13_000)})
	}
	c := build(t, r)
	file := c.Encode()
	if len(file) <= canon.MaxBytes {
		t.Fatalf("only %d bytes", len(file))
	}
	root := c.Root()
	if _, err := Verify(file, &root); err != nil {
		t.Fatal(err)
	}
	if _, err := Parse(make([]byte, MaxFile+1)); code(t, err) != CodeTooLarge {
		t.Fatal(err)
	}
}

func TestAHashIsReadInOneSpellingOnly(t *testing.T) {
	good := strings.Repeat("0a", 32)
	if h, err := ParseHash(good); err != nil || h.String() != good {
		t.Fatal(err)
	}
	for _, bad := range []string{"", strings.ToUpper(good), good[:62], good + "00", "zz" + good[2:], " " + good} {
		if _, err := ParseHash(bad); err == nil || code(t, err) != machine.CodeMalformed {
			t.Errorf("%q: %v", bad, err)
		}
	}
}

func FuzzParse(f *testing.F) {
	f.Add(build(f, record(2, 1)).Encode())
	f.Add(build(f, record(0, 0)).Encode())
	f.Add([]byte(head))
	f.Add([]byte(head + `{"count":1,"data":{},"hash":"","index":0,"kind":"verdict"}],"root":""}`))
	f.Fuzz(func(t *testing.T, file []byte) {
		c, err := Parse(file)
		if err != nil {
			var failure *Failure
			if !errors.As(err, &failure) {
				t.Fatalf("untyped error %v", err)
			}
			return
		}
		if !bytes.Equal(c.Encode(), file) {
			t.Fatal("accepted a text that is not its own export")
		}
		for i := range c.Leaves() {
			p, err := c.Proof(i)
			if err != nil || p.Verify(c.Root()) != nil {
				t.Fatalf("leaf %d has no proof", i)
			}
		}
	})
}
