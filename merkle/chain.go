package merkle

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"sort"

	"github.com/cbergoon/merkletree"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Kind names a leaf of §5.1.
type Kind string

// The kinds, in the order of a chain.
const (
	RoundMetadata       Kind = "round_metadata"
	Position            Kind = "position"  // with its evidence; any number, by id
	Challenge           Kind = "challenge" // a challenge or a support; any number, by id
	ConstitutionalCheck Kind = "constitutional_check"
	GradedSemantics     Kind = "graded_semantics"
	ConsensusVote       Kind = "consensus_vote"
	Verdict             Kind = "verdict"
	DissentRecords      Kind = "dissent_records"
)

// place is where kinds stand in a chain; list marks those of which a chain
// holds any number, ordered by id.
var place = map[Kind]struct {
	order int
	list  bool
}{
	RoundMetadata: {0, false}, Position: {1, true}, Challenge: {2, true}, ConstitutionalCheck: {3, false},
	GradedSemantics: {4, false}, ConsensusVote: {5, false}, Verdict: {6, false}, DissentRecords: {7, false},
}

// singles is the number of kinds of which a chain holds exactly one.
const singles = 6

// Hash is a SHA-256 hash; in JSON 64 lowercase hex digits.
type Hash [sha256.Size]byte

func (h Hash) String() string { return hex.EncodeToString(h[:]) }

// MarshalText writes 64 lowercase hex digits.
func (h Hash) MarshalText() ([]byte, error) { return []byte(h.String()), nil }

// UnmarshalText reads exactly 64 lowercase hex digits.
func (h *Hash) UnmarshalText(text []byte) error {
	got, err := ParseHash(string(text))
	if err != nil {
		return err
	}
	*h = got
	return nil
}

// ParseHash reads exactly 64 lowercase hex digits; malformed otherwise.
func ParseHash(text string) (Hash, error) {
	var h Hash
	raw, err := hex.DecodeString(text)
	if err != nil || len(raw) != len(h) || hex.EncodeToString(raw) != text {
		return h, machine.Refuse(machine.CodeMalformed, "give 64 lowercase hex digits", "%.80q is no SHA-256 hash", text)
	}
	return Hash(raw), nil
}

// Leaf is one element of a chain.
type Leaf struct {
	Kind  Kind            `json:"kind"`
	Index int             `json:"index"`
	Count int             `json:"count"` // leaves in the whole chain
	Data  json.RawMessage `json:"data"`  // canonical JSON
	Hash  Hash            `json:"hash"`
}

// text is what a leaf hashes: JCS of its other members. Data is canonical.
func (l Leaf) text() []byte {
	return fmt.Appendf(nil, `{"count":%d,"data":%s,"index":%d,"kind":%q}`, l.Count, l.Data, l.Index, string(l.Kind))
}

func (l Leaf) hash() Hash { return sha256.Sum256(l.text()) }

// Record is everything a round leaves behind: values that encode as JSON.
type Record struct {
	RoundMetadata any
	// Positions with their evidence, and Challenges (challenges and supports):
	// in any order, each an object with its own "id" string, which orders it.
	Positions           []any
	Challenges          []any
	ConstitutionalCheck any
	GradedSemantics     any
	ConsensusVote       any
	Verdict             any
	DissentRecords      any
}

// Chain is the leaves of one round and their tree.
type Chain struct {
	leaves []Leaf
	tree   *merkletree.MerkleTree
}

// Build makes the chain of a round. It errs with already_exists when two
// positions or two challenges share an id, with malformed when data does not
// encode as canonical JSON of at most 1 MiB or a listed item has no id, and
// with out_of_range beyond MaxLeaves.
func Build(r Record) (*Chain, error) {
	var b builder
	b.one(RoundMetadata, r.RoundMetadata)
	b.list(Position, r.Positions)
	b.list(Challenge, r.Challenges)
	b.one(ConstitutionalCheck, r.ConstitutionalCheck)
	b.one(GradedSemantics, r.GradedSemantics)
	b.one(ConsensusVote, r.ConsensusVote)
	b.one(Verdict, r.Verdict)
	b.one(DissentRecords, r.DissentRecords)
	if b.err != nil {
		return nil, b.err
	}
	return seal(b.leaves)
}

// builder collects leaves up to the first error.
type builder struct {
	leaves []Leaf
	err    error
}

func (b *builder) encode(kind Kind, data any) []byte {
	text, err := canon.Marshal(data)
	if err == nil {
		err = canon.CheckCanonical(text)
	}
	if err != nil && b.err == nil {
		b.err = machine.Refuse(machine.CodeMalformed, "give data that encodes as canonical JSON of at most 1 MiB", "%s: %v", kind, err)
	}
	return text
}

func (b *builder) one(kind Kind, data any) {
	text := b.encode(kind, data)
	b.leaves = append(b.leaves, Leaf{Kind: kind, Index: len(b.leaves), Data: text})
}

func (b *builder) list(kind Kind, items []any) {
	type listed struct {
		id   string
		text []byte
	}
	all := make([]listed, 0, len(items))
	for _, it := range items {
		text := b.encode(kind, it)
		id, ok := idOf(text)
		if !ok && b.err == nil {
			b.err = machine.Refuse(machine.CodeMalformed, `give every item an "id" string`, "an item of kind %s has no id", kind)
		}
		all = append(all, listed{id, text})
	}
	sort.SliceStable(all, func(i, j int) bool { return all[i].id < all[j].id })
	for i, it := range all {
		if i > 0 && all[i-1].id == it.id && b.err == nil {
			b.err = machine.Refuse(machine.CodeAlreadyExists, "give every item its own id", "two items of kind %s are called %q", kind, it.id)
		}
		b.leaves = append(b.leaves, Leaf{Kind: kind, Index: len(b.leaves), Data: it.text})
	}
}

// idOf is the member "id" of an object, when it is a string that is not empty.
func idOf(text []byte) (string, bool) {
	var members map[string]json.RawMessage
	var id string
	if json.Unmarshal(text, &members) != nil || json.Unmarshal(members["id"], &id) != nil {
		return "", false
	}
	return id, id != ""
}

// MaxLeaves is the longest chain.
const MaxLeaves = 1 << 16

// seal counts and hashes leaves and builds their tree.
func seal(leaves []Leaf) (*Chain, error) {
	if len(leaves) > MaxLeaves {
		return nil, machine.Refuse(machine.CodeOutOfRange, "split the round", "%d leaves, at most %d are possible", len(leaves), MaxLeaves)
	}
	for i := range leaves {
		leaves[i].Count = len(leaves)
		leaves[i].Hash = leaves[i].hash()
	}
	tree, err := grow(leaves)
	if err != nil {
		return nil, err
	}
	return &Chain{leaves: leaves, tree: tree}, nil
}

// Root is the root of the chain's tree.
func (c *Chain) Root() Hash { return Hash(c.tree.MerkleRoot()) }

// Leaves are the leaves in order. The slice belongs to the chain.
func (c *Chain) Leaves() []Leaf { return c.leaves }

// content lets the tree hold a leaf. Leaves of one chain differ in index.
type content struct {
	index int
	hash  Hash
}

// CalculateHash returns a slice of exact capacity: the tree appends to it.
func (c content) CalculateHash() ([]byte, error) {
	return append([]byte(nil), c.hash[:]...)[:32:32], nil
}

func (c content) Equals(o merkletree.Content) (bool, error) {
	other, ok := o.(content)
	return ok && other == c, nil
}

func grow(leaves []Leaf) (*merkletree.MerkleTree, error) {
	list := make([]merkletree.Content, len(leaves))
	for i, l := range leaves {
		list[i] = content{l.Index, l.Hash}
	}
	return merkletree.NewTree(list)
}
