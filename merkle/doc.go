// Package merkle builds, exports and verifies evidence chains: Deliberatic §5.
//
// A chain is the leaves of §5.1 in order: the round's metadata, its positions
// (with their evidence, also what came later), its challenges and supports,
// the constitutional check, the graded semantics, the consensus vote, the
// verdict and the dissent records. Lists are ordered by id. The root is that
// of a binary SHA-256 Merkle tree over the leaves (cbergoon/merkletree), and
// is published as the verdict's evidence_chain.
//
// That tree duplicates an odd last node and does not tell leaves from inner
// nodes, so without care two lists can share a root. Every leaf therefore
// hashes the canonical JSON (RFC 8785) of
//
//	{"count": leaves in the chain, "data": …, "index": its place, "kind": …}
//
// A shorter or longer chain has other leaves, and no inner node (64 bytes of
// hashes) is such a text.
//
// An export is one canonical JSON text: see [File.Encode]. [Verify] recomputes
// everything in it. With a root that the reader trusts, a chain that passes is
// the chain; without one it is only consistent with itself.
package merkle
