package registry

import (
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine"
)

func ids(l List) string {
	var out []string
	for _, v := range l.Principals {
		out = append(out, v.ID)
	}
	return strings.Join(out, " ")
}

func TestGetShowsAPrincipalWithItsKeyAndGrants(t *testing.T) {
	b := newBench(t, 1, Limits{})
	b.Now = 5_000_000
	b.register("op0", "alice")
	b.grant("op0", "alice", "risk.*", "0.50", "1")
	b.grant("op0", "alice", "*", "0.1", "0.2")
	var v View
	if err := b.Query("registry.get", "alice", map[string]string{"id": "alice"}, &v); err != nil {
		t.Fatal(err)
	}
	if !v.Active || v.Operator != "op0" || v.Since != 5_000_000 || v.JWK == nil || v.JWK.KID != b.Key("alice").KID() || v.Revoked != nil {
		t.Fatalf("%+v", v)
	}
	if want := []machine.Grant{{Principal: "alice", Pattern: "*", Authority: "0.1", Trust: "0.2"}, {Principal: "alice", Pattern: "risk.*", Authority: "0.50", Trust: "1"}}; fmt.Sprint(v.Grants) != fmt.Sprint(want) {
		t.Fatalf("%+v", v.Grants)
	}
	b.Must("op0", KindRevoke, Revoke{ID: "alice", Reason: "left"})
	v = View{}
	if err := b.Query("registry.get", "alice", map[string]string{"id": "alice"}, &v); err != nil {
		t.Fatal(err)
	}
	if v.Active || v.JWK != nil || v.Revoked == nil || *v.Revoked != (Revocation{At: 5_000_000, By: "op0", Reason: "left"}) {
		t.Fatalf("%+v", v)
	}
	if err := b.Query("registry.get", "alice", map[string]string{"id": "bob"}, &v); code(err) != machine.CodeNotFound {
		t.Fatal(err)
	}
	if err := b.Query("registry.get", "alice", map[string]string{"id": ""}, &v); code(err) != machine.CodeMalformed {
		t.Fatal(err)
	}
}

func TestListFiltersAndPages(t *testing.T) {
	b := newBench(t, 2, Limits{})
	b.register("op0", "a1", "a2", "a3")
	b.register("op1", "b1")
	b.Must("op1", KindRegister, b.registrationBy("op1", "h1", machine.Human))
	b.grant("op0", "a2", "risk.*", "1", "1")
	b.grant("op1", "h1", "*", "1", "1")
	for params, want := range map[string]string{
		`{}`: "a1 a2 a3 b1 h1 op0 op1", `{"kind":"human"}`: "h1", `{"kind":"operator"}`: "op0 op1", `{"operator":"op1"}`: "b1 h1 op1",
		`{"domain":"risk.credit"}`: "a2 h1", `{"domain":"other"}`: "h1", `{"domain":"risk","operator":"op0"}`: "a2", `{"domain":"risk","after":"a2"}`: "h1",
		`{"after":"a2","kind":"agent"}`: "a3 b1", `{"after":"zz"}`: "",
	} {
		var l List
		if err := b.Query("registry.list", "a1", raw(params), &l); err != nil || ids(l) != want || l.Next != "" {
			t.Errorf("%s: %q, next %q, %v; want %q", params, ids(l), l.Next, err, want)
		}
	}
}

type raw string

func (r raw) MarshalJSON() ([]byte, error) { return []byte(r), nil }

func TestPagesTogetherAreTheWholeList(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		b := newBench(t, 1, Limits{})
		var want []string
		for i := range rapid.IntRange(0, 9).Draw(rt, "principals") {
			id := fmt.Sprintf("a%d", i)
			b.register("op0", id)
			b.grant("op0", id, "risk", "1", "1")
			b.grant("op0", id, "risk.*", "1", "1")
			want = append(want, id)
		}
		limit := rapid.IntRange(1, 10).Draw(rt, "limit")
		for _, domain := range []string{`"domain":"risk",`, ``} {
			var got, held []string
			for after, first := "", true; first || after != ""; first = false {
				params := fmt.Sprintf(`{%s"kind":"agent","limit":%d}`, domain, limit)
				if after != "" {
					params = strings.Replace(params, "{", `{"after":"`+after+`",`, 1)
				}
				var l List
				if err := b.Query("registry.list", "a", raw(params), &l); err != nil {
					rt.Fatal(err)
				}
				if len(l.Principals) > limit || l.Next != "" && len(l.Principals) != limit {
					rt.Fatalf("a page of %d with limit %d", len(l.Principals), limit)
				}
				for _, v := range l.Principals {
					got = append(got, v.ID)
				}
				after = l.Next
			}
			for after, first := "", true; first || after != ""; first = false {
				params := fmt.Sprintf(`{%s"limit":%d}`, domain, limit)
				if after != "" {
					params = strings.Replace(params, "{", `{"after":"`+after+`",`, 1)
				}
				var l GrantList
				if err := b.Query("registry.grants", "a", raw(params), &l); err != nil {
					rt.Fatal(err)
				}
				for _, g := range l.Grants {
					if len(held) == 0 || held[len(held)-1] != g.Principal {
						held = append(held, g.Principal)
					}
					if domain != "" && g.Pattern != "risk" {
						rt.Fatalf("%+v does not count in risk", g)
					}
				}
				after = l.Next
			}
			if fmt.Sprint(got) != fmt.Sprint(want) || fmt.Sprint(held) != fmt.Sprint(want) {
				rt.Fatalf("pages of %d gave %v and %v, want %v", limit, got, held, want)
			}
		}
	})
}

func TestGrantsOfOnePrincipalAreListed(t *testing.T) {
	b := newBench(t, 1, Limits{})
	b.register("op0", "a", "b")
	b.grant("op0", "a", "x", "1", "1")
	b.grant("op0", "b", "x", "1", "1")
	var l GrantList
	if err := b.Query("registry.grants", "a", map[string]string{"principal": "b"}, &l); err != nil || len(l.Grants) != 1 || l.Grants[0].Principal != "b" {
		t.Fatalf("%+v, %v", l, err)
	}
	b.Must("op0", KindRevoke, Revoke{ID: "b", Reason: "x"})
	if err := b.Query("registry.grants", "a", struct{}{}, &l); err != nil || len(l.Grants) != 1 || l.Grants[0].Principal != "a" {
		t.Fatalf("%+v, %v", l, err)
	}
}
