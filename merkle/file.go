package merkle

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/deliberd/deliberd/internal/canon"
)

// Format is the first member of an exported chain.
const Format = "deliberd-evidence-chain/1"

// MaxFile is the longest export read, 64 MiB.
const MaxFile = 64 << 20

// Encode is the export of a chain: the canonical JSON of
//
//	{"format": Format, "leaves": [{"count","data","hash","index","kind"}, …], "root": …}
//
// without white space or a final newline.
func (c *Chain) Encode() []byte { return encode(c.leaves, c.Root()) }

// head is how every export starts.
const head = `{"format":"` + Format + `","leaves":[`

func encode(leaves []Leaf, root Hash) []byte {
	size := 256
	for _, l := range leaves {
		size += len(l.Data) + 192
	}
	out := append(make([]byte, 0, size), head...)
	for i, l := range leaves {
		if i > 0 {
			out = append(out, ',')
		}
		out = l.encode(out)
	}
	return fmt.Appendf(out, `],"root":"%s"}`, root)
}

func (l Leaf) encode(out []byte) []byte {
	return fmt.Appendf(out, `{"count":%d,"data":%s,"hash":"%s","index":%d,"kind":%q}`, l.Count, l.Data, l.Hash, l.Index, string(l.Kind))
}

// Parse reads an export and checks everything that needs no trusted root: the
// text is canonical, the leaves are those of §5.1 in order, every leaf hashes
// to its hash, and the root is theirs. It errs with a [*Failure] that names
// the leaf at fault where there is one.
func Parse(file []byte) (*Chain, error) {
	if len(file) > MaxFile {
		return nil, &Failure{Code: CodeTooLarge, Leaf: -1, Detail: fmt.Sprintf("%d bytes, at most %d are read", len(file), MaxFile)}
	}
	leaves, root, err := read(file)
	if err != nil {
		return nil, err
	}
	for i, l := range leaves {
		if l.hash() != l.Hash {
			return nil, &Failure{Code: CodeLeafHash, Leaf: i, Kind: l.Kind, Detail: fmt.Sprintf("the data hashes to %s, not to %s", l.hash(), l.Hash)}
		}
	}
	if err := checkStructure(leaves); err != nil {
		return nil, err
	}
	tree, err := grow(leaves)
	if err != nil {
		return nil, err
	}
	c := &Chain{leaves: leaves, tree: tree}
	if c.Root() != root {
		return nil, &Failure{Code: CodeRoot, Leaf: -1, Detail: fmt.Sprintf("the leaves lead to %s, the file says %s", c.Root(), root)}
	}
	return c, nil
}

// read takes the text apart leaf by leaf, so that an error can name its leaf,
// and compares it with the one way to write what it read. encoding/json is
// lax; the comparison refuses whatever it let pass.
func read(file []byte) ([]Leaf, Hash, error) {
	var root Hash
	dec := json.NewDecoder(bytes.NewReader(file))
	bad := func(leaf int, detail string) error {
		return &Failure{Code: CodeMalformed, Leaf: leaf, Detail: detail}
	}
	for _, want := range []json.Token{json.Delim('{'), "format", Format, "leaves", json.Delim('[')} {
		if got, err := dec.Token(); err != nil || got != want {
			return nil, root, bad(-1, fmt.Sprintf("where %q should stand the file has something else; is this an exported evidence chain?", fmt.Sprint(want)))
		}
	}
	var leaves []Leaf
	for dec.More() {
		i := len(leaves)
		if i == MaxLeaves {
			return nil, root, bad(-1, "too many leaves")
		}
		var l Leaf
		if err := dec.Decode(&l); err != nil {
			return nil, root, bad(i, err.Error())
		}
		if err := canon.CheckCanonical(l.Data); err != nil {
			return nil, root, &Failure{Code: CodeNotCanonical, Leaf: i, Kind: l.Kind, Detail: err.Error()}
		}
		leaves = append(leaves, l)
	}
	for _, want := range []json.Token{json.Delim(']'), "root"} {
		if got, err := dec.Token(); err != nil || got != want {
			return nil, root, bad(-1, "the leaves do not end with the root")
		}
	}
	if err := dec.Decode(&root); err != nil {
		return nil, root, bad(-1, "root: "+err.Error())
	}
	if want := encode(leaves, root); !bytes.Equal(file, want) {
		return nil, root, differs(file, leaves, want)
	}
	return leaves, root, nil
}

// differs names the leaf in which a text leaves its canonical form.
func differs(file []byte, leaves []Leaf, want []byte) error {
	at := 0
	for at < len(file) && at < len(want) && file[at] == want[at] {
		at++
	}
	f := &Failure{Code: CodeNotCanonical, Leaf: -1, Detail: fmt.Sprintf("not the canonical text at byte %d", at)}
	end := len(head)
	for i, l := range leaves {
		if i > 0 {
			end++ // the comma
		}
		start := end
		if end += len(l.encode(nil)); at >= start && at < end {
			f.Leaf, f.Kind = i, l.Kind
			break
		}
	}
	return f
}

// checkStructure checks that leaves are those of §5.1, numbered and in order.
func checkStructure(leaves []Leaf) error {
	seen, last, lastID := 0, -1, ""
	for i, l := range leaves {
		fail := func(format string, args ...any) error {
			return &Failure{Code: CodeStructure, Leaf: i, Kind: l.Kind, Detail: fmt.Sprintf(format, args...)}
		}
		p, known := place[l.Kind]
		switch {
		case !known:
			return fail("no leaf is of this kind")
		case l.Index != i:
			return fail("it says it is leaf %d", l.Index)
		case l.Count != len(leaves):
			return fail("it says the chain has %d leaves, there are %d", l.Count, len(leaves))
		case p.order < last || p.order == last && !p.list:
			return fail("it does not belong after a %s", leaves[i-1].Kind)
		}
		if p.list {
			id, ok := idOf(l.Data)
			if !ok {
				return fail("its data has no id")
			}
			if p.order == last && id <= lastID {
				return fail("its id %q does not come after %q", id, lastID)
			}
			lastID = id
		} else {
			seen++
		}
		last = p.order
	}
	if seen != singles {
		return &Failure{Code: CodeStructure, Leaf: -1, Detail: fmt.Sprintf("%d of the %d leaves that every chain has are missing", singles-seen, singles)}
	}
	return nil
}

// Report is the outcome of a verification that found nothing wrong.
type Report struct {
	Root   Hash `json:"root"`
	Leaves int  `json:"leaves"`
	// Proven: the root is the one the reader trusts. Otherwise the file is
	// consistent with itself, which anybody can make it.
	Proven bool   `json:"proven"`
	Result string `json:"result"` // "proven" or "consistent, unproven"
}

// Verify checks an export against a trusted root; nil when there is none. It
// errs with a [*Failure].
func Verify(file []byte, root *Hash) (Report, error) {
	c, err := Parse(file)
	if err != nil {
		return Report{}, err
	}
	r := Report{Root: c.Root(), Leaves: len(c.leaves), Result: "consistent, unproven"}
	if root == nil {
		return r, nil
	}
	if *root != r.Root {
		return Report{}, &Failure{Code: CodeRoot, Leaf: -1, Detail: fmt.Sprintf("the file is the chain of root %s, not of %s", r.Root, *root)}
	}
	r.Proven, r.Result = true, "proven"
	return r, nil
}
