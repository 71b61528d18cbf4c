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
		var reader Reader
		for range rapid.IntRange(1, 20).Draw(rt, "steps") {
			actor, id := rapid.SampledFrom(names).Draw(rt, "actor"), rapid.SampledFrom(names).Draw(rt, "id")
			key := rapid.SampledFrom(keys).Draw(rt, "key")
			var err error
			switch rapid.IntRange(0, 5).Draw(rt, "what") {
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
			case 4:
				authority := NewDecimal(rapid.SampledFrom([]string{"0.1", "0.9"}).Draw(rt, "authority"))
				_, err = b.Do(actor, KindGrant, Grant{Principal: id, Pattern: rapid.SampledFrom(patterns).Draw(rt, "pattern"), Authority: authority, Trust: authority})
			case 5:
				_, err = b.Do(actor, KindUngrant, Ungrant{Principal: id, Pattern: rapid.SampledFrom(patterns).Draw(rt, "pattern")})
			}
			if _, refused := machine.IsRefusal(err); err != nil && !refused {
				rt.Fatal(err)
			}
			checkKeys(rt, b, names, keys, ended)
			checkCounts(rt, b, limit)
			checkReader(rt, b, &reader, names, keys)
		}
	})
}

var patterns = []string{"*", "risk.*", "risk.credit"}

// checkReader: what was read before never shows in what is answered now.
func checkReader(rt *rapid.T, b bench, r *Reader, names []string, keys []sign.Key) {
	for _, id := range names {
		p, ok, err := r.Lookup(b.Tx, id)
		if want, known, _ := Lookup(b.Tx, id); err != nil || p != want || ok != known {
			rt.Fatalf("%s is read as %+v, %v, %v, it is %+v", id, p, ok, err, want)
		}
		g, ok, err := r.GrantFor(b.Tx, id, "risk.credit")
		if want, held, _ := GrantFor(b.Tx, id, "risk.credit"); err != nil || g != want || ok != held {
			rt.Fatalf("the grant of %s is read as %+v, %v, %v, it is %+v", id, g, ok, err, want)
		}
		for _, k := range keys {
			key, status, err := r.Key(b.Tx, id, k.KID())
			if want, now, _ := Key(b.Tx, id, k.KID()); err != nil || key != want || status != now {
				rt.Fatalf("key %s of %s is read as %s, %v, it is %s", k.KID(), id, status, err, now)
			}
		}
	}
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
