package client

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"time"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

// Identity is a principal and its private key: who signs.
type Identity struct {
	Cluster string // genesis hash, 64 hex digits; empty until it is known
	ID      string // agent, human or operator
	key     sign.Key
}

// identityFile is what an identity file holds. It is a secret.
type identityFile struct {
	Cluster string          `json:"cluster,omitempty"`
	ID      string          `json:"id"`
	Key     json.RawMessage `json:"key"` // private JWK, RFC 8037
}

// NewIdentity makes a principal's key from the system's random source.
func NewIdentity(id string) (*Identity, error) {
	key, err := sign.NewKey(rand.Reader)
	if err != nil {
		return nil, err
	}
	return IdentityOf("", id, key), nil
}

// IdentityOf joins a key to its principal; cluster may be empty.
func IdentityOf(cluster, id string, key sign.Key) *Identity {
	return &Identity{Cluster: cluster, ID: id, key: key}
}

// ParseIdentity reads the text of an identity file, strictly. It errs with an
// [*Error] of code bad_identity.
func ParseIdentity(text []byte) (*Identity, error) {
	var f identityFile
	if err := canon.Decode(text, &f); err != nil {
		return nil, badIdentity("It is not {cluster, id, key}: %v.", err)
	}
	key, err := sign.ParseKey(f.Key)
	if err != nil {
		return nil, badIdentity("Its key cannot be used: %v.", err)
	}
	if f.ID == "" || f.Cluster != "" && len(f.Cluster) != 64 {
		return nil, badIdentity("Its id is empty or its cluster no genesis hash.")
	}
	return &Identity{Cluster: f.Cluster, ID: f.ID, key: key}, nil
}

func badIdentity(format string, args ...any) *Error {
	return &Error{Code: "bad_identity", Message: "This is no identity file. " + fmt.Sprintf(format, args...), Fix: "make one with `deliberd agent new`"}
}

// ReadIdentity reads an identity file.
func ReadIdentity(path string) (*Identity, error) {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, &Error{Code: "no_identity", Message: fmt.Sprintf("There is no identity file %s.", path), Fix: "make one with `deliberd agent new`, or name another"}
	case err != nil:
		return nil, err
	}
	id, err := ParseIdentity(text)
	var e *Error
	if errors.As(err, &e) {
		e.Message = path + ": " + e.Message
	}
	return id, err
}

// Encode is the text of an identity file: a secret.
func (i *Identity) Encode() ([]byte, error) {
	key, err := json.Marshal(i.key)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	text, err := json.Marshal(identityFile{Cluster: i.Cluster, ID: i.ID, Key: key})
	if err != nil {
		return nil, err
	}
	err = json.Indent(&out, text, "", "  ")
	out.WriteByte('\n')
	return out.Bytes(), err
}

// Create writes a new identity file that only its owner can read. It errs
// when the file exists: a lost key cannot be made again.
func (i *Identity) Create(path string) error {
	text, err := i.Encode()
	if err != nil {
		return err
	}
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return &Error{Code: machine.CodeAlreadyExists, Message: fmt.Sprintf("The file %s exists.", path), Fix: "choose another name, or move the old key away"}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	return errors.Join(err, f.Sync(), f.Close())
}

// Replace writes an identity file in place of an older one, in one step.
func (i *Identity) Replace(path string) error {
	text, err := i.Encode()
	if err != nil {
		return err
	}
	f, err := os.CreateTemp(filepath.Dir(path), ".identity-*") // made with mode 0600
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err = errors.Join(err, f.Sync(), f.Close()); err == nil {
		err = os.Rename(f.Name(), path)
	}
	if err != nil {
		_ = os.Remove(f.Name()) // the first error says more
	}
	return err
}

// Key is the signing key: a secret.
func (i *Identity) Key() sign.Key { return i.key }

// PublicJWK is the public key as a JWK, what a registry takes.
func (i *Identity) PublicJWK() sign.JWK { return i.key.Public().JWK() }

// Token makes a bearer token for reading, good from now for life, an hour at most.
func (i *Identity) Token(life time.Duration) (string, error) {
	text, err := token.Make(i.key, i.Cluster, i.ID, time.Now(), life)
	return text, fromRefusal(err)
}
