package reputation

import (
	"encoding/json"
	"math"
	"strconv"
	"testing"

	"github.com/deliberd/deliberd/internal/vectors"
)

// sections of semantics.json, by the package whose TestVectors… runs them.
var sections = map[string]string{
	"format": "description", "conventions": "description", "description": "description", "kinds": "description", "notes": "description",
	"graphs": "semantics", "decision": "semantics", "evidence_weight": "semantics",
	"elo": "reputation", "k_decay": "reputation", "elo_factor": "reputation", "calibrated_factor": "reputation", "calibration": "reputation",
}

func TestVectorsReputation(t *testing.T) {
	runners := map[string]func(*testing.T, json.RawMessage){
		"elo": vectorElo, "k_decay": vectorK, "elo_factor": vectorFactor, "calibrated_factor": vectorRho, "calibration": vectorCalibration,
	}
	file := vectors.As[map[string]json.RawMessage](t, vectors.Load(t, "semantics"))
	ran := 0
	for name, raw := range file {
		switch sections[name] {
		case "":
			t.Errorf("no test knows the section %q", name)
		case "reputation":
			for i, c := range cases(t, raw) {
				head := vectors.As[struct{ Name string }](t, c)
				t.Run(name+"/"+strconv.Itoa(i)+"_"+head.Name, func(t *testing.T) { runners[name](t, c) })
				ran++
			}
		}
	}
	if ran == 0 {
		t.Fatal("semantics.json has no case for this package")
	}
}

// cases are the elements of a list, or those under "cases".
func cases(t *testing.T, raw json.RawMessage) []json.RawMessage {
	if raw[0] == '[' {
		return vectors.As[[]json.RawMessage](t, raw)
	}
	return vectors.As[struct{ Cases []json.RawMessage }](t, raw).Cases
}

// decimal is a number written as a string.
type decimal float64

func (d *decimal) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return err
	}
	f, err := strconv.ParseFloat(text, 64)
	*d = decimal(f)
	return err
}

func (d decimal) rating() Rating { return Rating(math.Round(float64(d) * Micro)) }

func near(t *testing.T, what string, got, want float64) {
	t.Helper()
	if math.IsNaN(got) || math.Abs(got-want) > 1e-9*max(1, math.Abs(want)) {
		t.Errorf("%s is %.15g, want %.15g", what, got, want)
	}
}

func vectorElo(t *testing.T, raw json.RawMessage) {
	c := vectors.As[struct {
		Kind               string
		Rating, K, Score   decimal
		Opponents          []decimal
		Expected, Raw, New decimal
	}](t, raw)
	var opponents []Rating
	for _, o := range c.Opponents {
		opponents = append(opponents, o.rating())
	}
	own := c.Rating.rating()
	e := Expected(own, opponents)
	near(t, "expected", e, float64(c.Expected))
	var after Rating
	var err error
	var moved float64
	switch c.Kind {
	case "update":
		moved = float64(c.K) * (float64(c.Score) - e)
		after, err = Update(own, float64(c.K), float64(c.Score), e)
	case "vindicated_bonus":
		moved = 1.5 * float64(c.K) * (1 - e)
		after, err = Vindicate(own, float64(c.K), e)
	default:
		t.Fatalf("no test knows the kind %q", c.Kind)
	}
	if err != nil {
		t.Fatal(err)
	}
	near(t, "before rounding and clamping", own.Points()+moved, float64(c.Raw))
	if math.Abs(float64(after)-float64(c.New)*Micro) > 0.5001 { // micro-points, rounded
		t.Errorf("new rating %d, want %v", after, c.New)
	}
}

func vectorK(t *testing.T, raw json.RawMessage) {
	c := vectors.As[struct {
		N int
		K decimal
	}](t, raw)
	near(t, "K", DomainK(c.N), float64(c.K))
}

func vectorFactor(t *testing.T, raw json.RawMessage) {
	c := vectors.As[struct{ Elo, Factor decimal }](t, raw)
	near(t, "factor", Factor(c.Elo.rating()), float64(c.Factor))
}

func vectorRho(t *testing.T, raw json.RawMessage) {
	c := vectors.As[struct {
		Elo, ECE, Discount, Factor, Rho decimal
		OCI                             decimal `json:"overconfidence_index"`
		N                               int64
	}](t, raw)
	d := Discount(float64(c.ECE), float64(c.OCI), c.N)
	near(t, "discount", d, float64(c.Discount))
	near(t, "factor", Factor(c.Elo.rating()), float64(c.Factor))
	near(t, "rho", RhoOf(c.Elo.rating(), d), float64(c.Rho))
}

func vectorCalibration(t *testing.T, raw json.RawMessage) {
	c := vectors.As[struct {
		Predictions []struct {
			Confidence decimal
			Correct    bool
		}
		N                    int64
		Accuracy, Brier, ECE *decimal
		OCI                  *decimal `json:"overconfidence_index"`
		UCI                  *decimal `json:"underconfidence_index"`
		SignedGap            *decimal `json:"signed_gap"`
		Bins                 []struct {
			Bin            int
			Count, Correct int64
			SumConfidence  decimal `json:"sum_confidence"`
		}
	}](t, raw)
	var got Calibration
	for _, p := range c.Predictions {
		if err := got.Record(int64(math.Round(float64(p.Confidence)*1e6)), p.Correct); err != nil {
			t.Fatal(err)
		}
	}
	m := got.Metrics()
	if m.N != c.N {
		t.Errorf("n %d, want %d", m.N, c.N)
	}
	for name, pair := range map[string]struct {
		got  *float64
		want *decimal
	}{
		"accuracy": {m.Accuracy, c.Accuracy}, "brier": {m.Brier, c.Brier}, "ece": {m.ECE, c.ECE},
		"oci": {m.OverconfidenceIndex, c.OCI}, "uci": {m.UnderconfidenceIndex, c.UCI}, "signed gap": {m.SignedGap, c.SignedGap},
	} {
		switch {
		case (pair.got == nil) != (pair.want == nil):
			t.Errorf("%s is %v, want %v", name, pair.got, pair.want)
		case pair.got != nil:
			near(t, name, *pair.got, float64(*pair.want))
		}
	}
	var want [Bins]Bin
	for _, b := range c.Bins {
		want[b.Bin] = Bin{N: b.Count, Confidence: int64(math.Round(float64(b.SumConfidence) * 1e6)), Correct: b.Correct}
	}
	if got.Bins != want {
		t.Errorf("bins %v, want %v", got.Bins, want)
	}
}
