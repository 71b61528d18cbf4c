package guard

import (
	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
)

// CodeNotVoter is the refusal of a peer that may not speak to raft.
const CodeNotVoter = "not_voter"

// Append is an AppendEntries request; without entries and previous entry, a
// heartbeat.
type Append struct {
	Term, Prev, PrevTerm, Commit uint64
	Entries                      []*raft.Log // indexes follow from Prev
	Seal                         []byte
}

// AppendReply answers an Append.
type AppendReply struct {
	Term, LastLog  uint64
	Success        bool
	NoRetryBackoff bool
}

// Vote is a request for a vote, or a preliminary one.
type Vote struct {
	Term, LastIndex, LastTerm uint64
	Pre                       bool
	Seal                      []byte
}

// VoteReply answers a Vote.
type VoteReply struct {
	Term    uint64
	Granted bool
	Seal    []byte
}

// Guard rules over the raft plane of one node. An error refuses: the message
// does not reach raft, or the reply counts as failed. from and to are peer
// ids as the connection authenticated them.
//
// The Check methods need no state and run in parallel, one call a stream at a
// time. The Judge and Done methods run one at a time for the whole node, in
// the order in which raft gets the messages: Judge just before, Done just
// after raft has answered. Judge may shorten what raft sees.
type Guard interface {
	CheckAppend(from string, m *Append) error
	JudgeAppend(from string, m *Append) error
	DoneAppend(from string, m *Append, r *AppendReply)

	CheckVote(from string, m *Vote) error
	JudgeVote(from string, m *Vote) error
	DoneVote(from string, m *Vote, r *VoteReply)

	// JudgeOffer rules on "my log begins at first": whether state may be
	// fetched because this peer, leading in term, says so.
	JudgeOffer(from string, term, first uint64) error

	// SealAppend and SealVote complete what this node is about to send.
	SealAppend(to string, m *Append) error
	SealVote(to string, m *Vote) error
	// Answered rules on replies to what this node sent.
	AnsweredAppend(from string, m *Append, r *AppendReply) error
	AnsweredVote(from string, m *Vote, r *VoteReply) error
}

// Voters is a guard with one rule: only peers for whom it is true reach raft.
// Other guards may embed it and add to it.
type Voters func(peer string) bool

var _ Guard = Voters(nil)

func (v Voters) check(peer string) error {
	if v(peer) {
		return nil
	}
	return machine.Refuse(CodeNotVoter, "only voters of this cluster take part in raft", "node %s is not a voter here", peer)
}

// CheckAppend implements Guard.
func (v Voters) CheckAppend(from string, _ *Append) error { return v.check(from) }

// JudgeAppend implements Guard.
func (v Voters) JudgeAppend(string, *Append) error { return nil }

// DoneAppend implements Guard.
func (v Voters) DoneAppend(string, *Append, *AppendReply) {}

// CheckVote implements Guard.
func (v Voters) CheckVote(from string, _ *Vote) error { return v.check(from) }

// JudgeVote implements Guard.
func (v Voters) JudgeVote(string, *Vote) error { return nil }

// DoneVote implements Guard.
func (v Voters) DoneVote(string, *Vote, *VoteReply) {}

// JudgeOffer implements Guard.
func (v Voters) JudgeOffer(from string, _, _ uint64) error { return v.check(from) }

// SealAppend implements Guard.
func (v Voters) SealAppend(string, *Append) error { return nil }

// SealVote implements Guard.
func (v Voters) SealVote(string, *Vote) error { return nil }

// AnsweredAppend implements Guard.
func (v Voters) AnsweredAppend(from string, _ *Append, _ *AppendReply) error { return v.check(from) }

// AnsweredVote implements Guard.
func (v Voters) AnsweredVote(from string, _ *Vote, _ *VoteReply) error { return v.check(from) }
