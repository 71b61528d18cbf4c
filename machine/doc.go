// Package machine is the contract between the replicated state machine and
// the protocols it hosts. A protocol is a [Machine]: it names the kinds of
// action it takes, applies them to its own keys, and says when time alone
// must act.
//
// Every method runs on every node, in log order, and must compute the same on
// all: no clock, no random source, no map-order dependence, no I/O. The only
// time is [Ctx.Now]; the only outside knowledge is [Ctx.World].
//
// The caller (package fsm) guarantees: actions are verified ([Verified]) and
// of a kind the machine named; Tx shows the machine's own keys only and is
// dropped when a method errs; Due runs before Apply whenever Next is at or
// before Now; events of one machine reach every other machine's React in the
// same transaction, in the order in which machines were registered.
//
// What machines do alike is here too, over a Tx: JSON records ([Load], [Save],
// [Each]), pages ([Page]), what is due ([Schedule]), bodies ([DecodeBody],
// [DecodeExact]) and embedded schemas ([ReadSchema]).
package machine

import "github.com/deliberd/deliberd/internal/sign"

// Action is one signed request to the cluster; see design section "One write, from door to proof".
type Action = sign.Action

// Verified is an action whose signature has been checked. Only signature
// verification makes one.
type Verified = sign.Verified

// Stamp is replicated time: milliseconds since the Unix epoch as the log's
// entries carry them. It never goes back.
type Stamp int64
