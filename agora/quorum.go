package agora

import (
	"bytes"
	"encoding/json"
	"math"
	"math/bits"
	"strconv"
	"strings"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Quorum is how much participation a round needs: a count of votes cast, or
// a fraction of the registered voters. Abstentions participate; weights do
// not matter. The zero value is no quorum.
//
// As JSON it is {"type":"count","value":2}, {"type":"fraction","value":0.5},
// or, exactly, {"type":"fraction","value":"2/3"} or
// {"type":"fraction","value":{"num":2,"den":3}}.
type Quorum struct {
	count    uint64
	fraction float64
	num, den uint64
}

// MaxTerm bounds numerator and denominator of a rational fraction.
const MaxTerm = 1<<53 - 1

// Count is a quorum of n votes. n is 1 or more.
func Count(n uint64) Quorum { return Quorum{count: n} }

// Fraction is a quorum of a fraction in (0, 1] of the registered voters,
// compared by dividing doubles: cast/registered >= value.
func Fraction(value float64) Quorum { return Quorum{fraction: value} }

// Rational is a quorum of num/den of the registered voters, compared exactly.
func Rational(num, den uint64) Quorum { return Quorum{num: num, den: den} }

// Met reports whether cast votes of registered voters are enough.
func (q Quorum) Met(cast, registered uint64) bool {
	switch {
	case q.den != 0: // cast·den >= num·registered, in 128 bits
		hi, lo := bits.Mul64(cast, q.den)
		hi2, lo2 := bits.Mul64(q.num, registered)
		return hi > hi2 || hi == hi2 && lo >= lo2
	case q.count != 0:
		return cast >= q.count
	}
	return registered != 0 && q.fraction > 0 && float64(cast)/float64(registered) >= q.fraction
}

// Needed is the least number of votes that meets the quorum, and false when
// all registered voters together do not.
func (q Quorum) Needed(registered uint64) (uint64, bool) {
	least, above := uint64(0), registered+1
	for least < above { // Met is monotone in cast
		mid := least + (above-least)/2
		if q.Met(mid, registered) {
			above = mid
		} else {
			least = mid + 1
		}
	}
	return least, least <= registered
}

// check refuses a quorum that says nothing or that registered voters cannot reach.
func (q Quorum) check(registered uint64) error {
	if q == (Quorum{}) || q.den == 0 && q.num != 0 || math.IsNaN(q.fraction) {
		return invalid("give a count or a fraction above 0", "no quorum")
	}
	if n, ok := q.Needed(registered); !ok || n == 0 {
		return invalid("give a quorum that the voters can reach", "a quorum of %s with %d voters", q, registered)
	}
	return nil
}

// String is the quorum's value as JSON writes it.
func (q Quorum) String() string {
	switch {
	case q.den != 0:
		return strconv.FormatUint(q.num, 10) + "/" + strconv.FormatUint(q.den, 10)
	case q.count != 0:
		return strconv.FormatUint(q.count, 10)
	}
	return strconv.FormatFloat(q.fraction, 'g', -1, 64)
}

// MarshalJSON writes the wire form; a rational as "num/den".
func (q Quorum) MarshalJSON() ([]byte, error) {
	w := struct {
		Type  string `json:"type"`
		Value any    `json:"value"`
	}{"fraction", q.fraction}
	switch {
	case q.den != 0:
		w.Value = q.String()
	case q.count != 0:
		w.Type, w.Value = "count", q.count
	}
	return json.Marshal(w)
}

// UnmarshalJSON reads every wire form; it errs with invalid_proposal.
func (q *Quorum) UnmarshalJSON(raw []byte) (err error) {
	*q, err = ParseQuorum(raw)
	return err
}

// ParseQuorum reads the wire form. A value that is no positive number, a
// count that is no integer, and a fraction above 1 are refused with
// invalid_proposal.
func ParseQuorum(raw []byte) (Quorum, error) {
	var w struct {
		Type  string          `json:"type"`
		Value json.RawMessage `json:"value"`
	}
	if err := canon.Decode(raw, &w); err != nil || w.Value == nil {
		return Quorum{}, invalid("give a type and a value", "quorum is %.64s", raw)
	}
	refuse := func() (Quorum, error) {
		return Quorum{}, invalid("give a whole count, or a fraction in (0, 1]", "a %.16s quorum of %.64s", w.Type, w.Value)
	}
	switch w.Type {
	case "count":
		n, err := canon.Integer(w.Value)
		if err != nil || n == 0 {
			return refuse()
		}
		return Count(n), nil
	case "fraction":
		q, ok := parseFraction(w.Value)
		if !ok || !q.Met(1, 1) { // above 1, nobody reaches it
			return refuse()
		}
		return q, nil
	}
	return Quorum{}, invalid("say count or fraction", "a quorum of type %.64q", w.Type)
}

func parseFraction(raw json.RawMessage) (Quorum, bool) {
	switch raw = bytes.TrimSpace(raw); raw[0] {
	case '"':
		var text string
		if json.Unmarshal(raw, &text) != nil {
			return Quorum{}, false
		}
		num, den, _ := strings.Cut(text, "/")
		if strings.Trim(num+den, "0123456789") != "" || strings.HasPrefix(num, "0") || strings.HasPrefix(den, "0") {
			return Quorum{}, false
		}
		return rational(json.RawMessage(num), json.RawMessage(den))
	case '{':
		var w struct {
			Num json.RawMessage `json:"num"`
			Den json.RawMessage `json:"den"`
		}
		if canon.Decode(raw, &w) != nil {
			return Quorum{}, false
		}
		return rational(w.Num, w.Den)
	}
	f, err := strconv.ParseFloat(string(raw), 64)
	if err != nil || f <= 0 {
		return Quorum{}, false
	}
	return Fraction(f), true
}

func rational(num, den json.RawMessage) (Quorum, bool) {
	n, err := canon.Integer(num)
	d, err2 := canon.Integer(den)
	if err != nil || err2 != nil || n == 0 || d == 0 {
		return Quorum{}, false
	}
	return Rational(n, d), true
}

func invalid(fix, format string, args ...any) error {
	return machine.Refuse(CodeInvalidProposal, fix, format, args...)
}
