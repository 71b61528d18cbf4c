package bftpath

import (
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"os"
	"path/filepath"

	"github.com/gofrs/flock"
)

// Errors of the journal.
var (
	// ErrNoJournal is a missing journal: a key whose journal is lost must not
	// sign again, it waits for the next epoch's.
	ErrNoJournal = errors.New("no_journal")
	// ErrJournalInUse is a journal that another process holds.
	ErrJournalInUse = errors.New("journal_in_use")
	// ErrJournalCorrupt is a journal whose durable part has changed, or that is another key's.
	ErrJournalCorrupt = errors.New("journal_corrupt")
)

// chunk is by how much the file grows at a time. The room ahead is filled with
// zeros and synced, so that appending changes no metadata and fdatasync is one write.
const chunk = 1 << 20

// journal is the file of what one key has signed. One goroutine at a time.
type journal struct {
	path string
	pub  [32]byte
	salt uint32
	lock *flock.Flock
	file *os.File
	next uint64 // sequence number of the next record
	end  int64  // where it goes
	size int64  // zero-filled up to here
	room int    // bytes of items that share a record
	buf  []byte
}

// openJournal opens the journal of a key and returns what it holds, in order.
// With create a missing one is made.
func openJournal(path string, pub [32]byte, create bool) (*journal, []item, error) {
	j := &journal{path: path, pub: pub, lock: flock.New(path + ".lock"), room: maxAppend}
	if locked, err := j.lock.TryLock(); err != nil || !locked {
		return nil, nil, fmt.Errorf("%w: %s.lock is held (%v)", ErrJournalInUse, path, err)
	}
	items, err := j.open(create)
	if err != nil {
		_ = j.close()
		return nil, nil, err
	}
	return j, items, nil
}

func (j *journal) open(create bool) ([]item, error) {
	text, err := os.ReadFile(j.path)
	switch {
	case errors.Is(err, os.ErrNotExist) && create:
		return nil, j.rewrite(nil)
	case errors.Is(err, os.ErrNotExist):
		return nil, fmt.Errorf("%w: %s; without it this key must not sign", ErrNoJournal, j.path)
	case err != nil:
		return nil, err
	}
	salt, ok := readHeader(text, j.pub)
	if !ok {
		return nil, fmt.Errorf("%w: %s does not begin as the journal of this key does", ErrJournalCorrupt, j.path)
	}
	items, _, _, err := parse(salt, text)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", j.path, err)
	}
	// What was read may be in memory only: after a failed write the system may
	// hold pages as clean that never reached the disk, and no later sync writes
	// them. A fresh copy is certain, and leaves behind what a crash tore.
	return items, j.rewrite(items)
}

// append makes items durable: they are on the disk when it returns nil. After
// an error the journal must not be used for signing any more. Many items make
// several records, each durable before the next is begun.
func (j *journal) append(items []item) error {
	for len(items) > 0 {
		n := fitted(items, j.room)
		if err := j.appendRecord(items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return nil
}

// fitted is how many of the items come to at most size bytes, but at least one.
func fitted(items []item, size int) int {
	for n := range items {
		if size -= 5 + len(items[n].data); size < 0 && n > 0 {
			return n
		}
	}
	return len(items)
}

func (j *journal) appendRecord(items []item) error {
	j.buf = appendRecord(j.buf[:0], j.salt, j.next, items)
	if err := j.grow(j.end + int64(len(j.buf))); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(j.buf, j.end); err != nil {
		return err
	}
	if err := datasync(j.file); err != nil {
		return err
	}
	j.next++
	j.end += int64(len(j.buf))
	return nil
}

// grow fills the file with zeros beyond upTo.
func (j *journal) grow(upTo int64) error {
	if upTo < j.size {
		return nil
	}
	size := (upTo/chunk + 1) * chunk
	if err := j.zero(j.size, size); err != nil {
		return err
	}
	j.size = size
	return nil
}

func (j *journal) zero(from, to int64) error {
	zeros := make([]byte, min(chunk, max(to-from, 0)))
	for from < to {
		n := min(int64(len(zeros)), to-from)
		if _, err := j.file.WriteAt(zeros[:n], from); err != nil {
			return err
		}
		from += n
	}
	return j.file.Sync()
}

// rewrite replaces the file by one that holds just these items: the old one
// stays whole until the new one is durable.
func (j *journal) rewrite(items []item) error {
	temp := j.path + ".new"
	file, err := os.OpenFile(temp, os.O_CREATE|os.O_TRUNC|os.O_RDWR, 0o600)
	if err != nil {
		return err
	}
	fresh := &journal{path: temp, file: file, next: 1, end: headerBytes, salt: newSalt()}
	if err := fresh.fill(j.pub, items); err != nil {
		_ = file.Close()
		return err
	}
	if err := os.Rename(temp, j.path); err != nil {
		_ = file.Close()
		return err
	}
	if err := syncDir(filepath.Dir(j.path)); err != nil {
		_ = file.Close()
		return err
	}
	if j.file != nil {
		_ = j.file.Close() // replaced; nothing in it is needed
	}
	j.file, j.salt, j.next, j.end, j.size = file, fresh.salt, fresh.next, fresh.end, fresh.size
	return nil
}

func (j *journal) fill(pub [32]byte, items []item) error {
	if err := j.grow(chunk - 1); err != nil {
		return err
	}
	if _, err := j.file.WriteAt(header(pub, j.salt), 0); err != nil {
		return err
	}
	for len(items) > 0 {
		n := fitted(items, chunk/2)
		if err := j.appendRecord(items[:n]); err != nil {
			return err
		}
		items = items[n:]
	}
	return j.file.Sync()
}

func (j *journal) close() error {
	var err error
	if j.file != nil {
		err = j.file.Close()
	}
	return errors.Join(err, j.lock.Unlock())
}

func newSalt() uint32 {
	var b [4]byte
	_, _ = rand.Read(b[:]) // never errs
	return binary.BigEndian.Uint32(b[:])
}

func syncDir(dir string) error {
	d, err := os.Open(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := d.Sync(); err != nil && !errors.Is(err, errors.ErrUnsupported) && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}

var castagnoli = crc32.MakeTable(crc32.Castagnoli)
