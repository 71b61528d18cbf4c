package merkle

import "fmt"

// Codes of a Failure.
const (
	CodeMalformed    = "malformed"     // not the JSON of a chain
	CodeNotCanonical = "not_canonical" // not its own canonical form
	CodeStructure    = "structure"     // leaves out of order, missing, repeated or misnumbered
	CodeLeafHash     = "leaf_hash"     // a leaf's data does not hash to its hash
	CodeRoot         = "root"          // the leaves do not lead to the root
	CodeTooLarge     = "too_large"     // beyond MaxFile
)

// Failure is what is wrong with a chain, and where.
type Failure struct {
	Code   string `json:"code"`
	Leaf   int    `json:"leaf"` // index of the leaf at fault, −1 when it is none of them
	Kind   Kind   `json:"kind,omitempty"`
	Detail string `json:"detail"`
}

func (f *Failure) Error() string {
	if f.Leaf < 0 {
		return f.Code + ": " + f.Detail
	}
	kind := string(f.Kind)
	if kind == "" {
		kind = "unreadable"
	}
	return fmt.Sprintf("%s: leaf %d (%s): %s", f.Code, f.Leaf, kind, f.Detail)
}
