// Package reputation keeps how strong and how well calibrated an agent is:
// Deliberatic §6. It is pure; every value is exact integers, fit to be stored
// as JSON and hashed, and every update gives the same integers on every
// machine.
//
// A rating follows Elo: it moves by K·(S − E), where S is 1 for the winning
// position, 0.5 for supporting the winner and 0 for a rejected one. E is the
// mean, over the opponents of the round, of the pairwise expectations
// 1/(1 + 10^((opponent − own)/400)); all ratings are those before the round,
// so the order of updates does not matter. K falls from 32 to 8 with
// experience in the domain; the global rating always moves with K = 8.
//
// Calibration compares stated probabilities with outcomes in ten bins.
//
// Rho turns both into the factor ρ of the graded semantics, 0.5 to 2.
package reputation
