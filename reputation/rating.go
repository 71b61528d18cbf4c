package reputation

import (
	"math"

	"github.com/deliberd/deliberd/internal/detmath"
	"github.com/deliberd/deliberd/machine"
)

// Rating is an Elo rating in integer micro-points: 1200 points are
// 1_200_000_000.
type Rating int64

// Micro is one point.
const Micro = 1_000_000

// Bounds and start of §6.3.
const (
	MinRating     Rating = 800 * Micro
	MaxRating     Rating = 2400 * Micro
	InitialRating Rating = 1200 * Micro
)

// Points is the rating in points.
func (r Rating) Points() float64 { return float64(r) / Micro }

// Clamp holds r within [MinRating, MaxRating].
func (r Rating) Clamp() Rating { return min(MaxRating, max(MinRating, r)) }

// GlobalK is K₀, the step of the global rating: it moves slowly and serves as
// a prior for domains in which an agent is unknown.
const GlobalK = 8.0

// DomainK is K_d of an agent with n rounds of experience in the domain:
// max(8, 960/(30 + n)), 32 at n = 0. A negative n counts as 0.
func DomainK(n int) float64 { return max(8, 960/float64(30+max(0, n))) }

// Scores S of §6.1.
const (
	ScoreWon       = 1.0 // the winning position
	ScoreSupported = 0.5 // supported the winner
	ScoreRejected  = 0.0
)

// Expected is E: the mean of the pairwise expectations of own against the
// opponents, over ratings before the round. The order of opponents does not
// matter. Without opponents it is 0.5, as against an equal.
func Expected(own Rating, opponents []Rating) float64 {
	if len(opponents) == 0 {
		return 0.5
	}
	sum := 0.0
	for _, o := range sortedRatings(opponents) {
		sum += detmath.Expected(own.Points(), o.Points())
	}
	return sum / float64(len(opponents))
}

// Update is the rating after a round in which its holder scored score where
// expected was E: r + K·(S − E), rounded to micro-points, halves to even, and
// held within the bounds. It errs with out_of_range when score or expected is
// not in [0, 1] or k is not in (0, 1000].
func Update(r Rating, k, score, expected float64) (Rating, error) {
	if err := checkUpdate(k, score, expected); err != nil {
		return r, err
	}
	return (r + micro(float64(k*(score-expected)))).Clamp(), nil
}

// Vindicate is the rating after a dissent turned out right: the bonus is
// 1.5·K·(1 − E), with the E kept in the dissent record. Callers grant it once
// per dissent. Errors as Update.
func Vindicate(r Rating, k, expected float64) (Rating, error) {
	if err := checkUpdate(k, 1, expected); err != nil {
		return r, err
	}
	return (r + micro(float64(float64(1.5*k)*(1-expected)))).Clamp(), nil
}

func checkUpdate(k, score, expected float64) error {
	if !unit(score) {
		return machine.Refuse(machine.CodeOutOfRange, "give a score from 0 to 1", "the score is %v", score)
	}
	if !unit(expected) {
		return machine.Refuse(machine.CodeOutOfRange, "give an expectation from 0 to 1", "the expected score is %v", expected)
	}
	if math.IsNaN(k) || k <= 0 || k > 1000 {
		return machine.Refuse(machine.CodeOutOfRange, "give an adjustment factor above 0, at most 1000", "K is %v", k)
	}
	return nil
}

func micro(points float64) Rating { return Rating(math.RoundToEven(float64(points * Micro))) }

func unit(x float64) bool { return !math.IsNaN(x) && x >= 0 && x <= 1 }
