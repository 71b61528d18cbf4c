// Command mutants shows that the tests of package pbft would notice if the
// engine were wrong. A mutant is the engine with one mistake that a competent
// programmer could have made: a quorum of 2f, a lock forgotten in the view
// change, a buffer without bound. Each is built and must be caught.
//
//	go run ./pbft/mutants [-run regexp] [-base-seeds 5] [-budget 200000] [-write docs/mutants.md]
//
// # How
//
// A mutant is an edit of the source, kept in this package's tables. The engine
// has no hooks for it and its tree is never touched: the edited file is written
// to a temporary folder and takes the place of the original by go build
// -overlay. Then detectors are tried, in this order, until one catches it:
//
//	sim     package sim plays seeded schedules of a whole network (command probe),
//	        from several base seeds; the median of how many it took is reported
//	rules   the tests of the engine and of its quorums
//	model   the tests of the exhaustive small model
//	driver  the tests of package bftpath, for mutants of it
//
// The unmutated engine passes the same detectors first: a detector that
// catches it would prove nothing. Exit code 1 says that it was caught, or that
// a mutant survived; 2, that a mutant does not apply or does not compile.
//
// A mutant whose field Unseen is set breaks what simulated schedules do not
// show, for the reason it gives; a unit test must catch it. All others must be
// caught by the simulation, but for -quick.
package main
