package demo_test

import (
	"encoding/json"
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/fsm/standard"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/store"
)

var record = flag.Bool("record", false, "record the demo's log anew in testdata")

const (
	recordedLog  = "testdata/demo.log"
	recordedHead = "testdata/demo.head.json"
)

// readLog reads the commands of a stopped node's Raft log.
func readLog(t *testing.T, dir string) [][]byte {
	t.Helper()
	var file string
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if d != nil && d.Name() == "raft.db" {
			file = path
		}
		return err
	})
	if err != nil || file == "" {
		t.Fatalf("no raft.db below %s (%v)", dir, err)
	}
	logs, err := raftboltdb.New(raftboltdb.Options{Path: file})
	if err != nil {
		t.Fatal(err)
	}
	defer logs.Close()
	first, _ := logs.FirstIndex()
	last, err := logs.LastIndex()
	if err != nil || first != 1 {
		t.Fatalf("the log begins at %d (%v)", first, err)
	}
	var entries [][]byte
	for i := first; i <= last; i++ {
		var l raft.Log
		if err := logs.GetLog(i, &l); err != nil {
			t.Fatal(err)
		}
		if l.Type == raft.LogCommand {
			entries = append(entries, l.Data)
		}
	}
	return entries
}

// replayed checks that the log of a stopped node replays to the head of its
// state, and records it if asked to.
func replayed(t *testing.T, dir string) {
	t.Helper()
	s, err := store.Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	var want fsm.Head
	if err := s.View(func(tx machine.Tx) (err error) { want, err = fsm.ReadHead(tx); return err }); err != nil {
		t.Fatal(err)
	}
	g, err := node.LoadGenesis(dir)
	if err != nil {
		t.Fatal(err)
	}
	entries := readLog(t, dir)
	head, err := standard.Replay(standard.NewMemory(), g, entries)
	if err != nil {
		t.Fatal(err)
	}
	if head != want {
		t.Fatalf("the log replays to %+v, the node had %+v", head, want)
	}
	if !*record {
		return
	}
	text, err := json.MarshalIndent(head, "", "  ")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll("testdata", 0o755); err != nil {
		t.Fatal(err)
	}
	for path, content := range map[string][]byte{recordedLog: standard.EncodeRecording(g, entries), recordedHead: append(text, '\n')} {
		if err := os.WriteFile(path, content, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}

func TestARecordedLogReplaysToTheSameHead(t *testing.T) {
	if *record {
		t.Skip("being recorded")
	}
	raw, err := os.ReadFile(recordedLog)
	if err != nil {
		t.Fatal(err)
	}
	g, entries, err := standard.DecodeRecording(raw)
	if err != nil {
		t.Fatal(err)
	}
	head, err := standard.Replay(standard.NewMemory(), g, entries)
	if err != nil {
		t.Fatal(err)
	}
	var want fsm.Head
	text, err := os.ReadFile(recordedHead)
	if err == nil {
		err = json.Unmarshal(text, &want)
	}
	if err != nil {
		t.Fatal(err)
	}
	if head != want {
		t.Fatalf("got %+v, want %+v; if the rules were changed on purpose, raise fsm.Version and run with -record", head, want)
	}
}
