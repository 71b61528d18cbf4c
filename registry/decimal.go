package registry

import (
	"encoding/json"
	"fmt"
	"regexp"

	"github.com/cockroachdb/apd/v3"
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

// outOfRange is a number outside [0, 1].
type outOfRange struct{ literal string }

func (e *outOfRange) Error() string { return e.literal + " is not in [0, 1]" }

var (
	// unit is what a string may hold: no sign, no exponent, a digit before the point.
	unit    = regexp.MustCompile(`^(0(\.[0-9]{1,18})?|1(\.0{1,18})?)$`)
	decimal = regexp.MustCompile(`^-?[0-9]{1,40}(\.[0-9]{1,40})?$`)
)

// UnmarshalJSON reads a JSON number or string in [0, 1].
func (d *Decimal) UnmarshalJSON(raw []byte) error {
	if len(raw) > 0 && raw[0] == '"' {
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return err
		}
		if !unit.MatchString(s) {
			if decimal.MatchString(s) {
				return &outOfRange{s}
			}
			return fmt.Errorf("%q is not a decimal of at most 18 places", s)
		}
		*d = Decimal{literal: s, quoted: true}
		return nil
	}
	n, _, err := apd.NewFromString(string(raw))
	if err != nil || n.Form != apd.Finite {
		return fmt.Errorf("%.40s is not a decimal", raw)
	}
	if n.Negative || n.Cmp(apd.New(1, 0)) > 0 {
		return &outOfRange{string(raw)}
	}
	*d = Decimal{literal: string(raw)}
	return nil
}
