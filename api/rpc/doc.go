// Package rpc is the JSON-RPC 2.0 door: POST /rpc, single requests and
// batches.
//
// Methods derive from the machines. The method of an action kind takes the
// whole signed action as its params: the signature authenticates it. The
// method of a query takes the query's parameters, by name, and needs a bearer
// token; the reserved member "stale": true reads this node's own state
// instead of a linearizable one. The door adds agent.inbox (long poll),
// cluster.peers, cluster.guilt, and, open to everybody, cluster.status and
// rpc.discover.
//
// Reading is strict: a body of 1 MiB at most, no duplicate members, no unknown
// members, no deep nesting (package canon). Every error carries data.code
// (stable), data.fix (what to do) and perhaps data.details; its message is a
// sentence. Requests of a batch run one after the other, in order.
package rpc
