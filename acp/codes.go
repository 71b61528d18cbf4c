package acp

// Codes of refusals. The RFC only says "reject with an error"; these names
// are part of the interface. See package machine for the shared ones.
const (
	CodeDuplicateProposal   = "duplicate_proposal"    // §14.4
	CodeInvalidQuorum       = "invalid_quorum"        // §7.1: not a positive integer, or a threshold nobody can meet
	CodeInvalidResponseType = "invalid_response_type" // §5.1: neither endorse nor challenge
	CodeInvalidOutcome      = "invalid_outcome"       // §10.2: a human approves or rejects, nothing else
	CodeInvalidNumber       = "invalid_number"        // §12.1: not a JSON number, or a literal beyond the bounds
	CodeInvalidTime         = "invalid_time"          // §12.1: not an RFC 3339 time in UTC
	CodeInvalidID           = "invalid_id"            // §12.1: not a ULID in upper case
	CodeInvalidObject       = "invalid_object"        // Appendix B: a wire object of another shape
	CodeVersion             = "unsupported_version"   // §18.4: schema_version is not "1.0"
	CodeNotPending          = "not_pending"           // §5.3: the proposal takes no responses any more
	CodeSelfResponse        = "self_response"         // §5.3: the author may not respond
	CodeSelfResolution      = "self_resolution"       // the author may not resolve his own escalation
	CodeDuplicateResponse   = "duplicate_response"    // §5.3: one response per participant; the first stands
	CodeIllegalTransition   = "illegal_transition"    // §4.1: no such arrow in the state machine
	CodeNotEligible         = "not_eligible"          // §7.3: not among the participants fixed at creation
	CodeInconsistent        = "inconsistent"          // recomputing the responses gives another result
)
