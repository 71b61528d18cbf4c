package pbft

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/deliberd/deliberd/machine"
)

// Protocol is the version of this protocol as signatures name it.
const Protocol = "deliberd/pbft/1"

// MaxName is the longest protocol, genesis, purpose or id, in bytes.
const MaxName = 128

// Digest is a SHA-256 value: what is decided, a vote's hash, an instance's
// key. As text it is 64 lowercase hex digits.
type Digest [32]byte

func (d Digest) String() string { return hex.EncodeToString(d[:]) }

// IsZero reports whether d is all zeros, which no instance can decide.
func (d Digest) IsZero() bool { return d == Digest{} }

// MarshalText writes lowercase hex.
func (d Digest) MarshalText() ([]byte, error) { return hex.AppendEncode(nil, d[:]), nil }

// UnmarshalText reads exactly 64 lowercase hex digits.
func (d *Digest) UnmarshalText(text []byte) error {
	if len(text) != 64 {
		return fmt.Errorf("a digest has 64 hex digits, got %d characters", len(text))
	}
	var out Digest
	if _, err := hex.Decode(out[:], text); err != nil {
		return err
	}
	if string(text) != out.String() {
		return fmt.Errorf("a digest is written in lowercase")
	}
	*d = out
	return nil
}

// Domain is what every signature of a voter begins with: votes of one domain
// mean nothing in another.
type Domain struct {
	Protocol   string // always [Protocol]
	Genesis    string // the cluster's genesis hash, 64 hex digits
	Generation uint64 // raised by a reset
	Epoch      uint64 // voter epoch: whose keys sign
}

// Instance names one decision: at most one digest is ever certified for it.
type Instance struct {
	Protocol   string `json:"protocol"`
	Genesis    string `json:"genesis"`
	Generation uint64 `json:"generation"`
	Epoch      uint64 `json:"epoch"`
	Purpose    string `json:"purpose"` // "deliberatic.verdict", …
	ID         string `json:"id"`      // unique within the purpose: a round's id
}

// Domain is the instance's domain.
func (i Instance) Domain() Domain {
	return Domain{Protocol: i.Protocol, Genesis: i.Genesis, Generation: i.Generation, Epoch: i.Epoch}
}

// Key is the hash of all that names the instance; votes carry it.
func (i Instance) Key() Digest {
	b := make([]byte, 0, 256)
	b = append(b, "deliberd/pbft/1 instance\x00"...)
	b = appendInstance(b, i)
	return sha256.Sum256(b)
}

// Check refuses another protocol and empty or oversized names.
func (i Instance) Check() error {
	if i.Protocol != Protocol {
		return machine.Refuse(CodeMalformed, "", "protocol is %q, expected %q", i.Protocol, Protocol)
	}
	for _, name := range []string{i.Genesis, i.Purpose, i.ID} {
		if name == "" || len(name) > MaxName {
			return machine.Refuse(CodeMalformed, "", "genesis, purpose and id have 1 to %d bytes", MaxName)
		}
	}
	return nil
}

// Codes of refusals. None of them changes what a replica will sign.
const (
	CodeMalformed      = "malformed"        // not a text of this protocol
	CodeBadCommittee   = "bad_committee"    // duplicate or unusable members
	CodeNotMember      = "not_a_member"     // the signer has no seat in this committee
	CodeBadSignature   = "bad_signature"    // a signature does not verify
	CodeOtherDomain    = "other_domain"     // made for another genesis, generation or epoch
	CodeOtherInstance  = "other_instance"   // made for another instance
	CodeNotPrimary     = "not_primary"      // proposed by a voter whose turn it is not, or the primary votes twice
	CodeNotJustified   = "not_justified"    // a view change or new view does not carry its proof
	CodeEquivocation   = "equivocation"     // a second, different vote for one slot; kept as guilt proof
	CodeDuplicate      = "duplicate"        // already counted
	CodeOld            = "old"              // about a view this replica has left
	CodeUnexpected     = "unexpected_value" // certified, but not the value this replica knows to be right
	CodeBadCertificate = "bad_certificate"  // not q distinct commit votes for one digest
	CodeWrongDigest    = "wrong_digest"     // a valid certificate of another digest
	CodeCorrupt        = "corrupt"          // stored state contradicts itself
)

func appendInstance(b []byte, i Instance) []byte {
	b = appendDomain(b, i.Domain())
	b = appendName(b, i.Purpose)
	return appendName(b, i.ID)
}

func appendDomain(b []byte, d Domain) []byte {
	b = appendName(b, d.Protocol)
	b = appendName(b, d.Genesis)
	b = binary.BigEndian.AppendUint64(b, d.Generation)
	return binary.BigEndian.AppendUint64(b, d.Epoch)
}

// appendName writes a string of at most 255 bytes behind its length.
func appendName(b []byte, s string) []byte {
	if len(s) > 255 {
		s = s[:255] // never signed or sent: Check refuses names beyond MaxName
	}
	return append(append(b, byte(len(s))), s...)
}
