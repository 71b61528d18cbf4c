package machine_test

import (
	"slices"
	"testing"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

func TestAScheduleSaysWhatIsDueEarliestFirst(t *testing.T) {
	const s = machine.Schedule("x/")
	tx := machinetest.Mem{"w/": {}, "x0": {}}
	if at, ok, err := s.First(tx); at != 0 || ok || err != nil {
		t.Fatalf("nothing is due: %d, %v, %v", at, ok, err)
	}
	for id, at := range map[string]machine.Stamp{"late": 1 << 40, "b": 256, "a": 256, "early": 255, "last": 1<<63 - 1} {
		tx[string(s.Key(at, id))] = []byte{1}
	}
	if at, ok, err := s.First(tx); at != 255 || !ok || err != nil {
		t.Errorf("first: %d, %v, %v", at, ok, err)
	}
	for end, want := range map[machine.Stamp][]string{
		0: nil, 255: nil, 256: {"early"}, 257: {"early", "a", "b"}, 1<<40 + 1: {"early", "a", "b", "late"}, 1<<63 - 1: {"early", "a", "b", "late"},
	} {
		if ids, err := s.Before(tx, end); err != nil || !slices.Equal(ids, want) {
			t.Errorf("before %d: %q, %v", end, ids, err)
		}
	}
	tx["x/short"] = []byte{1}
	if _, err := s.Before(tx, 1<<63-1); err == nil {
		t.Error("a key without a stamp is taken")
	}
	delete(tx, "x/short")
	tx["x/"] = []byte{1}
	if _, ok, err := s.First(tx); ok || err == nil {
		t.Error("an empty key is taken")
	}
}
