package node

import (
	"crypto/sha256"
	"runtime"
	"sync"

	lru "github.com/hashicorp/golang-lru/v2"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
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

// prepare decodes an entry and checks its signatures on all cores, before the
// transaction that applies it.
func prepare(f *fsm.FSM, tx machine.Tx, entry []byte) (*fsm.Prepared, error) {
	p := fsm.Decode(entry)
	if err := f.FindKeys(tx, p); err != nil {
		return nil, err
	}
	n := p.Len()
	workers := min(n, runtime.GOMAXPROCS(0))
	if workers <= 1 {
		for i := range n {
			f.Verify(p, i)
		}
		return p, nil
	}
	var wg sync.WaitGroup
	for w := range workers {
		wg.Go(func() {
			for i := w; i < n; i += workers {
				f.Verify(p, i)
			}
		})
	}
	wg.Wait()
	return p, nil
}
