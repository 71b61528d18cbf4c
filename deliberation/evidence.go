package deliberation

import (
	"math"
	"regexp"
	"time"

	"github.com/deliberd/deliberd/machine"
)

// Evidence is one typed item (§2.3).
type Evidence struct {
	Type       string  `json:"type"`       // one of EvidenceTypes
	Value      float64 `json:"value"`      // normalized to [0, 1]
	Confidence float64 `json:"confidence"` // width of the confidence interval, [0, 1]: larger means weaker
	SampleSize *int64  `json:"sample_size,omitempty"`
	Source     string  `json:"source,omitempty"` // provenance URI, at most 512 bytes
	Timestamp  string  `json:"timestamp"`        // RFC 3339
}

// EvidenceTypes are the types of §2.3.
var EvidenceTypes = []string{"performance", "resource", "schema", "latency", "historical", "external"}

// EvidenceItem is an item as a body holds it: pointers tell absent from zero.
type EvidenceItem struct {
	Type       string   `json:"type"`
	Value      *float64 `json:"value"`
	Confidence *float64 `json:"confidence"`
	SampleSize *int64   `json:"sample_size,omitempty"`
	Source     string   `json:"source,omitempty"`
	Timestamp  string   `json:"timestamp"`
}

var rfc3339 = regexp.MustCompile(`^\d{4}-\d{2}-\d{2}T\d{2}:\d{2}:\d{2}(\.\d{1,9})?(Z|[+-]\d{2}:\d{2})$`)

func isUnit(x float64) bool { return !math.IsNaN(x) && x >= 0 && x <= 1 }

// check judges one item; i is its place, for the error.
func (e EvidenceItem) check(i int) (Evidence, error) {
	known := false
	for _, t := range EvidenceTypes {
		known = known || t == e.Type
	}
	if !known {
		return Evidence{}, machine.Refuse(machine.CodeMalformed, "use performance, resource, schema, latency, historical or external",
			"evidence %d has the unknown type %q", i, e.Type)
	}
	if e.Value == nil || !isUnit(*e.Value) {
		return Evidence{}, machine.Refuse(machine.CodeOutOfRange, "normalize the value to [0, 1]", "evidence %d has no value in [0, 1]", i)
	}
	if e.Confidence == nil || !isUnit(*e.Confidence) {
		return Evidence{}, machine.Refuse(machine.CodeOutOfRange, "give the width of the confidence interval, 0 for certain, 1 for unknown",
			"evidence %d has no interval width (confidence) in [0, 1]", i)
	}
	if e.SampleSize != nil && *e.SampleSize < 1 {
		return Evidence{}, machine.Refuse(machine.CodeOutOfRange, "leave sample_size out when it is unknown", "evidence %d has a sample size below 1", i)
	}
	if len(e.Source) > MaxSource {
		return Evidence{}, machine.Refuse(machine.CodeOutOfRange, "shorten the URI", "evidence %d has a source longer than %d bytes", i, MaxSource)
	}
	if _, err := time.Parse(time.RFC3339Nano, e.Timestamp); err != nil || !rfc3339.MatchString(e.Timestamp) {
		return Evidence{}, machine.Refuse(machine.CodeMalformed, "write it like 2026-01-15T00:00:00Z", "evidence %d has no RFC 3339 timestamp", i)
	}
	return Evidence{Type: e.Type, Value: *e.Value, Confidence: *e.Confidence, SampleSize: e.SampleSize, Source: e.Source, Timestamp: e.Timestamp}, nil
}

func checkEvidence(items []EvidenceItem) ([]Evidence, error) {
	if len(items) > MaxEvidence {
		return nil, tooMany("items of evidence in one argument", MaxEvidence)
	}
	var out []Evidence
	for i, item := range items {
		e, err := item.check(i)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	return out, nil
}

func evidenceBytes(items []Evidence) int {
	n := 0
	for _, e := range items {
		n += 160 + len(e.Source)
	}
	return n
}

// EvidenceBody adds evidence to an argument of one's own.
type EvidenceBody struct {
	Round    string         `json:"round"`
	Argument string         `json:"argument"`
	Evidence []EvidenceItem `json:"evidence"`
	Final    bool           `json:"final,omitempty"`
}

func (b *EvidenceBody) shape() error {
	if err := names(b.Round, b.Argument); err != nil {
		return err
	}
	if len(b.Evidence) == 0 {
		return malformed("list at least one item", "no evidence given")
	}
	_, err := checkEvidence(b.Evidence)
	return err
}

// addEvidence takes evidence while collecting and in the conflict path's
// window; later the round is frozen.
func (s *step) addEvidence(a *action) (any, error) {
	var body EvidenceBody
	if err := a.decode(&body); err != nil {
		return nil, err
	}
	if err := s.enter(a, body.Round, PhaseCollecting, PhasePrepare); err != nil {
		return nil, err
	}
	items, err := checkEvidence(body.Evidence)
	if err != nil {
		return nil, err
	}
	arg, err := s.ownArgument(a, body.Argument)
	if err != nil {
		return nil, err
	}
	if len(arg.Evidence)+len(items) > MaxEvidence {
		return nil, tooMany("items of evidence in one argument", MaxEvidence)
	}
	if err := s.afford(a.actor, evidenceBytes(items)); err != nil {
		return nil, err
	}
	arg.Evidence = append(arg.Evidence, items...)
	s.state.Evidence += len(items)
	if err := s.saveArgument(arg); err != nil {
		return nil, err
	}
	if s.state.Phase == PhasePrepare {
		if err := s.evaluate(); err != nil {
			return nil, err
		}
	}
	s.emit("deliberatic.evidence_added", EvidenceAdded{Round: s.round.ID, Argument: arg.ID, Agent: a.actor, Items: len(items), Outcome: s.brief()})
	if err := s.acted(a.actor, body.Final); err != nil {
		return nil, err
	}
	return s.answer(arg.ID)
}

// afford counts evidence against its author's shares. In the conflict path's
// window every addition recomputes semantics (§3.1), which takes time inside
// Apply: their number is bounded too.
func (s *step) afford(actor string, bytes int) error {
	m, err := s.member(s.round.ID, actor)
	if err != nil {
		return err
	}
	if err := s.grow(m, bytes); err != nil {
		return err
	}
	if s.state.Phase == PhasePrepare {
		if share := s.round.Share(MaxLateEvidence); m.Late >= share {
			return tooMany("evidence actions of one participant in the conflict path's window", share)
		}
		m.Late++
	}
	return s.saveMember(m)
}

// EvidenceAdded is the data of deliberatic.evidence_added. Outcome is what
// semantics makes of it in the conflict path's window; absent while collecting.
type EvidenceAdded struct {
	Round    string        `json:"round"`
	Argument string        `json:"argument"`
	Agent    string        `json:"agent"`
	Items    int           `json:"items"`
	Outcome  *OutcomeBrief `json:"outcome,omitempty"`
}
