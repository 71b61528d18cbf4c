package registry

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// TestWhateverIsAskedEveryKeyHasOneOwnerAndEveryPrincipalAtMostOneKey drives
// the registry with random actions, sensible and not.
func TestWhateverIsAskedEveryKeyHasOneOwnerAndEveryPrincipalAtMostOneKey(t *testing.T) {
	const limit = 3
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, 2, Limits{MaxPrincipalsPerOperator: limit})
		names := []string{"op0", "op1", "a", "b", "c", "d", "e"}
		keys := []sign.Key{b.Key("op0"), b.Key("op1")}
		for i := range 6 {
			keys = append(keys, keyOf(t, fmt.Sprint(i)))
		}
		ended := map[string]bool{} // kids that have stopped
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			actor, id := rapid.SampledFrom(names).Draw(rt, "actor"), rapid.SampledFrom(names).Draw(rt, "id")
			key := rapid.SampledFrom(keys).Draw(rt, "key")
			var err error
			switch rapid.IntRange(0, 3).Draw(rt, "what") {
			case 0, 1:
				body, _ := NewRegister("00000000000000000000000000000000000000000000000000000000000000ff", actor, id, machine.Agent, "", key)
				_, err = b.Do(actor, KindRegister, body)
			case 2:
				_, err = b.Do(actor, KindRotate, b.rotation(id, key))
			case 3:
				body := Revoke{ID: id, Reason: "x"}
				if rapid.Bool().Draw(rt, "key only") {
					body.KID = key.KID()
				}
				_, err = b.Do(actor, KindRevoke, body)
			}
			if _, refused := machine.IsRefusal(err); err != nil && !refused {
				rt.Fatal(err)
			}
			checkKeys(rt, b, names, keys, ended)
			checkCounts(rt, b, limit)
		}
	})
}

func checkKeys(rt *rapid.T, b bench, names []string, keys []sign.Key, ended map[string]bool) {
	active := map[string]int{}
	for _, k := range keys {
		owners := 0
		if r, err := (state{b.Tx}).key(k.KID()); err != nil || r == nil {
			continue // nobody has taken it
		}
		for _, id := range names {
			_, status, err := Key(b.Tx, id, k.KID())
			if err != nil {
				rt.Fatal(err)
			}
			switch status {
			case KeyUnknown, KeyUnknownPrincipal:
				continue
			case KeyActive:
				active[id]++
				if ended[k.KID()] {
					rt.Fatalf("key %s of %s came back", k.KID(), id)
				}
			default:
				ended[k.KID()] = true
			}
			owners++
		}
		if owners > 1 {
			rt.Fatalf("key %s has %d owners", k.KID(), owners)
		}
	}
	for id, n := range active {
		if n > 1 {
			rt.Fatalf("%s has %d active keys", id, n)
		}
	}
	if active["op0"] != 1 || active["op1"] != 1 {
		rt.Fatal("an operator lost its key")
	}
}

func checkCounts(rt *rapid.T, b bench, limit int) {
	for _, op := range []string{"op0", "op1"} {
		n := 0
		err := (state{b.Tx}).eachPrincipal("", "", func(r *principalRecord) (bool, error) {
			if r.Operator == op && r.Kind != machine.Operator && r.Revoked == nil {
				n++
			}
			return true, nil
		})
		if err != nil {
			rt.Fatal(err)
		}
		if counted, err := (state{b.Tx}).number(prefixCount + op); err != nil || counted != n || n > limit {
			rt.Fatalf("%s answers for %d, counted %d of %d (%v)", op, n, counted, limit, err)
		}
	}
}
