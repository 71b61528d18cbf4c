package fsm

import (
	"testing"

	"github.com/transparency-dev/merkle/compact"
	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

func TestARecordIsWrittenAsItsCanonicalJSON(t *testing.T) {
	text := rapid.OneOf(rapid.StringMatching(`[a-z.]{0,8}`), rapid.String(), rapid.Map(rapid.SliceOfN(rapid.Byte(), 0, 4), func(b []byte) string { return string(b) }))
	number := rapid.OneOf(rapid.Uint64Range(0, 1000), rapid.Uint64Range(0, canon.MaxInteger), rapid.Uint64())
	rapid.Check(t, func(t *rapid.T) {
		data := canon.MustMarshal(rapid.MapOf(rapid.String(), number).Draw(t, "data"))
		r := Record{
			Data: data, Epoch: number.Draw(t, "epoch"), Generation: number.Draw(t, "generation"), Index: number.Draw(t, "index"), Seq: number.Draw(t, "seq"),
			Stamp: machine.Stamp(rapid.Int64().Draw(t, "stamp")), Genesis: text.Draw(t, "genesis"), Subject: text.Draw(t, "subject"), Type: text.Draw(t, "type"),
		}
		if rapid.Bool().Draw(t, "to") {
			r.To = rapid.SliceOfN(text, 0, 3).Draw(t, "ids")
		}
		want, err := canon.Marshal(r)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := r.encode(); err != nil || string(got) != string(want) {
			t.Fatalf("%q, %v, want %q", got, err, want)
		}
	})
}

func TestTheNodesOfTheTreeAreNumberedAsTheyAreCompleted(t *testing.T) {
	next := uint64(0)
	for leaf := range uint64(1 << 10) {
		for level := uint(0); (leaf+1)%(1<<level) == 0; level++ {
			id := compact.NewNodeID(level, (leaf+1)>>level-1)
			if got := nodeKey(id); string(got) != string(seqKey(nsNode, next)) {
				t.Fatalf("node %d/%d has key %x, want number %d", level, id.Index, got, next)
			}
			next++
		}
	}
}
