package store

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"sync"
	"testing"
	"time"

	"go.uber.org/goleak"
	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine"
)

const holdDir = "DELIBERD_TEST_HOLD_DIR"

func TestMain(m *testing.M) {
	if dir := os.Getenv(holdDir); dir != "" {
		hold(dir)
	}
	goleak.VerifyTestMain(m)
}

// hold is another process on a folder: it holds it until its input ends.
func hold(dir string) {
	s, err := Open(dir)
	if err != nil {
		fmt.Println(err)
		os.Exit(1)
	}
	fmt.Println("held")
	_, _ = os.Stdin.Read(make([]byte, 1))
	_ = s.Close()
	os.Exit(0)
}

func open(t testing.TB, dir string) *Store {
	t.Helper()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Error(err)
		}
	})
	return s
}

func (s *Store) set(t testing.TB, pairs ...string) {
	t.Helper()
	err := s.Update(func(tx machine.Tx) error {
		for i := 0; i < len(pairs); i += 2 {
			if err := tx.Put([]byte(pairs[i]), []byte(pairs[i+1])); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (s *Store) text(t testing.TB, key string) (value string) {
	t.Helper()
	err := s.View(func(tx machine.Tx) error {
		b, err := tx.Get([]byte(key))
		value = string(b)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func refused(t *testing.T, err error, code string) {
	t.Helper()
	if r, ok := machine.IsRefusal(err); !ok || r.Code != code || r.Fix == "" {
		t.Fatalf("got %v, want a refusal %s that says what to do", err, code)
	}
}

func TestASecondProcessOnAFolderIsRefusedAtOnce(t *testing.T) {
	dir := t.TempDir()
	other := exec.Command(os.Args[0])
	other.Env = append(os.Environ(), holdDir+"="+dir)
	in, err := other.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	out, err := other.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := other.Start(); err != nil {
		t.Fatal(err)
	}
	said := make([]byte, 4)
	if _, err := out.Read(said); err != nil || string(said) != "held" {
		t.Fatalf("the other process said %q, %v", said, err)
	}
	began := time.Now()
	_, err = Open(dir)
	refused(t, err, CodeFolderInUse)
	if took := time.Since(began); took > 2*time.Second {
		t.Fatalf("it took %v", took)
	}
	_ = in.Close()
	if err := other.Wait(); err != nil {
		t.Fatal(err)
	}
	open(t, dir)
}

func TestAFailedUpdateWritesNothing(t *testing.T) {
	s := open(t, t.TempDir())
	s.set(t, "a", "1")
	want := errors.New("no")
	err := s.Update(func(tx machine.Tx) error {
		return errors.Join(tx.Put([]byte("a"), []byte("2")), tx.Delete([]byte("a")), want)
	})
	if !errors.Is(err, want) || s.text(t, "a") != "1" {
		t.Fatalf("err %v, a = %q", err, s.text(t, "a"))
	}
}

func TestPutKeepsWhatItWasGivenThoughTheBufferChanges(t *testing.T) {
	s := open(t, t.TempDir())
	err := s.Update(func(tx machine.Tx) error {
		k, v := []byte("key"), []byte("value")
		if err := tx.Put(k, v); err != nil {
			return err
		}
		copy(k, "xxx")
		copy(v, "xxxxx")
		return nil
	})
	if err != nil || s.text(t, "key") != "value" {
		t.Fatalf("%v, %q", err, s.text(t, "key"))
	}
}

func TestAnEmptyValueIsNotAnAbsentOne(t *testing.T) {
	s := open(t, t.TempDir())
	err := s.Update(func(tx machine.Tx) error {
		if err := tx.Put([]byte("empty"), nil); err != nil {
			return err
		}
		return present(tx)
	})
	if err == nil {
		err = s.View(present)
	}
	if err != nil {
		t.Fatal(err)
	}
}

func present(tx machine.Tx) error {
	for key, want := range map[string]bool{"empty": true, "absent": false, "": false} {
		v, err := tx.Get([]byte(key))
		if err != nil || (v != nil) != want {
			return fmt.Errorf("%q: %v, %v", key, v, err)
		}
	}
	return nil
}

func TestKeysAndValuesAreBounded(t *testing.T) {
	s := open(t, t.TempDir())
	for _, c := range []struct {
		k, v int
		ok   bool
	}{{0, 1, false}, {1, 0, true}, {MaxKey, 1, true}, {MaxKey + 1, 1, false}, {1, MaxValue + 1, false}} {
		err := s.Update(func(tx machine.Tx) error { return tx.Put(make([]byte, c.k), make([]byte, c.v)) })
		if (err == nil) != c.ok {
			t.Errorf("key of %d, value of %d bytes: %v", c.k, c.v, err)
		}
	}
}

func TestAFolderServesOneNodeOfOneCluster(t *testing.T) {
	dir := t.TempDir()
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Claim("n1", "g1"); err != nil {
		t.Fatal(err)
	}
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	s = open(t, dir)
	if err := s.Claim("n1", "g1"); err != nil {
		t.Fatal(err)
	}
	refused(t, s.Claim("n2", "g1"), CodeWrongNode)
	refused(t, s.Claim("n1", "g2"), CodeWrongGen)
	if err := s.Claim("n1", "g1"); err != nil {
		t.Fatalf("after refusals: %v", err)
	}
}

func TestASnapshotIsOneMomentWhileWritersGoOn(t *testing.T) {
	s := open(t, t.TempDir())
	s.set(t, "a", "1", "b", "1")
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	s.set(t, "a", "2", "c", "2")
	got := map[string]string{}
	var buf bytes.Buffer
	sum, err := snap.Stream(&buf)
	if err != nil {
		t.Fatal(err)
	}
	if int64(buf.Len()) > snap.Size() {
		t.Fatalf("a stream of %d bytes from a file of %d", buf.Len(), snap.Size())
	}
	read, err := ReadStream(&buf, func(k, v []byte) error { got[string(k)] = string(v); return nil })
	if err != nil || read != sum {
		t.Fatalf("%v, %x, %x", err, read, sum)
	}
	if len(got) != 2 || got["a"] != "1" || got["b"] != "1" {
		t.Fatalf("the snapshot holds %v", got)
	}
	snap.Release()
	snap.Release()
	if _, err := snap.Stream(&buf); err == nil {
		t.Fatal("a released snapshot was read")
	}
}

func TestReplaceTakesStateAndKeepsWhatIsLocal(t *testing.T) {
	from, to := open(t, t.TempDir()), open(t, filepath.Join(t.TempDir(), "to"))
	var pairs []string
	for i := range 2*loadBatch + 5 {
		pairs = append(pairs, fmt.Sprintf("key %06d", i), fmt.Sprint(i))
	}
	from.set(t, pairs...)
	to.set(t, "old", "1", "key 000001", "old")
	if err := to.Claim("n", "g"); err != nil {
		t.Fatal(err)
	}
	old, err := to.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	snap, err := from.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	sum, err := snap.Stream(&buf)
	snap.Release()
	if err != nil {
		t.Fatal(err)
	}
	tail := []byte("tail")
	r := bytes.NewReader(append(buf.Bytes(), tail...))
	got, err := to.Replace(r)
	if err != nil || got != sum {
		t.Fatalf("%v, %x, want %x", err, got, sum)
	}
	if r.Len() != len(tail) {
		t.Fatalf("%d bytes behind the stream are left, want %d", r.Len(), len(tail))
	}
	if to.text(t, "old") != "" || to.text(t, "key 000001") != "1" || to.text(t, fmt.Sprintf("key %06d", 2*loadBatch+4)) == "" {
		t.Fatal("the state was not replaced")
	}
	err = old.View(func(tx machine.Tx) error {
		v, err := tx.Get([]byte("old"))
		if string(v) != "1" {
			t.Errorf("a snapshot from before reads %q", v)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	old.Release()
	refused(t, to.Claim("m", "g"), CodeWrongNode)
	to.set(t, "new", "1")
	dir := to.Dir()
	if err := to.Close(); err != nil {
		t.Fatal(err)
	}
	again := open(t, dir)
	if again.text(t, "new") != "1" || again.text(t, "key 000002") != "2" {
		t.Fatal("the replaced state did not last")
	}
}

func TestAStreamThatIsNotCanonicalLeavesTheStateAlone(t *testing.T) {
	s := open(t, t.TempDir())
	s.set(t, "a", "1", "b", "2")
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	var buf bytes.Buffer
	if _, err := snap.Stream(&buf); err != nil {
		t.Fatal(err)
	}
	snap.Release()
	good := buf.Bytes()
	for i := range good {
		bad := bytes.Clone(good)
		bad[i] ^= 1
		for _, b := range [][]byte{bad, good[:i]} {
			_, err := ReadStream(bytes.NewReader(b), func(k, v []byte) error { return nil })
			refused(t, err, CodeBadStream)
		}
		if i%10 == 0 {
			_, err := s.Replace(bytes.NewReader(bad))
			refused(t, err, CodeBadStream)
		}
	}
	if s.text(t, "a") != "1" {
		t.Fatal("the state is gone")
	}
	if _, err := os.Stat(filepath.Join(s.Dir(), freshName)); !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("a half-loaded file was left: %v", err)
	}
}

func TestReadersAndReplacesDoNotDisturbEachOther(t *testing.T) {
	s := open(t, t.TempDir())
	s.set(t, "n", "0")
	var buf bytes.Buffer
	snap, err := s.Snapshot()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := snap.Stream(&buf); err != nil {
		t.Fatal(err)
	}
	snap.Release()
	stop := make(chan struct{})
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					s.text(t, "n")
				}
			}
		})
	}
	for range 20 {
		if _, err := s.Replace(bytes.NewReader(buf.Bytes())); err != nil {
			t.Error(err)
		}
		s.set(t, "n", "1")
	}
	close(stop)
	wg.Wait()
}

func TestAClosedStoreSaysSo(t *testing.T) {
	s := open(t, t.TempDir())
	if err := errors.Join(s.Close(), s.Close()); err != nil {
		t.Fatal(err)
	}
	if err := s.View(func(machine.Tx) error { return nil }); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
	if _, err := s.Snapshot(); !errors.Is(err, ErrClosed) {
		t.Fatalf("got %v", err)
	}
}

// TestTheStoreBehavesAsAMap holds the store against a sorted map.
func TestTheStoreBehavesAsAMap(t *testing.T) {
	s := open(t, t.TempDir())
	rapid.Check(t, func(t *rapid.T) {
		model := map[string]string{}
		key := rapid.StringMatching("[a-d]{1,3}")
		err := s.Update(func(tx machine.Tx) error {
			var all [][]byte
			err := tx.Range(nil, nil, func(k, _ []byte) (bool, error) { all = append(all, bytes.Clone(k)); return true, nil })
			for _, k := range all {
				err = errors.Join(err, tx.Delete(k))
			}
			for range rapid.IntRange(0, 30).Draw(t, "ops") {
				k, v := key.Draw(t, "k"), rapid.String().Draw(t, "v")
				if rapid.Bool().Draw(t, "put") {
					model[k] = v
					err = errors.Join(err, tx.Put([]byte(k), []byte(v)))
				} else {
					delete(model, k)
					err = errors.Join(err, tx.Delete([]byte(k)))
				}
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		from, to := key.Draw(t, "from"), key.Draw(t, "to")
		err = s.View(func(tx machine.Tx) error {
			last, n := "", 0
			err := tx.Range([]byte(from), []byte(to), func(k, v []byte) (bool, error) {
				if string(k) <= last || string(k) < from || string(k) >= to || model[string(k)] != string(v) {
					t.Fatalf("range gave %q = %q", k, v)
				}
				last = string(k)
				n++
				return true, nil
			})
			want := 0
			for k := range model {
				if k >= from && k < to {
					want++
				}
			}
			if n != want {
				t.Fatalf("range gave %d keys, want %d", n, want)
			}
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
	})
}

// FuzzReadStream: a stream that is accepted is the one that the pairs make.
func FuzzReadStream(f *testing.F) {
	for _, n := range []int{0, 1, 3} {
		var buf bytes.Buffer
		e := newEncoder(&buf)
		for i := range n {
			if err := e.pair([]byte{byte('a' + i)}, make([]byte, i*100)); err != nil {
				f.Fatal(err)
			}
		}
		if _, err := e.end(); err != nil {
			f.Fatal(err)
		}
		f.Add(buf.Bytes())
	}
	f.Add([]byte(magic + "\x00"))
	f.Add([]byte(magic + "\xff\xff\x01"))
	f.Fuzz(func(t *testing.T, b []byte) {
		var out bytes.Buffer
		e := newEncoder(&out)
		sum, err := ReadStream(bytes.NewReader(b), e.pair)
		if err != nil {
			if _, ok := machine.IsRefusal(err); !ok {
				t.Fatalf("not a refusal: %v", err)
			}
			return
		}
		again, err := e.end()
		if err != nil || again != sum || !bytes.HasPrefix(b, out.Bytes()) {
			t.Fatalf("%v: the accepted stream has another spelling", err)
		}
	})
}
