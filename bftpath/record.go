package bftpath

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"hash/crc32"
)

// The file is a header and then records, each the result of one flush and one
// fdatasync, each beginning at a multiple of align:
//
//	magic u32, sequence number u64 from 1, payload length u32, CRC-32C u32 of
//	the file's salt, sequence number, length and payload, payload, zeros up to the next multiple
//
// The payload is items: kind u8, length u32, data. A record is begun only after
// the one before it is durable. So a broken record with nothing valid behind it
// is what a crash left of the last write and was never acknowledged; a broken
// record with a valid later one behind it was durable once, and its change is corruption.
const (
	headerBytes = 64
	align       = 64
	recordHead  = 20
	recordMagic = 0x50424A31 // "PBJ1"
	maxRecord   = 64 << 20
	maxAppend   = 16 << 20 // bytes of items that share a record
)

// Kinds of item.
const (
	itemFrame       = 1 // a signed frame
	itemPrepared    = 2 // instance key, prepared certificate
	itemCertificate = 3 // a decision
	itemForgotten   = 4 // instance key: nothing is signed for it again
	itemGuilt       = 5 // a proof of guilt
)

// item is one stored thing.
type item struct {
	kind byte
	data []byte
}

// header is the start of a file: title, key, salt, checksum. The salt goes into
// every record's checksum, so that nothing a peer had signed into its votes
// can pass for a record.
func header(pub [32]byte, salt uint32) []byte {
	h := make([]byte, headerBytes)
	copy(h, "deliberd pbft journal 1\n")
	copy(h[24:], pub[:])
	binary.BigEndian.PutUint32(h[56:], salt)
	binary.BigEndian.PutUint32(h[60:], crc32.Checksum(h[:60], castagnoli))
	return h
}

// readHeader checks the start of a file and returns its salt.
func readHeader(text []byte, pub [32]byte) (salt uint32, ok bool) {
	if len(text) < headerBytes {
		return 0, false
	}
	salt = binary.BigEndian.Uint32(text[56:])
	return salt, bytes.Equal(text[:headerBytes], header(pub, salt))
}

func appendRecord(b []byte, salt uint32, seq uint64, items []item) []byte {
	start := len(b)
	b = binary.BigEndian.AppendUint32(b, recordMagic)
	b = binary.BigEndian.AppendUint64(b, seq)
	b = append(b, 0, 0, 0, 0, 0, 0, 0, 0)
	for _, it := range items {
		b = append(b, it.kind)
		b = binary.BigEndian.AppendUint32(b, uint32(len(it.data)))
		b = append(b, it.data...)
	}
	binary.BigEndian.PutUint32(b[start+12:], uint32(len(b)-start-recordHead))
	binary.BigEndian.PutUint32(b[start+16:], recordSum(salt, b[start:]))
	for (len(b)-start)%align != 0 {
		b = append(b, 0)
	}
	return b
}

func recordSum(salt uint32, record []byte) uint32 {
	sum := crc32.Update(salt, castagnoli, record[4:16])
	return crc32.Update(sum, castagnoli, record[recordHead:])
}

// readRecord reads the record at the start of b: its number, payload and
// length with padding. ok is false when there is no valid one.
func readRecord(salt uint32, b []byte) (seq uint64, payload []byte, length int, ok bool) {
	if len(b) < recordHead || binary.BigEndian.Uint32(b) != recordMagic {
		return 0, nil, 0, false
	}
	size := int64(binary.BigEndian.Uint32(b[12:]))
	if size > maxRecord || recordHead+size > int64(len(b)) {
		return 0, nil, 0, false
	}
	record := b[:recordHead+size]
	if binary.BigEndian.Uint32(b[16:]) != recordSum(salt, record) {
		return 0, nil, 0, false
	}
	return binary.BigEndian.Uint64(b[4:]), record[recordHead:], (len(record) + align - 1) / align * align, true
}

// parse reads all records of a file that begins with a valid header. next is
// the number of the record to write next and end its place.
func parse(salt uint32, text []byte) (items []item, next uint64, end int, err error) {
	next, end = 1, headerBytes
	for end < len(text) {
		seq, payload, length, ok := readRecord(salt, text[end:])
		if !ok || seq != next {
			break
		}
		more, err := parseItems(payload)
		if err != nil {
			return nil, 0, 0, fmt.Errorf("%w: record %d: %w", ErrJournalCorrupt, seq, err)
		}
		items = append(items, more...)
		next, end = next+1, min(end+length, len(text))
	}
	for at := end; at < len(text); at += align {
		if seq, _, _, ok := readRecord(salt, text[at:]); ok && seq >= next {
			return nil, 0, 0, fmt.Errorf("%w: record %d is broken, but record %d behind it is whole", ErrJournalCorrupt, next, seq)
		}
	}
	return items, next, end, nil
}

func parseItems(b []byte) ([]item, error) {
	var items []item
	for len(b) > 0 {
		if len(b) < 5 {
			return nil, fmt.Errorf("%d bytes are no item", len(b))
		}
		kind, size := b[0], uint64(binary.BigEndian.Uint32(b[1:]))
		if size > uint64(len(b)-5) || kind < itemFrame || kind > itemGuilt {
			return nil, fmt.Errorf("an item of kind %d and %d bytes does not fit", kind, size)
		}
		items = append(items, item{kind, b[5 : 5+size : 5+size]})
		b = b[5+size:]
	}
	return items, nil
}
