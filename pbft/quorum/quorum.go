// Package quorum is the arithmetic of Byzantine quorums for any number of voters.
//
// The textbook's 2f+1 is a quorum only when n = 3f+1: at n = 5 two sets of
// three share one member, who may be the faulty one. Q is the least size at
// which two quorums always share f+1 members, so at least one honest.
package quorum

// F is how many of n voters may be Byzantine: ⌊(n−1)/3⌋, and 0 below four
// voters, where only crashes are tolerated.
func F(n int) int {
	if n < 4 {
		return 0
	}
	return (n - 1) / 3
}

// Q is the size of a quorum among n voters: ⌈(n+F(n)+1)/2⌉. Two quorums share
// at least F(n)+1 voters, and the n−F(n) honest ones suffice for one.
func Q(n int) int { return (n + F(n) + 2) / 2 }
