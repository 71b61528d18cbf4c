package node

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
)

// keysFile holds a node's private keys, readable by its user only.
const keysFile = "node.key.json"

// Keys are a node's private keys. Identity names the node: its peer id is
// derived from it, and it authenticates every connection and every action of
// the node. PBFT signs the frames of contested rounds, Attest will sign
// checkpoints; both are certified by the membership log.
type Keys struct {
	Identity sign.Key `json:"identity"`
	PBFT     sign.Key `json:"pbft"`
	Attest   sign.Key `json:"attest"`
	uses
}

// NewKeys makes three fresh keys.
func NewKeys(random io.Reader) (Keys, error) {
	var k Keys
	for _, into := range []*sign.Key{&k.Identity, &k.PBFT, &k.Attest} {
		key, err := sign.NewKey(random)
		if err != nil {
			return Keys{}, err
		}
		*into = key
	}
	return k, nil
}

// ID is the node's peer id.
func (k Keys) ID() string { return k.Identity.Public().PeerID() }

// LoadKeys reads a data folder's keys. It errs with fs.ErrNotExist when there
// are none.
func LoadKeys(dir string) (Keys, error) {
	raw, err := os.ReadFile(filepath.Join(dir, keysFile))
	if err != nil {
		return Keys{}, err
	}
	var file struct {
		Identity json.RawMessage `json:"identity"`
		PBFT     json.RawMessage `json:"pbft"`
		Attest   json.RawMessage `json:"attest"`
		uses
	}
	if err := canon.Decode(raw, &file); err != nil {
		return Keys{}, fmt.Errorf("%s: %w", keysFile, err)
	}
	k := Keys{uses: file.uses}
	for into, text := range map[*sign.Key]json.RawMessage{&k.Identity: file.Identity, &k.PBFT: file.PBFT, &k.Attest: file.Attest} {
		if *into, err = sign.ParseKey(text); err != nil {
			return Keys{}, fmt.Errorf("%s: %w", keysFile, err)
		}
	}
	return k, nil
}

// Save writes fresh keys into a data folder, which is made if missing. It never
// replaces keys: that would take the node's identity away.
func (k Keys) Save(dir string) error {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return err
	}
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	f, err := os.OpenFile(filepath.Join(dir, keysFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Sync(), f.Close())
}

// EnsureKeys loads a data folder's keys, or makes and saves them.
func EnsureKeys(dir string, random io.Reader) (Keys, error) {
	k, err := LoadKeys(dir)
	if !errors.Is(err, fs.ErrNotExist) {
		return k, err
	}
	if k, err = NewKeys(random); err != nil {
		return Keys{}, err
	}
	return k, k.Save(dir)
}
