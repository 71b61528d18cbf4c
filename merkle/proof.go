package merkle

import (
	"crypto/sha256"
	"fmt"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Proof shows that one leaf is part of the chain with a given root, without
// the other leaves.
type Proof struct {
	Leaf Leaf   `json:"leaf"`
	Path []Step `json:"path"` // from the leaf up
}

// Step is the sibling on one level.
type Step struct {
	Hash Hash `json:"hash"`
	Left bool `json:"left"` // the sibling stands left of the path
}

// Proof is the inclusion proof of the leaf at index; out_of_range when there is none.
func (c *Chain) Proof(index int) (Proof, error) {
	if index < 0 || index >= len(c.leaves) {
		return Proof{}, machine.Refuse(machine.CodeOutOfRange, fmt.Sprintf("choose a leaf from 0 to %d", len(c.leaves)-1), "there is no leaf %d", index)
	}
	l := c.leaves[index]
	hashes, sides, err := c.tree.GetMerklePath(content{l.Index, l.Hash})
	if err != nil {
		return Proof{}, err
	}
	p := Proof{Leaf: l, Path: make([]Step, len(hashes))}
	for i, h := range hashes {
		p.Path[i] = Step{Hash: Hash(h), Left: sides[i] == 0}
	}
	return p, nil
}

// Verify recomputes the root from the leaf. It errs with a [*Failure] when
// the leaf's data is not canonical, its hash is not that of its data, the path
// is not the one of its index, or another root comes out.
func (p Proof) Verify(root Hash) error {
	l := p.Leaf
	fail := func(code, detail string) error {
		return &Failure{Code: code, Leaf: l.Index, Kind: l.Kind, Detail: detail}
	}
	if err := canon.CheckCanonical(l.Data); err != nil {
		return fail(CodeNotCanonical, err.Error())
	}
	if _, known := place[l.Kind]; !known {
		return fail(CodeStructure, "no leaf is of this kind")
	}
	if l.Count < 1 || l.Count > MaxLeaves || l.Index < 0 || l.Index >= l.Count {
		return fail(CodeStructure, fmt.Sprintf("index %d of %d leaves", l.Index, l.Count))
	}
	if l.hash() != l.Hash {
		return fail(CodeLeafHash, "the data does not hash to the leaf's hash")
	}
	at, width, node := l.Index, l.Count+l.Count%2, l.Hash
	for _, s := range p.Path {
		if width < 2 {
			return fail(CodeStructure, "the path is too long")
		}
		if s.Left != (at%2 == 1) {
			return fail(CodeStructure, "the path belongs to another index")
		}
		if s.Left {
			node = sha256.Sum256(append(append([]byte(nil), s.Hash[:]...), node[:]...))
		} else {
			node = sha256.Sum256(append(append([]byte(nil), node[:]...), s.Hash[:]...))
		}
		at, width = at/2, (width+1)/2
	}
	if width > 1 {
		return fail(CodeStructure, "the path is too short")
	}
	if node != root {
		return fail(CodeRoot, fmt.Sprintf("the leaf leads to root %s, not %s", node, root))
	}
	return nil
}
