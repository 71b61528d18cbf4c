package registry

import (
	"encoding/json"
	"fmt"
	"regexp"

	exact "github.com/shopspring/decimal"

	"github.com/deliberd/deliberd/machine"
)

// Decimal is an exact decimal in [0, 1] as it was written: a JSON number
// (0.7) or a string that keeps its zeros ("0.70", at most 18 places).
type Decimal struct {
	literal string
	quoted  bool
}

// NewDecimal takes a literal as a JSON string would hold it; it is checked when decoded.
func NewDecimal(literal string) Decimal { return Decimal{literal: literal, quoted: true} }

// String is the literal as it was written.
func (d Decimal) String() string { return d.literal }

// MarshalJSON writes the literal as it was read.
func (d Decimal) MarshalJSON() ([]byte, error) {
	if d.quoted || d.literal == "" {
		return json.Marshal(d.literal)
	}
	return []byte(d.literal), nil
}

var (
	// unit is what a string may hold: no sign, no exponent, a digit before the point.
	unit    = regexp.MustCompile(`^(0(\.[0-9]{1,18})?|1(\.0{1,18})?)$`)
	decimal = regexp.MustCompile(`^-?[0-9]{1,40}(\.[0-9]{1,40})?$`)
	// number bounds what a JSON number may be, so that nobody sends an exponent
	// of a billion to be worked out exactly.
	number = regexp.MustCompile(`^-?[0-9]{1,40}(\.[0-9]{1,40})?([eE][+-]?[0-9]{1,3})?$`)
)

// UnmarshalJSON reads a JSON number, or a string that holds a decimal; shape
// judges the range.
func (d *Decimal) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		if !decimal.MatchString(s) {
			return fmt.Errorf("%.40q is not a decimal", s)
		}
		*d = Decimal{literal: s, quoted: true}
		return nil
	}
	var n json.Number
	if err := json.Unmarshal(raw, &n); err != nil || !number.MatchString(n.String()) {
		return fmt.Errorf("%.40s is not a decimal", raw)
	}
	*d = Decimal{literal: string(raw)}
	return nil
}

// shape refuses what is outside [0, 1], and a string with more than 18 places
// or another spelling than a JSON number without exponent has.
func (d Decimal) shape(name string) *machine.Refusal {
	n, err := exact.NewFromString(d.literal)
	switch {
	case err != nil:
		return machine.Malformed("%s is missing", name)
	case n.IsNegative() || n.Cmp(exact.NewFromInt(1)) > 0:
		return machine.Refuse(machine.CodeOutOfRange, "write a decimal from 0 to 1", "%s is %s", name, d.literal)
	case d.quoted && !unit.MatchString(d.literal):
		return machine.Malformed("%s is not a decimal like 0.75 with at most 18 places", name)
	}
	return nil
}
