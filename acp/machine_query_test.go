package acp_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
)

func asksOf(b *machinetest.Bench, who string) []string {
	b.T.Helper()
	asks, err := b.Machine.Asks(b.Tx, b.Ctx(), who)
	if err != nil {
		b.T.Fatal(err)
	}
	var out []string
	for _, a := range asks {
		if !json.Valid(a.Schema) || a.Title == "" {
			b.T.Fatalf("an ask without schema or title: %+v", a)
		}
		canonical(b.T, a)
		out = append(out, fmt.Sprintf("%s %s %s %d", a.Ask, a.Kind, a.Subject, a.Deadline))
	}
	return out
}

func TestAsksAreForThoseWhoCanAnswer(t *testing.T) {
	b := newBench(t)
	b.Grant("B", "other", "1", "1")
	b.Grant("author", "other", "1", "1")
	never := submit(b, nil)
	soon := submit(b, m{"expires_in_ms": 1000})
	elsewhere := submit(b, m{"domain": "other"})
	tie := submit(b, m{"quorum": 1})
	respond(b, "C", tie, "endorse", 0)
	deadline := int64(b.Now) + 1000
	ask := func(id string, at int64) string { return fmt.Sprintf("response acp.respond %s %d", id, at) }
	review := fmt.Sprintf("review acp.resolve %s 0", tie)
	for who, want := range map[string][]string{
		"A":        {ask(soon, deadline), ask(never, 0)},
		"B":        {ask(soon, deadline), ask(never, 0), ask(elsewhere, 0)},
		"author":   nil,
		"outsider": nil,
		"stranger": nil,
		"op":       nil,
		"nobody":   nil,
		"hana":     {ask(soon, deadline), ask(never, 0), review},
	} {
		got := asksOf(b, who)
		if who == "hana" || who == "B" { // without a deadline, by id
			slices.Sort(want[1:])
			slices.SortFunc(want[1:], func(x, y string) int { return strings.Compare(strings.Fields(x)[2], strings.Fields(y)[2]) })
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s is asked\n%v, want\n%v", who, got, want)
		}
	}
	respond(b, "A", soon, "endorse", 1)
	if got := asksOf(b, "A"); !slices.Equal(got, []string{ask(never, 0)}) {
		t.Fatalf("after responding: %v", got)
	}
}

func TestListsPageByIDAndFilter(t *testing.T) {
	b := newBench(t)
	b.Grant("author", "d.x", "1", "1")
	var all, pending, inX []string
	for i := range 7 {
		b.Now++ // ids in order
		domain := []string{"d", "d.x"}[i%2]
		id := submit(b, m{"domain": domain})
		all = append(all, id)
		if domain == "d.x" {
			inX = append(inX, id)
		}
		if i == 3 {
			b.Must("author", "acp.escalate", m{"proposal_id": id})
		} else {
			pending = append(pending, id)
		}
	}
	list := func(params m) (ids []string) {
		for {
			var page acp.Page
			if err := b.Query("acp.list", "A", params, &page); err != nil {
				t.Fatal(err)
			}
			for _, row := range page.Proposals {
				ids = append(ids, row.ProposalID)
			}
			if page.Next == "" {
				return ids
			}
			params["after"] = page.Next
		}
	}
	for name, c := range map[string]struct {
		params m
		want   []string
	}{
		"all":     {m{"limit": 2}, all},
		"status":  {m{"limit": 3, "status": "pending"}, pending},
		"domain":  {m{"limit": 1, "domain": "d.x"}, inX},
		"both":    {m{"status": "escalated", "domain": "d.x"}, all[3:4]},
		"nothing": {m{"status": "expired"}, nil},
	} {
		if got := list(c.params); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
	}
	for want, params := range map[string]m{
		machine.CodeOutOfRange: {"limit": 501}, machine.CodeMalformed: {"status": "open"}, acp.CodeInvalidID: {"after": "x"},
	} {
		if err := b.Query("acp.list", "A", params, nil); code(err) != want {
			t.Errorf("%v: %v, want %s", params, err, want)
		}
	}
	if err := b.Query("acp.get", "A", m{"proposal_id": anyID}, nil); code(err) != machine.CodeNotFound {
		t.Errorf("an unknown proposal: %v", err)
	}
}
