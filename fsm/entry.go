package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"

	"github.com/deliberd/deliberd/machine"
)

// Limits of one entry.
const (
	MaxActions    = 1024    // actions in an entry
	MaxEntryBytes = 4 << 20 // encoded length
)

// maxStamp is the last millisecond a ULID can name, in the year 10889.
const maxStamp = 1<<48 - 1

// entryVersion is the first byte of every encoded entry.
const entryVersion = 1

// Entry is what the log orders: a stamp and a batch of actions. A tick has no
// actions.
type Entry struct {
	Genesis    [32]byte
	Generation uint64
	Epoch      uint64 // of the leader when it proposed
	Stamp      machine.Stamp
	Actions    [][]byte // canonical JSON of signed actions
}

// ErrEntry is an entry that cannot be decoded: it applies as a no-op.
var ErrEntry = errors.New("undecodable_entry")

// Encode writes the entry: version, genesis, then generation, epoch, stamp
// and the number of actions as uvarints, then each action with its length.
func (e Entry) Encode() []byte {
	n := 64
	for _, a := range e.Actions {
		n += len(a) + 5
	}
	b := append(make([]byte, 0, n), entryVersion)
	b = append(b, e.Genesis[:]...)
	b = binary.AppendUvarint(b, e.Generation)
	b = binary.AppendUvarint(b, e.Epoch)
	b = binary.AppendUvarint(b, uint64(e.Stamp))
	b = binary.AppendUvarint(b, uint64(len(e.Actions)))
	for _, a := range e.Actions {
		b = binary.AppendUvarint(b, uint64(len(a)))
		b = append(b, a...)
	}
	return b
}

// DecodeEntry reads an encoded entry. The actions alias raw. It errs with
// [ErrEntry] on anything [Entry.Encode] would not write.
func DecodeEntry(raw []byte) (Entry, error) {
	if len(raw) > MaxEntryBytes {
		return Entry{}, fmt.Errorf("%w: %d bytes, at most %d", ErrEntry, len(raw), MaxEntryBytes)
	}
	if len(raw) < 33 || raw[0] != entryVersion {
		return Entry{}, fmt.Errorf("%w: unknown version", ErrEntry)
	}
	d := reader{rest: raw[33:]}
	e := Entry{Genesis: [32]byte(raw[1:33]), Generation: d.uvarint(), Epoch: d.uvarint()}
	stamp, count := d.uvarint(), d.uvarint()
	if d.failed || stamp > maxStamp || count > MaxActions {
		return Entry{}, fmt.Errorf("%w: header out of range", ErrEntry)
	}
	e.Stamp = machine.Stamp(stamp)
	e.Actions = make([][]byte, 0, count)
	for range count {
		e.Actions = append(e.Actions, d.bytes())
	}
	if d.failed || len(d.rest) != 0 {
		return Entry{}, fmt.Errorf("%w: length mismatch", ErrEntry)
	}
	return e, nil
}

// Hash is the SHA-256 of an encoded entry.
func hashEntry(raw []byte) string {
	sum := sha256.Sum256(raw)
	return hex.EncodeToString(sum[:])
}

// reader takes minimal uvarints and length-prefixed bytes off a buffer.
type reader struct {
	rest   []byte
	failed bool
}

func (d *reader) uvarint() uint64 {
	v, n := binary.Uvarint(d.rest)
	if n <= 0 || n > 1 && d.rest[n-1] == 0 { // one spelling per number
		d.failed, d.rest = true, nil
		return 0
	}
	d.rest = d.rest[n:]
	return v
}

func (d *reader) bytes() []byte {
	n := d.uvarint()
	if d.failed || n > uint64(len(d.rest)) {
		d.failed, d.rest = true, nil
		return nil
	}
	v := d.rest[:n:n]
	d.rest = d.rest[n:]
	return v
}
