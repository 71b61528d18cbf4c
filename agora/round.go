package agora

import (
	"encoding/json"
	"slices"
	"strings"
	"unicode"

	"github.com/deliberd/deliberd/machine"
)

// Choice is what a voter says.
type Choice string

// The choices. An abstention counts toward the quorum and takes no side.
const (
	Yes     Choice = "yes"
	No      Choice = "no"
	Abstain Choice = "abstain"
)

// Outcome is how a round ended.
type Outcome string

// The outcomes. A timed-out round is never approved or rejected.
const (
	Approved Outcome = "approved"
	Rejected Outcome = "rejected"
	Vetoed   Outcome = "vetoed"
	TimedOut Outcome = "timed_out"
)

// MaxWeight bounds a voter's weight.
const MaxWeight = 1_000_000

// Voter is one registered voter. Weight is 1 to [MaxWeight]; 0 is read as 1.
type Voter struct {
	ID     string `json:"id"`
	Weight uint64 `json:"weight,omitempty"`
}

// Proposal is what a round is about.
type Proposal struct {
	ID         string          `json:"id"`
	ProposerID string          `json:"proposer_id"`
	Action     json.RawMessage `json:"action"` // an object the round does not look into
	Voters     []Voter         `json:"voters"`
	Vetoers    []string        `json:"vetoers,omitempty"`
	Quorum     Quorum          `json:"quorum"`
	Deadline   *int64          `json:"deadline_ms,omitempty"` // absolute, ms; nil: none
}

// Vote is one voter's choice; the last one counts until the round resolves.
type Vote struct {
	AgentID string `json:"agent_id"`
	Choice  Choice `json:"choice"`
	Reason  string `json:"reason,omitempty"`
}

// Veto stops the round whatever the tally. Reason must be visible.
type Veto struct {
	AgentID string `json:"agent_id"`
	Reason  string `json:"reason"`
}

// Tally counts voters. With weights other than 1 it also adds up weights,
// which decide between yes and no; the quorum is of voters always.
type Tally struct {
	Yes        uint64   `json:"yes"`
	No         uint64   `json:"no"`
	Abstain    uint64   `json:"abstain"`
	Cast       uint64   `json:"cast"`
	Registered uint64   `json:"registered"`
	Weighted   *Weights `json:"weighted,omitempty"`
}

// Weights adds up the weights of those who voted.
type Weights struct {
	Yes     uint64 `json:"yes"`
	No      uint64 `json:"no"`
	Abstain uint64 `json:"abstain"`
}

// Dissent is one who did not go along: a no, an abstention or a veto, and why.
type Dissent struct {
	AgentID string `json:"agent_id"`
	Kind    string `json:"kind"` // no, abstain, veto
	Reason  string `json:"reason,omitempty"`
}

// Resolution is how a round ended; it never changes.
type Resolution struct {
	Outcome    Outcome   `json:"outcome"`
	Tally      Tally     `json:"tally"`
	ResolvedAt int64     `json:"resolved_at_ms"`
	Veto       *Veto     `json:"veto,omitempty"` // the first, when vetoed
	Dissent    []Dissent `json:"dissent"`        // vetoes first, then no and abstain by agent
}

// Ballot is the part of a round that its resolution depends on: counts, but
// not who is behind them. [Round] and the replicated machine both drive it.
type Ballot struct {
	Quorum     Quorum      `json:"quorum"`
	Deadline   *int64      `json:"deadline_ms,omitempty"`
	Tally      Tally       `json:"tally"`
	Veto       *Veto       `json:"veto,omitempty"` // the first
	Resolution *Resolution `json:"resolution,omitempty"`
}

// Cast counts a choice in place of the voter's earlier one, "" if none.
// The voter and the choice have been checked.
func (b *Ballot) Cast(before, choice Choice, weight uint64) {
	if before != "" {
		b.add(before, -1, -weight)
	}
	b.add(choice, 1, weight)
}

// add moves one voter in (1) or out (-1); unsigned arithmetic wraps back.
func (b *Ballot) add(c Choice, one int, weight uint64) {
	t := &b.Tally
	var weights Weights
	if t.Weighted != nil {
		weights = *t.Weighted // never shared: a resolution keeps its own
	}
	n := uint64(one)
	switch c {
	case Yes:
		t.Yes += n
		weights.Yes += weight
	case No:
		t.No += n
		weights.No += weight
	case Abstain:
		t.Abstain += n
		weights.Abstain += weight
	}
	t.Cast += n
	if t.Weighted != nil {
		t.Weighted = &weights
	}
}

// Evaluate resolves the ballot at now if a veto, the deadline (now >= deadline)
// or the quorum applies, in this order, and reports whether it did. The
// dissent of the resolution is the caller's to fill.
func (b *Ballot) Evaluate(now int64) bool {
	if b.Resolution != nil {
		return false
	}
	r := Resolution{Tally: b.Tally, ResolvedAt: now, Dissent: []Dissent{}}
	switch {
	case b.Veto != nil:
		r.Outcome, r.Veto = Vetoed, b.Veto
	case b.Deadline != nil && now >= *b.Deadline:
		r.Outcome = TimedOut
	case !b.Quorum.Met(b.Tally.Cast, b.Tally.Registered):
		return false
	case b.Tally.passes():
		r.Outcome = Approved
	default:
		r.Outcome = Rejected // a tie does not change the status quo
	}
	b.Resolution = &r
	return true
}

func (t Tally) passes() bool {
	if t.Weighted != nil {
		return t.Weighted.Yes > t.Weighted.No
	}
	return t.Yes > t.No
}

// Round is one deliberation in memory, for use without a cluster: the caller
// authenticates, keeps the clock and serializes calls. [Propose] makes one.
type Round struct {
	proposal Proposal
	voters   map[string]uint64 // weight
	votes    map[string]Vote
	vetoes   []Veto
	ballot   Ballot
}

// Propose opens a round. It refuses with invalid_proposal when nobody may
// vote or the voters, counted as a set, cannot reach the quorum.
func Propose(p Proposal) (*Round, error) {
	r := &Round{proposal: p, voters: map[string]uint64{}, votes: map[string]Vote{}}
	if p.ID == "" || p.ProposerID == "" {
		return nil, invalid("name both", "the id or the proposer is empty")
	}
	r.proposal.Voters = nil
	for _, v := range p.Voters {
		v.Weight = max(1, v.Weight)
		if known, ok := r.voters[v.ID]; ok && known != v.Weight {
			return nil, invalid("name each voter once", "voter %.64q has two weights", v.ID)
		} else if !ok {
			r.proposal.Voters = append(r.proposal.Voters, v)
		}
		if v.Weight > MaxWeight || v.ID == "" {
			return nil, invalid("give a name and a weight of at most 1000000", "voter %.64q of weight %d", v.ID, v.Weight)
		}
		r.voters[v.ID] = v.Weight
	}
	var err error
	r.ballot, err = NewBallot(r.proposal)
	return r, err
}

// NewBallot opens the ballot of a proposal whose voters are distinct.
func NewBallot(p Proposal) (Ballot, error) {
	b := Ballot{Quorum: p.Quorum, Deadline: p.Deadline, Tally: Tally{Registered: uint64(len(p.Voters))}}
	if len(p.Voters) == 0 {
		return b, invalid("name at least one voter", "nobody may vote")
	}
	if slices.ContainsFunc(p.Voters, func(v Voter) bool { return v.Weight > 1 }) {
		b.Tally.Weighted = &Weights{}
	}
	return b, p.Quorum.check(b.Tally.Registered)
}

// Proposal is what the round is about.
func (r *Round) Proposal() Proposal { return r.proposal }

// CastVote registers a vote or replaces the voter's earlier one. Refusals:
// round_already_resolved, not_a_voter, invalid_choice.
func (r *Round) CastVote(v Vote) error {
	if err := checkChoice(v.Choice); err != nil {
		return err
	}
	weight, ok := r.voters[v.AgentID]
	switch {
	case r.ballot.Resolution != nil:
		return resolved(r.ballot.Resolution.Outcome)
	case !ok:
		return notAVoter(v.AgentID)
	}
	r.ballot.Cast(r.votes[v.AgentID].Choice, v.Choice, weight)
	r.votes[v.AgentID] = v
	return nil
}

// CastVeto registers a veto; a second by the same vetoer changes nothing.
// Refusals: round_already_resolved, not_a_vetoer, veto_reason_required.
func (r *Round) CastVeto(v Veto) error {
	switch {
	case r.ballot.Resolution != nil:
		return resolved(r.ballot.Resolution.Outcome)
	case !slices.Contains(r.proposal.Vetoers, v.AgentID):
		return notAVetoer(v.AgentID)
	}
	if err := checkReason(v.Reason); err != nil {
		return err
	}
	if slices.ContainsFunc(r.vetoes, func(o Veto) bool { return o.AgentID == v.AgentID }) {
		return nil
	}
	r.vetoes = append(r.vetoes, v)
	if r.ballot.Veto == nil {
		r.ballot.Veto = &v
	}
	return nil
}

// Evaluate resolves the round at now if it can, and returns its resolution,
// nil while it is open. A resolved round gives the same resolution for ever.
func (r *Round) Evaluate(now int64) *Resolution {
	if r.ballot.Evaluate(now) {
		votes := make([]Vote, 0, len(r.votes))
		for _, v := range r.votes { // order: dissent sorts
			votes = append(votes, v)
		}
		r.ballot.Resolution.Dissent = dissent(r.vetoes, votes)
	}
	return r.ballot.Resolution
}

// Tally is the current tally, without resolving.
func (r *Round) Tally() Tally { return r.ballot.Tally }

// dissent lists vetoes as they came, then who voted no or abstained, by agent.
func dissent(vetoes []Veto, votes []Vote) []Dissent {
	out := []Dissent{}
	for _, v := range vetoes {
		out = append(out, Dissent{AgentID: v.AgentID, Kind: "veto", Reason: v.Reason})
	}
	slices.SortFunc(votes, func(a, b Vote) int { return strings.Compare(a.AgentID, b.AgentID) })
	for _, v := range votes {
		if v.Choice != Yes {
			out = append(out, Dissent{AgentID: v.AgentID, Kind: string(v.Choice), Reason: v.Reason})
		}
	}
	return out
}

func checkChoice(c Choice) error {
	if c != Yes && c != No && c != Abstain {
		return machine.Refuse(CodeInvalidChoice, "say yes, no or abstain", "choice is %.64q", string(c))
	}
	return nil
}

// checkReason wants a character that can be seen: an unexplained veto is not auditable.
func checkReason(reason string) error {
	if strings.ContainsFunc(reason, visible) {
		return nil
	}
	return machine.Refuse(CodeReasonRequired, "say why", "a veto needs a reason that can be read")
}

// blanks are letters and symbols that are drawn as nothing.
const blanks = "\u115f\u1160\u2800\u3164\uffa0"

func visible(r rune) bool {
	return unicode.IsOneOf([]*unicode.RangeTable{unicode.L, unicode.N, unicode.P, unicode.S}, r) &&
		!strings.ContainsRune(blanks, r)
}

func resolved(outcome Outcome) error {
	return machine.Refuse(CodeResolved, "what happened stands; open another round", "the round is %s", outcome)
}

func notAVoter(id string) error {
	return machine.Refuse(CodeNotAVoter, "only registered voters vote", "%.64q is not a voter of this round", id)
}

func notAVetoer(id string) error {
	return machine.Refuse(CodeNotAVetoer, "only registered vetoers veto", "%.64q is not a vetoer of this round", id)
}
