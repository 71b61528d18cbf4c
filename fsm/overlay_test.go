package fsm

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine/machinetest"
)

// An overlay over a base must look like a plain store with the writes applied.
func TestAnOverlayReadsLikeTheStoreItWillBecome(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		base, model := machinetest.Mem{}, machinetest.Mem{}
		key := func() []byte { return fmt.Appendf(nil, "k%d", rapid.IntRange(0, 12).Draw(t, "key")) }
		for range rapid.IntRange(0, 8).Draw(t, "seeded") {
			k := key()
			base[string(k)], model[string(k)] = []byte("base"), []byte("base")
		}
		o := newOverlay(base)
		for i := range rapid.IntRange(0, 12).Draw(t, "writes") {
			k := key()
			if rapid.Bool().Draw(t, "delete") {
				_ = o.Delete(k)
				delete(model, string(k))
			} else {
				v := fmt.Appendf(nil, "w%d", i)
				_ = o.Put(k, v)
				model[string(k)] = v
			}
		}
		from, to := key(), key()
		limit := rapid.IntRange(1, 6).Draw(t, "limit")
		list := func(r interface {
			Range(from, to []byte, f func(k, v []byte) (bool, error)) error
		}) (out string) {
			n := 0
			_ = r.Range(from, to, func(k, v []byte) (bool, error) {
				out += fmt.Sprintf("%s=%s ", k, v)
				n++
				return n < limit, nil
			})
			return out
		}
		if got, want := list(o), list(model); got != want {
			t.Fatalf("range [%s, %s): got %s, want %s", from, to, got, want)
		}
		if _, err := o.flush(); err != nil {
			t.Fatal(err)
		}
		if got, want := list(base), list(model); got != want {
			t.Fatalf("flushed: got %s, want %s", got, want)
		}
	})
}
