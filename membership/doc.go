// Package membership is the machine that knows which nodes make up the
// cluster: the genesis, the voters of every epoch, observers, invitations and
// addresses. Its name, and the first word of its kinds, is "cluster".
//
// # Genesis
//
// A [Genesis] names the founding operators and voters and the parameters of
// the cluster. Every founding operator signs it. Its hash, over everything
// but the signatures, is the cluster's id and part of whatever is signed
// later, so two clusters never share a signature.
//
// # Epochs
//
// The voters of one epoch never change; each change makes the next epoch,
// one voter more or one less. [Committee] answers for every epoch there has
// been: certificates name theirs and stay verifiable.
//
// # Joining
//
// An operator invites (cluster.invite) with the public half of a one-use key;
// the secret half reaches the invited node in an [Invitation] and never
// travels in the log. The node joins (cluster.join, signed by its own peer
// identity) with a proof by the invitation's key over its id, role and keys.
// An observer is a member from then on. A node invited as voter is "joining":
// it follows the log as an observer does, and becomes a voter when it says
// that it has caught up (cluster.ready). A node that has been removed never
// returns under its id, and no key is taken twice.
//
// # Approvals
//
// Inviting a voter and removing one need approvals of operators who answer
// for q = ⌈(n+f+1)/2⌉ of the n current voters, f = ⌊(n−1)/3⌋; each operator
// stands for the voters it answers for. The one who asks approves by asking,
// so a one-operator cluster changes at once. Voters are counted as they are
// when an approval arrives. An invitation on another operator's behalf needs
// that operator's approval too: it will answer for the node. Observers are
// their operator's own affair, both ways. A joining node is removed by its
// operator at once, by others like a voter. The last voter cannot be removed.
// An approval given stays given: it is not bound to the epoch it was given in.
package membership
