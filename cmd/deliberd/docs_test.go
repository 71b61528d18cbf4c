package main

import (
	"bytes"
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// Blocks that begin with ```sh are commands that readers are told to run.
var shellBlock = regexp.MustCompile("(?ms)^```sh\n(.*?)^```$")

func TestTheCommandsOfTheReadmeWork(t *testing.T) {
	if testing.Short() {
		t.Skip("starts processes")
	}
	text, err := os.ReadFile("../../README.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := shellBlock.FindAllSubmatch(text, -1)
	if len(blocks) < 4 {
		t.Fatalf("the README has %d blocks of commands", len(blocks))
	}
	var script bytes.Buffer
	script.WriteString("set -eu\ntrap 'kill $(jobs -p) 2>/dev/null; wait' EXIT\n")
	for _, b := range blocks {
		script.Write(b[1])
	}
	root, err := filepath.Abs("../..")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	// Readers work in the clone, the test in an empty folder, with free ports.
	commands := strings.NewReplacer(
		"go run ./cmd/deliberd dev --demo --exit", "go run -C "+root+" ./cmd/deliberd dev --demo --exit --http 127.0.0.1:0",
		"go build -o deliberd", "go build -C "+root+" -o "+filepath.Join(dir, "deliberd"),
		"127.0.0.1:7700", "127.0.0.1:0",
	).Replace(script.String())
	ctx, cancel := context.WithTimeout(context.Background(), 4*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "bash", "-c", commands)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	if err != nil {
		lab, _ := os.ReadFile(filepath.Join(dir, "lab.log"))
		t.Fatalf("%v\n%s\nlab.log:\n%s", err, out, lab)
	}
	for _, want := range []string{"fast path", "conflict path", "all nodes agree: true", "running  [1 2 3 4]", "gap"} {
		if !strings.Contains(string(out), want) {
			t.Errorf("the commands do not print %q:\n%s", want, out)
		}
	}
	if strings.Contains(string(out), "all nodes agree: false") {
		t.Error("nodes disagree")
	}
}
