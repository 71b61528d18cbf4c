// Package vectors reads known-answer files for the tests named TestVectors….
//
// A file <name>.json is taken from the folder in DELIBERD_VECTORS when that is
// set, so that anybody may bring his own cases, and else from
// testdata/vectors/ at the top of the module.
package vectors

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"testing"
)

// Load returns the bytes of <name>.json.
func Load(t testing.TB, name string) []byte {
	t.Helper()
	dir := os.Getenv("DELIBERD_VECTORS")
	if dir == "" {
		_, self, _, _ := runtime.Caller(0)
		dir = filepath.Join(filepath.Dir(self), "..", "..", "testdata", "vectors")
	}
	raw, err := os.ReadFile(filepath.Join(dir, name+".json"))
	if err != nil {
		t.Fatalf("known answers: %v", err)
	}
	return raw
}

// Run runs every case of <name>.json through the runner of its kind and fails
// on a kind that has none. A file without cases is an error.
func Run(t *testing.T, name string, runners map[string]func(*testing.T, json.RawMessage)) {
	t.Helper()
	file := As[struct {
		Cases []json.RawMessage `json:"cases"`
	}](t, Load(t, name))
	if len(file.Cases) == 0 {
		t.Fatalf("%s.json has no cases", name)
	}
	for i, raw := range file.Cases {
		head := As[struct{ ID, Kind string }](t, raw)
		if head.ID == "" {
			head.ID = fmt.Sprint(i)
		}
		t.Run(head.Kind+"/"+head.ID, func(t *testing.T) {
			run, ok := runners[head.Kind]
			if !ok {
				t.Fatalf("no test knows the kind %q", head.Kind)
			}
			run(t, raw)
		})
	}
}

// As decodes one case; members that T does not name are ignored.
func As[T any](t testing.TB, raw []byte) T {
	t.Helper()
	var v T
	if err := json.Unmarshal(raw, &v); err != nil {
		t.Fatalf("decode %.80s: %v", raw, err)
	}
	return v
}
