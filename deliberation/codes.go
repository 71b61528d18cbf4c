package deliberation

import "github.com/deliberd/deliberd/machine"

// Codes of this machine's refusals, besides the shared ones.
const (
	CodeQuorumTooSmall  = "quorum_too_small"  // fewer participants than quorum.minimum
	CodeNotParticipant  = "not_a_participant" // the actor is not of the round's frozen electorate
	CodeNotModerator    = "not_moderator"     // somebody else resolves this round
	CodeNotReviewer     = "not_reviewer"      // neither a reviewer of this round nor an operator
	CodeTooEarly        = "too_early"         // fewer than quorum.minimum participants have acted
	CodeWrongPhase      = "wrong_phase"       // the round does not take this now
	CodeRoundFrozen     = "round_frozen"      // nothing changes after the freeze
	CodeRoundClosed     = "round_closed"      // the round has ended
	CodeNotEnded        = "round_not_ended"   // an outcome is learned from ended rounds only
	CodeSameAnswer      = "same_answer"       // data.support names the position to support instead
	CodePositionExists  = "position_exists"   // one position an agent
	CodeUnknownOption   = "unknown_option"    // the answer is none of the round's options
	CodeMissingArgument = "missing_argument"  // an edge to an argument that is not there
	CodeNotYours        = "not_your_argument" // evidence and cross-references belong to the author
	CodeSelfAttack      = "self_attack"       // nobody attacks his own argument
	CodeSelfSupport     = "self_support"      // nobody supports his own argument
	CodeAlreadyArgued   = "already_argued"    // data.argument names the one that says so already
	CodeTooMany         = "too_many"          // a bound of the round is reached
	CodeTooLarge        = "too_large"         // a text or value beyond its bound
	CodeOtherWinner     = "other_winner"      // data.winner names the one to confirm or reject
	CodeAlreadyVoted    = "already_confirmed" // this winner on this evidence has this participant's word
	CodeExpired         = "expired"           // a standing confirmation that has ended before it begins
	CodeBadCertificate  = "bad_certificate"   // not a certificate of this round's freeze
	CodeNoCheckpoint    = "no_checkpoint"     // the freeze's entry is not complete yet
	CodeNoCommittee     = "no_committee"      // no voters are known for the freeze's epoch
	CodeNotADissent     = "not_a_dissent"     // nobody of this name dissented
	CodeAlreadyLearned  = "already_learned"   // the outcome, or this vindication, is known
)

func tooMany(what string, limit int) *machine.Refusal {
	return machine.Refuse(CodeTooMany, "argue with what is there, or open another round", "at most %d %s", limit, what).With("limit", limit)
}

func tooLarge(what string, limit int) *machine.Refusal {
	return machine.Refuse(CodeTooLarge, "shorten it, or point to it from the evidence's source", "%s is longer than %d bytes", what, limit).With("limit", limit)
}

func malformed(fix, format string, args ...any) *machine.Refusal {
	return machine.Refuse(machine.CodeMalformed, fix, format, args...)
}

func outOfRange(fix, format string, args ...any) *machine.Refusal {
	return machine.Refuse(machine.CodeOutOfRange, fix, format, args...)
}
