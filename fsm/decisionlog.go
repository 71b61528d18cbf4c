package fsm

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"math/bits"
	"strconv"
	"unicode/utf8"

	"github.com/transparency-dev/merkle/compact"
	"github.com/transparency-dev/merkle/proof"
	"github.com/transparency-dev/merkle/rfc6962"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Record is one leaf of the decision log. The leaf's bytes are the record's
// canonical JSON; its hash is RFC 6962's over these bytes.
type Record struct {
	Data       json.RawMessage `json:"data"`
	Epoch      uint64          `json:"epoch"`
	Generation uint64          `json:"generation"`
	Genesis    string          `json:"genesis"`
	Index      uint64          `json:"index"` // leaf number, from 0
	Seq        uint64          `json:"seq"`   // entry number, from 1
	Stamp      machine.Stamp   `json:"stamp_ms"`
	Subject    string          `json:"subject"`
	To         []string        `json:"to"` // principals concerned; null: everybody
	Type       string          `json:"type"`
}

// encode is the record's canonical JSON. Data is canonical already.
func (r Record) encode() ([]byte, error) {
	if len(r.Data) == 0 || max(r.Epoch, r.Generation, r.Index, r.Seq, uint64(r.Stamp)) > canon.MaxInteger || !r.validText() {
		return canon.Marshal(r)
	}
	out := make([]byte, 0, 256+len(r.Data)+len(r.Subject)+16*len(r.To))
	out = append(append(out, `{"data":`...), r.Data...)
	out = strconv.AppendUint(append(out, `,"epoch":`...), r.Epoch, 10)
	out = strconv.AppendUint(append(out, `,"generation":`...), r.Generation, 10)
	out = canon.AppendText(append(out, `,"genesis":`...), r.Genesis)
	out = strconv.AppendUint(append(out, `,"index":`...), r.Index, 10)
	out = strconv.AppendUint(append(out, `,"seq":`...), r.Seq, 10)
	out = strconv.AppendInt(append(out, `,"stamp_ms":`...), int64(r.Stamp), 10)
	out = canon.AppendText(append(out, `,"subject":`...), r.Subject)
	out = append(out, `,"to":`...)
	if r.To == nil {
		out = append(out, "null"...)
	} else {
		out = append(out, '[')
		for i, id := range r.To {
			if i > 0 {
				out = append(out, ',')
			}
			out = canon.AppendText(out, id)
		}
		out = append(out, ']')
	}
	out = canon.AppendText(append(out, `,"type":`...), r.Type)
	return append(out, '}'), nil
}

func (r Record) validText() bool {
	for _, id := range r.To {
		if !utf8.ValidString(id) {
			return false
		}
	}
	return utf8.ValidString(r.Genesis) && utf8.ValidString(r.Subject) && utf8.ValidString(r.Type)
}

// EntryRecord is the type of an entry's own leaf, the first of its leaves.
const EntryRecord = "entry"

// EntryData is the data of an entry's own leaf.
type EntryData struct {
	Actions int    `json:"actions"`
	Code    string `json:"code,omitempty"` // why the whole entry was a no-op
	Entry   string `json:"entry"`          // SHA-256 of the entry's bytes, hex
	Refused int    `json:"refused"`
	Writes  string `json:"writes"` // SHA-256 of what it wrote, hex
}

var tree = compact.RangeFactory{Hash: rfc6962.DefaultHasher.HashChildren}

// nodeKey numbers the nodes of the tree in the order in which they are
// completed: a leaf, then the nodes above it whose last leaf it is. An entry
// so adds its nodes side by side, and the store writes one page for them.
func nodeKey(id compact.NodeID) []byte {
	last := (id.Index+1)<<id.Level - 1 // the leaf that completes it
	before := 2*last - uint64(bits.OnesCount64(last))
	return seqKey(nsNode, before+uint64(id.Level))
}

func seqKey(ns byte, n uint64) []byte { return binary.BigEndian.AppendUint64([]byte{ns}, n) }

// appendRecord adds one leaf and stores its text and every tree node it completes.
func appendRecord(tx machine.Tx, r *compact.Range, rec Record) error {
	text, err := rec.encode()
	if err != nil {
		return fmt.Errorf("encode record %d: %w", rec.Index, err)
	}
	if err := tx.Put(seqKey(nsRecord, rec.Index), text); err != nil {
		return err
	}
	var failed error
	put := func(id compact.NodeID, hash []byte) {
		if err := tx.Put(nodeKey(id), hash); err != nil {
			failed = err
		}
	}
	leaf := rfc6962.DefaultHasher.HashLeaf(text)
	put(compact.NewNodeID(0, rec.Index), leaf)
	if err := r.Append(leaf, put); err != nil {
		return err
	}
	return failed
}

func rootOf(r *compact.Range) ([32]byte, error) {
	if r.End() == 0 {
		return [32]byte(rfc6962.DefaultHasher.EmptyRoot()), nil
	}
	root, err := r.GetRootHash(nil)
	if err != nil {
		return [32]byte{}, err
	}
	return [32]byte(root), nil
}

// Proof is an RFC 6962 proof in the decision log, hashes in hex.
type Proof struct {
	Size   uint64   `json:"size"`
	Root   string   `json:"root"`
	Hashes []string `json:"hashes"`
}

// Inclusion proves that leaf index is in the log of the given size.
func Inclusion(tx machine.Tx, index, size uint64) (Proof, error) {
	nodes, err := proof.Inclusion(index, size)
	if err != nil {
		return Proof{}, machine.Refuse(machine.CodeOutOfRange, "ask for a leaf below the size and a size up to the log's", "no proof of leaf %d in a log of %d", index, size)
	}
	return prove(tx, nodes, size)
}

// Consistency proves that the log of size2 extends the log of size1.
func Consistency(tx machine.Tx, size1, size2 uint64) (Proof, error) {
	nodes, err := proof.Consistency(size1, size2)
	if err != nil {
		return Proof{}, machine.Refuse(machine.CodeOutOfRange, "ask for 0 < size1 <= size2 up to the log's size", "no proof from %d to %d", size1, size2)
	}
	return prove(tx, nodes, size2)
}

func prove(tx machine.Tx, nodes proof.Nodes, size uint64) (Proof, error) {
	hashes, err := loadNodes(tx, nodes.IDs)
	if err != nil {
		return Proof{}, err
	}
	hashes, err = nodes.Rehash(hashes, rfc6962.DefaultHasher.HashChildren)
	if err != nil {
		return Proof{}, err
	}
	root, err := rootAt(tx, size)
	if err != nil {
		return Proof{}, err
	}
	p := Proof{Size: size, Root: hex.EncodeToString(root[:]), Hashes: make([]string, 0, len(hashes))}
	for _, h := range hashes {
		p.Hashes = append(p.Hashes, hex.EncodeToString(h))
	}
	return p, nil
}

func loadNodes(tx machine.Tx, ids []compact.NodeID) ([][]byte, error) {
	hashes := make([][]byte, 0, len(ids))
	for _, id := range ids {
		h, err := tx.Get(nodeKey(id))
		if err != nil {
			return nil, err
		}
		if h == nil {
			return nil, machine.Refuse(machine.CodeOutOfRange, "ask for a size up to the log's", "the log does not reach node %d/%d", id.Level, id.Index)
		}
		hashes = append(hashes, append([]byte(nil), h...))
	}
	return hashes, nil
}

// tail is the decision log's compact range as the last Apply left it. It is
// good for any state with this size and root.
type tail struct {
	size uint64
	root string
	r    *compact.Range
}

// rangeOf is the compact range of a state's log. It is for one Apply, which
// appends to it.
func (f *FSM) rangeOf(tx machine.Tx, h Head) (*compact.Range, error) {
	t := f.tail
	f.tail = tail{}
	if t.r != nil && t.size == h.Size && t.root == h.Root {
		return t.r, nil
	}
	return rangeAt(tx, h.Size)
}

// rangeAt rebuilds the compact range of the log's first size leaves.
func rangeAt(tx machine.Tx, size uint64) (*compact.Range, error) {
	hashes, err := loadNodes(tx, compact.RangeNodes(0, size, nil))
	if err != nil {
		return nil, err
	}
	return tree.NewRange(0, size, hashes)
}

func rootAt(tx machine.Tx, size uint64) ([32]byte, error) {
	r, err := rangeAt(tx, size)
	if err != nil {
		return [32]byte{}, err
	}
	return rootOf(r)
}

// Records reads leaves from index on, in order, until f returns false.
func Records(tx machine.Tx, from uint64, f func(Record) (bool, error)) error {
	return tx.Range(seqKey(nsRecord, from), []byte{nsRecord + 1}, func(_, v []byte) (bool, error) {
		var rec Record
		if err := json.Unmarshal(v, &rec); err != nil {
			return false, fmt.Errorf("decision log: %w", err)
		}
		return f(rec)
	})
}

// RecordText is the exact bytes of one leaf; nil when the log is shorter.
func RecordText(tx machine.Tx, index uint64) ([]byte, error) {
	return tx.Get(seqKey(nsRecord, index))
}
