// Package raftpath orders actions: it runs hashicorp/raft over package p2p
// and applies what raft commits to package store.
//
// A [Path] is one node's end. Any node takes actions ([Path.Submit]) and
// forwards them to the leader, who puts many into one entry, stamps it and
// replicates it; the answer comes back once this node has applied it. Any
// node reads what has been decided before the read began ([Path.ReadIndex]).
// The leader proposes an empty entry when the state machine says that time
// alone has something to do.
//
// How it differs from raft as it comes:
//
//   - The transport is our own (wire.go, transport.go): headers come from the
//     authenticated stream, indexes follow from the previous one, leadership
//     is not transferred, and a [guard.Guard] sees each message. Raft's fast
//     path for heartbeats stays hidden: it changes term and state beside the
//     main thread, and nodes then disagree about entries (hashicorp/raft
//     issue 695).
//   - Snapshots carry no state between nodes. A voter behind the log, a
//     joiner and an observer fetch state and entries over the sync protocol
//     (sync_server.go, sync_client.go), and a voter then starts raft exactly where the
//     state ends (install.go).
//   - Raft tells followers of a commit only with the next entry. The leader
//     pushes a notice as it begins to apply (notice.go).
//   - A linearizable read is confirmed by heartbeats sent after it began
//     (read.go). raft.VerifyLeader also counts answers that were under way
//     before.
//   - Raft sends a removed voter the entry once and no commit. A node that
//     missed its removal learns it from the others (removal.go).
//   - A log write that does not return silences the node (watchdog.go):
//     otherwise a leader with a hung disk would keep its place with heartbeats
//     for ever.
//
// State and raft's position are written in one transaction, so a restart
// applies nothing twice.
package raftpath
