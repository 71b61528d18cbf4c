package deliberation

import (
	"encoding/json"
	"math"
	"slices"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/reputation"
)

// Rating is an agent's record in one domain, or globally (§6).
type Rating struct {
	Standing    reputation.Standing    `json:"standing"`
	Calibration reputation.Calibration `json:"calibration"`
	Updated     Stamp                  `json:"updated_ms"`
}

func ratingKey(agent, domain string) []byte {
	if domain == "" {
		return key('r', agent)
	}
	return key('r', agent, "\x00", domain)
}

// rating reads a record; known is false for an agent without one, who stands
// at the start globally and at his global rating in an unseen domain (§6.3).
func (b book) rating(agent, domain string) (r *Rating, known bool, err error) {
	r = &Rating{Standing: reputation.NewStanding()}
	if known, err = b.load(ratingKey(agent, domain), r); err != nil || known || domain == "" {
		return r, known, err
	}
	global, _, err := b.rating(agent, "")
	if err != nil {
		return nil, false, err
	}
	r.Standing.Rating = global.Standing.Rating
	return r, false, nil
}

// entrant is a participant with its standing before the round. In a domain
// where it is unknown, ρ is the global ρ₀ (§2.1).
func (s *step) entrant(domain string, p machine.Principal) (Participant, error) {
	global, _, err := s.rating(p.ID, "")
	if err != nil {
		return Participant{}, err
	}
	local, known, err := s.rating(p.ID, domain)
	if err != nil {
		return Participant{}, err
	}
	rho := reputation.Rho(global.Standing.Rating, global.Calibration)
	if known {
		rho = reputation.Rho(local.Standing.Rating, local.Calibration)
	}
	return Participant{ID: p.ID, Kind: p.Kind, DomainMicro: int64(local.Standing.Rating), GlobalMicro: int64(global.Standing.Rating), Rho: rho}, nil
}

// Dissent is a participant who stood against the winner: with another
// position, with a challenge of the winning position, or with a rejection.
type Dissent struct {
	Agent      string   `json:"agent"`
	Position   string   `json:"position,omitempty"`
	Challenges []string `json:"challenges,omitempty"`
	Rejected   bool     `json:"rejected,omitempty"`
	// E before the round, at 1e-9, for the bonus of a dissent that turns out
	// right (§6.1): of a position's author against all other authors, of
	// anybody else against the winner's author. In the round's domain.
	ExpectedNano int64 `json:"expected_nano"`
}

// score is what a verdict makes of one participant.
type score struct {
	agent  string
	s      float64
	domain float64 // E over domain ratings
	global float64 // E over global ratings
}

// judge names the winner's author and the dissents, and scores the participants.
func (s *step) judge(v *Verdict) ([]score, error) {
	if v.Status != PhaseVerdict {
		return nil, nil
	}
	args, err := s.arguments()
	if err != nil {
		return nil, err
	}
	var authors, supporters []string
	challenges := map[string][]string{}
	for _, a := range args {
		switch {
		case a.ID == v.Winner:
			v.Author = a.Author
			authors = append(authors, a.Author)
		case a.Kind == PositionKind:
			authors = append(authors, a.Author)
		}
		if a.relatesTo(v.Winner, Attack) {
			challenges[a.Author] = append(challenges[a.Author], a.ID)
		}
		if a.relatesTo(v.Winner, Support) && !slices.Contains(supporters, a.Author) {
			supporters = append(supporters, a.Author)
		}
	}
	slices.Sort(authors)
	slices.Sort(supporters)
	if err := s.dissents(v, authors, challenges); err != nil {
		return nil, err
	}
	return s.scores(v, authors, supporters), nil
}

// relatesTo reports whether an argument has an edge to another.
func (a *Argument) relatesTo(id string, rel Relation) bool {
	if a.Target == id && a.relation() == rel {
		return true
	}
	for _, ref := range a.Refs {
		if ref.To == id && ref.Relation == rel {
			return true
		}
	}
	return false
}

// scores: the winner's author 1, authors of other positions 0, supporters of
// the winner without a position 0.5 (§6.1). Authors play against all other
// authors, supporters against the authors of the rejected positions; who has
// no opponent is not scored.
func (s *step) scores(v *Verdict, authors, supporters []string) []score {
	var out []score
	add := func(agent string, value float64, opponents []string) {
		if len(opponents) > 0 {
			domain, global := s.expected(agent, opponents)
			out = append(out, score{agent: agent, s: value, domain: domain, global: global})
		}
	}
	rejected := without(authors, v.Author)
	for _, id := range authors {
		value := reputation.ScoreRejected
		if id == v.Author {
			value = reputation.ScoreWon
		}
		add(id, value, without(authors, id))
	}
	for _, id := range supporters {
		if !slices.Contains(authors, id) {
			add(id, reputation.ScoreSupported, rejected)
		}
	}
	return out
}

// expected is E over the ratings before the round.
func (s *step) expected(agent string, opponents []string) (domain, global float64) {
	own, _ := s.round.Participant(agent)
	var d, g []reputation.Rating
	for _, id := range opponents {
		p, _ := s.round.Participant(id)
		d, g = append(d, reputation.Rating(p.DomainMicro)), append(g, reputation.Rating(p.GlobalMicro))
	}
	return reputation.Expected(reputation.Rating(own.DomainMicro), d), reputation.Expected(reputation.Rating(own.GlobalMicro), g)
}

// without is ids but for one, which need not be among them.
func without(ids []string, one string) []string {
	return slices.DeleteFunc(slices.Clone(ids), func(id string) bool { return id == one })
}

// dissents records who stood against the winner, ascending by id.
func (s *step) dissents(v *Verdict, authors []string, challenges map[string][]string) error {
	members, err := s.members()
	if err != nil {
		return err
	}
	for _, m := range members { // ascending by agent
		d := Dissent{Agent: m.Agent, Challenges: challenges[m.Agent], Rejected: s.speaksTo(m.Vote) && !m.Vote.Accept && m.Vote.Winner == v.Winner}
		opponents := []string{v.Author}
		if m.Position != "" && m.Position != v.Winner {
			d.Position, opponents = m.Position, without(authors, m.Agent)
		}
		if m.Agent == v.Author || d.Position == "" && d.Challenges == nil && !d.Rejected {
			continue
		}
		e, _ := s.expected(m.Agent, opponents)
		d.ExpectedNano = int64(math.RoundToEven(float64(e * nanoPerUnit)))
		v.Dissents = append(v.Dissents, d)
	}
	return nil
}

// Rated is the data of deliberatic.rated.
type Rated struct {
	Round   string         `json:"round"`
	Domain  string         `json:"domain,omitempty"`
	Changes []RatingChange `json:"changes"`
}

// RatingChange is one move of one rating, in micro-points.
type RatingChange struct {
	Agent        string `json:"agent"`
	Domain       string `json:"domain,omitempty"` // empty: the global rating
	Before       int64  `json:"before_micro"`
	After        int64  `json:"after_micro"`
	ScoreMilli   int64  `json:"score_milli"` // S: 1000, 500 or 0
	ExpectedNano int64  `json:"expected_nano"`
}

// rate moves the ratings after a verdict: the step comes from the ratings
// before the round and is added to the present ones.
func (s *step) rate(scores []score) error {
	out := Rated{Round: s.round.ID, Domain: s.round.Domain}
	for _, sc := range scores {
		if s.round.Domain != "" {
			if err := s.rateOne(&out, sc.agent, s.round.Domain, sc.s, sc.domain); err != nil {
				return err
			}
		}
		if err := s.rateOne(&out, sc.agent, "", sc.s, sc.global); err != nil {
			return err
		}
	}
	if len(out.Changes) > 0 {
		s.emit("deliberatic.rated", out)
	}
	return nil
}

func (s *step) rateOne(out *Rated, agent, domain string, value, expected float64) error {
	r, _, err := s.rating(agent, domain)
	if err != nil {
		return err
	}
	before := r.Standing.Rating
	if r.Standing.Rating, err = reputation.Update(before, kOf(r, domain), value, expected); err != nil {
		return corrupt(err)
	}
	r.Standing.Rounds++
	r.Updated = s.now()
	out.Changes = append(out.Changes, RatingChange{Agent: agent, Domain: domain, Before: int64(before), After: int64(r.Standing.Rating),
		ScoreMilli: int64(value * 1000), ExpectedNano: int64(math.RoundToEven(float64(expected * nanoPerUnit)))})
	return s.save(ratingKey(agent, domain), r)
}

func kOf(r *Rating, domain string) float64 {
	if domain == "" {
		return reputation.GlobalK
	}
	return reputation.DomainK(r.Standing.Rounds)
}

// OutcomeBody tells what turned out right: the answer, or which dissents.
type OutcomeBody struct {
	Round      string          `json:"round"`
	Answer     json.RawMessage `json:"answer,omitempty"`
	Vindicated []string        `json:"vindicated,omitempty"` // dissenters
}

func (b *OutcomeBody) shape() error {
	if err := names(b.Round); err != nil {
		return err
	}
	if b.Answer == nil && len(b.Vindicated) == 0 {
		return malformed("give answer or vindicated", "the outcome says nothing")
	}
	if len(b.Vindicated) > MaxParticipants {
		return tooMany("dissenters", MaxParticipants)
	}
	if b.Answer != nil {
		if _, err := AnswerHash(b.Answer); err != nil {
			return err
		}
	}
	return distinct(b.Vindicated)
}

// Learned is what has been learned from a round, and the data of
// deliberatic.learned, which lists only what is new.
type Learned struct {
	Round      string          `json:"round"`
	Answer     json.RawMessage `json:"answer,omitempty"`
	By         string          `json:"by"`
	Calibrated []string        `json:"calibrated,omitempty"` // agents whose probability has been scored
	Vindicated []string        `json:"vindicated,omitempty"` // dissenters found right, each once
	At         Stamp           `json:"at_ms"`
}

// learn scores stated probabilities and vindicated dissents (§6.1, §6.2).
func (s *step) learn(a *action) (any, error) {
	var body OutcomeBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.open(body.Round); err != nil {
		return nil, err
	}
	if err := s.mayTeach(a.actor); err != nil {
		return nil, err
	}
	if !s.state.Phase.Ended() {
		return nil, machine.Refuse(CodeNotEnded, "wait for the verdict", "round %s is in phase %s", s.round.ID, s.state.Phase).With("phase", s.state.Phase)
	}
	if s.state.Learned == nil {
		s.state.Learned = &Learned{Round: s.round.ID}
	}
	news := &Learned{Round: s.round.ID, By: a.actor, At: s.now()}
	v, err := s.verdict(s.round.ID)
	if err != nil {
		return nil, err
	}
	right, err := s.vindicated(v, body.Vindicated)
	if err != nil {
		return nil, err
	}
	if body.Answer != nil {
		more, err := s.calibrate(v, body.Answer, news)
		if err != nil {
			return nil, err
		}
		right = append(right, more...)
	}
	if err := s.vindicate(v, right, news); err != nil {
		return nil, err
	}
	all := s.state.Learned
	all.By, all.At = news.By, news.At
	s.emit("deliberatic.learned", news)
	return s.answer("")
}

// mayTeach wants an operator, a reviewer of the round, or a human with a grant in its domain.
func (s *step) mayTeach(actor string) error {
	p, err := s.active(actor)
	if err != nil || p.Kind == machine.Operator || slices.Contains(s.round.Reviewers, actor) {
		return err
	}
	if p.Kind == machine.Human && s.round.Domain != "" {
		return s.granted(actor, s.round.Domain)
	}
	return machine.Refuse(machine.CodeNotAuthorized, "an operator, a reviewer or a human with a grant in the domain tells the outcome", "%s may not teach round %s", actor, s.round.ID)
}

// vindicated checks the dissenters named.
func (s *step) vindicated(v *Verdict, named []string) ([]string, error) {
	var out []string
	for _, id := range named {
		if !slices.ContainsFunc(v.Dissents, func(d Dissent) bool { return d.Agent == id }) {
			return nil, machine.Refuse(CodeNotADissent, "the verdict lists the dissents", "%s did not dissent in round %s", id, s.round.ID).With("agent", id)
		}
		if slices.Contains(s.state.Learned.Vindicated, id) || slices.Contains(out, id) {
			return nil, machine.Refuse(CodeAlreadyLearned, "a dissent is vindicated once", "%s has been vindicated in round %s", id, s.round.ID).With("agent", id)
		}
		out = append(out, id)
	}
	return out, nil
}

// calibrate scores every stated probability against the right answer, and
// returns the dissenters whom it proves right: whose position gave it, or who
// without a position of their own stood against a winner that did not.
func (s *step) calibrate(v *Verdict, answer json.RawMessage, news *Learned) ([]string, error) {
	if s.state.Learned.Answer != nil {
		return nil, machine.Refuse(CodeAlreadyLearned, "the outcome of a round is told once", "the answer of round %s is known", s.round.ID)
	}
	hash, err := AnswerHash(answer)
	if err != nil {
		return nil, err
	}
	args, err := s.arguments()
	if err != nil {
		return nil, err
	}
	correct := map[string]bool{}
	for _, arg := range args {
		correct[arg.ID] = arg.Kind == PositionKind && arg.AnswerHash == hash
		if arg.Probability == nil {
			continue
		}
		for _, domain := range slices.Compact([]string{"", s.round.Domain}) {
			if err := s.record(arg.Author, domain, *arg.Probability, correct[arg.ID]); err != nil {
				return nil, err
			}
		}
		news.Calibrated = append(news.Calibrated, arg.Author)
	}
	slices.Sort(news.Calibrated)
	news.Answer, s.state.Learned.Answer, s.state.Learned.Calibrated = answer, answer, news.Calibrated
	var right []string
	for _, d := range v.Dissents {
		proven := correct[d.Position]
		if d.Position == "" {
			proven = !correct[v.Winner]
		}
		if proven {
			right = append(right, d.Agent)
		}
	}
	return right, nil
}

func (s *step) record(agent, domain string, p float64, correct bool) error {
	r, _, err := s.rating(agent, domain)
	if err != nil {
		return err
	}
	if err := r.Calibration.Record(int64(math.RoundToEven(float64(p*1e6))), correct); err != nil {
		return corrupt(err)
	}
	r.Updated = s.now()
	return s.save(ratingKey(agent, domain), r)
}

// vindicate grants each dissenter the bonus 1.5·K·(1 − E), once per dissent.
func (s *step) vindicate(v *Verdict, agents []string, news *Learned) error {
	for _, d := range v.Dissents {
		if !slices.Contains(agents, d.Agent) || slices.Contains(s.state.Learned.Vindicated, d.Agent) {
			continue
		}
		r, _, err := s.rating(d.Agent, s.round.Domain)
		if err != nil {
			return err
		}
		r.Standing.Rating, err = reputation.Vindicate(r.Standing.Rating, kOf(r, s.round.Domain), float64(d.ExpectedNano)/nanoPerUnit)
		if err != nil {
			return corrupt(err)
		}
		r.Updated = s.now()
		if err := s.save(ratingKey(d.Agent, s.round.Domain), r); err != nil {
			return err
		}
		news.Vindicated = append(news.Vindicated, d.Agent)
		s.state.Learned.Vindicated = append(s.state.Learned.Vindicated, d.Agent)
	}
	slices.Sort(s.state.Learned.Vindicated)
	return nil
}
