package deliberation

import (
	"bytes"
	"crypto/sha256"
	"encoding/json"
	"sort"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/semantics"
)

// Phase is where a round stands.
type Phase string

// The phases of a round. Deciding and learning take no time of their own.
const (
	PhaseCollecting Phase = "collecting" // positions, arguments and evidence come in
	PhaseFast       Phase = "fast"       // a clear winner awaits its majority
	PhasePrepare    Phase = "prepare"    // contested: a bounded window for evidence
	PhaseFrozen     Phase = "frozen"     // contested: awaits the voters' certificate
	PhaseCertified  Phase = "certified"  // certificate there, two thirds of the participants not yet
	PhaseReview     Phase = "review"     // escalated to a human
	PhaseVerdict    Phase = "verdict"    // ended with a verdict
	PhaseNoVerdict  Phase = "no_verdict" // ended without
)

// Ended reports whether the round is over.
func (p Phase) Ended() bool { return p == PhaseVerdict || p == PhaseNoVerdict }

// Rule says how many participants carry a verdict (§3.2).
type Rule string

// The rules.
const (
	// Majority: ⌊n/2⌋+1 confirmations end a clear round; silence leaves it to the certificate.
	Majority Rule = "majority"
	// Supermajority: always the conflict path, and two thirds of the participants confirm besides.
	Supermajority Rule = "supermajority"
)

// What a rejected or unconfirmed round ends in.
const (
	EndNoVerdict = "no_verdict"
	EndHuman     = "human"
)

// Windows are the longest times of the phases, in milliseconds. Every phase
// ends early when all have acted.
type Windows struct {
	Collect  int64 `json:"collect_ms"`
	Confirm  int64 `json:"confirm_ms"`
	Evidence int64 `json:"evidence_ms"`
	Review   int64 `json:"review_ms"`
}

// Limits of one round. Semantics runs inside Apply, so a round is bounded.
const (
	MaxParticipants = 256
	MaxArguments    = 4096     // shared out equally: see Round.Share
	MaxCrossRefs    = 1024     // shared out equally too
	MaxLateEvidence = 128      // evidence actions in the conflict path's window, shared out equally: each recomputes
	MaxEvidence     = 64       // items of one argument
	MaxText         = 64 << 10 // bytes of one text
	MaxValue        = 16 << 10 // bytes of an answer, of facts, of task metadata
	MaxRoundBytes   = 4 << 20  // of all texts, answers, facts and evidence, shared out equally: they are hashed inside Apply
	MaxTitle        = 256
	MaxOptions      = 64
	MaxWindow       = 30 * 24 * 3600 * 1000
	MaxSource       = 512
	DefaultWindow   = 30_000               // §3.2: 30 s
	DefaultReview   = 24 * 3600_000        // humans think longer
	DefaultTau      = semantics.DefaultTau // §3.2: 0.15, in 1e-9
	MaxTau          = 10_000_000_000       // 10, in 1e-9
	DefaultMinimum  = 3                    // §3.2
	nanoPerUnit     = 1_000_000_000
)

// Round is what opening fixes for good.
type Round struct {
	ID           string            `json:"id"`
	Title        string            `json:"title"`
	Question     string            `json:"question,omitempty"`
	Domain       string            `json:"domain,omitempty"`
	Task         json.RawMessage   `json:"task,omitempty"`
	Options      []json.RawMessage `json:"options,omitempty"`
	Opener       string            `json:"opener"`
	Rule         Rule              `json:"rule"`
	Minimum      int               `json:"minimum"`
	TauNano      int64             `json:"tau_nano"`
	GammaPlus    float64           `json:"gamma_plus"`
	GammaMinus   float64           `json:"gamma_minus"`
	Method       string            `json:"method"`
	WeightMethod string            `json:"weight_method"`
	EmptyWeight  float64           `json:"empty_weight"`
	Windows      Windows           `json:"windows"`
	OnRejected   string            `json:"on_rejected"`
	Participants []Participant     `json:"participants"` // ascending by ID
	Reviewers    []string          `json:"reviewers,omitempty"`
	OpenedAt     machine.Stamp     `json:"opened_ms"`
}

// Participant is one voice of the frozen electorate, with its standing before the round.
type Participant struct {
	ID          string                `json:"id"`
	Kind        machine.PrincipalKind `json:"kind"`
	DomainMicro int64                 `json:"domain_micro"` // ELO in the round's domain, 1e-6 points; the global one when the domain is unknown
	GlobalMicro int64                 `json:"global_micro"`
	Rho         float64               `json:"rho"` // factor in [0.5, 2] (§6.3)
}

// Participant finds a participant by id.
func (r *Round) Participant(id string) (Participant, bool) {
	i := sort.Search(len(r.Participants), func(i int) bool { return r.Participants[i].ID >= id })
	if i < len(r.Participants) && r.Participants[i].ID == id {
		return r.Participants[i], true
	}
	return Participant{}, false
}

// IDs lists the participants' ids, ascending.
func (r *Round) IDs() []string {
	out := make([]string, len(r.Participants))
	for i, p := range r.Participants {
		out[i] = p.ID
	}
	return out
}

// Share is how many of a bounded thing one participant may bring, so that nobody crowds out the others.
func (r *Round) Share(limit int) int { return max(1, limit/max(1, len(r.Participants))) }

// Moderator names who resolves the round (§3.3): of the participants without
// a position the one with the highest rating before the round, the lowest id
// among equals; when all have one, the first in the order of SHA-256(round id ‖ agent id).
func (r *Round) Moderator(hasPosition func(agent string) bool) string {
	best, found := Participant{}, false
	for _, p := range r.Participants { // ascending: the first of equals stays
		if !hasPosition(p.ID) && (!found || p.DomainMicro > best.DomainMicro) {
			best, found = p, true
		}
	}
	if found {
		return best.ID
	}
	if order := r.Rotation(); len(order) > 0 {
		return order[0]
	}
	return ""
}

// Rotation is the participants in the order of SHA-256(round id ‖ agent id).
func (r *Round) Rotation() []string {
	ids := r.IDs()
	sums := make(map[string][32]byte, len(ids))
	for _, id := range ids {
		sums[id] = sha256.Sum256([]byte(r.ID + id))
	}
	sort.Slice(ids, func(i, j int) bool {
		a, b := sums[ids[i]], sums[ids[j]]
		return bytes.Compare(a[:], b[:]) < 0
	})
	return ids
}

// ArgumentKind is what an argument is.
type ArgumentKind string

// The kinds of argument. A position is what can win; the others attack or support.
const (
	PositionKind  ArgumentKind = "position"
	ChallengeKind ArgumentKind = "challenge"
	SupportKind   ArgumentKind = "support"
)

// Relation is the kind of an edge.
type Relation string

// The relations R⁻ and R⁺ of §2.1.
const (
	Attack  Relation = "attack"
	Support Relation = "support"
)

// Argument is one element of A (§2.1), without its text.
type Argument struct {
	ID          string       `json:"id"`
	Kind        ArgumentKind `json:"kind"`
	Author      string       `json:"author"`
	Target      string       `json:"target,omitempty"`      // what a challenge or support is about
	AnswerHash  string       `json:"answer_hash,omitempty"` // SHA-256 of a position's canonical answer
	Evidence    []Evidence   `json:"evidence,omitempty"`
	Probability *float64     `json:"probability,omitempty"` // of a position, that its answer is right
	Refs        []CrossRef   `json:"cross_references,omitempty"`
	At          Stamp        `json:"at_ms"`
}

// Stamp is replicated time in milliseconds.
type Stamp = machine.Stamp

// CrossRef is an edge added after both its ends stood: it may close a cycle.
type CrossRef struct {
	To       string   `json:"to"`
	Relation Relation `json:"relation"`
	At       Stamp    `json:"at_ms"`
}

// Content is the bulk of an argument: what people read and semantics does not.
type Content struct {
	Answer json.RawMessage `json:"answer,omitempty"`
	Text   string          `json:"text,omitempty"`
	Facts  json.RawMessage `json:"facts,omitempty"`
}

// State is what changes while a round goes on.
type State struct {
	Phase       Phase               `json:"phase"`
	Deadline    Stamp               `json:"deadline_ms,omitempty"` // 0: none
	Positions   int                 `json:"positions"`
	Arguments   int                 `json:"arguments"`
	Evidence    int                 `json:"evidence"` // items so far: the version of the evidence
	CrossRefs   int                 `json:"cross_references"`
	Bytes       int                 `json:"bytes"`
	Acted       int                 `json:"acted"`               // participants who have done something
	Final       int                 `json:"final"`               // participants final in this phase
	ClosedBy    string              `json:"closed_by,omitempty"` // moderator's id, "all_final" or "window"
	Path        Path                `json:"path,omitempty"`      // fast or conflict, once decided
	Why         Why                 `json:"why,omitempty"`       // why this path
	Outcome     *Outcome            `json:"outcome,omitempty"`
	Freeze      *Freeze             `json:"freeze,omitempty"`
	Certificate *CertificateSummary `json:"certificate,omitempty"`
	Reason      string              `json:"reason,omitempty"` // what the participants did, while a human decides
	Learned     *Learned            `json:"learned,omitempty"`
}

// Freeze is the point of the log at which a contested round stopped changing.
// The PBFT instance takes generation and epoch from here, so it outlives a
// reset that kept the freeze, and a freeze that was undone has no certificate.
type Freeze struct {
	Generation  uint64 `json:"generation"`
	Epoch       uint64 `json:"epoch"`
	Seq         uint64 `json:"seq"` // entry whose checkpoint the certificate is about
	OutcomeHash string `json:"outcome_hash"`
}

// Member is one participant's part in one round.
type Member struct {
	Agent     string    `json:"agent"`
	Position  string    `json:"position,omitempty"`
	Arguments int       `json:"arguments,omitempty"`
	CrossRefs int       `json:"cross_references,omitempty"`
	Bytes     int       `json:"bytes,omitempty"`
	Late      int       `json:"late_evidence,omitempty"` // evidence actions in the conflict path's window
	Acted     bool      `json:"acted,omitempty"`
	Final     Phase     `json:"final,omitempty"` // last phase in which it said it was done
	Standing  *Standing `json:"standing,omitempty"`
	Vote      *Vote     `json:"vote,omitempty"`
}

// Vote is a participant's confirmation or rejection of a winner on the evidence it saw.
type Vote struct {
	Action   string `json:"action"` // id of the signed action that holds it
	Winner   string `json:"winner"`
	Evidence int    `json:"evidence"` // items at that time
	Accept   bool   `json:"accept"`
	Standing bool   `json:"standing,omitempty"`
	At       Stamp  `json:"at_ms"`
}

// Standing is a confirmation given before the decision, for the winners and answers it names.
type Standing struct {
	Action  string   `json:"action"`
	Winners []string `json:"winners,omitempty"` // position ids
	Answers []string `json:"answers,omitempty"` // SHA-256 of canonical answers
	Expires Stamp    `json:"expires_ms"`
}
