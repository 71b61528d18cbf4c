// Package acp is the Agent Consensus Protocol, draft RFC v1: proposals with
// weighted responses, in exact decimals. [Workspace] serves a program of its
// own; [Machine] is the same protocol replicated, where authority and trust
// come from the registry.
//
// Where the RFC is silent or contradicts itself, this package reads it so:
//
//   - Numbers are exact decimals, the literals as written: a tie is a tie in
//     any order of responses (§13.3). Weights on the wire are recomputed and
//     never trusted; how they are rounded is not defined. Canonical JSON writes
//     a number as the nearest double, so objects carry a member "exact" too.
//   - A response at now == expires_at is accepted, and quorum is looked at
//     before the time (§7.4); a later one is refused and the expiry resolves
//     first, even if no sweep ran. One at that instant that leaves the quorum
//     unmet is the last: the proposal has expired by then (§8.1).
//   - No responses expire; responses that weigh nothing tie and escalate (§8.2).
//   - A Decision Event is emitted on every terminal state and again after a
//     human has resolved an escalation. A manual resolution keeps the votes.
//     Escalation by a policy has trigger manual and names the policy.
//   - Unanimous means everybody registered in the domain when the proposal is
//     made, except its author. A weighted quorum counts both sides and has no
//     upper bound.
//   - observation and hypothesis resolve on submission: outcome approved,
//     trigger quorum, no votes, marked auto (the table of §4.2 is lost). In a
//     cluster, operators may have hypotheses wait for one response.
//   - Decoding wants what the schemas of Appendix B want with date-time
//     asserted, and what §12.1 adds: ULIDs, UTC. Members the schemas do not
//     name are allowed.
//
// In a cluster, further:
//
//   - Submitting and responding need a grant in the domain (no_grant).
//     domain_authority and trust_score are the grant's; a claim above it is
//     refused (authority_exceeds_grant), one below lowers what counts.
//   - The author, whoever holds a grant in the domain, and operators may
//     escalate. Humans with a grant in the domain resolve; the author may not
//     resolve his own (self_resolution).
//   - expires_at must be in the future when the proposal is submitted, and is
//     kept to the millisecond, rounded down. A proposal is swept one
//     millisecond after it, so that responses stamped at it count.
package acp
