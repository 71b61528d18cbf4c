package detmath

import (
	"fmt"
	"hash/fnv"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

const prec = 200

func bf(x float64) *big.Float { return new(big.Float).SetPrec(prec).SetFloat64(x) }

// ln2 to 200 bits as Σ 1/(k·2^k).
func bigLn2() *big.Float {
	sum := bf(0)
	pow := bf(1)
	for k := 1; k < 220; k++ {
		pow.Quo(pow, bf(2))
		sum.Add(sum, new(big.Float).SetPrec(prec).Quo(pow, bf(float64(k))))
	}
	return sum
}

// bigExp2 is 2^x for an exact rational exponent, by the series of e^t.
func bigExp2(x *big.Float) *big.Float {
	f, _ := x.Float64()
	k := math.Round(f)
	t := new(big.Float).SetPrec(prec).Sub(x, bf(k))
	t.Mul(t, bigLn2())
	sum, term := bf(1), bf(1)
	for i := 1; i < 60; i++ {
		term.Mul(term, t)
		term.Quo(term, bf(float64(i)))
		sum.Add(sum, term)
	}
	return sum.SetMantExp(sum, int(k))
}

func relative(got float64, want *big.Float) float64 {
	d := new(big.Float).SetPrec(prec).Sub(bf(got), want)
	if want.Sign() != 0 {
		d.Quo(d, want)
	}
	f, _ := d.Float64()
	return math.Abs(f)
}

func TestExp2IsWithin3e15OfTheTruth(t *testing.T) {
	worst := 0.0
	for i := -4000; i <= 4000; i++ {
		x := float64(i) * 0.00731
		worst = max(worst, relative(Exp2(x), bigExp2(bf(x))))
	}
	t.Logf("worst relative error %.3g", worst)
	if worst > 1e-15 {
		t.Fatalf("relative error %g", worst)
	}
}

func TestExp2OfAnIntegerIsExact(t *testing.T) {
	for k := -1074; k <= 1023; k++ {
		if got, want := Exp2(float64(k)), math.Ldexp(1, k); got != want {
			t.Fatalf("2^%d = %g, want %g", k, got, want)
		}
	}
}

func TestLog2InvertsExp2(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		v := rapid.Float64Range(1e-300, 1e300).Draw(t, "v")
		back := bigExp2(bf(Log2(v))) // exact 2^(our logarithm): isolates Log2's own error
		// An absolute error e of the logarithm is a relative error e·ln2 here;
		// the logarithm itself has an ulp of up to 1000·2^-52.
		if r := relative(v, back); r > 2e-15+math.Abs(Log2(v))*2.3e-16 {
			t.Fatalf("v %g: log2 %.17g gives back with relative error %g", v, Log2(v), r)
		}
	})
}

func TestLog2OfAPowerOfTwoIsExact(t *testing.T) {
	for k := -1074; k <= 1023; k++ {
		if got := Log2(math.Ldexp(1, k)); got != float64(k) {
			t.Fatalf("log2(2^%d) = %.17g", k, got)
		}
	}
}

func TestRootToThePowerGivesTheNumberBack(t *testing.T) {
	for n := 1; n <= 64; n++ {
		for i := 0; i <= 1000; i += 7 {
			v := float64(i) / 1000
			back := bf(1)
			r := Root(v, n)
			for range n {
				back.Mul(back, bf(r))
			}
			// A relative error e of the root is n·e of its power.
			if d := relative(v, back); v != 0 && d > float64(n)*3e-15 {
				t.Fatalf("root %d of %g is %.17g: its power is off by %g", n, v, r, d)
			}
		}
	}
}

func TestExpectedAgreesWithExactArithmetic(t *testing.T) {
	log2of10 := bf(0) // log2(10)/400 from ln10 = 3·ln2 + ln1.25, ln1.25 = 2·atanh(1/9)
	ninth := new(big.Float).SetPrec(prec).Quo(bf(1), bf(9))
	term := new(big.Float).SetPrec(prec).Set(ninth)
	for i := 1; i < 150; i += 2 {
		log2of10.Add(log2of10, new(big.Float).SetPrec(prec).Quo(term, bf(float64(i))))
		term.Mul(term, ninth)
		term.Mul(term, ninth)
	}
	log2of10.Mul(log2of10, bf(2))
	log2of10.Quo(log2of10, bigLn2())
	log2of10.Add(log2of10, bf(3))
	log2of10.Quo(log2of10, bf(400))
	worst := 0.0
	for d := -1600; d <= 1600; d++ {
		x := new(big.Float).SetPrec(prec).Mul(bf(float64(d)), log2of10)
		want := bigExp2(x)
		want.Add(want, bf(1))
		want.Quo(bf(1), want)
		worst = max(worst, relative(Expected(1200, 1200+float64(d)), want))
	}
	t.Logf("worst relative error %.3g", worst)
	if worst > 3e-15 {
		t.Fatalf("relative error %g", worst)
	}
}

func TestExpectationsOfBothSidesAddUpToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		a := float64(rapid.Int64Range(800e6, 2400e6).Draw(t, "a")) / 1e6
		b := float64(rapid.Int64Range(800e6, 2400e6).Draw(t, "b")) / 1e6
		if s := Expected(a, b) + Expected(b, a); math.Abs(s-1) > 1e-15 {
			t.Fatalf("sum %.17g", s)
		}
	})
}

func TestEdgesOfTheDomain(t *testing.T) {
	cases := []struct {
		name      string
		got, want float64
	}{
		{"exp2 overflow", Exp2(1024), math.Inf(1)},
		{"exp2 of infinity", Exp2(math.Inf(1)), math.Inf(1)},
		{"exp2 underflow", Exp2(-1076), 0},
		{"exp2 of minus infinity", Exp2(math.Inf(-1)), 0},
		{"log2 of zero", Log2(0), math.Inf(-1)},
		{"log2 of infinity", Log2(math.Inf(1)), math.Inf(1)},
		{"root of zero", Root(0, 7), 0},
		{"root of one", Root(1, 7), 1},
		{"first root", Root(0.3, 1), 0.3},
	}
	for _, c := range cases {
		if c.got != c.want {
			t.Errorf("%s: %g, want %g", c.name, c.got, c.want)
		}
	}
	for name, v := range map[string]float64{"exp2 of NaN": Exp2(math.NaN()), "log2 of -1": Log2(-1), "log2 of NaN": Log2(math.NaN()), "root of -1": Root(-1, 2), "zeroth root": Root(1, 0)} {
		if !math.IsNaN(v) {
			t.Errorf("%s: %g, want NaN", name, v)
		}
	}
}

// The bits themselves are a contract: a change breaks the replay of old logs.
func TestTheBitsNeverChange(t *testing.T) {
	h := fnv.New64a()
	for d := -1600; d <= 1600; d++ {
		fmt.Fprintf(h, "%016x", math.Float64bits(Expected(1200, 1200+float64(d))))
	}
	for n := 2; n <= 16; n++ {
		for k := 1; k <= 1000; k += 7 {
			fmt.Fprintf(h, "%016x", math.Float64bits(Root(float64(k)/1000, n)))
		}
	}
	if got := fmt.Sprintf("%016x", h.Sum64()); got != "89aac5f56c2d08eb" {
		t.Fatalf("bits hash to %s", got)
	}
}
