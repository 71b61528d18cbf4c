// Package semantics computes how acceptable arguments are, weighs their
// evidence and decides which path a deliberation takes: Deliberatic §2.2,
// §2.3 and the gap rule of §3.1. It is pure: equal inputs give equal bits on
// every machine, whatever the order in which arguments and edges are listed.
//
// # Strength
//
// The strength of an argument is
//
//	σ(a) = w(a)·ρ(a) + γ⁺·Σ σ(s), s supports a − γ⁻·Σ σ(t), t attacks a
//
// or σ = b + Mσ. The specification iterates this until no strength moves by
// more than 0.001 and claims that γ⁺ + γ⁻ < 1 makes that converge. Both are
// unsafe. Whether the iteration converges depends on the spectral radius of M,
// which depends on in-degrees: the default factors sum to 1.4 and converge on
// every graph without cycles, while four mutual attackers diverge at 0.3 + 0.4.
// And a small step does not mean a small error: along a chain of weak
// arguments the iteration can stop with the wrong winner.
//
// So [FixedPoint], the default method, splits the graph into strongly
// connected components and solves them from the sources on:
//
//   - [Exact]: a component without a cycle is a sum.
//   - [Converged]: the iteration inside a cycle, to a relative residual of
//     1e-12. It is certified when a Collatz–Wielandt bound shows that the
//     spectral radius is below 1.
//   - [Continuized]: σ ← σ + h·(b + Mσ − σ) for h = ½, ¼ … 1/128: the same
//     fixed point, reached where the plain iteration oscillates. Three mutual
//     attackers of weight 1 come to 0.384615 each.
//   - [Averaged]: the last resort, which always has an answer: influence from
//     inside the component is divided by the number of in-edges from inside.
//     The rule of the specification has no stable answer there, so a round
//     that depends on it takes the conflict path.
//
// [QuadraticEnergy], [Rectified] and [LiteralJacobi] can be chosen instead.
//
// # Decision
//
// [Decide] compares the two best positions as integers at 1e-9, the scale at
// which strengths are published and hashed: 0.65 − 0.5 is not above 0.15.
//
// [Compute] takes a [Graph] of named arguments. Callers with very large graphs
// build a [Network] of indexed arguments and call [Network.Solve].
package semantics
