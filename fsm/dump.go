package fsm

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"fmt"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// DumpRecord is the type of the leaf that commits to the whole state.
const DumpRecord = "state.dumped"

// StateHash is the SHA-256 of a canonical dump of the state: every key of the
// machines and every kept answer, ascending, each with its length. The
// decision log itself and the head are left out: the log's root covers them.
func StateHash(tx machine.Tx) (string, uint64, error) {
	h := sha256.New()
	keys := uint64(0)
	var buf []byte
	for _, ns := range []byte{nsID, nsMachine} {
		err := tx.Range([]byte{ns}, []byte{ns + 1}, func(k, v []byte) (bool, error) {
			buf = append(binary.AppendUvarint(buf[:0], uint64(len(k))), k...)
			buf = append(binary.AppendUvarint(buf, uint64(len(v))), v...)
			h.Write(buf)
			keys++
			return true, nil
		})
		if err != nil {
			return "", 0, err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), keys, nil
}

// dump records the hash of the state after the entry's writes.
func (r *run) dump(tx machine.Tx, epoch uint64) error {
	sum, keys, err := StateHash(tx)
	if err != nil {
		return err
	}
	data := canon.MustMarshal(struct {
		Keys  uint64 `json:"keys"`
		State string `json:"state"`
	}{keys, sum})
	r.records = append(r.records, r.record(DumpRecord, fmt.Sprint(r.head.Seq), nil, data, epoch))
	return nil
}
