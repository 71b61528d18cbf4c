package node

import (
	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deliberd/deliberd/internal/sign"
)

// verifiedKept is how many checked actions a node remembers between its door
// and apply, so that no signature is checked twice on one node.
const verifiedKept = 16384

// verifier checks signatures once per node. A kid is the hash of its key, so
// what was checked under a kid stays checked.
type verifier struct {
	seen *lru.Cache[checked, sign.Verified]
}

// checked names an action's text and the key it was checked under.
type checked struct {
	text [32]byte
	kid  string
}

func newVerifier() (*verifier, error) {
	seen, err := lru.New[checked, sign.Verified](verifiedKept)
	return &verifier{seen}, err
}

func (v *verifier) verify(u sign.Unverified, key sign.PublicKey) (sign.Verified, error) {
	id := checked{u.Hash(), key.KID()}
	if got, ok := v.seen.Get(id); ok {
		return got, nil
	}
	got, err := u.Verify(key)
	if err == nil {
		v.seen.Add(id, got)
	}
	return got, err
}
