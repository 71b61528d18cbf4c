package node

import (
	"crypto/sha256"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deliberd/deliberd/internal/sign"
)

// verifiedKept is how many checked actions a node remembers between its door
// and apply, so that no signature is checked twice on one node.
const verifiedKept = 16384

// verifier checks signatures once per node. A kid is the hash of its key, so
// what was checked under a kid stays checked.
type verifier struct {
	seen *lru.Cache[[32]byte, sign.Verified]
}

func newVerifier() (*verifier, error) {
	seen, err := lru.New[[32]byte, sign.Verified](verifiedKept)
	return &verifier{seen}, err
}

func (v *verifier) verify(text []byte, key sign.PublicKey) (sign.Verified, error) {
	h := sha256.New()
	h.Write([]byte(key.KID()))
	h.Write(text)
	id := [32]byte(h.Sum(nil))
	if got, ok := v.seen.Get(id); ok {
		return got, nil
	}
	got, err := sign.Verify(text, key)
	if err == nil {
		v.seen.Add(id, got)
	}
	return got, err
}
