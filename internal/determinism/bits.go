package main

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"hash"
	"math"
	"strconv"

	"github.com/deliberd/deliberd/internal/detmath"
	"github.com/deliberd/deliberd/reputation"
	"github.com/deliberd/deliberd/semantics"
)

// bits hashes results bit by bit.
type bits struct {
	hash hash.Hash
	seed uint64
}

func newBits() *bits { return &bits{hash: sha256.New(), seed: 1} }

func (b *bits) sum() string { return hex.EncodeToString(b.hash.Sum(nil)) }

func (b *bits) word(w uint64) {
	var raw [8]byte
	binary.BigEndian.PutUint64(raw[:], w)
	b.hash.Write(raw[:])
}

func (b *bits) floats(fs ...float64) {
	for _, f := range fs {
		b.word(math.Float64bits(f))
	}
}

func (b *bits) text(s string) {
	b.word(uint64(len(s)))
	b.hash.Write([]byte(s))
}

// next is a number below n from a fixed stream.
func (b *bits) next(n int) int {
	b.seed = b.seed*6364136223846793005 + 1442695040888963407
	return int(b.seed >> 33 % uint64(n))
}

func (b *bits) fraction() float64 { return float64(b.next(1_000_001)) / 1_000_000 }

func (b *bits) detmath() {
	for i := range 20_000 {
		x := float64(i-10_000) * 0.00731
		b.floats(detmath.Exp2(x), detmath.Log2(math.Abs(x)), detmath.Pow10Over400(x), detmath.Expected(1200, 1200+float64(20*x)))
	}
	for n := 1; n <= 40; n++ {
		for range 200 {
			b.floats(detmath.Root(b.fraction(), n))
		}
	}
}

var methods = []semantics.Method{semantics.FixedPoint, semantics.QuadraticEnergy, semantics.Rectified, semantics.LiteralJacobi}

// semantics runs graphs of every kind through every method and its decision.
func (b *bits) semantics() {
	for i := range 400 {
		n := 2 + b.next(24)
		var g semantics.Graph
		var positions []semantics.Position
		for k := range n {
			id := fmt.Sprintf("a%02d", k)
			g.Arguments = append(g.Arguments, semantics.Argument{ID: id, Weight: b.fraction(), Rho: 0.5 + float64(1.5*b.fraction())})
			if k < 4 {
				positions = append(positions, semantics.Position{ID: id, Delta: int64(b.next(100_000_000))})
			}
		}
		for range b.next(4 * n) {
			from, to := b.next(n), b.next(n)
			if from == to {
				continue
			}
			if i%3 == 0 && from < to {
				from, to = to, from
			}
			e := semantics.Edge{From: g.Arguments[from].ID, To: g.Arguments[to].ID}
			if b.next(2) == 0 {
				g.Attacks = append(g.Attacks, e)
			} else {
				g.Supports = append(g.Supports, e)
			}
		}
		for _, m := range methods {
			b.compute(g, semantics.Options{Method: m, Budget: 200_000}, positions)
		}
	}
}

func (b *bits) compute(g semantics.Graph, o semantics.Options, positions []semantics.Position) {
	r, err := semantics.Compute(g, o)
	if err != nil {
		b.text(err.Error())
		return
	}
	b.run(r.Run)
	for _, a := range r.Arguments {
		b.text(a.ID)
		b.floats(a.Sigma, a.ErrorBound)
		b.word(uint64(a.Nano))
		b.word(uint64(a.Status))
		b.word(uint64(a.Component))
		e, _ := r.Explain(a.ID)
		for _, s := range e.Shares {
			b.floats(s.Sigma)
		}
	}
	d, err := r.Decide(positions, semantics.DefaultTau)
	b.text(fmt.Sprintf("%+v %v", d, err))
}

func (b *bits) run(r semantics.Run) {
	b.text(string(r.Method) + r.Status.String())
	b.floats(r.GammaPlus, r.GammaMinus, r.Step, r.Residual, r.ErrorBound)
	for _, n := range []int{r.Components, r.Cyclic, r.Certified, r.Sweeps} {
		b.word(uint64(n))
	}
}

// network runs one large graph with cycles, without names.
func (b *bits) network() {
	const n, m = 20_000, 60_000
	var attacks, supports []semantics.Link
	for range m {
		l := semantics.Link{From: int32(b.next(n)), To: int32(b.next(n))}
		if b.next(2) == 0 {
			attacks = append(attacks, l)
		} else {
			supports = append(supports, l)
		}
	}
	g, err := semantics.NewNetwork(n, attacks, supports)
	if err != nil {
		b.text(err.Error())
		return
	}
	base := make([]float64, n)
	for i := range base {
		base[i] = 2 * b.fraction()
	}
	for _, factor := range []float64{0.05, 0.6} { // one settles, one is averaged
		s, err := g.Solve(base, semantics.Options{GammaPlus: factor, GammaMinus: factor, Budget: 30_000_000})
		if err != nil {
			b.text(err.Error())
			continue
		}
		b.run(s.Run)
		b.floats(s.Sigma...)
		b.floats(s.Bound...)
	}
}

func (b *bits) weights() {
	for range 2_000 {
		var items []semantics.Evidence
		for range b.next(12) {
			items = append(items, semantics.Evidence{Value: b.fraction(), Confidence: b.fraction()})
		}
		for _, rule := range []semantics.WeightRule{semantics.Literal, semantics.DiscountedGM} {
			w, err := semantics.Weight(items, rule, 0)
			b.floats(w)
			b.text(fmt.Sprint(err))
		}
	}
}

func (b *bits) reputation() {
	var players []reputation.Player
	var records []reputation.Calibration
	for i := range 12 {
		players = append(players, reputation.Player{ID: fmt.Sprintf("p%02d", i), Standing: reputation.NewStanding()})
		records = append(records, reputation.Calibration{})
	}
	for range 500 {
		for i := range players {
			players[i].Score = float64(b.next(3)) / 2
			if err := records[i].Record(int64(b.next(1_000_001)), b.next(3) > 0); err != nil {
				b.text(err.Error())
			}
		}
		out, err := reputation.Settle(players, b.next(4) == 0)
		b.text(fmt.Sprint(err))
		for i, s := range out {
			players[i].Standing = s.After
			dissent := reputation.Dissent{Expected: s.ExpectedNano()}
			bonus, err := dissent.Vindicate(s.After.Rating, s.K)
			b.text(fmt.Sprint(err))
			b.word(uint64(s.After.Rating))
			b.word(uint64(bonus))
			b.floats(s.Expected, s.K, reputation.Factor(bonus), reputation.Rho(s.After.Rating, records[i]))
			m := records[i].Metrics()
			b.floats(*m.Accuracy, *m.Brier, *m.ECE, *m.OverconfidenceIndex, *m.UnderconfidenceIndex, *m.SignedGap)
		}
	}
}

// vectors runs the graphs of a known-answer file through every method.
func (b *bits) vectors(text []byte) error {
	var file struct {
		Graphs []struct {
			Name              string
			GammaPlus         string `json:"gamma_plus"`
			GammaMinus        string `json:"gamma_minus"`
			Arguments         []struct{ ID, Weight, Rho string }
			Attacks, Supports [][2]string
		}
	}
	if err := json.Unmarshal(text, &file); err != nil {
		return err
	}
	if len(file.Graphs) == 0 {
		return fmt.Errorf("the file has no graphs")
	}
	for _, c := range file.Graphs {
		var g semantics.Graph
		var positions []semantics.Position
		var failed error
		number := func(s string) float64 {
			f, err := strconv.ParseFloat(s, 64)
			if err != nil {
				failed = fmt.Errorf("graph %s: %w", c.Name, err)
			}
			return f
		}
		for _, a := range c.Arguments {
			g.Arguments = append(g.Arguments, semantics.Argument{ID: a.ID, Weight: number(a.Weight), Rho: number(a.Rho)})
			positions = append(positions, semantics.Position{ID: a.ID})
		}
		for _, e := range c.Attacks {
			g.Attacks = append(g.Attacks, semantics.Edge{From: e[0], To: e[1]})
		}
		for _, e := range c.Supports {
			g.Supports = append(g.Supports, semantics.Edge{From: e[0], To: e[1]})
		}
		o := semantics.Options{GammaPlus: number(c.GammaPlus), GammaMinus: number(c.GammaMinus), SelfEdges: true}
		if failed != nil {
			return failed
		}
		for _, o.Method = range methods {
			b.compute(g, o, positions)
		}
	}
	return nil
}
