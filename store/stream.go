package store

import (
	"bufio"
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash"
	"io"

	"github.com/deliberd/deliberd/machine"
)

// The stream of a state is
//
//	magic  (key length, key, value length, value)*  0  count  sha256
//
// with lengths and count as shortest unsigned varints, keys of 1..MaxKey bytes
// strictly ascending, values of 0..MaxValue bytes, and the SHA-256 over every
// byte before it. One state has one stream.
const magic = "deliberd/state/1\n"

// Sum is a state's hash: the SHA-256 that ends its stream.
type Sum [sha256.Size]byte

// encoder writes a stream.
type encoder struct {
	w     *bufio.Writer
	h     hash.Hash
	count uint64
	size  int64
	buf   []byte
}

func newEncoder(w io.Writer) *encoder {
	e := &encoder{w: bufio.NewWriterSize(w, 256<<10), h: sha256.New()}
	e.buf = append(e.buf, magic...)
	return e
}

// flush writes and hashes buf, then b.
func (e *encoder) flush(b []byte) error {
	for _, p := range [][]byte{e.buf, b} {
		e.h.Write(p)
		e.size += int64(len(p))
		if _, err := e.w.Write(p); err != nil {
			return err
		}
	}
	e.buf = e.buf[:0]
	return nil
}

func (e *encoder) pair(k, v []byte) error {
	e.count++
	e.buf = binary.AppendUvarint(e.buf, uint64(len(k)))
	e.buf = append(e.buf, k...)
	e.buf = binary.AppendUvarint(e.buf, uint64(len(v)))
	return e.flush(v)
}

func (e *encoder) end() (Sum, error) {
	e.buf = binary.AppendUvarint(append(e.buf, 0), e.count)
	if err := e.flush(nil); err != nil {
		return Sum{}, err
	}
	var sum Sum
	e.h.Sum(sum[:0])
	e.size += int64(len(sum))
	if _, err := e.w.Write(sum[:]); err != nil {
		return Sum{}, err
	}
	return sum, e.w.Flush()
}

// ReadStream parses a stream and gives f each pair in ascending order; f must
// copy what it keeps. It reads no byte beyond the stream's end when r is an
// io.ByteReader. Anything but the one canonical spelling is refused with
// [CodeBadStream]; f has then seen pairs that must be thrown away.
func ReadStream(r io.Reader, f func(k, v []byte) error) (Sum, error) {
	d := &decoder{h: sha256.New()}
	if br, ok := r.(byteReader); ok {
		d.r = br
	} else {
		d.r = bufio.NewReaderSize(r, 256<<10)
	}
	sum, err := d.read(f)
	var refusal *machine.Refusal
	if err != nil && errors.As(err, &refusal) {
		return Sum{}, err
	}
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) {
		return Sum{}, badStream("it ends early")
	}
	return sum, err
}

func badStream(format string, args ...any) error {
	return machine.Refuse(CodeBadStream, "fetch the state again, from another node", "not a state stream: "+format, args...)
}

type byteReader interface {
	io.Reader
	io.ByteReader
}

type decoder struct {
	r byteReader
	h hash.Hash
	k []byte
	v []byte
}

func (d *decoder) read(f func(k, v []byte) error) (Sum, error) {
	head := make([]byte, len(magic))
	if err := d.full(head); err != nil {
		return Sum{}, err
	}
	if string(head) != magic {
		return Sum{}, badStream("it begins with %q", head)
	}
	var last []byte
	for count := uint64(0); ; count++ {
		n, err := d.uvarint(MaxKey)
		if err != nil {
			return Sum{}, err
		}
		if n == 0 {
			return d.end(count)
		}
		if d.k, err = d.bytes(d.k, n); err != nil {
			return Sum{}, err
		}
		if count > 0 && bytes.Compare(last, d.k) >= 0 {
			return Sum{}, badStream("its keys do not ascend")
		}
		if n, err = d.uvarint(MaxValue); err != nil {
			return Sum{}, err
		}
		if d.v, err = d.bytes(d.v, n); err != nil {
			return Sum{}, err
		}
		if err := f(d.k, d.v); err != nil {
			return Sum{}, err
		}
		last = append(last[:0], d.k...)
	}
}

func (d *decoder) end(count uint64) (Sum, error) {
	n, err := d.uvarint(1<<63 - 1)
	if err != nil {
		return Sum{}, err
	}
	if n != count {
		return Sum{}, badStream("it holds %d pairs and says %d", count, n)
	}
	var want, have Sum
	d.h.Sum(want[:0])
	if err := d.full(have[:]); err != nil {
		return Sum{}, err
	}
	if want != have {
		return Sum{}, badStream("its hash is %x, not %x", want[:8], have[:8])
	}
	return want, nil
}

func (d *decoder) full(b []byte) error {
	if _, err := io.ReadFull(d.r, b); err != nil {
		return err
	}
	d.h.Write(b)
	return nil
}

// bytes reads n bytes into buf, growing it only as bytes arrive: a length is
// a claim until then.
func (d *decoder) bytes(buf []byte, n uint64) ([]byte, error) {
	const step = 1 << 20
	buf = buf[:0]
	for uint64(len(buf)) < n {
		from := len(buf)
		more := int(min(n-uint64(from), step))
		buf = append(buf, make([]byte, more)...)
		if err := d.full(buf[from:]); err != nil {
			return nil, err
		}
	}
	return buf, nil
}

// uvarint reads a shortest varint of at most limit.
func (d *decoder) uvarint(limit uint64) (uint64, error) {
	var raw [binary.MaxVarintLen64]byte
	for i := range raw {
		b, err := d.r.ReadByte()
		if err != nil {
			return 0, err
		}
		raw[i] = b
		if b < 0x80 {
			n, size := binary.Uvarint(raw[:i+1])
			if size != i+1 || (i > 0 && b == 0) {
				return 0, badStream("a number is not in its shortest form")
			}
			if n > limit {
				return 0, badStream("a length of %d is above the limit of %d", n, limit)
			}
			d.h.Write(raw[:i+1])
			return n, nil
		}
	}
	return 0, badStream("a number is too long")
}

var errStreamUsed = fmt.Errorf("the snapshot has been released")
