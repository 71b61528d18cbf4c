package agora

// Codes of refusals, named after the README's errors. The README has no name
// for the last two. See package machine for the shared ones.
const (
	CodeInvalidProposal = "invalid_proposal"       // InvalidProposalError
	CodeNotAVoter       = "not_a_voter"            // NotAVoterError
	CodeNotAVetoer      = "not_a_vetoer"           // NotAVetoerError
	CodeResolved        = "round_already_resolved" // RoundAlreadyResolvedError
	CodeReasonRequired  = "veto_reason_required"   // a veto without a visible reason
	CodeInvalidChoice   = "invalid_choice"         // neither yes, no nor abstain
)
