package semantics

import (
	"math"
	"sort"

	"github.com/deliberd/deliberd/machine"
)

// Path is how a round goes on (§3.1).
type Path string

// The paths.
const (
	Fast     Path = "fast"     // a clear winner: a majority confirms it
	Conflict Path = "conflict" // too close, or not stable: a Byzantine quorum decides
	None     Path = "none"     // no position survived: no verdict
)

// Reason is why a path was taken.
type Reason string

// The reasons.
const (
	ReasonClear      Reason = "gap_above_tau"
	ReasonClose      Reason = "gap_within_tau"
	ReasonUncertain  Reason = "gap_within_error"   // gap − τ ≤ 2·error bound
	ReasonUnstable   Reason = "unstable_component" // a position depends on a strength that is not Stable
	ReasonOnlyOne    Reason = "single_survivor"
	ReasonNoSurvivor Reason = "no_survivor"
)

// DefaultTau is τ at 1e-9.
const DefaultTau int64 = 150_000_000

// Position is a position that survived the constitution, and the sum of the
// preference deltas that apply to it, at 1e-9 (§4.2).
type Position struct {
	ID    string `json:"id"`
	Delta int64  `json:"delta"`
}

// Candidate is what a decision needs to know of a position. Strengths and
// deltas are at 1e-9.
type Candidate struct {
	ID         string
	Nano       int64   // σ
	Delta      int64   // sum of preference deltas
	ErrorBound float64 // how far σ may be off
	Unstable   bool    // σ depends on a strength that is not Stable
}

// Ranked is a position in the order of a decision.
type Ranked struct {
	ID       string `json:"id"`
	Nano     int64  `json:"sigma"`
	Delta    int64  `json:"delta"`
	Adjusted int64  `json:"adjusted"` // sigma + delta: what is compared
}

// Decision is which path a round takes and for whom. Numbers are at 1e-9.
type Decision struct {
	Path   Path   `json:"path"`
	Reason Reason `json:"reason"`
	Winner string `json:"winner,omitempty"` // the best position; on the conflict path the one that would win
	Second string `json:"second,omitempty"`
	Gap    int64  `json:"gap"` // winner − second; 0 with fewer than two positions
	Tau    int64  `json:"tau"`
	// NoPositive: even the best position has no positive strength.
	NoPositive bool     `json:"no_positive_position"`
	Ranking    []Ranked `json:"ranking"`
}

// Decide ranks positions and compares the gap of the best two with τ, as
// integers. Equal strengths rank by id. One position is a fast verdict for it,
// none is no verdict. tau is at 1e-9 and not negative.
func Decide(candidates []Candidate, tau int64) Decision {
	d := Decision{Tau: tau, Ranking: make([]Ranked, 0, len(candidates))}
	unstable, bound := false, 0.0
	for _, c := range candidates {
		d.Ranking = append(d.Ranking, Ranked{c.ID, c.Nano, c.Delta, c.Nano + c.Delta})
		unstable = unstable || c.Unstable
		bound = max(bound, c.ErrorBound)
	}
	sort.Slice(d.Ranking, func(i, j int) bool {
		a, b := d.Ranking[i], d.Ranking[j]
		return a.Adjusted > b.Adjusted || a.Adjusted == b.Adjusted && a.ID < b.ID
	})
	if len(d.Ranking) == 0 {
		d.Path, d.Reason = None, ReasonNoSurvivor
		return d
	}
	d.Winner = d.Ranking[0].ID
	d.NoPositive = d.Ranking[0].Adjusted <= 0
	if len(d.Ranking) == 1 {
		d.Path, d.Reason = Fast, ReasonOnlyOne
		return d
	}
	d.Second = d.Ranking[1].ID
	d.Gap = d.Ranking[0].Adjusted - d.Ranking[1].Adjusted
	d.Path, d.Reason = Conflict, ReasonClose
	switch {
	case d.Gap <= tau:
	case unstable:
		d.Reason = ReasonUnstable
	case float64(d.Gap-tau) <= float64(2*NanoPerUnit*bound) || math.IsNaN(bound):
		d.Reason = ReasonUncertain
	default:
		d.Path, d.Reason = Fast, ReasonClear
	}
	return d
}

// Decide decides over positions of this result. It refuses a position that is
// no argument (missing_argument) or named twice (duplicate_argument), and a τ
// or delta out of range.
func (r *Result) Decide(positions []Position, tau int64) (Decision, error) {
	candidates, err := r.Candidates(positions)
	if err != nil {
		return Decision{}, err
	}
	if tau < 0 || tau > MaxStrength*NanoPerUnit {
		return Decision{}, machine.Refuse(machine.CodeOutOfRange, "give τ as an integer at 1e-9, 0 or more", "tau is %d", tau)
	}
	return Decide(candidates, tau), nil
}

// Candidates are the positions with their strengths; see [Result.Decide] for
// what is refused.
func (r *Result) Candidates(positions []Position) ([]Candidate, error) {
	out := make([]Candidate, 0, len(positions))
	seen := make(map[string]bool, len(positions))
	for _, p := range positions {
		v, ok := r.graph.index[p.ID]
		switch {
		case !ok:
			return nil, machine.Refuse(CodeMissingArgument, "name an argument of the graph", "the position %q is no argument", p.ID)
		case seen[p.ID]:
			return nil, machine.Refuse(CodeDuplicateArgument, "name each position once", "the position %q is named twice", p.ID)
		case p.Delta > MaxStrength*NanoPerUnit || p.Delta < -MaxStrength*NanoPerUnit:
			return nil, machine.Refuse(machine.CodeOutOfRange, "give the delta as an integer at 1e-9", "the delta of %q is %d", p.ID, p.Delta)
		}
		seen[p.ID] = true
		a := r.Arguments[v]
		out = append(out, Candidate{ID: p.ID, Nano: a.Nano, Delta: p.Delta, ErrorBound: a.ErrorBound, Unstable: r.unstable(v)})
	}
	return out, nil
}

// unstable reports whether the strength of v rests on one that is not Stable:
// its own, or that of any argument from which edges lead to it.
func (r *Result) unstable(v int32) bool {
	if r.Status.Stable() {
		return false
	}
	seen := make([]bool, len(r.Arguments))
	seen[v] = true
	for queue := []int32{v}; len(queue) > 0; queue = queue[1:] {
		u := queue[0]
		if !r.Arguments[u].Status.Stable() {
			return true
		}
		for _, w := range r.graph.net.src[r.graph.net.off[2*u]:r.graph.net.off[2*u+2]] {
			if !seen[w] {
				seen[w] = true
				queue = append(queue, w)
			}
		}
	}
	return false
}
