package raftpath

import (
	"encoding/binary"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
)

// The sync protocol: one request, then frames from the server for as long as
// both want. The first byte of a frame is its kind.
const (
	syncState   byte = 1 // a state follows: stateHeader
	syncData    byte = 2 // a piece of the state's stream
	syncEntries byte = 3 // entriesFrame
	syncBeat    byte = 4 // beatFrame
)

// syncRequest says where the asking node stands. The server sends the state
// when its log does not reach back to there, then entries from there on.
type syncRequest struct {
	generation, index, term, seq uint64
}

func (m syncRequest) encode() []byte {
	b := []byte{1}
	for _, v := range []uint64{m.generation, m.index, m.term, m.seq} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return b
}

func decodeSyncRequest(b []byte) (syncRequest, error) {
	r := &reader{b: b}
	if r.byte() != 1 {
		r.fail()
	}
	m := syncRequest{generation: r.u64(), index: r.position(), term: r.position(), seq: r.position()}
	return m, r.end()
}

// stateHeader announces a state: an upper bound of its size in bytes, and the
// log entry it ends with.
type stateHeader struct {
	size int64
	last *raft.Log
}

func (m stateHeader) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{syncState}, uint64(m.size))
	b = binary.BigEndian.AppendUint64(b, m.last.Index)
	return appendEntry(b, m.last)
}

func decodeStateHeader(b []byte) (stateHeader, error) {
	r := &reader{b: b}
	m := stateHeader{size: int64(r.position())}
	m.last = r.entry(r.position())
	return m, r.end()
}

// entriesFrame carries applied entries that the state machine sees, ascending,
// the leader, and the decision log's head after the last of them.
type entriesFrame struct {
	beatFrame
	entries []*raft.Log
	check   machine.Checkpoint // Seq 0: none
}

func (m entriesFrame) encode() []byte {
	b := m.beatFrame.append([]byte{syncEntries})
	b = binary.BigEndian.AppendUint64(b, m.check.Seq)
	b = binary.BigEndian.AppendUint64(b, m.check.Size)
	b = append(b, m.check.Root[:]...)
	b = binary.AppendUvarint(b, uint64(len(m.entries)))
	for _, e := range m.entries {
		b = binary.BigEndian.AppendUint64(b, e.Index)
		b = appendEntry(b, e)
	}
	return b
}

func decodeEntriesFrame(b []byte) (entriesFrame, error) {
	r := &reader{b: b}
	m := entriesFrame{beatFrame: r.beat(), check: machine.Checkpoint{Seq: r.u64(), Size: r.u64()}}
	if len(r.b) < len(m.check.Root) {
		return m, errFrame
	}
	r.b = r.b[copy(m.check.Root[:], r.b):]
	n := r.uvarint(maxEntriesAwire)
	for i, last := uint64(0), uint64(0); i < n && r.err == nil; i++ {
		e := r.entry(r.position())
		if r.err != nil || e.Index <= last || !knownEntry(e) {
			return m, errFrame
		}
		last = e.Index
		m.entries = append(m.entries, e)
	}
	return m, r.end()
}

// beatFrame says how far the server has applied and who leads.
type beatFrame struct {
	target uint64
	leader string
}

func (m beatFrame) append(b []byte) []byte {
	return appendBytes(binary.BigEndian.AppendUint64(b, m.target), []byte(m.leader))
}

func (r *reader) beat() beatFrame {
	return beatFrame{target: r.position(), leader: string(r.bytes())}
}

func decodeBeatFrame(b []byte) (beatFrame, error) {
	r := &reader{b: b}
	m := r.beat()
	return m, r.end()
}
