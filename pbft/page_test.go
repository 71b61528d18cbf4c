package pbft

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

func TestThePageForReviewersNamesTestsThatExist(t *testing.T) {
	page, err := os.ReadFile("../docs/pbft.md")
	if err != nil {
		t.Fatal(err)
	}
	have := map[string]bool{}
	for _, dir := range []string{".", "quorum", "../bftpath", "../internal/sign"} {
		files, err := filepath.Glob(filepath.Join(dir, "*_test.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			text, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			for _, m := range regexp.MustCompile(`(?m)^func ((?:Test|Fuzz)\w+)\(`).FindAllStringSubmatch(string(text), -1) {
				have[m[1]] = true
			}
		}
	}
	named := regexp.MustCompile("`((?:Test|Fuzz)\\w+)`").FindAllStringSubmatch(string(page), -1)
	for _, m := range named {
		if !have[m[1]] {
			t.Errorf("the page names %s, which does not exist", m[1])
		}
	}
	if len(named) < 50 {
		t.Errorf("the page names %d tests only", len(named))
	}
	// And the functions that its table points to.
	row := regexp.MustCompile(`(?m)^\| [^|]+ \| ([^|]+) \|`)
	for _, m := range row.FindAllStringSubmatch(string(page), -1) {
		file := ""
		for _, word := range regexp.MustCompile("`([^`]+)`").FindAllStringSubmatch(m[1], -1) {
			switch name := word[1]; {
			case strings.HasSuffix(name, ".go"):
				if file = sourceOf(name); file == "" {
					t.Errorf("the page names %s, which does not exist", name)
				}
			case file != "" && !regexp.MustCompile(`(?m)^(func (\([^)]*\) )?|type )`+name+`\b`).MatchString(file):
				t.Errorf("%s is not where the page says", name)
			}
		}
	}
}

// sourceOf is the text of a file as the page names it: of this package, of
// bftpath, or from the module's root.
func sourceOf(name string) string {
	for _, dir := range []string{".", "../bftpath", ".."} {
		if text, err := os.ReadFile(filepath.Join(dir, name)); err == nil {
			return string(text)
		}
	}
	return ""
}
