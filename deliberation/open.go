package deliberation

import (
	"encoding/hex"
	"encoding/json"
	"math"
	"regexp"
	"slices"
	"sort"
	"strings"
	"unicode/utf8"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/semantics"
)

// OpenBody opens a round (§3.2). Only Title is required, and Participants
// where there is no Domain.
type OpenBody struct {
	Title        string            `json:"title"`
	Question     string            `json:"question,omitempty"`
	Domain       string            `json:"domain,omitempty"`       // "hydraulics", "risk.credit"
	Task         json.RawMessage   `json:"task,omitempty"`         // metadata, an object
	Options      []json.RawMessage `json:"options,omitempty"`      // the only answers allowed
	Participants []string          `json:"participants,omitempty"` // default: who holds a grant in the domain
	Reviewers    []string          `json:"reviewers,omitempty"`    // humans for on_rejected "human"; default: the domain's
	Rule         Rule              `json:"rule,omitempty"`         // default majority
	Minimum      *int              `json:"minimum,omitempty"`      // quorum.minimum, default 3
	Tau          *float64          `json:"tau,omitempty"`          // default 0.15; or
	TauNano      *int64            `json:"tau_nano,omitempty"`     // the same in 1e-9
	GammaPlus    *float64          `json:"gamma_plus,omitempty"`   // default 0.6
	GammaMinus   *float64          `json:"gamma_minus,omitempty"`  // default 0.8
	Method       string            `json:"method,omitempty"`
	WeightMethod string            `json:"weight_method,omitempty"`
	EmptyWeight  *float64          `json:"empty_weight,omitempty"` // weight without evidence, default 0
	Windows      *WindowsBody      `json:"windows,omitempty"`
	OnRejected   string            `json:"on_rejected,omitempty"` // no_verdict (default) or human
}

// WindowsBody are windows as they come; absent ones have their defaults.
type WindowsBody struct {
	Collect  *int64 `json:"collect_ms,omitempty"`
	Confirm  *int64 `json:"confirm_ms,omitempty"`
	Evidence *int64 `json:"evidence_ms,omitempty"`
	Review   *int64 `json:"review_ms,omitempty"`
}

func (b *OpenBody) shape() error {
	if _, err := b.round(); err != nil {
		return err
	}
	if b.Domain == "" && b.Participants == nil {
		return malformed("name participants or a domain", "a round without a domain must name its participants")
	}
	if b.Reviewers != nil && b.OnRejected != EndHuman {
		return malformed("set on_rejected to human", "reviewers are named and nothing is escalated to them")
	}
	for _, ids := range [][]string{b.Participants, b.Reviewers} {
		if len(ids) > MaxParticipants {
			return tooMany("participants or reviewers of one round", MaxParticipants)
		}
		if err := distinct(ids); err != nil {
			return err
		}
	}
	return nil
}

// distinct refuses an id that is missing or named twice.
func distinct(ids []string) error {
	sorted := slices.Sorted(slices.Values(ids))
	for i, id := range sorted {
		if i > 0 && sorted[i-1] == id {
			return malformed("name everybody once", "%q is named twice", id)
		}
	}
	return names(ids...)
}

// Opened is the data of deliberatic.opened.
type Opened struct {
	Round        string   `json:"round"`
	Title        string   `json:"title"`
	Domain       string   `json:"domain,omitempty"`
	Opener       string   `json:"opener"`
	Participants []string `json:"participants"`
	Rule         Rule     `json:"rule"`
	Deadline     Stamp    `json:"deadline_ms"`
}

// openRound freezes the electorate with its ratings and starts collecting.
func (s *step) openRound(a *action) (any, error) {
	var body OpenBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	r, err := body.round()
	if err != nil {
		return nil, err
	}
	r.ID, r.Opener, r.OpenedAt = a.id, a.actor, s.now()
	if there, err := s.Get(key('d', r.ID)); err != nil || there != nil {
		if err != nil {
			return nil, err
		}
		return nil, machine.Refuse(machine.CodeAlreadyExists, "make a new id", "round %s is there already", r.ID)
	}
	if err := s.mayOpen(r); err != nil {
		return nil, err
	}
	if err := s.electorate(r, body.Participants); err != nil {
		return nil, err
	}
	if err := s.reviewers(r, body.Reviewers); err != nil {
		return nil, err
	}
	s.round, s.state = r, &State{Bytes: len(r.Question) + len(r.Task)}
	s.move(PhaseCollecting, r.Windows.Collect)
	if err := s.save(key('d', r.ID), r); err != nil {
		return nil, err
	}
	for _, p := range r.Participants {
		if err := s.Put(key('o', p.ID, "\x00", r.ID), []byte{1}); err != nil {
			return nil, err
		}
	}
	s.emit("deliberatic.opened", Opened{Round: r.ID, Title: r.Title, Domain: r.Domain, Opener: r.Opener, Participants: r.IDs(), Rule: r.Rule, Deadline: s.state.Deadline})
	return s.answer("")
}

// round checks the body and fills in the defaults.
func (b *OpenBody) round() (*Round, error) {
	r := &Round{Title: b.Title, Question: b.Question, Domain: b.Domain, Task: b.Task, Options: b.Options,
		Rule: b.Rule, Method: b.Method, WeightMethod: b.WeightMethod, OnRejected: b.OnRejected}
	if n := utf8.RuneCountInString(b.Title); n < 1 || n > MaxTitle || strings.TrimSpace(b.Title) == "" {
		return nil, malformed("say in one line what is to be decided", "title is empty or longer than %d characters", MaxTitle)
	}
	if len(b.Question) > MaxText {
		return nil, tooLarge("question", MaxText)
	}
	if b.Domain != "" && (len(b.Domain) > 128 || !domainName.MatchString(b.Domain)) {
		return nil, malformed("write it like risk.credit", "domain %q is no label", b.Domain)
	}
	if err := object(b.Task, "task"); err != nil {
		return nil, err
	}
	for _, check := range []func(*OpenBody) error{r.options, r.rules, r.numbers, r.windows} {
		if err := check(b); err != nil {
			return nil, err
		}
	}
	return r, nil
}

// object refuses a value that is present and no JSON object, or too long.
func object(raw json.RawMessage, name string) error {
	switch {
	case len(raw) == 0:
		return nil
	case raw[0] != '{':
		return malformed("give an object of names and values", "%s is no JSON object", name)
	case len(raw) > MaxValue:
		return tooLarge(name, MaxValue)
	}
	return nil
}

func (r *Round) options(b *OpenBody) error {
	if b.Options != nil && (len(b.Options) < 2 || len(b.Options) > MaxOptions) {
		return outOfRange("leave options out to allow any answer", "a round lists 2 to %d options", MaxOptions)
	}
	seen, size := map[string]bool{}, 0
	for i, o := range b.Options {
		if size += len(o); size > MaxText {
			return tooLarge("options together", MaxText)
		}
		hash, err := AnswerHash(o)
		if err != nil {
			return err
		}
		if seen[hash] {
			return malformed("list each answer once", "option %d is there twice", i)
		}
		seen[hash] = true
	}
	return nil
}

func (r *Round) rules(b *OpenBody) error {
	if r.Rule == "" {
		r.Rule = Majority
	}
	if r.OnRejected == "" {
		r.OnRejected = EndNoVerdict
	}
	r.Minimum = DefaultMinimum
	if b.Minimum != nil {
		r.Minimum = *b.Minimum
	}
	switch {
	case r.Rule != Majority && r.Rule != Supermajority:
		return malformed("use majority or supermajority", "rule %q is unknown", r.Rule)
	case r.OnRejected != EndNoVerdict && r.OnRejected != EndHuman:
		return malformed("use no_verdict or human", "on_rejected %q is unknown", r.OnRejected)
	case r.Minimum < 1 || r.Minimum > MaxParticipants:
		return outOfRange("3 is the default", "minimum is not in [1, %d]", MaxParticipants)
	}
	return checkMethods(r)
}

func (r *Round) numbers(b *OpenBody) error {
	r.TauNano = DefaultTau
	switch {
	case b.Tau != nil && b.TauNano != nil:
		return malformed("give tau or tau_nano", "tau is given twice")
	case b.Tau != nil:
		if math.IsNaN(*b.Tau) || *b.Tau < 0 || *b.Tau > float64(MaxTau/nanoPerUnit) {
			return outOfRange("0.15 is the default", "tau is not in [0, %d]", MaxTau/nanoPerUnit)
		}
		r.TauNano = semantics.Nano(*b.Tau)
	case b.TauNano != nil:
		if r.TauNano = *b.TauNano; r.TauNano < 0 || r.TauNano > MaxTau {
			return outOfRange("150000000 is the default", "tau_nano is not in [0, %d]", int64(MaxTau))
		}
	}
	r.GammaPlus, r.GammaMinus, r.EmptyWeight = semantics.DefaultGammaPlus, semantics.DefaultGammaMinus, 0
	for _, f := range []struct {
		name string
		from *float64
		to   *float64
		open bool // the bounds themselves are excluded
	}{{"gamma_plus", b.GammaPlus, &r.GammaPlus, true}, {"gamma_minus", b.GammaMinus, &r.GammaMinus, true}, {"empty_weight", b.EmptyWeight, &r.EmptyWeight, false}} {
		if f.from == nil {
			continue
		}
		if !isUnit(*f.from) || f.open && (*f.from == 0 || *f.from == 1) {
			return outOfRange("leave it out for the default", "%s is outside 0 to 1", f.name)
		}
		*f.to = *f.from
	}
	return nil
}

func (r *Round) windows(b *OpenBody) error {
	r.Windows = Windows{Collect: DefaultWindow, Confirm: DefaultWindow, Evidence: DefaultWindow, Review: DefaultReview}
	if b.Windows == nil {
		return nil
	}
	for _, w := range []struct {
		name string
		from *int64
		to   *int64
	}{{"collect_ms", b.Windows.Collect, &r.Windows.Collect}, {"confirm_ms", b.Windows.Confirm, &r.Windows.Confirm},
		{"evidence_ms", b.Windows.Evidence, &r.Windows.Evidence}, {"review_ms", b.Windows.Review, &r.Windows.Review}} {
		if w.from == nil {
			continue
		}
		if *w.from < 1 || *w.from > MaxWindow {
			return outOfRange("30000 is the default", "%s is not in [1, %d] milliseconds", w.name, int64(MaxWindow))
		}
		*w.to = *w.from
	}
	return nil
}

// mayOpen wants a registered opener with a grant in the domain, or an operator.
func (s *step) mayOpen(r *Round) error {
	p, err := s.active(r.Opener)
	if err != nil || p.Kind == machine.Operator {
		return err
	}
	if p.Kind == machine.Node {
		return machine.Refuse(machine.CodeNotAuthorized, "agents, humans and operators open rounds", "%s is a node", p.ID)
	}
	if r.Domain == "" {
		return nil
	}
	return s.granted(p.ID, r.Domain)
}

func (s *step) active(id string) (machine.Principal, error) {
	p, ok, err := s.ctx.World.Principal(id)
	switch {
	case err != nil:
		return p, err
	case !ok:
		return p, machine.Refuse(machine.CodeUnknownActor, "register it first", "%q is not registered", id).With("principal", id)
	case !p.Active:
		return p, machine.Refuse(machine.CodeRevoked, "name somebody else", "%s has been revoked", id).With("principal", id)
	}
	return p, nil
}

func (s *step) granted(id, domain string) error {
	_, ok, err := s.ctx.World.Grant(id, domain)
	if err == nil && !ok {
		return machine.Refuse(machine.CodeNoGrant, "ask an operator for a grant that covers the domain", "%s holds no grant in %s", id, domain).With("principal", id)
	}
	return err
}

// electorate freezes who takes part, with the ratings before the round.
func (s *step) electorate(r *Round, named []string) error {
	ids, err := s.candidates(r, named)
	if err != nil {
		return err
	}
	if len(ids) > MaxParticipants {
		return tooMany("participants in one round", MaxParticipants)
	}
	if len(ids) < r.Minimum {
		return machine.Refuse(CodeQuorumTooSmall, "name more participants, grant the domain to more agents, or lower minimum",
			"%d participants, quorum.minimum is %d", len(ids), r.Minimum).With("participants", len(ids)).With("minimum", r.Minimum)
	}
	for _, id := range ids {
		p, err := s.active(id)
		if err != nil {
			return err
		}
		part, err := s.entrant(r.Domain, p)
		if err != nil {
			return err
		}
		r.Participants = append(r.Participants, part)
	}
	return nil
}

// candidates are the ids named, or the domain's agents and humans; ascending.
func (s *step) candidates(r *Round, named []string) ([]string, error) {
	if named == nil {
		holders, err := s.ctx.World.Holders(r.Domain)
		if err != nil {
			return nil, err
		}
		return s.voices(holders)
	}
	ids := slices.Sorted(slices.Values(named))
	for _, id := range ids {
		p, err := s.active(id)
		if err != nil {
			return nil, err
		}
		if p.Kind != machine.Agent && p.Kind != machine.Human {
			return nil, machine.Refuse(machine.CodeNotAuthorized, "name agents and humans", "%s is a %s", id, p.Kind).With("principal", id)
		}
		if r.Domain != "" {
			if err := s.granted(id, r.Domain); err != nil {
				return nil, err
			}
		}
	}
	return ids, nil
}

// voices keeps the active agents and humans.
func (s *step) voices(ids []string) ([]string, error) {
	var out []string
	for _, id := range ids {
		p, ok, err := s.ctx.World.Principal(id)
		if err != nil {
			return nil, err
		}
		if ok && p.Active && (p.Kind == machine.Agent || p.Kind == machine.Human) {
			out = append(out, id)
		}
	}
	return out, nil
}

// reviewers freezes the humans who may be asked; operators always may review.
func (s *step) reviewers(r *Round, named []string) error {
	if r.OnRejected != EndHuman {
		return nil
	}
	ids := append([]string(nil), named...)
	if named == nil && r.Domain != "" {
		holders, err := s.ctx.World.Holders(r.Domain)
		if err != nil {
			return err
		}
		for _, id := range holders {
			if p, ok, err := s.ctx.World.Principal(id); err != nil {
				return err
			} else if ok && p.Active && p.Kind == machine.Human {
				ids = append(ids, id)
			}
		}
	}
	sort.Strings(ids)
	for _, id := range ids {
		p, err := s.active(id)
		if err != nil {
			return err
		}
		if p.Kind != machine.Human {
			return machine.Refuse(machine.CodeNotAuthorized, "name humans", "reviewer %s is a %s", id, p.Kind).With("principal", id)
		}
	}
	r.Reviewers = ids
	return nil
}

var domainName = regexp.MustCompile(`^[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*$`)

// AnswerHash is the hex SHA-256 of an answer's canonical JSON: equal answers
// have equal hashes.
func AnswerHash(answer json.RawMessage) (string, error) {
	if len(answer) == 0 {
		return "", malformed("state an answer", "no answer given")
	}
	if len(answer) > MaxValue {
		return "", tooLarge("answer", MaxValue)
	}
	text, err := canon.Canonicalize(answer)
	if err != nil {
		return "", malformed("send canonical JSON", "the answer is no JSON value")
	}
	sum := canon.Hash(text)
	return hex.EncodeToString(sum[:]), nil
}
