package main

import (
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

func root(t *testing.T) string {
	t.Helper()
	dir, err := moduleRoot(".")
	if err != nil {
		t.Fatal(err)
	}
	return dir
}

func TestEveryMutantAppliesAndParses(t *testing.T) {
	for _, m := range Mutants() {
		files, err := m.apply(root(t))
		if err != nil {
			t.Error(err)
			continue
		}
		for name, text := range files {
			original, err := os.ReadFile(filepath.Join(root(t), name))
			if err != nil {
				t.Fatal(err)
			}
			if text == string(original) {
				t.Errorf("%s changes nothing in %s", m.Name, name)
			}
			if _, err := parser.ParseFile(token.NewFileSet(), name, text, parser.AllErrors); err != nil {
				t.Errorf("%s: %v", m.Name, err)
			}
		}
	}
}

func TestAnEditMustApplyExactlyOnce(t *testing.T) {
	for _, from := range []string{"occurs nowhere", "return"} {
		m := Mutant{Name: "x", Edits: []Edit{{quorumGo, from, "y"}}}
		if _, err := m.apply(root(t)); err == nil {
			t.Errorf("the edit of %q applies", from)
		}
	}
}

func TestMutantsAreManyDistinctAndDescribed(t *testing.T) {
	all := Mutants()
	if len(all) < 60 {
		t.Errorf("%d mutants, at least 60 are wanted", len(all))
	}
	names, texts := map[string]bool{}, map[string]string{}
	for _, m := range all {
		if names[m.Name] {
			t.Errorf("two mutants are called %s", m.Name)
		}
		names[m.Name] = true
		if !regexp.MustCompile(`^[a-z0-9+-]+$`).MatchString(m.Name) || !strings.HasSuffix(m.Breaks, ".") || strings.Contains(m.Breaks, "|") {
			t.Errorf("%s: a name of lowercase words, and a sentence", m.Name)
		}
		if len(m.Edits) == 0 {
			t.Errorf("%s edits nothing", m.Name)
		}
		files, _ := m.apply(root(t)) // TestEveryMutantApplies tells the error
		key := ""
		for _, name := range slices.Sorted(func(yield func(string) bool) {
			for name := range files {
				if !yield(name) {
					return
				}
			}
		}) {
			key += name + "\x00" + files[name]
		}
		if other, same := texts[key]; same {
			t.Errorf("%s and %s are the same program", m.Name, other)
		}
		texts[key] = m.Name
	}
}

// TestTheTableListsExactlyTheMutants keeps docs/mutants.md in step with the code.
func TestTheTableListsExactlyTheMutants(t *testing.T) {
	text, err := os.ReadFile(filepath.Join(root(t), "docs/mutants.md"))
	if os.IsNotExist(err) {
		t.Skip("the table has not been written yet")
	}
	if err != nil {
		t.Fatal(err)
	}
	var listed, want []string
	for _, row := range regexp.MustCompile("(?m)^\\| `([^`]+)` \\| ([^|]*) \\|").FindAllStringSubmatch(string(text), -1) {
		listed = append(listed, row[1]+": "+row[2])
	}
	for _, m := range Mutants() {
		want = append(want, m.Name+": "+m.Breaks)
	}
	if !slices.Equal(listed, want) {
		missing := slices.DeleteFunc(slices.Clone(want), func(row string) bool { return slices.Contains(listed, row) })
		gone := slices.DeleteFunc(slices.Clone(listed), func(row string) bool { return slices.Contains(want, row) })
		t.Errorf("docs/mutants.md is out of step (missing %q, listed and gone %q, or in another order); write it again: go run ./pbft/mutants -write docs/mutants.md", missing, gone)
	}
	if strings.Contains(string(text), "**survived**") {
		t.Error("a mutant survived")
	}
}

func TestTheFirstFailedTestIsNamed(t *testing.T) {
	for out, want := range map[string]string{
		"=== RUN x\n--- FAIL: TestA (0.00s)\n    --- FAIL: TestA/b (0.00s)\n--- FAIL: TestC (0.1s)\nFAIL": "TestA",
		"panic: test timed out after 2m0s\n\trunning tests:\n\t\tTestSlow (2m0s)\n":                       "TestSlow",
		"panic: test timed out after 2m0s\nrunning tests:\n\tTestSlow (2m0s)\n\ngoroutine 1":              "TestSlow",
		"fatal error: stack overflow": "crash",
	} {
		if got := failedTest([]byte(out)); got != want {
			t.Errorf("%q names %q, expected %q", out, got, want)
		}
	}
}

func TestTheMostCommonOracleIsReported(t *testing.T) {
	if got := mostCommon([]string{"liveness", "agreement", "agreement"}); got != "agreement" {
		t.Error(got)
	}
	if got := mostCommon([]string{"liveness", "agreement"}); got != "liveness" {
		t.Error(got)
	}
}

func TestTheTableShowsWhatBecameOfAMutant(t *testing.T) {
	got := markdown([]Result{
		{Mutant: quorums[0].Name, Breaks: "A.", Detector: "sim", Oracle: "agreement", Schedules: 12, Seeds: 5},
		{Mutant: quorums[1].Name, Breaks: "B.", Unseen: "so", Detector: "rules", Oracle: "TestX"},
		{Mutant: quorums[2].Name, Breaks: "C."},
	}, Budget{BaseSeeds: 5})
	for _, want := range []string{
		"3 mutants: 1 found by sim, 1 found by rules, 0 found by model, 0 found by driver, 1 survived.",
		"| `quorum-2f` | A. | sim: agreement | 12 |",
		"| `quorum-2f+1` | B. | rules: TestX (unit tests only: so) | – |",
		"| `quorum-f+1` | C. | **survived** | – |",
	} {
		if !strings.Contains(got, want) {
			t.Errorf("the table lacks %q:\n%s", want, got)
		}
	}
}

func TestPartsHoldEveryMutantOnce(t *testing.T) {
	seen := map[string]int{}
	for _, part := range []string{"1/4", "2/4", "3/4", "4/4"} {
		some, err := partOf(Mutants(), part)
		if err != nil {
			t.Fatal(err)
		}
		for _, m := range some {
			seen[m.Name]++
		}
	}
	for _, m := range Mutants() {
		if seen[m.Name] != 1 {
			t.Errorf("%s is in %d parts", m.Name, seen[m.Name])
		}
	}
	for _, bad := range []string{"", "0/4", "5/4", "a/b"} {
		if _, err := partOf(Mutants(), bad); err == nil {
			t.Errorf("part %q is taken", bad)
		}
	}
}
