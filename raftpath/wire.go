package raftpath

import (
	"encoding/binary"
	"errors"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/raftpath/guard"
)

// Kinds of request on the raft plane: the first byte of a frame.
const (
	kindAppend byte = 1
	kindVote   byte = 2
	kindOffer  byte = 3
)

// First byte of a reply.
const (
	replyOK     byte = 0
	replyRefuse byte = 1
)

// maxPosition bounds raft indexes and terms from the wire, so that sums cannot overflow.
const maxPosition = 1 << 62

var errFrame = errors.New("malformed raft frame")

func appendBytes(b, x []byte) []byte {
	return append(binary.AppendUvarint(b, uint64(len(x))), x...)
}

func appendBool(b []byte, x bool) []byte {
	if x {
		return append(b, 1)
	}
	return append(b, 0)
}

// reader decodes a frame; the first error sticks.
type reader struct {
	b   []byte
	err error
}

func (r *reader) fail() {
	r.err = errFrame
	r.b = nil
}

func (r *reader) u64() uint64 {
	if len(r.b) < 8 {
		r.fail()
		return 0
	}
	v := binary.BigEndian.Uint64(r.b)
	r.b = r.b[8:]
	return v
}

// position is a raft index or term.
func (r *reader) position() uint64 {
	v := r.u64()
	if v > maxPosition {
		r.fail()
		return 0
	}
	return v
}

func (r *reader) byte() byte {
	if len(r.b) < 1 {
		r.fail()
		return 0
	}
	v := r.b[0]
	r.b = r.b[1:]
	return v
}

func (r *reader) bool() bool {
	switch r.byte() {
	case 0:
		return false
	case 1:
		return true
	}
	r.fail()
	return false
}

func (r *reader) uvarint(limit uint64) uint64 {
	v, n := binary.Uvarint(r.b)
	if n <= 0 || v > limit {
		r.fail()
		return 0
	}
	r.b = r.b[n:]
	return v
}

func (r *reader) bytes() []byte {
	n := r.uvarint(uint64(len(r.b)))
	if r.err != nil || n > uint64(len(r.b)) {
		r.fail()
		return nil
	}
	v := r.b[:n:n]
	r.b = r.b[n:]
	return v
}

// end checks that nothing is left over.
func (r *reader) end() error {
	if r.err == nil && len(r.b) != 0 {
		r.fail()
	}
	return r.err
}

func encodeAppend(m *guard.Append) []byte {
	n := 64 + len(m.Seal)
	for _, e := range m.Entries {
		n += 32 + len(e.Data)
	}
	b := append(make([]byte, 0, n), kindAppend)
	for _, v := range []uint64{m.Term, m.Prev, m.PrevTerm, m.Commit} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	b = appendBytes(b, m.Seal)
	b = binary.AppendUvarint(b, uint64(len(m.Entries)))
	for _, e := range m.Entries {
		b = appendEntry(b, e)
	}
	return b
}

// appendEntry writes an entry but for its index, which follows from its place.
func appendEntry(b []byte, e *raft.Log) []byte {
	var at int64
	if !e.AppendedAt.IsZero() {
		at = e.AppendedAt.UnixNano()
	}
	b = binary.BigEndian.AppendUint64(b, e.Term)
	b = append(b, byte(e.Type))
	b = binary.BigEndian.AppendUint64(b, uint64(at))
	return appendBytes(b, e.Data)
}

func (r *reader) entry(index uint64) *raft.Log {
	e := &raft.Log{Index: index, Term: r.position(), Type: raft.LogType(r.byte())}
	if at := int64(r.u64()); at != 0 {
		e.AppendedAt = time.Unix(0, at)
	}
	e.Data = r.bytes()
	if len(e.Data) > maxEntryBytes {
		r.fail()
	}
	return e
}

// decodeAppend reads what follows the kind. Only types of entry that raft
// itself writes today are let in: raft would apply, or trip over, the others.
func decodeAppend(b []byte) (*guard.Append, error) {
	r := &reader{b: b}
	m := &guard.Append{Term: r.position(), Prev: r.position(), PrevTerm: r.position(), Commit: r.position(), Seal: r.bytes()}
	n := r.uvarint(maxEntriesAwire)
	term := m.PrevTerm
	for i := uint64(0); i < n && r.err == nil; i++ {
		e := r.entry(m.Prev + 1 + i)
		if r.err != nil || e.Term < term || e.Term > m.Term || !knownEntry(e) {
			return nil, errFrame
		}
		term = e.Term
		m.Entries = append(m.Entries, e)
	}
	if err := r.end(); err != nil {
		return nil, err
	}
	if m.Term == 0 || (m.Prev == 0) != (m.PrevTerm == 0) || m.PrevTerm > m.Term {
		return nil, errFrame
	}
	return m, nil
}

func knownEntry(e *raft.Log) bool {
	switch e.Type {
	case raft.LogCommand:
		return true
	case raft.LogConfiguration:
		_, err := decodeConfiguration(e.Data)
		return err == nil
	case raft.LogNoop, raft.LogBarrier:
		return len(e.Data) == 0
	}
	return false
}

func encodeAppendReply(r guard.AppendReply) []byte {
	b := binary.BigEndian.AppendUint64([]byte{replyOK}, r.Term)
	b = binary.BigEndian.AppendUint64(b, r.LastLog)
	return appendBool(appendBool(b, r.Success), r.NoRetryBackoff)
}

func decodeAppendReply(b []byte) (guard.AppendReply, error) {
	r := &reader{b: b}
	m := guard.AppendReply{Term: r.position(), LastLog: r.position(), Success: r.bool(), NoRetryBackoff: r.bool()}
	return m, r.end()
}

func encodeVote(m *guard.Vote) []byte {
	b := []byte{kindVote}
	for _, v := range []uint64{m.Term, m.LastIndex, m.LastTerm} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return appendBytes(appendBool(b, m.Pre), m.Seal)
}

func decodeVote(b []byte) (*guard.Vote, error) {
	r := &reader{b: b}
	m := &guard.Vote{Term: r.position(), LastIndex: r.position(), LastTerm: r.position(), Pre: r.bool(), Seal: r.bytes()}
	return m, r.end()
}

func encodeVoteReply(r guard.VoteReply) []byte {
	b := binary.BigEndian.AppendUint64([]byte{replyOK}, r.Term)
	return appendBytes(appendBool(b, r.Granted), r.Seal)
}

func decodeVoteReply(b []byte) (guard.VoteReply, error) {
	r := &reader{b: b}
	m := guard.VoteReply{Term: r.position(), Granted: r.bool(), Seal: r.bytes()}
	return m, r.end()
}

// offer is InstallSnapshot without data: "I lead in this term and my log
// begins at first; where are you?". The reply is the last index.
type offer struct{ term, first uint64 }

func (m offer) encode() []byte {
	b := binary.BigEndian.AppendUint64([]byte{kindOffer}, m.term)
	return binary.BigEndian.AppendUint64(b, m.first)
}

func decodeOffer(b []byte) (offer, error) {
	r := &reader{b: b}
	m := offer{term: r.position(), first: r.position()}
	return m, r.end()
}

func encodeOfferReply(last uint64) []byte {
	return binary.BigEndian.AppendUint64([]byte{replyOK}, last)
}

// refusalReply carries a refusal's code and message; other errors stay at home.
func refusalReply(err error) []byte {
	r, ok := machine.IsRefusal(err)
	if !ok {
		r = &machine.Refusal{Code: CodeNotReady, Message: "the message could not be handled"}
	}
	return appendBytes(appendBytes([]byte{replyRefuse}, []byte(r.Code)), []byte(r.Message))
}

// parseReply splits a reply into its body or the refusal it carries.
func parseReply(b []byte) ([]byte, error) {
	if len(b) == 0 {
		return nil, errFrame
	}
	if b[0] == replyOK {
		return b[1:], nil
	}
	r := &reader{b: b[1:]}
	code, message := string(r.bytes()), string(r.bytes())
	if err := r.end(); err != nil || code == "" {
		return nil, errFrame
	}
	return nil, &machine.Refusal{Code: code, Message: message}
}
