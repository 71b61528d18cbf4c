package reputation

import (
	"github.com/deliberd/deliberd/machine"
)

// Bins is the number of calibration bins: [0, 0.1), [0.1, 0.2) … [0.9, 1].
const Bins = 10

// Bin counts predictions of similar confidence.
type Bin struct {
	N          int64 `json:"n"`
	Confidence int64 `json:"confidence"` // sum, in millionths
	Correct    int64 `json:"correct"`
}

// Calibration is what an agent's stated probabilities turned out to be worth
// in one domain (§6.2). The zero value is an agent without history.
type Calibration struct {
	Bins [Bins]Bin `json:"bins"`
	// The sum of (p − o)², exactly: Brier + BrierRest·1e-12, where o is 1 for
	// a correct prediction and BrierRest < 1e12. One integer could leave the
	// range that every JSON reader carries exactly.
	Brier     int64 `json:"brier"`
	BrierRest int64 `json:"brier_rest"`
}

const (
	certain    = 1_000_000 // a probability of 1, in millionths
	brierUnits = certain * certain
)

// Record adds a prediction made with confidence p, in millionths, that turned
// out correct or not. It errs with out_of_range when p is not in [0, 1_000_000].
func (c *Calibration) Record(p int64, correct bool) error {
	if p < 0 || p > certain {
		return machine.Refuse(machine.CodeOutOfRange, "give a probability from 0 to 1", "the confidence is %d millionths", p)
	}
	b := &c.Bins[min(Bins-1, p/(certain/Bins))]
	b.N++
	b.Confidence += p
	miss := p
	if correct {
		b.Correct++
		miss = certain - p
	}
	c.BrierRest += miss * miss
	c.Brier += c.BrierRest / brierUnits
	c.BrierRest %= brierUnits
	return nil
}

// Metrics are the metrics of §6.2. They are nil when N is 0.
type Metrics struct {
	N        int64    `json:"n"`
	Accuracy *float64 `json:"accuracy"` // fraction correct
	Brier    *float64 `json:"brier"`    // mean (p − o)², lower is better
	ECE      *float64 `json:"ece"`      // expected calibration error, lower is better; OCI + UCI
	// OverconfidenceIndex is Σ over bins of max(0, Σ confidence − correct) / N.
	OverconfidenceIndex *float64 `json:"overconfidence_index"`
	// UnderconfidenceIndex is the reverse.
	UnderconfidenceIndex *float64 `json:"underconfidence_index"`
	// SignedGap is (Σ confidence − correct) / N over all bins.
	SignedGap *float64 `json:"signed_gap"`
}

// Metrics computes the metrics: sums in integers, one division at the end.
func (c Calibration) Metrics() Metrics {
	var m Metrics
	var correct, over, under int64
	for _, b := range c.Bins {
		m.N += b.N
		correct += b.Correct
		if d := b.Confidence - b.Correct*certain; d > 0 {
			over += d
		} else {
			under -= d
		}
	}
	if m.N == 0 {
		return m
	}
	n := float64(m.N)
	part := func(millionths int64) *float64 {
		v := float64(millionths) / float64(n*certain)
		return &v
	}
	accuracy := float64(correct) / n
	brier := (float64(c.Brier) + float64(c.BrierRest)/brierUnits) / n
	m.Accuracy, m.Brier = &accuracy, &brier
	m.OverconfidenceIndex, m.UnderconfidenceIndex = part(over), part(under)
	m.ECE, m.SignedGap = part(over+under), part(over-under)
	return m
}
