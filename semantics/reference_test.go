package semantics

import (
	"fmt"
	"math"
	"math/big"
	"testing"

	"pgregory.net/rapid"
)

// drawGraph is any graph without self edges; acyclic ones have edges from
// later to earlier arguments only.
func drawGraph(t *rapid.T, most int, acyclic bool) Graph {
	n := rapid.IntRange(1, most).Draw(t, "n")
	var g Graph
	for i := range n {
		g.Arguments = append(g.Arguments, Argument{
			ID:     fmt.Sprintf("a%02d", i),
			Weight: float64(rapid.IntRange(0, 1000).Draw(t, "w")) / 1000,
			Rho:    float64(rapid.IntRange(500, 2000).Draw(t, "rho")) / 1000,
		})
	}
	for range rapid.IntRange(0, 3*n).Draw(t, "m") {
		i, j := rapid.IntRange(0, n-1).Draw(t, "i"), rapid.IntRange(0, n-1).Draw(t, "j")
		if i == j {
			continue
		}
		if acyclic && i < j {
			i, j = j, i
		}
		e := Edge{g.Arguments[i].ID, g.Arguments[j].ID}
		if rapid.Bool().Draw(t, "attack") {
			g.Attacks = append(g.Attacks, e)
		} else {
			g.Supports = append(g.Supports, e)
		}
	}
	return g
}

func rat(x float64) *big.Rat { return new(big.Rat).SetFloat64(x) }

// solveExactly solves (1 − M)σ = b by elimination in rationals; nil when
// singular. It is what the pipeline's stable statuses claim to find.
func solveExactly(g Graph, gp, gm float64) map[string]*big.Rat {
	n := len(g.Arguments)
	at := map[string]int{}
	rows := make([][]*big.Rat, n)
	for i, a := range g.Arguments {
		at[a.ID] = i
		rows[i] = make([]*big.Rat, n+1)
		for j := range rows[i] {
			rows[i][j] = new(big.Rat)
		}
		rows[i][i].SetInt64(1)
		rows[i][n].Mul(rat(a.Weight), rat(a.Rho))
	}
	for _, list := range []struct {
		edges  []Edge
		factor float64
	}{{g.Supports, -gp}, {g.Attacks, gm}} {
		seen := map[Edge]bool{}
		for _, e := range list.edges {
			if !seen[e] {
				seen[e] = true
				cell := rows[at[e.To]][at[e.From]]
				cell.Add(cell, rat(list.factor))
			}
		}
	}
	for col := range n {
		pivot := col
		for pivot < n && rows[pivot][col].Sign() == 0 {
			pivot++
		}
		if pivot == n {
			return nil
		}
		rows[col], rows[pivot] = rows[pivot], rows[col]
		for r := range n {
			if r == col || rows[r][col].Sign() == 0 {
				continue
			}
			f := new(big.Rat).Quo(rows[r][col], rows[col][col])
			for c := col; c <= n; c++ {
				rows[r][c].Sub(rows[r][c], new(big.Rat).Mul(f, rows[col][c]))
			}
		}
	}
	out := map[string]*big.Rat{}
	for i, a := range g.Arguments {
		out[a.ID] = new(big.Rat).Quo(rows[i][n], rows[i][i])
	}
	return out
}

func must(t testing.TB, g Graph, o Options) *Result {
	t.Helper()
	r, err := Compute(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func rapidCompute(t *rapid.T, g Graph, o Options) *Result {
	r, err := Compute(g, o)
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func checkAgainst(t *rapid.T, r *Result, want map[string]*big.Rat) {
	for _, a := range r.Arguments {
		w, _ := want[a.ID].Float64()
		off := math.Abs(a.Sigma - w)
		if off > 1e-8*max(1, math.Abs(w)) {
			t.Fatalf("%s is %.15g (%s), exactly %.15g", a.ID, a.Sigma, a.Status, w)
		}
		// the reference itself was rounded to a double
		if off > a.ErrorBound+math.Abs(w)*unitRoundoff {
			t.Fatalf("%s is off by %g, its bound is %g (%s)", a.ID, off, a.ErrorBound, a.Status)
		}
	}
}

func TestAGraphWithoutCyclesIsExact(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 12, true)
		r := rapidCompute(t, g, Options{})
		if r.Status != Exact || r.Cyclic != 0 || r.Sweeps != 0 {
			t.Fatalf("%+v", r.Run)
		}
		checkAgainst(t, r, solveExactly(g, DefaultGammaPlus, DefaultGammaMinus))
	})
}

func TestWhatIsCalledStableIsTheFixedPointWithinItsBound(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 7, false)
		gp := float64(rapid.IntRange(5, 95).Draw(t, "gp")) / 100
		gm := float64(rapid.IntRange(5, 95).Draw(t, "gm")) / 100
		r := rapidCompute(t, g, Options{GammaPlus: gp, GammaMinus: gm})
		if !r.Status.Stable() {
			return
		}
		want := solveExactly(g, gp, gm)
		if want == nil {
			t.Fatalf("there is no fixed point, but the status is %s", r.Status)
		}
		checkAgainst(t, r, want)
	})
}

// averagedEquation is the equation that an averaged component claims to solve.
func TestAveragedStrengthsSolveTheAveragedEquation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 6, false)
		r := rapidCompute(t, g, Options{GammaPlus: 0.9, GammaMinus: 0.95})
		for _, a := range r.Arguments {
			if a.Status != Averaged {
				continue
			}
			e, _ := r.Explain(a.ID)
			sum := e.Base
			for _, s := range e.Shares {
				sum += s.Sigma
			}
			if math.Abs(sum-a.Sigma) > 1e-9*max(1, math.Abs(sum)) {
				t.Fatalf("%s is %g, its parts add up to %g", a.ID, a.Sigma, sum)
			}
		}
	})
}

// The status must say what the spectrum of each component says. For two and
// three arguments the spectrum is known in closed form.
func TestStatusesFollowTheSpectrum(t *testing.T) {
	ring := func(n int, attack bool) Graph { // everybody against everybody
		var g Graph
		for i := range n {
			g.Arguments = append(g.Arguments, Argument{string(rune('a' + i)), 1, 1})
			for j := range n {
				if i == j {
					continue
				}
				e := Edge{string(rune('a' + i)), string(rune('a' + j))}
				if attack {
					g.Attacks = append(g.Attacks, e)
				} else {
					g.Supports = append(g.Supports, e)
				}
			}
		}
		return g
	}
	// n mutual attackers: eigenvalues −γ(n−1) and γ; supporters: γ(n−1) and −γ.
	for n := 2; n <= 12; n++ {
		for _, gamma := range []float64{0.05, 0.1, 0.25, 0.4, 0.6, 0.8, 0.9} {
			for _, attack := range []bool{true, false} {
				radius := gamma * float64(n-1)
				want := Converged
				switch {
				case math.Abs(radius-1) < 0.01:
					continue
				case radius > 1 && attack:
					want = Continuized
				case radius > 1:
					want = Averaged
				}
				r := must(t, ring(n, attack), Options{GammaPlus: gamma, GammaMinus: gamma})
				if r.Status != want {
					t.Errorf("%d arguments, γ %g, attack %v: %s, want %s", n, gamma, attack, r.Status, want)
				}
				if want == Converged && r.Certified != 1 {
					t.Errorf("%d arguments, γ %g: not certified", n, gamma)
				}
				if attack {
					if got, exact := r.Arguments[0].Sigma, 1/(1+radius); math.Abs(got-exact) > 1e-11 {
						t.Errorf("%d attackers, γ %g: %.15g, want %.15g", n, gamma, got, exact)
					}
				}
			}
		}
	}
}

func TestThreeMutualAttackersOfWeightOneComeTo0384615(t *testing.T) {
	var g Graph
	for _, id := range []string{"a", "b", "c"} {
		g.Arguments = append(g.Arguments, Argument{id, 1, 1})
		for _, to := range []string{"a", "b", "c"} {
			if to != id {
				g.Attacks = append(g.Attacks, Edge{id, to})
			}
		}
	}
	for _, a := range must(t, g, Options{}).Arguments {
		if a.Nano != 384615385 || a.Status != Continuized {
			t.Errorf("%s: %d, %s", a.ID, a.Nano, a.Status)
		}
	}
}

func TestRectifiedStrengthsSolveTheRectifiedEquation(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 8, rapid.Bool().Draw(t, "acyclic"))
		r := rapidCompute(t, g, Options{Method: Rectified})
		for _, a := range r.Arguments {
			e, _ := r.Explain(a.ID)
			sum := e.Base
			for _, s := range e.Shares {
				sum += s.Sigma
			}
			if math.Abs(sum-a.Sigma) > 1e-9*max(1, math.Abs(sum)) {
				t.Fatalf("%s is %g (%s), its parts add up to %g", a.ID, a.Sigma, a.Status, sum)
			}
		}
	})
}

func TestQuadraticEnergySettlesWithinItsRangeAndItsSharesAddUp(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g := drawGraph(t, 8, false)
		r := rapidCompute(t, g, Options{Method: QuadraticEnergy})
		if r.Status != Converged {
			t.Fatalf("status %s after %d sweeps", r.Status, r.Sweeps)
		}
		for _, a := range r.Arguments {
			if a.Sigma < 0 || a.Sigma > 2 {
				t.Fatalf("%s is %g", a.ID, a.Sigma)
			}
			e, _ := r.Explain(a.ID)
			sum, energy := e.Base, 0.0
			for _, s := range e.Shares {
				sum += s.Sigma
			}
			for _, u := range r.graph.net.Supporters(r.graph.index[a.ID]) {
				energy += r.GammaPlus * r.Arguments[u].Sigma / 2
			}
			for _, u := range r.graph.net.Attackers(r.graph.index[a.ID]) {
				energy -= r.GammaMinus * r.Arguments[u].Sigma / 2
			}
			w, h := e.Base/2, energy*energy/(1+energy*energy)
			want := w + (1-w)*h
			if energy < 0 {
				want = w - w*h
			}
			if math.Abs(2*want-a.Sigma) > 1e-9 {
				t.Fatalf("%s is %g, its energy %g says %g", a.ID, a.Sigma, energy, 2*want)
			}
			if math.Abs(sum-a.Sigma) > 1e-9 && math.Abs(energy) > 1e-6 {
				t.Fatalf("%s is %g, its parts add up to %g", a.ID, a.Sigma, sum)
			}
		}
	})
}
