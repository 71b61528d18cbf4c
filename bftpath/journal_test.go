package bftpath

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/pbft"
)

var testPub = [32]byte{7}

func drawItems(t *rapid.T) (out []item) {
	for range rapid.IntRange(1, 4).Draw(t, "items") {
		out = append(out, item{byte(rapid.IntRange(itemFrame, itemGuilt).Draw(t, "kind")), rapid.SliceOfN(rapid.Byte(), 1, 200).Draw(t, "data")})
	}
	return out
}

// image is a file of some records and where each begins.
func image(t *rapid.T) (text []byte, starts []int, records [][]item) {
	text = header(testPub, 99)
	for k := range rapid.IntRange(1, 5).Draw(t, "records") {
		items := drawItems(t)
		starts, records = append(starts, len(text)), append(records, items)
		text = appendRecord(text, 99, uint64(k+1), items)
	}
	return text, starts, records
}

func flat(records [][]item) (out []item) {
	for _, r := range records {
		out = append(out, r...)
	}
	return out
}

func TestATornLastWriteIsDroppedAndNothingElse(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, starts, records := image(t)
		last := starts[len(starts)-1]
		torn := append(bytes.Clone(text), make([]byte, 512)...)
		hurt := false
		for at := last; at < len(text); at++ { // sectors that never reached the disk
			if (at-last)%align == 0 {
				hurt = rapid.Bool().Draw(t, "sector lost")
			}
			if hurt {
				torn[at] = 0
			}
		}
		items, next, end, err := parse(99, torn)
		if err != nil {
			t.Fatal(err)
		}
		want := records
		if !bytes.Equal(torn[:len(text)], text) {
			want = records[:len(records)-1]
		}
		if !reflect.DeepEqual(items, flat(want)) || next != uint64(len(want)+1) {
			t.Fatalf("%d items, next %d, end %d; expected %d records", len(items), next, end, len(want))
		}
	})
}

func TestDamageBeforeTheLastRecordIsCorruption(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		text, starts, records := image(t)
		if len(starts) < 2 {
			return
		}
		used := starts[len(starts)-1]
		at := rapid.IntRange(headerBytes, used-1).Draw(t, "byte")
		text[at] ^= 1 << rapid.IntRange(0, 7).Draw(t, "bit")
		items, _, _, err := parse(99, text)
		if err == nil && reflect.DeepEqual(items, flat(records)) {
			return // padding
		}
		if !errors.Is(err, ErrJournalCorrupt) {
			t.Fatalf("a changed bit in a durable record: %v", err)
		}
	})
}

func TestEveryBitOfADurableRecordCounts(t *testing.T) {
	first := []item{{itemFrame, bytes.Repeat([]byte{7}, 100)}, {itemForgotten, make([]byte, 32)}}
	one := appendRecord(header(testPub, 99), 99, 1, first)
	length := recordHead + len(first)*5 + 100 + 32 // and then zeros
	text := appendRecord(bytes.Clone(one), 99, 2, []item{{itemGuilt, []byte("proof")}})
	for at := headerBytes; at < headerBytes+length; at++ {
		for bit := range 8 {
			hurt := bytes.Clone(text)
			hurt[at] ^= 1 << bit
			if items, _, _, err := parse(99, hurt); !errors.Is(err, ErrJournalCorrupt) {
				t.Fatalf("bit %d of byte %d changed before a whole record: %d items, %v", bit, at, len(items), err)
			}
			if items, next, _, err := parse(99, hurt[:len(one)]); err != nil || len(items) != 0 || next != 1 {
				t.Fatalf("bit %d of byte %d changed in the last record: %d items, %v", bit, at, len(items), err)
			}
		}
	}
}

func TestAJournalGivesBackWhatWasAppendedAlsoAfterRewriting(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	j, items, err := openJournal(path, testPub, true)
	if err != nil || len(items) != 0 {
		t.Fatal(items, err)
	}
	var want []item
	reopen := func() {
		t.Helper()
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
		if j, items, err = openJournal(path, testPub, false); err != nil {
			t.Fatal(err)
		}
		if !reflect.DeepEqual(items, want) {
			t.Fatalf("%d items came back, expected %d", len(items), len(want))
		}
	}
	add := func(size int) {
		t.Helper()
		it := item{itemFrame, bytes.Repeat([]byte{byte(len(want) + 1)}, size)}
		if err := j.append([]item{it}); err != nil {
			t.Fatal(err)
		}
		want = append(want, it)
	}
	for k := range 40 {
		add(1 + k*9973)
	}
	add(3 * chunk)
	reopen()
	want = want[3:9]
	if err := j.rewrite(want); err != nil {
		t.Fatal(err)
	}
	add(100)
	reopen()
	add(100)
	reopen()
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
}

func TestOpeningAJournalMakesAFreshCopyOfIt(t *testing.T) {
	path := filepath.Join(t.TempDir(), "journal")
	want := []item{{itemFrame, []byte("first")}, {itemFrame, []byte("second")}}
	text := appendRecord(appendRecord(header(testPub, 99), 99, 1, want[:1]), 99, 2, want[1:])
	torn := appendRecord(nil, 99, 3, []item{{itemFrame, bytes.Repeat([]byte{7}, 200)}})
	for name, file := range map[string][]byte{
		"whole":                         text,
		"cut within the last padding":   text[:len(text)-20],
		"torn in its last record":       append(bytes.Clone(text), torn[:100]...),
		"with a last record of nothing": append(bytes.Clone(text), make([]byte, 300)...),
	} {
		if err := os.WriteFile(path, file, 0o600); err != nil {
			t.Fatal(err)
		}
		before, err := os.Stat(path)
		if err != nil {
			t.Fatal(err)
		}
		j, items, err := openJournal(path, testPub, false)
		if err != nil || !reflect.DeepEqual(items, want) {
			t.Fatalf("%s: %d items: %v", name, len(items), err)
		}
		after, err := os.Stat(path)
		if err != nil || os.SameFile(before, after) {
			t.Errorf("%s: it is still the file whose pages may lie (%v)", name, err)
		}
		third := item{itemFrame, []byte("third")}
		if err := errors.Join(j.append([]item{third}), j.close()); err != nil {
			t.Fatal(err)
		}
		j, items, err = openJournal(path, testPub, false)
		if err != nil || !reflect.DeepEqual(items, append(want[:2:2], third)) {
			t.Errorf("%s: after one more append %d items: %v", name, len(items), err)
		}
		if err := j.close(); err != nil {
			t.Fatal(err)
		}
	}
}

func TestOpeningRefusesWhatIsNotThisKeysJournal(t *testing.T) {
	dir := t.TempDir()
	path := filepath.Join(dir, "journal")
	if _, _, err := openJournal(path, testPub, false); !errors.Is(err, ErrNoJournal) {
		t.Errorf("a missing journal: %v", err)
	}
	j, _, err := openJournal(path, testPub, true)
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path, testPub, false); !errors.Is(err, ErrJournalInUse) {
		t.Errorf("a second process: %v", err)
	}
	if err := j.append([]item{{itemForgotten, make([]byte, 32)}}); err != nil {
		t.Fatal(err)
	}
	if err := j.close(); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path, [32]byte{8}, false); !errors.Is(err, ErrJournalCorrupt) {
		t.Errorf("another key's journal: %v", err)
	}
	if _, _, err := openJournal(path, testPub, true); err != nil {
		t.Errorf("create over an existing journal must open it: %v", err)
	}
	if err := os.WriteFile(path+"2", []byte("something"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, _, err := openJournal(path+"2", testPub, true); !errors.Is(err, ErrJournalCorrupt) {
		t.Errorf("another file: %v", err)
	}
}

func TestFinishedInstancesLeaveTheJournalAndPromisesStay(t *testing.T) {
	c := newCluster(t, 2)
	c.config = func(_ int, cfg *Config) { cfg.compactFrom = 4 << 10 }
	c.startAll()
	c.open("undecided", 0) // node 1 never starts it
	for k := range 60 {
		id := fmt.Sprint("round", k)
		c.open(id, 0, 1)
		c.awaitDecision(id, 0, 1)
		c.drivers[0].Forget(testInstance(id))
	}
	used := c.drivers[0].Stats().JournalBytes
	if used > 30<<10 {
		t.Errorf("%d bytes after 60 forgotten instances", used)
	}
	c.stop(0)
	oneVotePerSlot(t, c.journal(0), 0) // the vote of the undecided instance among them
	d := c.start(0, false)
	if err := d.StartInstance(testInstance("round3"), c.committee, testDigest("round3")); !errors.Is(err, ErrForgotten) {
		t.Errorf("a forgotten instance after rewriting: %v", err)
	}
	c.open("undecided", 0, 1)
	c.awaitDecision("undecided", 0, 1)
}

func FuzzParse(f *testing.F) {
	record := appendRecord(header(testPub, 99), 99, 1, []item{{itemFrame, []byte("frame")}, {itemForgotten, make([]byte, 32)}})
	f.Add(record)
	f.Add(appendRecord(record, 99, 2, []item{{itemPrepared, []byte("x")}}))
	f.Fuzz(func(t *testing.T, text []byte) {
		if _, ok := readHeader(text, testPub); !ok {
			return
		}
		items, next, end, err := parse(99, text)
		if err != nil {
			if !errors.Is(err, ErrJournalCorrupt) {
				t.Fatal(err)
			}
			return
		}
		if end < headerBytes || end > len(text) || next == 0 {
			t.Fatalf("next %d at %d of %d", next, end, len(text))
		}
		again, n, _, err := parse(99, text[:end])
		if err != nil || n != next || !reflect.DeepEqual(again, items) {
			t.Fatal("what was read does not stand by itself")
		}
	})
}

// FuzzRecords puts any payload behind a valid checksum, as a disk or a defect
// could, and starts a driver's memory from it.
func FuzzRecords(f *testing.F) {
	payload := func(items ...item) []byte { return appendRecord(nil, 99, 1, items)[recordHead:] }
	frame, key := frameOf(1, "round", 0).Encode(), testInstance("round").Key()
	f.Add(payload(item{itemFrame, frame}, item{itemForgotten, key[:]}))
	f.Add(payload(item{itemForgotten, key[:]}, item{itemFrame, frame}))
	f.Add(payload(item{itemPrepared, append(key[:], 1, 3, 0, 0)}, item{itemCertificate, []byte{1, 2}}))
	guilt := pbft.Guilt{Instance: testInstance("round"), ProofA: pbft.Proof{Hashes: []pbft.Digest{{}}}, ProofB: pbft.Proof{Hashes: []pbft.Digest{{}}}}
	f.Add(payload(item{itemGuilt, guilt.Encode()}, item{itemGuilt, guilt.Encode()[:100]}))
	f.Add([]byte{itemFrame, 0, 0, 0, 9, 1})
	f.Fuzz(func(t *testing.T, payload []byte) {
		items, err := parseItems(payload)
		if err != nil {
			return
		}
		text := appendRecord(header(testPub, 99), 99, 1, items)
		if again, next, _, err := parse(99, text); err != nil || next != 2 || len(again) != len(items) || len(items) > 0 && !reflect.DeepEqual(again, items) {
			t.Fatalf("%d items are read back as %d, next %d: %v", len(items), len(again), next, err)
		}
		d := still()
		if err := d.loop.recall(items); err != nil {
			if !errors.Is(err, ErrJournalCorrupt) {
				t.Fatal(err)
			}
			return
		}
		for key := range d.loop.recalled {
			if d.forgotten.holds(key) {
				t.Fatal("a forgotten instance is recalled")
			}
		}
		// What is written afresh from it recalls the same.
		again := still()
		if err := again.loop.recall(d.loop.live()); err != nil || len(again.loop.recalled) != len(d.loop.recalled) {
			t.Fatalf("%d instances are recalled from a rewritten journal, %d before: %v", len(again.loop.recalled), len(d.loop.recalled), err)
		}
		if !reflect.DeepEqual(again.guilty, d.guilty) {
			t.Fatalf("%d proofs of guilt are recalled from a rewritten journal, %d before", len(again.guilty.proofs), len(d.guilty.proofs))
		}
	})
}
