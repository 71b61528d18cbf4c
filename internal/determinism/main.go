package main

import (
	"fmt"
	"os"
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
}
