package fsm

import (
	"testing"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// TestPruningIsBoundedAndForgetsTheOldestOnly: an entry after a long rest must
// not pay for all the ids that have left the window meanwhile.
func TestPruningIsBoundedAndForgetsTheOldestOnly(t *testing.T) {
	f := &FSM{window: 1000}
	tx := machinetest.Mem{}
	for ms := range uint64(10) {
		var id ulid.ULID
		if err := id.SetTime(5000 + ms); err != nil {
			t.Fatal(err)
		}
		if err := tx.Put(idKey(id.String(), "ada"), []byte("answer")); err != nil {
			t.Fatal(err)
		}
	}
	left := func() (n int) {
		if err := tx.Range([]byte{nsID}, []byte{nsID + 1}, func(_, _ []byte) (bool, error) { n++; return true, nil }); err != nil {
			t.Fatal(err)
		}
		return n
	}
	for _, c := range []struct {
		now   machine.Stamp
		limit int
		want  int
	}{
		{5900, 3, 10},  // none has left the window
		{6005, 3, 7},   // five have; three are forgotten
		{6005, 10, 5},  // the other two
		{6005, 10, 5},  // and no more
		{9000, 100, 0}, // all
	} {
		if err := f.prune(tx, c.now, c.limit); err != nil {
			t.Fatal(err)
		}
		if got := left(); got != c.want {
			t.Fatalf("at %d with limit %d: %d ids are left, expected %d", c.now, c.limit, got, c.want)
		}
	}
}
