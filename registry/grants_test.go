package registry

import (
	"fmt"
	"slices"
	"sort"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine"
)

func TestTheLongestPatternThatCoversADomainCounts(t *testing.T) {
	b := newBench(t, 1, Limits{})
	b.register("op0", "a")
	for i, pattern := range []string{"*", "risk.*", "risk", "risk.credit.*", "risk.credit.eu", "Risk.*", "a..b.*"} {
		b.grant("op0", "a", pattern, fmt.Sprintf("0.%d", i+1), "1.0")
	}
	for domain, want := range map[string]string{
		"risk": "risk", "risk.market": "risk.*", "risk.": "risk.*", "risk.credit": "risk.credit.*", "risk.credit.us": "risk.credit.*",
		"risk.credit.eu": "risk.credit.eu", "risk.credit.eu.de": "risk.credit.*", "risky": "*", "Risk.x": "Risk.*", "RISK": "*", "other": "*",
		"a..b": "a..b.*", "a..b.c": "a..b.*", "a..": "*", ".": "*",
	} {
		g, ok, err := GrantFor(b.Tx, "a", domain)
		if err != nil || !ok || g.Pattern != want || g.Principal != "a" || g.Trust != "1.0" {
			t.Errorf("%s: %+v, %v, %v; want %s", domain, g, ok, err, want)
		}
	}
	for _, domain := range []string{"", "a b", "risk.*", "*", strings.Repeat("a", 129), "ü"} {
		if _, ok, err := GrantFor(b.Tx, "a", domain); ok || err != nil {
			t.Errorf("%q is no domain, but granted (%v)", domain, err)
		}
	}
	b.Must("op0", KindUngrant, Ungrant{"a", "*"})
	if _, ok, _ := GrantFor(b.Tx, "a", "other"); ok {
		t.Error("still granted")
	}
	b.Refused(machine.CodeNotFound, "op0", KindUngrant, Ungrant{"a", "*"})
}

func TestAnOperatorGrantsToItsOwnPrincipalsOnly(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.register("op0", "a")
	g := Grant{"a", "risk", NewDecimal("1"), NewDecimal("1")}
	b.Refused(machine.CodeNotAuthorized, "op1", KindGrant, g)
	b.Refused(machine.CodeNotAuthorized, "a", KindGrant, g)
	b.Must("op0", KindGrant, g)
	b.Refused(machine.CodeNotAuthorized, "op1", KindUngrant, Ungrant{"a", "risk"})
	b.Refused(machine.CodeNotAuthorized, "a", KindUngrant, Ungrant{"a", "risk"})
	b.Refused(machine.CodeNotAuthorized, "op1", KindGrant, Grant{"op0", "risk", NewDecimal("1"), NewDecimal("1")})
	b.Must("op0", KindGrant, Grant{"op0", "risk", NewDecimal("1"), NewDecimal("1")})
	b.Refused(machine.CodeNotFound, "op0", KindGrant, Grant{"nobody", "risk", NewDecimal("1"), NewDecimal("1")})
}

func TestAGrantKeepsTheLiteralAndReplacesTheOneBefore(t *testing.T) {
	b := newBench(t, 1, Limits{})
	b.register("op0", "a")
	for _, c := range []struct {
		authority any
		want      string
	}{{"0.70", "0.70"}, {0.7, "0.7"}, {1, "1"}, {0, "0"}, {"1.000", "1.000"}, {1e-7, "1e-7"}, {0.1234567890123456789, "0.12345678901234568"}} {
		b.Must("op0", KindGrant, map[string]any{"principal": "a", "pattern": "x", "authority": c.authority, "trust": "0"})
		g, ok, err := GrantFor(b.Tx, "a", "x")
		if err != nil || !ok || g.Authority != c.want || g.Trust != "0" {
			t.Errorf("%v: %+v, %v, %v", c.authority, g, ok, err)
		}
	}
	for _, authority := range []any{1.5, -0.1, "1.1", "-1", "1.0000000000000000001", 2, "42"} {
		b.Refused(machine.CodeOutOfRange, "op0", KindGrant, map[string]any{"principal": "a", "pattern": "x", "authority": authority, "trust": "0"})
	}
	for _, authority := range []any{"", ".5", "0.", "1e-3", "+1", "0,5", "NaN", "Infinity", nil, true, []int{1}, " 1"} {
		b.Refused(machine.CodeMalformed, "op0", KindGrant, map[string]any{"principal": "a", "pattern": "x", "authority": authority, "trust": "0"})
	}
}

func TestHoldersAreFoundByEveryCoveringPattern(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.register("op0", "z", "b", "c")
	b.register("op1", "a")
	b.grant("op0", "z", "*", "1", "1")
	b.grant("op0", "z", "risk", "1", "1")
	b.grant("op0", "b", "risk.credit", "1", "1")
	b.grant("op0", "c", "risk.*", "1", "1")
	b.grant("op1", "a", "risk.credit.*", "1", "1")
	for domain, want := range map[string]string{"risk": "c z", "risk.credit": "a b c z", "risk.credit.eu": "a c z", "ris": "z", "risk*": "", "": ""} {
		got, err := Holders(b.Tx, domain)
		if err != nil || strings.Join(got, " ") != want {
			t.Errorf("%s: %v, %v; want %s", domain, got, err, want)
		}
	}
}

// TestLookupsAgreeWithAPlainScan holds the indexes against the dumb way: look
// at every grant there is.
func TestLookupsAgreeWithAPlainScan(t *testing.T) {
	word := rapid.SampledFrom([]string{"a", "b", "a.b", "a.b.c", "a.b.c.d", "a.", "a..b", ".", "..", "A", "b-_9"})
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, 1, Limits{})
		ids := []string{"p1", "p2", "p3"}
		b.register("op0", ids...)
		held := map[string]map[string]string{}
		for i := range rapid.IntRange(0, 20).Draw(rt, "steps") {
			id := rapid.SampledFrom(ids).Draw(rt, "id")
			pattern := word.Draw(rt, "pattern") + rapid.SampledFrom([]string{"", ".*"}).Draw(rt, "below")
			if rapid.IntRange(0, 9).Draw(rt, "all") == 0 {
				pattern = "*"
			}
			switch rapid.IntRange(0, 9).Draw(rt, "what") {
			case 0:
				if _, err := b.Do("op0", KindRevoke, Revoke{ID: id, Reason: "x"}); err == nil {
					held[id] = nil
				}
			case 1, 2:
				if _, err := b.Do("op0", KindUngrant, Ungrant{id, pattern}); (err == nil) != (held[id][pattern] != "") {
					rt.Fatalf("ungrant %s %s: %v", id, pattern, err)
				}
				delete(held[id], pattern)
			default:
				literal := fmt.Sprintf("0.%02d", i)
				if _, err := b.Do("op0", KindGrant, Grant{id, pattern, NewDecimal(literal), NewDecimal("1")}); err == nil {
					if held[id] == nil {
						held[id] = map[string]string{}
					}
					held[id][pattern] = literal
				}
			}
		}
		domain := word.Draw(rt, "domain")
		var want []string
		for id, grants := range held {
			best := ""
			for pattern := range grants {
				if Covers(pattern, domain) && (best == "" || closer(pattern, best)) {
					best = pattern
				}
			}
			g, ok, err := GrantFor(b.Tx, id, domain)
			if err != nil || ok != (best != "") || ok && (g.Pattern != best || g.Authority != grants[best]) {
				rt.Fatalf("%s in %s: got %+v, %v, %v; want %q of %v", id, domain, g, ok, err, best, grants)
			}
			if ok {
				want = append(want, id)
			}
		}
		sort.Strings(want)
		if got, err := Holders(b.Tx, domain); err != nil || !slices.Equal(got, want) {
			rt.Fatalf("holders of %s: %v, %v; want %v", domain, got, err, want)
		}
	})
}

// closer reports whether pattern p counts before q, both covering one domain.
func closer(p, q string) bool {
	rank := func(p string) int {
		if base, ok := strings.CutSuffix(p, "*"); ok {
			return 2*len(strings.TrimSuffix(base, ".")) - 1
		}
		return 2 * len(p)
	}
	return rank(p) > rank(q)
}

func FuzzCovers(f *testing.F) {
	f.Add("risk.*", "risk.credit")
	f.Add("*", ".")
	f.Add("a..*", "a..b")
	f.Fuzz(func(t *testing.T, pattern, domain string) {
		if !ValidPattern(pattern) || !ValidDomain(domain) {
			return
		}
		if Covers(pattern, domain) != slices.Contains(coverings(domain), pattern) {
			t.Fatalf("%q and %q: Covers says %v, coverings lists %q", pattern, domain, Covers(pattern, domain), coverings(domain))
		}
	})
}
