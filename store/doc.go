// Package store keeps one node's data: a flat, ordered key space behind
// [machine.Tx] in one bbolt file, and a folder lock around it.
//
// There are two key spaces. The state is what the log's entries make of it:
// the same on every node at the same entry, written by [Store.Update] in one
// fsynced transaction a batch, and the only thing that travels. The local
// space ([Store.Local]) belongs to this node alone: who it is, and plans it
// has begun.
//
// State travels as a canonical stream ([Snapshot.WriteTo], [Store.Replace]):
// sorted keys and values with lengths, ended by their count and a SHA-256
// over all of it. A bbolt file never travels: a crafted one would be parsed
// before anything about it could be checked.
//
// All methods are safe for concurrent use. Readers see one moment and never
// wait for a writer; there is one writer at a time.
package store
