package reputation

import (
	"encoding/json"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine"
)

func anyRating(t *rapid.T, name string) Rating {
	return Rating(rapid.Int64Range(int64(MinRating), int64(MaxRating)).Draw(t, name))
}

func TestARatingNeverLeavesItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRating(t, "r")
		e := rapid.Float64Range(0, 1).Draw(t, "e")
		s := rapid.SampledFrom([]float64{0, 0.5, 1}).Draw(t, "s")
		k := DomainK(rapid.IntRange(0, 1000).Draw(t, "n"))
		after, err := Update(r, k, s, e)
		if err != nil || after < MinRating || after > MaxRating {
			t.Fatalf("update: %d, %v", after, err)
		}
		after, err = Vindicate(r, k, e)
		if err != nil || after < r || after > MaxRating {
			t.Fatalf("vindicate: %d, %v", after, err)
		}
	})
}

func TestExpectationDoesNotDependOnTheOrderOfOpponents(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		own := anyRating(t, "own")
		n := rapid.IntRange(1, 12).Draw(t, "n")
		var opponents []Rating
		for range n {
			opponents = append(opponents, anyRating(t, "opponent"))
		}
		shuffled := rapid.Permutation(opponents).Draw(t, "shuffled")
		if a, b := Expected(own, opponents), Expected(own, shuffled); a != b {
			t.Fatalf("%.17g and %.17g", a, b)
		}
	})
}

func TestExpectationAgainstAnEqualIsHalf(t *testing.T) {
	if e := Expected(InitialRating, []Rating{InitialRating, InitialRating}); e != 0.5 {
		t.Fatalf("expected %g", e)
	}
	if e := Expected(1700*Micro, nil); e != 0.5 {
		t.Fatalf("without opponents: %g", e)
	}
}

func TestARoundOfEqualStepsKeepsTheSumOfTwoRatings(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := Rating(rapid.Int64Range(900*Micro, 2300*Micro).Draw(t, "a"))
		b := Rating(rapid.Int64Range(900*Micro, 2300*Micro).Draw(t, "b"))
		out, err := Settle([]Player{{ID: "b", Standing: Standing{Rating: b}, Score: ScoreRejected}, {ID: "a", Standing: Standing{Rating: a}, Score: ScoreWon}}, true)
		if err != nil {
			t.Fatal(err)
		}
		if out[0].ID != "a" || out[0].K != GlobalK || out[0].After.Rounds != 1 {
			t.Fatalf("settlement %+v", out[0])
		}
		// each side rounds once
		if d := out[0].After.Rating + out[1].After.Rating - a - b; d < -1 || d > 1 {
			t.Fatalf("the sum moved by %d micro-points", d)
		}
		if out[0].After.Rating < a || out[1].After.Rating > b {
			t.Fatalf("the winner lost or the loser won: %+v", out)
		}
	})
}

func TestARoundUsesOnlyRatingsBeforeIt(t *testing.T) {
	players := []Player{
		{"a", Standing{1500 * Micro, 3}, ScoreWon},
		{"b", Standing{1300 * Micro, 40}, ScoreSupported},
		{"c", Standing{1100 * Micro, 0}, ScoreRejected},
	}
	out, err := Settle(players, false)
	if err != nil {
		t.Fatal(err)
	}
	for i, p := range players {
		var others []Rating
		for j, o := range players {
			if i != j {
				others = append(others, o.Standing.Rating)
			}
		}
		want, _ := Update(p.Standing.Rating, DomainK(p.Standing.Rounds), p.Score, Expected(p.Standing.Rating, others))
		if out[i].After.Rating != want {
			t.Errorf("%s: %d, want %d", p.ID, out[i].After.Rating, want)
		}
	}
}

func TestWhoWasAloneInARoundKeepsTheRating(t *testing.T) {
	out, err := Settle([]Player{{ID: "a", Standing: NewStanding(), Score: ScoreWon}}, false)
	if err != nil || out[0].After != (Standing{InitialRating, 1}) {
		t.Fatalf("%+v, %v", out, err)
	}
}

func TestExperienceLowersKFrom32To8(t *testing.T) {
	if k := DomainK(0); k != 32 {
		t.Errorf("K(0) = %g", k)
	}
	if k := DomainK(-5); k != 32 {
		t.Errorf("K(-5) = %g", k)
	}
	for n := range 500 {
		if DomainK(n+1) > DomainK(n) || DomainK(n) < 8 {
			t.Fatalf("K(%d) = %g, K(%d) = %g", n, DomainK(n), n+1, DomainK(n+1))
		}
	}
}

func TestRhoFallsWithMiscalibrationAndStaysInRange(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		r := anyRating(t, "r")
		var c Calibration
		for range rapid.IntRange(0, 60).Draw(t, "n") {
			if err := c.Record(rapid.Int64Range(0, certain).Draw(t, "p"), rapid.Bool().Draw(t, "o")); err != nil {
				t.Fatal(err)
			}
		}
		rho := Rho(r, c)
		if rho < MinRho || rho > MaxRho || rho > Factor(r) && Factor(r) >= MinRho {
			t.Fatalf("rho %g of factor %g", rho, Factor(r))
		}
		if RhoNano(r, c) != int64(math.RoundToEven(rho*1e9)) {
			t.Fatal("nano differs")
		}
		e1, e2 := rapid.Float64Range(0, 1).Draw(t, "e1"), rapid.Float64Range(0, 1).Draw(t, "e2")
		if Discount(max(e1, e2), 0, 10) > Discount(min(e1, e2), 0, 10) {
			t.Fatal("the discount rises with the error")
		}
	})
}

func TestCalibrationIsExactInAnyOrder(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		type prediction struct {
			p  int64
			ok bool
		}
		all := rapid.SliceOfN(rapid.Custom(func(t *rapid.T) prediction {
			return prediction{rapid.Int64Range(0, certain).Draw(t, "p"), rapid.Bool().Draw(t, "ok")}
		}), 1, 80).Draw(t, "all")
		var a, b Calibration
		brier := new(big.Int)
		for _, p := range all {
			if err := a.Record(p.p, p.ok); err != nil {
				t.Fatal(err)
			}
			miss := p.p
			if p.ok {
				miss = certain - p.p
			}
			brier.Add(brier, new(big.Int).Mul(big.NewInt(miss), big.NewInt(miss)))
		}
		for _, p := range rapid.Permutation(all).Draw(t, "shuffled") {
			_ = b.Record(p.p, p.ok)
		}
		if a != b {
			t.Fatal("the order of predictions matters")
		}
		whole := new(big.Int).Mul(big.NewInt(a.Brier), big.NewInt(brierUnits))
		if whole.Add(whole, big.NewInt(a.BrierRest)).Cmp(brier) != 0 {
			t.Fatalf("brier %v, want %v", whole, brier)
		}
		m := a.Metrics()
		if d := *m.ECE - *m.OverconfidenceIndex - *m.UnderconfidenceIndex; math.Abs(d) > 1e-15 {
			t.Fatalf("ece is not oci + uci: %g", d)
		}
	})
}

func TestAConfidenceOnABinsEdgeFallsIntoTheUpperBinAndOneIntoTheLast(t *testing.T) {
	for p, bin := range map[int64]int{0: 0, 99_999: 0, 100_000: 1, 300_000: 3, 700_000: 7, 999_999: 9, 1_000_000: 9} {
		var c Calibration
		if err := c.Record(p, true); err != nil || c.Bins[bin].N != 1 {
			t.Errorf("%d: %v %v", p, c.Bins, err)
		}
	}
}

func TestStateRoundTripsAsIntegers(t *testing.T) {
	c := Calibration{}
	_ = c.Record(370_001, true)
	_ = c.Record(990_000, false)
	text, err := json.Marshal(struct {
		S Standing
		C Calibration
		D Dissent
	}{Standing{1_206_077_975, 7}, c, Dissent{Expected: 240_253_073}})
	if err != nil {
		t.Fatal(err)
	}
	var back struct {
		S Standing
		C Calibration
		D Dissent
	}
	if err := json.Unmarshal(text, &back); err != nil || back.C != c || back.S.Rating != 1_206_077_975 || back.D.Expected != 240_253_073 {
		t.Fatalf("%s gives %+v, %v", text, back, err)
	}
}

func TestADissentIsVindicatedOnce(t *testing.T) {
	d := Dissent{Expected: 500_000_000}
	r, err := d.Vindicate(InitialRating, 32)
	if err != nil || r != 1224*Micro {
		t.Fatalf("%d, %v", r, err)
	}
	again, err := d.Vindicate(r, 32)
	if ref, ok := machine.IsRefusal(err); !ok || ref.Code != CodeAlreadyVindicated || again != r {
		t.Fatalf("%d, %v", again, err)
	}
}

func TestBadNumbersAreRefusedByCode(t *testing.T) {
	nan := math.NaN()
	var c Calibration
	d := Dissent{Expected: -1}
	checks := map[string]error{
		"score above 1":        second(Update(InitialRating, 32, 1.5, 0.5)),
		"NaN score":            second(Update(InitialRating, 32, nan, 0.5)),
		"negative expectation": second(Update(InitialRating, 32, 1, -0.1)),
		"NaN K":                second(Update(InitialRating, nan, 1, 0.5)),
		"zero K":               second(Vindicate(InitialRating, 0, 0.5)),
		"broken dissent":       second(d.Vindicate(InitialRating, 32)),
		"confidence above 1":   c.Record(1_000_001, true),
		"negative confidence":  c.Record(-1, true),
		"score in a round":     second(Settle([]Player{{ID: "a", Standing: NewStanding(), Score: 2}}, false)),
	}
	for name, err := range checks {
		if r, ok := machine.IsRefusal(err); !ok || r.Code != machine.CodeOutOfRange || r.Fix == "" {
			t.Errorf("%s: %v", name, err)
		}
	}
	if c != (Calibration{}) || d.Vindicated {
		t.Error("a refused call changed state")
	}
	_, err := Settle([]Player{{ID: "a"}, {ID: "a"}}, false)
	if r, ok := machine.IsRefusal(err); !ok || r.Code != machine.CodeAlreadyExists {
		t.Errorf("an agent named twice: %v", err)
	}
}

func second[T any](_ T, err error) error { return err }
