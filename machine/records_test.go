package machine_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
	"pgregory.net/rapid"
)

type record struct {
	Name string `json:"name"`
	N    int    `json:"n"`
}

func TestARecordIsReadAsItWasSaved(t *testing.T) {
	tx := machinetest.Mem{"empty": {}}
	want := record{"<a&b>", 7}
	if err := machine.Save(tx, "p/a", want); err != nil {
		t.Fatal(err)
	}
	if got, err := machine.Load[record](tx, []byte("p/a")); err != nil || *got != want {
		t.Fatalf("%v, %v", got, err)
	}
	into := record{Name: "kept"}
	if ok, err := machine.Read(tx, "p/b", &into); ok || err != nil || into.Name != "kept" {
		t.Fatalf("an absent record: %v, %v, %v", ok, err, into)
	}
	if got, err := machine.Load[record](tx, "p/b"); got != nil || err != nil {
		t.Fatalf("an absent record: %v, %v", got, err)
	}
	for key, want := range map[string]bool{"p/a": true, "empty": true, "p/b": false} {
		if got, err := machine.Has(tx, key); got != want || err != nil {
			t.Errorf("%s: %v, %v", key, got, err)
		}
	}
	if err := machine.Save(tx, "p/f", func() {}); err == nil {
		t.Error("a function is a record")
	}
}

func TestADamagedRecordIsNoRefusalAndNamesItsKey(t *testing.T) {
	tx := machinetest.Mem{"p/a": []byte(`{"n":"seven"}`)}
	_, load := machine.Load[record](tx, "p/a")
	each := machine.EachRecord(tx, "p/", "", func(string, *record) (bool, error) { return true, nil })
	for _, err := range []error{load, each} {
		if _, refused := machine.IsRefusal(err); err == nil || refused || !strings.Contains(err.Error(), `"p/a" holds no *machine_test.record`) {
			t.Error(err)
		}
	}
}

func TestAPrefixIsVisitedWithWhatFollowsIt(t *testing.T) {
	tx := machinetest.Mem{}
	for i, key := range []string{"p/a", "p/a\x00", "p/ab", "p/b", "p0", "o/z"} {
		if err := machine.Save(tx, key, record{key, i}); err != nil {
			t.Fatal(err)
		}
	}
	for after, want := range map[string][]string{
		"": {"a", "a\x00", "ab", "b"}, "a": {"a\x00", "ab", "b"}, "aa": {"ab", "b"}, "b": nil,
	} {
		var keys, records []string
		err := machine.Each(tx, "p/", after, func(rest string, _ []byte) (bool, error) {
			keys = append(keys, rest)
			return true, nil
		})
		if err != nil || !slices.Equal(keys, want) {
			t.Errorf("after %q: %q, %v", after, keys, err)
		}
		err = machine.EachRecord(tx, []byte("p/"), after, func(rest string, r *record) (bool, error) {
			if r.Name != "p/"+rest {
				t.Errorf("%q holds %q", rest, r.Name)
			}
			records = append(records, rest)
			return len(records) < 2, nil
		})
		if err != nil || !slices.Equal(records, want[:min(len(want), 2)]) {
			t.Errorf("the first two after %q: %q, %v", after, records, err)
		}
	}
	wrong := fmt.Errorf("wrong")
	if err := machine.Each(tx, "p/", "", func(string, []byte) (bool, error) { return true, wrong }); err != wrong {
		t.Error(err)
	}
}

func TestEachVisitsWhatHasThePrefixAndNothingElse(t *testing.T) {
	text := rapid.StringOfN(rapid.SampledFrom([]rune{'\x00', '/', 'a', '\u00ff'}), 0, 4, -1)
	rapid.Check(t, func(t *rapid.T) {
		tx := machinetest.Mem{}
		bytes := rapid.SliceOfN(rapid.SampledFrom([]byte{0, '/', 'a', 0xff}), 0, 4)
		for _, k := range rapid.SliceOfN(bytes, 0, 20).Draw(t, "keys") {
			tx[string(k)] = []byte{1}
		}
		prefix, after := string(bytes.Draw(t, "prefix")), text.Draw(t, "after")
		var want, got []string
		for k := range tx {
			if rest, ok := strings.CutPrefix(k, prefix); ok && (after == "" || rest > after) {
				want = append(want, rest)
			}
		}
		slices.Sort(want)
		err := machine.Each(tx, prefix, after, func(rest string, _ []byte) (bool, error) {
			got = append(got, rest)
			return true, nil
		})
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%q after %q: %q, not %q (%v)", prefix, after, got, want, err)
		}
	})
}
