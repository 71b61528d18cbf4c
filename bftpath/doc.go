// Package bftpath drives package pbft: it gives the engines of one node their
// messages and ticks, keeps the journal of what the node has signed, and
// reports decisions. Transport is a function: the node wires it to package p2p.
//
// # One epoch, one key, one journal
//
// A [Driver] serves the instances of the epoch whose key it holds. The key's
// journal is a file apart from the node's data, so that a rebuilt or restored
// node still knows what it has said. A key whose journal is lost signs nothing
// until the next epoch ([ErrNoJournal]); [Config].Create is for the first use
// of a key only.
//
// # A flush
//
// One goroutine owns the engines. It takes what has come in, drops what cannot
// matter, verifies the rest in one batch, and counts it. The votes that follow,
// of however many instances, are signed as one frame (or as few as hold them)
// and go to the disk with one fdatasync on a second goroutine, while the first
// goes on verifying; only then are they sent. Votes that come up meanwhile
// share the next flush, so one disk write serves more instances as load rises
// and nothing waits when there is none. Every signed vote is stored before it
// is sent, a commit together with the prepared certificate behind it. When a
// write fails, what reached the disk is unknown, and the driver signs no more.
//
// A conflict between known values costs two such writes in sequence on each
// node, prepare and commit: replicas know the digest, so the prepares need not
// wait for the primary's pre-prepare (see package pbft).
//
// # The journal
//
// An append-only file rather than a database: a flush is one write and one
// fdatasync, where a bbolt transaction needs two of each (BenchmarkJournal
// compares them). Room ahead is filled with zeros and synced, so that an append
// changes no metadata. Records carry sequence numbers and checksums and start at
// multiples of 64 bytes; a torn last record is dropped, since it was never
// acknowledged, and any other damage is refused ([ErrJournalCorrupt]). When
// finished instances fill it, what still matters is written to a new file that
// replaces it. Proofs of guilt stand in it too, one for each voter of an epoch.
package bftpath
