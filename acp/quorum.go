package acp

import (
	"encoding/json"
	"slices"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Tally is what responses add up to, in exact decimals: the same in any order
// of responses (§13.3).
type Tally struct {
	Responses    uint64
	VotesFor     Decimal // sum of the weights that endorse
	VotesAgainst Decimal // sum of the weights that challenge
}

// Add counts one response.
func (t Tally) Add(kind ResponseType, weight Decimal) Tally {
	t.Responses++
	if kind == Endorse {
		t.VotesFor = t.VotesFor.Add(weight)
	} else {
		t.VotesAgainst = t.VotesAgainst.Add(weight)
	}
	return t
}

// Outcome compares the sums; equal sums escalate (§6.3).
func (t Tally) Outcome() Outcome {
	switch t.VotesFor.Cmp(t.VotesAgainst) {
	case 1:
		return Approved
	case -1:
		return Rejected
	}
	return OutcomeEscalated
}

// QuorumPolicy tells when there are enough responses to resolve (§18.1). It
// sees the tally only, so no policy can depend on the order of responses.
type QuorumPolicy interface{ IsMet(Tally) bool }

// Count is met by a number of responses (§7.1): the default.
type Count struct{ Threshold uint64 }

// IsMet implements QuorumPolicy.
func (c Count) IsMet(t Tally) bool { return t.Responses >= c.Threshold }

// Weighted is met by the weight of all responses together, for and against (§7.2).
type Weighted struct{ Threshold Decimal }

// NewWeighted refuses a threshold that is not positive with invalid_quorum.
// There is no upper check: the RFC does not define max_possible_weight.
func NewWeighted(threshold Decimal) (Weighted, error) {
	if threshold.Sign() <= 0 {
		return Weighted{}, machine.Refuse(CodeInvalidQuorum, "give a threshold above 0", "a weighted quorum of %s", threshold)
	}
	return Weighted{Threshold: threshold}, nil
}

// IsMet implements QuorumPolicy.
func (w Weighted) IsMet(t Tally) bool {
	return t.VotesFor.Add(t.VotesAgainst).Cmp(w.Threshold) >= 0
}

// Unanimous is met when every eligible participant has responded (§7.3).
type Unanimous struct{ Eligible uint64 }

// NewUnanimous fixes the eligible participants when the proposal is created:
// all of the domain but the author, who may not respond. Nobody eligible is
// refused with invalid_quorum.
func NewUnanimous(participants []string, author string) (Unanimous, error) {
	eligible := slices.DeleteFunc(slices.Clone(participants), func(p string) bool { return p == author })
	slices.Sort(eligible)
	n := uint64(len(slices.Compact(eligible)))
	if n == 0 {
		return Unanimous{}, machine.Refuse(CodeInvalidQuorum, "grant somebody else authority in the domain", "nobody but the author could respond")
	}
	return Unanimous{Eligible: n}, nil
}

// IsMet implements QuorumPolicy.
func (u Unanimous) IsMet(t Tally) bool { return t.Responses >= u.Eligible }

// ParseQuorum reads a quorum field: a positive integer up to 2^53 - 1 in any
// JSON spelling (2, 2.0). Everything else is refused with invalid_quorum (§7.1).
func ParseQuorum(raw json.RawMessage) (uint64, error) {
	n, err := canon.Integer(raw)
	if err != nil || n == 0 {
		return 0, machine.Refuse(CodeInvalidQuorum, "give a whole number of responses, 1 or more", "quorum is %.64s", raw)
	}
	return n, nil
}
