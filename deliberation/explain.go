package deliberation

import (
	"math"

	"github.com/deliberd/deliberd/semantics"
)

// Explanation says why a round stands as it does. Numbers at 1e-9 are integers.
type Explanation struct {
	Round       string              `json:"round"`
	Phase       Phase               `json:"phase"`
	Provisional bool                `json:"provisional"` // more may still come
	Method      string              `json:"method"`
	Status      string              `json:"status"` // the worst of any argument
	Arguments   []ArgumentExplained `json:"arguments"`
	Ranking     []Strength          `json:"ranking"` // positions, strongest first
	Winner      string              `json:"winner,omitempty"`
	Second      string              `json:"second,omitempty"`
	GapNano     *int64              `json:"gap_nano"`
	TauNano     int64               `json:"tau_nano"`
	Reason      Why                 `json:"reason"`        // what the gap rule says of the strengths
	Path        Path                `json:"path"`          // of the round; while collecting the one it would take
	Why         Why                 `json:"why,omitempty"` // why that path
	ClosedBy    string              `json:"closed_by,omitempty"`
	Waiting     []string            `json:"waiting"` // who has not acted
	Moderator   string              `json:"moderator,omitempty"`
	Flip        *Flip               `json:"flip"`      // smallest change of one weight that makes another position win; null: none found
	PathFlip    *Flip               `json:"path_flip"` // smallest change of one weight that leads to the other path; null: none found
}

// ArgumentExplained takes one strength apart: weight·rho plus the shares is sigma.
type ArgumentExplained struct {
	ID         string       `json:"id"`
	Kind       ArgumentKind `json:"kind"`
	Author     string       `json:"author"`
	WeightNano int64        `json:"weight_nano"`
	RhoNano    int64        `json:"rho_nano"`
	BaseNano   int64        `json:"base_nano"` // w·ρ
	SigmaNano  int64        `json:"sigma_nano"`
	Status     string       `json:"status"`
	Negative   bool         `json:"negative,omitempty"`
	Shares     []EdgeShare  `json:"shares"`
}

// EdgeShare is what one edge adds to a strength.
type EdgeShare struct {
	From           string   `json:"from"`
	Relation       Relation `json:"relation"`
	ShareNano      int64    `json:"share_nano"`
	CrossReference bool     `json:"cross_reference,omitempty"`
}

// Flip is a change of the evidence weight of one argument.
type Flip struct {
	Argument   string `json:"argument"`
	FromNano   int64  `json:"from_weight_nano"`
	ToNano     int64  `json:"to_weight_nano"` // beyond this weight, or from it on where it was searched for, the result is another
	ChangeNano int64  `json:"change_nano"`
	Then       string `json:"then"` // the position that would win, or the path that would be taken
}

func explainRound(s *step, _ string, p RoundParams) (any, error) {
	if err := s.open(p.Round); err != nil {
		return nil, err
	}
	args, err := s.arguments()
	if err != nil {
		return nil, err
	}
	members, err := s.members()
	if err != nil {
		return nil, err
	}
	e, err := Explain(s.round, args)
	if err != nil {
		return nil, err
	}
	e.Phase, e.ClosedBy, e.Waiting = s.state.Phase, s.state.ClosedBy, s.waiting(members)
	e.Provisional = e.Phase == PhaseCollecting || e.Phase == PhasePrepare
	if e.Phase == PhaseCollecting {
		e.Moderator = s.round.Moderator(withPosition(members))
	} else {
		e.Path, e.Why = s.state.Path, s.state.Why
	}
	return e, nil
}

// Explain takes a round's semantics apart, as its arguments stand.
func Explain(r *Round, args []*Argument) (*Explanation, error) {
	result, err := Compute(r, args)
	if err != nil {
		return nil, err
	}
	g, err := grade(r, args, result)
	if err != nil {
		return nil, err
	}
	e := &Explanation{Round: r.ID, Method: g.Method, Status: g.Status, Arguments: []ArgumentExplained{}, Ranking: []Strength{}, Waiting: []string{},
		Winner: g.Winner, Second: g.Second, GapNano: g.GapNano, TauNano: g.TauNano, Reason: Why(g.Reason), Why: Why(g.Reason), Path: Path(g.Path)}
	if r.Rule == Supermajority {
		e.Path, e.Why = PathConflict, WhySupermajority
	}
	byID := map[string]*Argument{}
	for _, a := range args {
		byID[a.ID] = a
		e.Arguments = append(e.Arguments, explainArgument(a, result))
	}
	for i := range e.Arguments {
		flagCrossRefs(&e.Arguments[i], byID)
	}
	for _, id := range g.Ranking {
		strength, _ := result.Of(id)
		e.Ranking = append(e.Ranking, Strength{Position: id, Author: byID[id].Author, SigmaNano: strength.Nano})
	}
	e.Flip, e.PathFlip, err = flips(r, result, g)
	return e, err
}

func explainArgument(a *Argument, result *semantics.Result) ArgumentExplained {
	x, _ := result.Explain(a.ID)
	out := ArgumentExplained{ID: a.ID, Kind: a.Kind, Author: a.Author, WeightNano: semantics.Nano(x.Weight), RhoNano: semantics.Nano(x.Rho),
		BaseNano: x.Nano, SigmaNano: x.Strength.Nano, Status: x.Status.String(), Negative: x.Negative, Shares: []EdgeShare{}}
	for _, sh := range x.Shares {
		out.Shares = append(out.Shares, EdgeShare{From: sh.From, Relation: Relation(sh.Relation), ShareNano: sh.Nano})
	}
	return out
}

// flagCrossRefs marks the edges that deliberatic.relate added.
func flagCrossRefs(x *ArgumentExplained, byID map[string]*Argument) {
	for i, sh := range x.Shares {
		for _, ref := range byID[sh.From].Refs {
			if ref.To == x.ID && ref.Relation == sh.Relation {
				x.Shares[i].CrossReference = true
			}
		}
	}
}

// maxRivals bounds how many rivals of the winner are tried.
const maxRivals = 8

// flips finds the smallest change of one argument's weight, within [0, 1],
// that makes another position win, and the one that leads to the other path.
// Strengths are linear in the weights under the fixed-point method where it is
// stable: there it is solved for. Elsewhere it is searched for, see
// [semantics.Result.SmallestTurn].
func flips(r *Round, result *semantics.Result, g *Graded) (winner, path *Flip, err error) {
	if g.Second == "" {
		return nil, nil, nil
	}
	if r.Method != string(semantics.FixedPoint) || !result.Status.Stable() {
		return searchFlips(r, result, g)
	}
	influence, err := result.Influence()
	if err != nil {
		return nil, nil, err
	}
	top, _ := result.Of(g.Winner)
	for i, rival := range g.Ranking[1:] {
		if i == maxRivals {
			break
		}
		other, _ := result.Of(rival)
		slopes, err := influence.On(g.Winner, rival)
		if err != nil {
			return nil, nil, err
		}
		gap := top.Sigma - other.Sigma
		if f := smallest(result, slopes, -gap); f != nil && (winner == nil || abs(f.ChangeNano) < abs(winner.ChangeNano)) {
			f.Then = rival
			winner = f
		}
		if i == 0 {
			tau := float64(r.TauNano) / nanoPerUnit
			if path = smallest(result, slopes, tau-gap); path != nil {
				path.Then = string(PathConflict)
				if gap <= tau {
					path.Then = string(PathFast)
				}
			}
		}
	}
	return winner, path, nil
}

// searchFlips is flips where strengths are not linear in the weights.
func searchFlips(r *Round, result *semantics.Result, g *Graded) (winner, path *Flip, err error) {
	var positions []semantics.Position
	for _, id := range g.Ranking {
		positions = append(positions, semantics.Position{ID: id})
	}
	turn, err := result.SmallestWinnerTurn(positions, r.TauNano)
	if err != nil {
		return nil, nil, err
	}
	if winner = flipOf(turn.Change); winner != nil {
		winner.Then = turn.Change.After.Winner
	}
	if turn, err = result.SmallestPathTurn(positions, r.TauNano); err != nil {
		return nil, nil, err
	}
	if path = flipOf(turn.Change); path != nil {
		path.Then = string(turn.Change.After.Path)
	}
	return winner, path, nil
}

func flipOf(c *semantics.Change) *Flip {
	if c == nil {
		return nil
	}
	return &Flip{Argument: c.Argument, FromNano: c.FromNano, ToNano: c.ToNano, ChangeNano: c.ToNano - c.FromNano}
}

// smallest is the smallest change of one weight that moves the gap by need; nil when none can.
func smallest(result *semantics.Result, slopes []float64, need float64) *Flip {
	var best *Flip
	for i, a := range result.Arguments {
		slope := float64(slopes[i] * a.Rho)
		if math.Abs(slope) < 1e-9 {
			continue
		}
		change := need / slope
		to := a.Weight + change
		if to < 0 || to > 1 {
			continue
		}
		f := &Flip{Argument: a.ID, FromNano: semantics.Nano(a.Weight), ToNano: semantics.Nano(to), ChangeNano: semantics.Nano(change)}
		if best == nil || abs(f.ChangeNano) < abs(best.ChangeNano) {
			best = f
		}
	}
	return best
}

func abs(n int64) int64 {
	if n < 0 {
		return -n
	}
	return n
}
