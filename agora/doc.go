// Package agora is Agora: propose, vote, veto and quorum for several agents
// that decide together. [Round] serves a program of its own; [Machine] is the
// same replicated.
//
// Where the README is silent, this package reads it so:
//
//   - A quorum is participation: votes cast, abstentions included, against a
//     count or a fraction of the registered voters. Then more yes than no
//     approves; everything else, a tie too, rejects.
//   - A fraction given as a number is compared by dividing doubles
//     (cast/registered >= value); one given as "2/3" or {"num":2,"den":3} exactly.
//   - The order is veto, timeout, quorum. A deadline has come when
//     now >= deadline; the outcome is timed_out with the partial tally.
//   - Only an evaluation resolves: votes and vetoes before it are taken, even
//     past the quorum; after it they are refused. Of several vetoes the first
//     is reported.
//   - A veto reason must hold a character that can be seen.
//   - Voters are counted as a set. Each may have a weight, a whole number, 1
//     by default. Weights decide between yes and no; the quorum counts heads,
//     so that nobody heavy decides alone.
//   - Dissent is a no, an abstention or a veto, with its reason. A resolution
//     lists it, and in a cluster it goes into a log that is never pruned.
//
// In a cluster, further:
//
//   - Voters and vetoers are registered principals, named once each. A round's
//     id is a free text, unique in the cluster; the action's id by default.
//   - The proposer, voters, vetoers and operators may evaluate. At its deadline
//     a round is evaluated by itself, so nothing is taken from then on. A round
//     proposed with auto_evaluate is also evaluated after each vote and veto.
package agora
