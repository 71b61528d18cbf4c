package main

import (
	"fmt"
	"os"

	"github.com/deliberd/deliberd/fsm/standard"
)

func main() {
	b := newBits()
	b.detmath()
	b.semantics()
	b.network()
	b.weights()
	b.reputation()
	if len(os.Args) > 1 {
		text, err := os.ReadFile(os.Args[1])
		if err == nil {
			err = b.vectors(text)
		}
		if err != nil {
			fmt.Fprintln(os.Stderr, "determinism:", err)
			os.Exit(1)
		}
	}
	fmt.Println(b.sum())
	if len(os.Args) > 2 {
		if err := replay(os.Args[2]); err != nil {
			fmt.Fprintln(os.Stderr, "determinism:", err)
			os.Exit(1)
		}
	}
}

// replay prints the head that a recorded log leads to.
func replay(path string) error {
	raw, err := os.ReadFile(path)
	if err != nil {
		return err
	}
	g, entries, err := standard.DecodeRecording(raw)
	if err != nil {
		return err
	}
	head, err := standard.Replay(standard.NewMemory(), g, entries)
	if err != nil {
		return err
	}
	fmt.Println(head.Size, head.Root)
	return nil
}
