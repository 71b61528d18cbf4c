// Package fsm is the replicated state machine: it takes the log's entries in
// order and computes, on every node alike, what the machines answer and what
// the decision log records.
//
// One entry carries a stamp and a batch of signed actions. [FSM.Apply] runs
// what has fallen due, applies each action in an overlay that a refusal
// drops, lets the machines react to each other's events, and appends leaves
// to the decision log (an RFC 6962 tree): first the entry's own leaf, which
// commits to the entry's bytes and to every key it wrote, then one leaf per
// event. The log's head therefore commits to history and to state.
//
// Ids make actions idempotent: the first answer is kept under (ULID, actor)
// and repeated for the same action; another body under a used id is refused.
// ULIDs outside the replicated window are refused, so that the table can be
// pruned.
//
// The package is pure. Its caller owns transactions, ordering and
// parallelism: [Decode] and [Prepared.Verify] may run ahead of time and in
// parallel, [FSM.Apply] runs alone.
package fsm
