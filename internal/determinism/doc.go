// Command determinism computes strengths, decisions, ratings and calibrations
// over generated inputs, and over the graphs of a known-answer file when one is
// named, and prints one SHA-256 over every bit of every result:
//
//	go run ./internal/determinism [testdata/vectors/semantics.json [RECORDED-LOG]]
//
// Built for amd64 with and without fused multiply-add, for 386 and for arm64
// it must print the same lines: replicas on different machines then agree. A
// recorded log is replayed through the whole state machine to its head.
package main
