package canon

import (
	"bytes"
	"fmt"
	"math"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"
)

// Check reads one JSON text (RFC 8259) and refuses what I-JSON (RFC 7493)
// forbids and what a verifier could read in two ways: duplicate members after
// unescaping, lone surrogates, bad UTF-8, a byte order mark, numbers beyond
// the double range, nesting beyond [MaxDepth], more than [MaxBytes] bytes.
// It does not judge integers beyond 2^53 - 1: see [CheckIntegers].
func Check(raw []byte) error { return scan(raw, false) }

// CheckIntegers is [Check] and also refuses any number written without
// fraction and exponent whose magnitude is above [MaxInteger]: a double would
// round it silently and the signed text would not be the one its author meant.
func CheckIntegers(raw []byte) error { return scan(raw, true) }

func scan(raw []byte, integers bool) error {
	if len(raw) > MaxBytes {
		return &Error{Code: TooLarge, Offset: MaxBytes, Detail: fmt.Sprintf("%d bytes, at most %d are accepted", len(raw), MaxBytes)}
	}
	s := scanner{raw: raw, integers: integers}
	s.space()
	if err := s.value(1); err != nil {
		return err
	}
	s.space()
	if s.at != len(raw) {
		return s.bad("text goes on after the value")
	}
	return nil
}

type scanner struct {
	raw      []byte
	at       int
	integers bool
	names    [][]byte // of the objects that are open, innermost last
}

func (s *scanner) fail(code Code, detail string) error {
	return &Error{Code: code, Offset: s.at, Detail: detail}
}
func (s *scanner) bad(detail string) error { return s.fail(NotJSON, detail) }

func (s *scanner) space() {
	for s.at < len(s.raw) {
		switch s.raw[s.at] {
		case ' ', '\t', '\r', '\n':
			s.at++
		default:
			return
		}
	}
}

func (s *scanner) peek() byte {
	if s.at < len(s.raw) {
		return s.raw[s.at]
	}
	return 0
}

var words = [...]string{"true", "false", "null"}

func (s *scanner) value(depth int) error {
	if s.at >= len(s.raw) {
		return s.bad("text ends where a value should stand")
	}
	switch c := s.raw[s.at]; {
	case c == '{':
		return s.object(depth)
	case c == '[':
		return s.array(depth)
	case c == '"':
		_, err := s.str()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return s.number()
	}
	for _, word := range words {
		if rest := s.raw[s.at:]; len(rest) >= len(word) && string(rest[:len(word)]) == word {
			s.at += len(word)
			return nil
		}
	}
	if s.raw[s.at] >= utf8.RuneSelf {
		if r, size := utf8.DecodeRune(s.raw[s.at:]); r == utf8.RuneError && size < 2 {
			return s.fail(InvalidUTF8, "byte that is no UTF-8")
		}
	}
	return s.bad("no value starts so")
}

func (s *scanner) object(depth int) error {
	if depth > MaxDepth {
		return s.fail(TooDeep, fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	s.at++
	s.space()
	if s.peek() == '}' {
		s.at++
		return nil
	}
	names := seen{s: s, base: len(s.names)}
	for {
		if s.peek() != '"' {
			return s.bad("a member name must be a string")
		}
		start := s.at
		name, err := s.str()
		if err != nil {
			return err
		}
		if names.had(name) {
			return &Error{Code: DuplicateMember, Offset: start, Detail: fmt.Sprintf("member %q stands twice", name)}
		}
		s.space()
		if s.peek() != ':' {
			return s.bad("a colon must follow a member name")
		}
		s.at++
		s.space()
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.at++
			s.space()
		case '}':
			s.at++
			s.names = s.names[:names.base]
			return nil
		default:
			return s.bad("an object goes on with a comma or ends")
		}
	}
}

// seen is the names of one object so far: looked through one by one while
// they are few.
type seen struct {
	s    *scanner
	base int
	many map[string]struct{}
}

// fewNames is up to how many names are compared one by one.
const fewNames = 16

// had notes a name and reports whether it was there before.
func (n *seen) had(name []byte) bool {
	if n.many != nil {
		_, dup := n.many[string(name)]
		n.many[string(name)] = struct{}{}
		return dup
	}
	few := n.s.names[n.base:]
	for _, other := range few {
		if string(other) == string(name) {
			return true
		}
	}
	n.s.names = append(n.s.names, name)
	if len(few) == fewNames {
		n.many = make(map[string]struct{}, 4*fewNames)
		for _, other := range n.s.names[n.base:] {
			n.many[string(other)] = struct{}{}
		}
	}
	return false
}

func (s *scanner) array(depth int) error {
	if depth > MaxDepth {
		return s.fail(TooDeep, fmt.Sprintf("nested deeper than %d", MaxDepth))
	}
	s.at++
	s.space()
	if s.peek() == ']' {
		s.at++
		return nil
	}
	for {
		if err := s.value(depth + 1); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.at++
			s.space()
		case ']':
			s.at++
			return nil
		default:
			return s.bad("an array goes on with a comma or ends")
		}
	}
}

func (s *scanner) digits() int {
	from := s.at
	for s.at < len(s.raw) && s.raw[s.at] >= '0' && s.raw[s.at] <= '9' {
		s.at++
	}
	return s.at - from
}

func (s *scanner) number() error {
	start := s.at
	whole := true
	if s.peek() == '-' {
		s.at++
	}
	lead := s.peek()
	n := s.digits()
	if n == 0 || n > 1 && lead == '0' {
		return s.bad("not a number")
	}
	if s.peek() == '.' {
		whole = false
		s.at++
		if s.digits() == 0 {
			return s.bad("no digit after the point")
		}
	}
	if c := s.peek(); whole && c != 'e' && c != 'E' && n <= 15 {
		return nil // below 2^53
	} else if c == 'e' || c == 'E' {
		whole = false
		s.at++
		if c := s.peek(); c == '+' || c == '-' {
			s.at++
		}
		if s.digits() == 0 {
			return s.bad("no digit in the exponent")
		}
	}
	f, err := strconv.ParseFloat(string(s.raw[start:s.at]), 64)
	if err != nil && math.IsInf(f, 0) {
		return &Error{Code: NumberOverflow, Offset: start, Detail: "beyond the range of a double"}
	}
	if s.integers && whole && math.Abs(f) > MaxInteger {
		return &Error{Code: IntegerRange, Offset: start, Detail: "an integer beyond 2^53 - 1; write it as a string"}
	}
	return nil
}

// str reads a string and returns it unescaped: a part of the text where that
// has no escape.
func (s *scanner) str() ([]byte, error) {
	s.at++
	start := s.at
	var buf []byte // nil while the text so far is verbatim
	for s.at < len(s.raw) {
		c := s.raw[s.at]
		switch {
		case c == '"':
			text := s.raw[start:s.at:s.at]
			if buf != nil {
				text = buf
			}
			s.at++
			return text, nil
		case c == '\\':
			if buf == nil {
				buf = append(make([]byte, 0, s.at-start+16), s.raw[start:s.at]...)
			}
			r, err := s.escape()
			if err != nil {
				return nil, err
			}
			buf = utf8.AppendRune(buf, r)
		case c < 0x20:
			return nil, s.bad("a control character must be escaped")
		default:
			size := 1
			if c >= utf8.RuneSelf {
				var r rune
				if r, size = utf8.DecodeRune(s.raw[s.at:]); r == utf8.RuneError && size < 2 {
					return nil, s.fail(InvalidUTF8, "byte that is no UTF-8")
				}
			}
			if buf != nil {
				buf = append(buf, s.raw[s.at:s.at+size]...)
			}
			s.at += size
		}
	}
	return nil, s.bad("text ends inside a string")
}

func (s *scanner) escape() (rune, error) {
	if s.at+1 >= len(s.raw) {
		return 0, s.bad("text ends inside an escape")
	}
	c := s.raw[s.at+1]
	if plain := bytes.IndexByte([]byte(`"\/bfnrt`), c); plain >= 0 {
		s.at += 2
		return rune("\"\\/\b\f\n\r\t"[plain]), nil
	}
	if c != 'u' {
		return 0, s.bad("no such escape")
	}
	hi, err := s.hex4()
	if err != nil {
		return 0, err
	}
	if !utf16.IsSurrogate(hi) {
		return hi, nil
	}
	if s.at+1 < len(s.raw) && s.raw[s.at] == '\\' && s.raw[s.at+1] == 'u' {
		lo, err := s.hex4()
		if err != nil {
			return 0, err
		}
		if r := utf16.DecodeRune(hi, lo); r != utf8.RuneError {
			return r, nil
		}
	}
	return 0, s.fail(LoneSurrogate, "half of a surrogate pair")
}

// hex4 reads \uXXXX.
func (s *scanner) hex4() (rune, error) {
	if s.at+6 > len(s.raw) {
		return 0, s.bad("a \\u escape has four digits")
	}
	n, err := strconv.ParseUint(string(s.raw[s.at+2:s.at+6]), 16, 16)
	if err != nil {
		return 0, s.bad("a \\u escape has four digits")
	}
	s.at += 6
	return rune(n), nil
}

// Integer reads the text of an integer payload field: 0 to 2^53 - 1, written
// in any JSON form that is exactly integral ("2e2" is 200, "200.0" is 200).
func Integer(raw []byte) (uint64, error) {
	text := bytes.Trim(raw, " \t\r\n")
	if len(text) == 0 || text[0] != '-' && (text[0] < '0' || text[0] > '9') {
		return 0, &Error{Code: WrongType, Offset: 0, Detail: "not an integer"}
	}
	if err := Check(text); err != nil {
		return 0, err
	}
	neg := text[0] == '-'
	mant, exp := bytes.TrimPrefix(text, []byte("-")), 0
	if i := bytes.IndexAny(mant, "eE"); i >= 0 {
		e, err := strconv.Atoi(string(mant[i+1:]))
		if err != nil || e < -400 || e > 400 {
			return 0, &Error{Code: IntegerRange, Offset: 0, Detail: "exponent out of range"}
		}
		mant, exp = mant[:i], e
	}
	whole, frac, _ := bytes.Cut(mant, []byte("."))
	digits := append(append([]byte(nil), whole...), frac...)
	point := len(whole) + exp
	var n uint64
	for i := 0; i < len(digits) || i < point; i++ {
		d := byte('0')
		if i < len(digits) {
			d = digits[i]
		}
		if i >= point {
			if d != '0' {
				return 0, &Error{Code: WrongType, Offset: 0, Detail: "not an integer"}
			}
			continue
		}
		if n = n*10 + uint64(d-'0'); n > MaxInteger {
			return 0, &Error{Code: IntegerRange, Offset: 0, Detail: "above 2^53 - 1"}
		}
	}
	if point < 0 {
		for _, d := range digits {
			if d != '0' {
				return 0, &Error{Code: WrongType, Offset: 0, Detail: "not an integer"}
			}
		}
	}
	if neg && n != 0 {
		return 0, &Error{Code: IntegerRange, Offset: 0, Detail: "below 0"}
	}
	return n, nil
}
