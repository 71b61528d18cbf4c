package machine_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

func TestPagesFollowEachOtherWithoutGapOrOverlap(t *testing.T) {
	tx := machinetest.Mem{"o/0": {}, "q/0": {}}
	var all []string
	for i := range 10 {
		id := fmt.Sprintf("%02d", i)
		tx["p/"+id], all = []byte{}, append(all, id)
	}
	for limit := 1; limit <= 11; limit++ {
		var got []string
		pages := 0
		for after := ""; ; pages++ {
			ids, next, err := machine.Page(tx, "p/", after, limit)
			if err != nil || len(ids) > limit || next != "" && ids[len(ids)-1] != next {
				t.Fatalf("limit %d: %q, %q, %v", limit, ids, next, err)
			}
			if got = append(got, ids...); next == "" {
				break
			}
			after = next
		}
		if want := (len(all) - 1) / limit; !slices.Equal(got, all) || pages != want {
			t.Errorf("limit %d: %q, next was said %d times, not %d", limit, got, pages, want)
		}
	}
	if ids, next, err := machine.Page(tx, "r/", "", 5); ids != nil || next != "" || err != nil {
		t.Errorf("nothing: %q, %q, %v", ids, next, err)
	}
}

func TestAPageHasTheUsualSizeUnlessAnotherIsAsked(t *testing.T) {
	if n, err := machine.PageSize(nil, 50, 500); n != 50 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
	for asked, ok := range map[int]bool{-1: false, 0: false, 1: true, 500: true, 501: false} {
		n, err := machine.PageSize(&asked, 50, 500)
		if r, refused := machine.IsRefusal(err); ok && (err != nil || n != asked) || !ok && (!refused || r.Code != machine.CodeOutOfRange || r.Fix != "give 1 to 500") {
			t.Errorf("%d: %d, %v", asked, n, err)
		}
	}
}
