package semantics

import (
	"fmt"
	"math"
)

// Status tells how a strength was reached. Larger is worse.
type Status uint8

// The statuses, from best to worst.
const (
	Exact       Status = iota // a direct sum
	Converged                 // the plain iteration settled
	Continuized               // the damped iteration settled on the same fixed point
	Averaged                  // no stable answer: influence inside the component was averaged
	Unsettled                 // a selectable method did not settle within the budget; the last iterate
	Diverged                  // the strength left ±MaxStrength and was held there
)

var statusNames = [...]string{"exact", "converged", "continuized", "averaged", "unsettled", "diverged"}

func (s Status) String() string {
	if int(s) < len(statusNames) {
		return statusNames[s]
	}
	return fmt.Sprintf("status(%d)", uint8(s))
}

// Stable reports whether the rule in force has an answer here. Decisions that
// depend on an unstable strength take the conflict path.
func (s Status) Stable() bool { return s < Averaged }

// MarshalText is the name of the status.
func (s Status) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText reads a name written by MarshalText.
func (s *Status) UnmarshalText(text []byte) error {
	for i, name := range statusNames {
		if name == string(text) {
			*s = Status(i)
			return nil
		}
	}
	return fmt.Errorf("no status is called %q", text)
}

// MaxStrength is where strengths are held: at 1e-9 the integer still fits the
// 2^53 − 1 that every JSON reader carries exactly.
const MaxStrength = 9_000_000

// NanoPerUnit is the scale of published strengths.
const NanoPerUnit = 1_000_000_000

// Nano is x as an integer at 1e-9, halves to even, held at ±MaxStrength. NaN,
// which no result contains, gives 0.
func Nano(x float64) int64 {
	switch {
	case math.IsNaN(x):
		return 0
	case x >= MaxStrength:
		return MaxStrength * NanoPerUnit
	case x <= -MaxStrength:
		return -MaxStrength * NanoPerUnit
	}
	return int64(math.RoundToEven(float64(x * NanoPerUnit)))
}
