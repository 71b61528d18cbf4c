package acp

import (
	"encoding/binary"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// CheckID refuses everything but a ULID in its canonical upper-case text
// (§12.1) with invalid_id.
func CheckID(id string) error {
	if parsed, err := ulid.ParseStrict(id); err != nil || parsed.String() != id {
		return machine.Refuse(CodeInvalidID, "use a ULID: 26 characters of Crockford base32 in upper case", "%.64q is not a ULID", id)
	}
	return nil
}

// EventID is the id of a proposal's n-th Decision Event, from 0: a ULID whose
// time is the decision's and whose other bits are a hash, so that every
// implementation of this log computes the same.
func EventID(proposalID string, n int, at Time) string {
	text := binary.BigEndian.AppendUint64([]byte("deliberd acp decision\x00"+proposalID+"\x00"), uint64(n))
	sum := canon.Hash(text)
	var id ulid.ULID
	if err := id.SetTime(uint64(max(0, at.UnixMilli()))); err != nil {
		_ = id.SetTime(ulid.MaxTime()) // beyond the year 10889
	}
	copy(id[6:], sum[:10])
	return id.String()
}
