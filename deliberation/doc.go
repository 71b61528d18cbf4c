// Package deliberation is the Deliberatic round (protocol v0.1-draft): agents
// state positions, attack and support them with evidence, graded semantics
// finds the strongest, and the round ends in one verdict with an evidence
// chain. Its machine is named "deliberatic"; its rules are values and pure
// functions that serve without a cluster too.
//
// # Phases
//
//	open → collecting → deciding → fast ───────────────────────────→ verdict → learning
//	                          └──→ prepare → frozen → (certified) ──↗
//
// Everything is computed in the state machine.
//
//   - collecting: positions, challenges, supports, cross-references and
//     evidence come in. It ends when every participant is final, when the
//     moderator resolves, or with its window: then the node acts in the
//     moderator's place (§3.3).
//   - deciding takes no time: semantics runs in the apply that ends collecting.
//     One clear winner (gap > τ) goes the fast path; a gap at or below τ, an
//     unstable component or a supermajority rule goes the conflict path (§3.1).
//   - fast: participants confirm or reject the winner. A majority ⌊n/2⌋+1 of
//     all participants ends the round; standing confirmations given earlier
//     count in the very apply that decides. Silence leads to the conflict path.
//   - prepare: the surviving positions are pre-prepared as an event and a
//     bounded window takes further evidence on existing arguments.
//   - frozen: nothing changes any more. The cluster's voters settle a digest
//     over the outcome and the checkpoint of the freeze (package pbft); the
//     first valid certificate in the log ends the round, any other is answered
//     with the verdict that stands.
//   - certified: only under the supermajority rule, when the certificate is
//     there and two thirds of the participants are not yet.
//
// # Readings
//
// Where the seed is silent or ambiguous this package reads it so:
//
//   - The electorate is frozen at opening, with each participant's rating and
//     factor ρ: the ratings before the round (§6.1).
//   - In a domain, the opener and every named participant hold a grant that
//     covers it: otherwise friends could move each other's domain ratings. A round
//     without domain names its participants and moves global ratings only.
//   - Nobody attacks or supports his own argument (self_attack, self_support),
//     and nobody brings a second challenge or a second support against the same
//     argument (already_argued): a voice does not grow by repetition. Evidence
//     is added to the argument that is there.
//   - An argument refers to an earlier one, which keeps the graph acyclic;
//     deliberatic.relate adds a later edge between arguments, is flagged as a cross-reference
//     and may close a cycle.
//   - The moderator may end collecting once quorum.minimum participants
//     (himself counted) have acted; before that his resolve is too_early.
//   - A window that ends at t is over at t: Due runs first.
//   - "Rejects the same winner on the same evidence": a rejection counts for the
//     winner and the number of evidence items it was cast on, from the fast
//     window up to the freeze. After the freeze, under the majority rule, only
//     the certificate speaks.
//   - Under the supermajority rule words count after the freeze too, up to the
//     end of a confirm window that begins with the certificate; more than a third of rejections ends it.
//   - Votes of the fast window carry over into the conflict path as long as
//     no evidence comes; a clear round that fell silent still ends by certificate.
//   - A round that the participants did not carry and that asks for a human
//     (on_rejected) is in review: a reviewer or an operator lets a position
//     win or the rejection stand. Its path is then "review".
//   - Supporting the winner (S = 0.5) is having an argument that supports the
//     winning position directly and no position of one's own; the opponents of a supporter are the
//     authors of the rejected positions, those of a position's author are all other authors.
//   - A challenge leaf of the evidence chain (§5.1) is any argument that is not
//     a position: challenges and supports.
//   - A dissent is another position, a challenge of the winning position or a rejection of it. It is vindicated
//     when the outcome is its position's answer or, without a position, when it is not the winner's.
//
// # Bounds
//
// Semantics and hashing run inside Apply, so everything a round holds is
// bounded (MaxArguments, MaxCrossRefs, MaxRoundBytes, Budget …), and what one
// participant may bring is his share, so that nobody crowds out the others.
package deliberation
