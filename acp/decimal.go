package acp

import (
	"strconv"
	"strings"

	"github.com/shopspring/decimal"

	"github.com/deliberd/deliberd/machine"
)

// Bounds of a literal, so that nobody can make a reader allocate without
// measure. A derived value (a weight or a tally) is written out by an
// implementation and may need more digits than a factor.
const (
	MaxLiteral  = 64   // longest literal of a factor or a threshold, bytes
	MaxExponent = 400  // largest magnitude of its exponent
	maxDerived  = 2048 // the same two bounds for weights and tallies
)

// Decimal is an exact decimal number: the literal as written, never a double.
// The zero value is 0. Values are immutable.
type Decimal struct{ d decimal.Decimal }

var one = Decimal{decimal.NewFromInt(1)}

// ParseDecimal reads a JSON number literal of at most [MaxLiteral] bytes and
// an exponent within ±[MaxExponent]. NaN, Infinity, strings and every other
// text are refused with invalid_number.
func ParseDecimal(literal string) (Decimal, error) {
	return parseDecimal(literal, MaxLiteral, MaxExponent)
}

func parseDecimal(literal string, maxLen, maxExp int) (Decimal, error) {
	refuse := func(format string, args ...any) (Decimal, error) {
		return Decimal{}, machine.Refuse(CodeInvalidNumber, "write a plain JSON number such as 0.85", format, args...)
	}
	if len(literal) > maxLen {
		return refuse("a number of %d bytes, at most %d are accepted", len(literal), maxLen)
	}
	exp, ok := scanNumber(literal)
	if !ok {
		return refuse("%q is not a JSON number", literal)
	}
	if exp != "" {
		if n, err := strconv.Atoi(exp); err != nil || n < -maxExp || n > maxExp {
			return refuse("an exponent beyond ±%d", maxExp)
		}
	}
	d, err := decimal.NewFromString(literal)
	if err != nil {
		return refuse("%q is not a number", literal)
	}
	return Decimal{d}, nil
}

// scanNumber checks the grammar of RFC 8259 section 6 and returns the exponent's text.
func scanNumber(s string) (exp string, ok bool) {
	s = strings.TrimPrefix(s, "-")
	mantissa, exp := s, ""
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		mantissa, exp = s[:i], s[i+1:]
		if !digits(strings.TrimLeft(exp[:min(1, len(exp))], "+-") + exp[min(1, len(exp)):]) {
			return "", false
		}
	}
	whole, fraction, point := strings.Cut(mantissa, ".")
	if !digits(whole) || len(whole) > 1 && whole[0] == '0' || point && !digits(fraction) {
		return "", false
	}
	return exp, true
}

func digits(s string) bool {
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return false
		}
	}
	return s != ""
}

// String writes the number in full, without exponent and trailing zeros.
func (d Decimal) String() string { return d.d.String() }

// Cmp is -1, 0 or 1.
func (d Decimal) Cmp(e Decimal) int { return d.d.Cmp(e.d) }

// Add is the exact sum.
func (d Decimal) Add(e Decimal) Decimal { return Decimal{d.d.Add(e.d)} }

// Mul is the exact product.
func (d Decimal) Mul(e Decimal) Decimal { return Decimal{d.d.Mul(e.d)} }

// Sign is -1, 0 or 1.
func (d Decimal) Sign() int { return d.d.Sign() }

// InUnit reports whether 0 <= d <= 1.
func (d Decimal) InUnit() bool { return d.Sign() >= 0 && d.Cmp(one) <= 0 }

// MarshalJSON writes a JSON number with every digit.
func (d Decimal) MarshalJSON() ([]byte, error) { return []byte(d.String()), nil }

// UnmarshalJSON reads a JSON number within the bounds of derived values; it
// refuses strings and null.
func (d *Decimal) UnmarshalJSON(raw []byte) (err error) {
	*d, err = parseDecimal(string(raw), maxDerived, maxDerived)
	return err
}

// clamp is max(0, min(1, d)) (§6.1).
func (d Decimal) clamp() Decimal {
	switch {
	case d.Sign() <= 0:
		return Decimal{}
	case d.Cmp(one) >= 0:
		return one
	}
	return d
}

// Weight is what a response counts: the product of its three factors, each
// clamped to [0, 1] first (§6.1).
func Weight(domainAuthority, confidence, trustScore Decimal) Decimal {
	return domainAuthority.clamp().Mul(confidence.clamp()).Mul(trustScore.clamp())
}
