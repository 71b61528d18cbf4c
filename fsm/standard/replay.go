package standard

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
)

// Replay applies a cluster's entries to an empty Tx, from its genesis on, and
// returns where that leads. Whoever holds the entries of a log can so compute
// every answer, every event and the decision log's root for himself.
func Replay(tx machine.Tx, g membership.Genesis, entries [][]byte) (fsm.Head, error) {
	f, err := New(nil)
	if err != nil {
		return fsm.Head{}, err
	}
	if err := Init(f, tx, g); err != nil {
		return fsm.Head{}, err
	}
	for i, entry := range entries {
		if _, err := f.Apply(tx, fsm.Decode(entry)); err != nil {
			return fsm.Head{}, fmt.Errorf("entry %d: %w", i+1, err)
		}
	}
	return fsm.ReadHead(tx)
}

// ErrRecording is a recorded log that cannot be read.
var ErrRecording = errors.New("bad_recording")

// EncodeRecording writes a genesis and the entries after it, each with its
// length as a uvarint before it.
func EncodeRecording(g membership.Genesis, entries [][]byte) []byte {
	var out []byte
	for _, part := range append([][]byte{g.Encode()}, entries...) {
		out = append(binary.AppendUvarint(out, uint64(len(part))), part...)
	}
	return out
}

// DecodeRecording reads what [EncodeRecording] writes. It errs with
// [ErrRecording].
func DecodeRecording(raw []byte) (membership.Genesis, [][]byte, error) {
	var parts [][]byte
	for len(raw) > 0 {
		n, size := binary.Uvarint(raw)
		if size <= 0 || n > uint64(len(raw)-size) {
			return membership.Genesis{}, nil, fmt.Errorf("%w: it ends inside part %d", ErrRecording, len(parts))
		}
		parts = append(parts, raw[size:size+int(n)])
		raw = raw[size+int(n):]
	}
	if len(parts) == 0 {
		return membership.Genesis{}, nil, fmt.Errorf("%w: it is empty", ErrRecording)
	}
	g, err := membership.ParseGenesis(parts[0])
	if err != nil {
		return membership.Genesis{}, nil, fmt.Errorf("%w: %w", ErrRecording, err)
	}
	return g, parts[1:], nil
}

// Memory is a Tx in memory, for replays and for machines used as libraries.
type Memory struct {
	keys   []string // ascending
	values map[string][]byte
}

// NewMemory makes an empty Memory.
func NewMemory() *Memory { return &Memory{values: map[string][]byte{}} }

// Get implements machine.Tx.
func (m *Memory) Get(k []byte) ([]byte, error) { return m.values[string(k)], nil }

// Put implements machine.Tx.
func (m *Memory) Put(k, v []byte) error {
	key := string(k)
	if _, known := m.values[key]; !known {
		at, _ := slices.BinarySearch(m.keys, key)
		m.keys = slices.Insert(m.keys, at, key)
	}
	m.values[key] = append([]byte{}, v...)
	return nil
}

// Delete implements machine.Tx.
func (m *Memory) Delete(k []byte) error {
	if at, known := slices.BinarySearch(m.keys, string(k)); known {
		m.keys = slices.Delete(m.keys, at, at+1)
		delete(m.values, string(k))
	}
	return nil
}

// Range implements machine.Tx.
func (m *Memory) Range(from, to []byte, f func(k, v []byte) (bool, error)) error {
	at, _ := slices.BinarySearch(m.keys, string(from))
	for _, key := range m.keys[at:] {
		if to != nil && bytes.Compare([]byte(key), to) >= 0 {
			return nil
		}
		if more, err := f([]byte(key), m.values[key]); err != nil || !more {
			return err
		}
	}
	return nil
}
