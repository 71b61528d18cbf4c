package reputation

import (
	"cmp"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

func sortedRatings(rs []Rating) []Rating {
	if slices.IsSorted(rs) {
		return rs
	}
	rs = slices.Clone(rs)
	slices.Sort(rs)
	return rs
}

// Standing is an agent's rating in one domain, or globally.
type Standing struct {
	Rating Rating `json:"rating"` // micro-points
	Rounds int    `json:"rounds"` // rounds settled: the experience that lowers K
}

// NewStanding is where everybody starts.
func NewStanding() Standing { return Standing{Rating: InitialRating} }

// Player is one agent's part in a settled round.
type Player struct {
	ID       string
	Standing Standing // before the round
	Score    float64  // ScoreWon, ScoreSupported or ScoreRejected
}

// Settlement is what a round made of one agent's rating.
type Settlement struct {
	ID       string
	Before   Standing
	After    Standing
	K        float64
	Expected float64 // E; a dissent record keeps it, see ExpectedNano
}

// ExpectedNano is E at 1e-9, the exact form for records.
func (s Settlement) ExpectedNano() int64 { return nano(s.Expected) }

// Settle updates the ratings of everybody in a round at once, each against all
// others and over the ratings before the round. global chooses K₀ instead of
// K_d. Who was alone keeps the rating: there was nobody to measure against.
// Settlements come in the order of ids, whatever that of players. It errs
// with already_exists when an id appears twice, and as [Update].
func Settle(players []Player, global bool) ([]Settlement, error) {
	players = slices.Clone(players)
	slices.SortFunc(players, func(a, b Player) int { return cmp.Compare(a.ID, b.ID) })
	out := make([]Settlement, 0, len(players))
	for i, p := range players {
		if i > 0 && players[i-1].ID == p.ID {
			return nil, machine.Refuse(machine.CodeAlreadyExists, "name every agent once", "the agent %q is named twice", p.ID)
		}
		opponents := make([]Rating, 0, len(players)-1)
		for j, o := range players {
			if j != i {
				opponents = append(opponents, o.Standing.Rating)
			}
		}
		k := GlobalK
		if !global {
			k = DomainK(p.Standing.Rounds)
		}
		s := Settlement{ID: p.ID, Before: p.Standing, K: k, Expected: Expected(p.Standing.Rating, opponents)}
		r, err := Update(p.Standing.Rating, k, p.Score, s.Expected)
		if err != nil {
			return nil, err
		}
		if len(opponents) == 0 {
			r = p.Standing.Rating
		}
		s.After = Standing{Rating: r, Rounds: p.Standing.Rounds + 1}
		out = append(out, s)
	}
	return out, nil
}
