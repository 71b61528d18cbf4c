package machine

import (
	"encoding/binary"
	"fmt"
)

// Schedule is the prefix of keys that say when something is due: the stamp in
// 8 bytes, big endian, so that keys sort by it, then the id of what is due.
type Schedule string

// Key is the key of one id at a stamp, which is not negative.
func (s Schedule) Key(at Stamp, id string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte(s), uint64(at)), id...)
}

// Before lists the ids due before a stamp, the earliest first, then by id.
func (s Schedule) Before(tx Tx, end Stamp) (ids []string, err error) {
	err = tx.Range([]byte(s), s.Key(end, ""), func(k, _ []byte) (bool, error) {
		_, id, err := s.split(k)
		ids = append(ids, id)
		return err == nil, err
	})
	return ids, err
}

// First is the earliest stamp at which something is due; false when nothing is.
func (s Schedule) First(tx Tx) (at Stamp, ok bool, err error) {
	err = tx.Range([]byte(s), above(s), func(k, _ []byte) (bool, error) {
		at, _, err = s.split(k)
		ok = err == nil
		return false, err
	})
	return at, ok, err
}

func (s Schedule) split(k []byte) (Stamp, string, error) {
	rest := k[len(s):]
	if len(rest) <= 8 {
		return 0, "", fmt.Errorf("local state is corrupt: key %q is no stamp with an id", k)
	}
	return Stamp(binary.BigEndian.Uint64(rest)), string(rest[8:]), nil
}
