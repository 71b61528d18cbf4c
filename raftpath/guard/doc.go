// Package guard stands between the raft transport and raft, which trusts
// whoever reaches it. A [Guard] judges each incoming message before raft sees
// it and completes each outgoing one; package raftpath carries it out.
//
// What the wire cannot express needs no rule: a sender other than the
// authenticated peer, entries with gaps, TimeoutNow, snapshot data. What is
// left is for a Guard. [Voters] is the least one: only current voters reach
// raft. Every message has a Seal, opaque to the wire, where a guard puts what
// it signs: the leader's signature over its entries, election proofs, votes.
package guard
