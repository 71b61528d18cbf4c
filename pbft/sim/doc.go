// Package sim plays whole networks of pbft replicas under a virtual clock: one
// seed makes a plan, and a plan plays alike on every machine, to the byte.
//
// # A schedule
//
// Honest members run the engine and do what a driver must: sign, store, tell
// the engine, send. Until the network settles, messages are lost, repeated,
// delayed and overtake each other; each view has its own partition; replicas
// crash before storing, after storing or in the middle of sending, and start
// again from what they had stored; clocks miss ticks. Up to f members are
// liars ([Kind]), of up to four kinds at once. They know everything that was
// ever sent, to whomever; they share their keys; their messages are never
// harmed. Everything sent passes through its encoding and a committee's
// verification, as in a driver. Then the network settles, and every honest
// replica must decide.
//
// A [Twins] scenario is the purest kind: two honest replicas under one key,
// which nothing but the partitions of the views keeps apart. With one pair they
// can be counted through ([TwinsScenarios], [TwinsPlan]).
//
// Signatures are a keyed hash (package simkey): a hundred times cheaper than Ed25519
// and as unforgeable here, since liars sign with their own keys only. Plan.Genuine
// plays with Ed25519.
//
// # Transcripts
//
// A line begins with its time: 305.2 is tick 305 and two of its eight units.
// Members are known by their seats, from 0; an honest member is written 1, the
// replicas under a liar's key 5a, 5b and so on. A vote is written phase(view,
// value): A and B are right values, X is wrong.
//
//   - 1 stores and sends V: to all others; each arrival has its own line
//   - 1→3a V: what replica 1 sent arrives at the first replica under key 3
//   - liar 1→2 V: a lie of liar 1, which none of its replicas told, arrives at 2;
//     V may be forged in another's name
//   - 1→2 V: reason: V arrives and is refused; with "lost" it never arrives
//   - V of another instance: the vote shares the frame and does not count here
//   - VIOLATION: where it went wrong; a few lines may follow of what was under way
//
// # Oracles
//
//   - agreement: two honest replicas decide different values
//   - validity: an honest replica votes for or decides a value that is not right
//   - certificate: an honest replica's certificate does not verify
//   - global: of all that honest replicas stored or said and whatever the liars'
//     keys can sign, certificates of two values can be assembled that the
//     offline verifier accepts
//   - lock: two values can be proven prepared in one view; or an honest replica
//     votes for another value than one that can be certified in an earlier view
//   - equivocation: an honest replica shows or stores two votes in one slot,
//     restarts or not
//   - forgery: a committee accepts as an honest member's what that member never
//     said, a certificate or a claim without its quorum, or a new view that
//     its own claims do not justify
//   - guilt: a proof of guilt names an honest member, or does not verify, or
//     comes twice; or two votes for one slot give none
//   - liveness: an honest replica is undecided long after the network settled
//   - pace: an honest replica is in a view before the timers of all earlier views
//     can have run out, or leaves a view that no quorum has reached
//   - memory: an engine holds more votes than its bound
//   - traffic: a decided replica answers more often than it may
//   - quiet, order, resend, answer, advance, restart, refused: an engine votes
//     after its decision, or while a vote is being stored; sends again what it has
//     not stored; answers without a decision; refuses what it told to store, its
//     own disk or its own frame
//   - panic
//
// All of them hold with up to f liars and none of them is expected to with f+1
// ([Mix].Excess), which is how campaigns show that they can fail; package
// mutants shows it for faults of the engine.
//
// Schedules that count as one ([Result.Counts]) reach at least a second view and
// suffer at least one fault.
package sim
