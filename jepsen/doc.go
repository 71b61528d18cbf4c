// Package jepsen tests whole processes under faults. It is a harness, not part
// of the program: each node is a process of its own, made from the test binary
// itself, with real sockets and files, and the harness does to it what happens
// to machines.
//
// # Leader pauses
//
// hashicorp/raft's fast path for heartbeats changes term and state beside the
// main thread (its issue 695): when a leader stands still under load and comes
// back, two nodes may hold different entries at one index. Package raftpath
// hides the fast path. TestLeaderPausesCauseNoDivergence stops the leader with
// SIGSTOP, lets it go on with SIGCONT, and compares every entry that every
// node has applied, and every acknowledged write. The default takes half a
// minute; the soak that a release needs is
//
//	go test ./jepsen -run TestLeaderPausesCauseNoDivergence -pauses 300 -timeout 30m
//
// That the harness would see a divergence is shown with the fast path exposed,
// which finds one within minutes:
//
//	go test ./jepsen -run TestWithTheFastPathADivergenceIsFound -control 5m -timeout 10m
//
// Flags: -nodes, -clients (per node), -dir (folder for the nodes' data; memory
// by default, since disks are not the subject here), -v for progress.
package jepsen
