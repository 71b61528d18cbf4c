package deliberation

import (
	"encoding/json"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/reputation"
)

// Queries implements machine.Machine.
func (m *Machine) Queries() []machine.Query {
	return []machine.Query{
		query("get", "A round with its arguments, and its verdict once it has one", getRound),
		query("list", "Rounds, oldest first", listRounds),
		query("explain", "Why the round stands as it does: weights, shares, path, what would flip it", explainRound),
		query("export", "The evidence chain of an ended round, as an export anybody can verify", exportEvidence),
		query("reputation", "An agent's rating and calibration, globally or in a domain", getReputation),
	}
}

// query makes a query of typed parameters.
func query[P any, S interface {
	*P
	shaped
}](verb, summary string, run func(*step, string, P) (any, error)) machine.Query {
	return machine.Query{Name: Name + "." + verb, Schema: schema("query." + verb), Summary: summary,
		Run: func(tx machine.Tx, ctx machine.Ctx, principal string, params json.RawMessage) (any, error) {
			var p P
			if len(params) > 0 {
				if err := canon.Check(params); err != nil {
					return nil, malformed("send JSON", "the parameters are no JSON")
				}
				if err := decode(params, S(&p)); err != nil {
					return nil, err
				}
			}
			return run(&step{book: book{tx}, ctx: ctx}, principal, p)
		}}
}

// RoundParams names a round.
type RoundParams struct {
	Round string `json:"round"`
}

func (p *RoundParams) shape() error { return names(p.Round) }

// View is a round as readers see it.
type View struct {
	Round     *Round           `json:"round"`
	State     *State           `json:"state"`
	Moderator string           `json:"moderator,omitempty"` // while collecting
	Waiting   []string         `json:"waiting"`             // participants from whom the phase still awaits something
	Members   []*Member        `json:"members"`             // participants that have acted
	Arguments []ArgumentRecord `json:"arguments"`           // ascending by id
	Verdict   *Verdict         `json:"verdict"`             // null while the round goes on
}

func getRound(s *step, _ string, p RoundParams) (any, error) {
	if err := s.open(p.Round); err != nil {
		return nil, err
	}
	v := &View{Round: s.round, State: s.state, Members: []*Member{}, Arguments: []ArgumentRecord{}}
	args, err := s.arguments()
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		c, err := s.content(p.Round, a.ID)
		if err != nil {
			return nil, err
		}
		v.Arguments = append(v.Arguments, ArgumentRecord{*a, *c})
	}
	members, err := s.members()
	if err != nil {
		return nil, err
	}
	v.Members = append(v.Members, members...)
	v.Waiting = s.waiting(members)
	if s.state.Phase == PhaseCollecting {
		v.Moderator = s.round.Moderator(withPosition(members))
	}
	v.Verdict, err = s.verdict(p.Round)
	return v, err
}

// waiting lists the participants from whom the phase still awaits something.
func (s *step) waiting(members []*Member) []string {
	byAgent := map[string]*Member{}
	for _, m := range members {
		byAgent[m.Agent] = m
	}
	out := []string{}
	for _, id := range s.round.IDs() {
		m := byAgent[id]
		if m == nil {
			m = &Member{}
		}
		switch s.state.Phase {
		case PhaseCollecting, PhasePrepare:
			if m.Final != s.state.Phase {
				out = append(out, id)
			}
		case PhaseFast, PhaseCertified:
			if !s.speaksTo(m.Vote) {
				out = append(out, id)
			}
		}
	}
	return out
}

// ListParams chooses rounds.
type ListParams struct {
	Phase  Phase  `json:"phase,omitempty"`
	Domain string `json:"domain,omitempty"`
	After  string `json:"after,omitempty"` // continue after this round
	Limit  int    `json:"limit,omitempty"` // default 100, at most 1000
}

func (p *ListParams) shape() error {
	if p.Limit < 0 || p.Limit > 1000 {
		return outOfRange("100 is the default", "limit is not in [1, 1000]")
	}
	if p.After != "" {
		return names(p.After)
	}
	return nil
}

// Listed is one round of a list.
type Listed struct {
	Round     string `json:"round"`
	Title     string `json:"title"`
	Domain    string `json:"domain,omitempty"`
	Phase     Phase  `json:"phase"`
	OpenedAt  Stamp  `json:"opened_ms"`
	Deadline  Stamp  `json:"deadline_ms,omitempty"`
	Positions int    `json:"positions"`
	Winner    string `json:"winner,omitempty"`
	Path      Path   `json:"path,omitempty"`
}

// List is a page of rounds; Next continues it, empty at the end.
type List struct {
	Rounds []Listed `json:"rounds"`
	Next   string   `json:"next,omitempty"`
}

func listRounds(s *step, _ string, p ListParams) (any, error) {
	if p.Limit == 0 {
		p.Limit = 100
	}
	out := List{Rounds: []Listed{}}
	err := machine.EachRecord(s.Tx, key('d'), p.After, func(_ string, r *Round) (bool, error) {
		if len(out.Rounds) == p.Limit {
			out.Next = out.Rounds[p.Limit-1].Round
			return false, nil
		}
		l, err := s.listed(r)
		if err == nil && (p.Phase == "" || p.Phase == l.Phase) && (p.Domain == "" || p.Domain == l.Domain) {
			out.Rounds = append(out.Rounds, l)
		}
		return true, err
	})
	return out, err
}

func (s *step) listed(r *Round) (Listed, error) {
	var st State
	if _, err := s.load(key('s', r.ID), &st); err != nil {
		return Listed{}, err
	}
	l := Listed{Round: r.ID, Title: r.Title, Domain: r.Domain, Phase: st.Phase, OpenedAt: r.OpenedAt, Deadline: st.Deadline, Positions: st.Positions}
	v, err := s.verdict(r.ID)
	if v != nil {
		l.Winner, l.Path = v.Winner, v.Path
	}
	return l, err
}

func exportEvidence(s *step, _ string, p RoundParams) (any, error) {
	if err := s.open(p.Round); err != nil {
		return nil, err
	}
	chain, _, err := s.sealed()
	if err != nil {
		return nil, err
	}
	if chain == nil {
		return nil, machine.Refuse(CodeNotEnded, "wait for the verdict", "round %s has no evidence chain yet", p.Round).With("phase", s.state.Phase)
	}
	return json.RawMessage(chain.Encode()), nil
}

// ReputationParams names an agent and perhaps a domain.
type ReputationParams struct {
	Agent  string `json:"agent"`
	Domain string `json:"domain,omitempty"`
}

func (p *ReputationParams) shape() error { return names(p.Agent) }

// Reputation is an agent's record as readers see it.
type Reputation struct {
	Agent       string             `json:"agent"`
	Domain      string             `json:"domain,omitempty"`
	Known       bool               `json:"known"`        // false: the start, or in a domain the global prior
	RatingMicro int64              `json:"rating_micro"` // ELO, 1e-6 points
	Rating      float64            `json:"rating"`       // the same in points
	Rounds      int                `json:"rounds"`
	Rho         float64            `json:"rho"` // factor in [0.5, 2]
	Calibration reputation.Metrics `json:"calibration"`
	Updated     Stamp              `json:"updated_ms,omitempty"`
}

func getReputation(s *step, _ string, p ReputationParams) (any, error) {
	if _, ok, err := s.ctx.World.Principal(p.Agent); err != nil {
		return nil, err
	} else if !ok {
		return nil, machine.Refuse(machine.CodeNotFound, "list principals with registry.list", "%q is not registered", p.Agent)
	}
	r, known, err := s.rating(p.Agent, p.Domain)
	if err != nil {
		return nil, err
	}
	part, err := s.entrant(p.Domain, machine.Principal{ID: p.Agent})
	if err != nil {
		return nil, err
	}
	return Reputation{Agent: p.Agent, Domain: p.Domain, Known: known, RatingMicro: int64(r.Standing.Rating), Rating: r.Standing.Rating.Points(),
		Rounds: r.Standing.Rounds, Rho: part.Rho, Calibration: r.Calibration.Metrics(), Updated: r.Updated}, nil
}
