package canon

import (
	"bytes"
	"strconv"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// isCanonical reports whether CheckCanonical accepts a text, in one pass that
// allocates nothing for plain texts. It says no more: CheckCanonical finds
// out what is wrong with a text that fails here.
//
// Names in strictly ascending order are distinct, so no set of names is kept.
func isCanonical(raw []byte) bool {
	if len(raw) > MaxBytes {
		return false
	}
	q := quick{raw: raw}
	return q.value(1) && q.at == len(raw)
}

// quick reads canonical JSON; its methods report whether it is that so far.
type quick struct {
	raw []byte
	at  int
}

func (q *quick) take(c byte) bool {
	if q.at < len(q.raw) && q.raw[q.at] == c {
		q.at++
		return true
	}
	return false
}

func (q *quick) word(w string) bool {
	if len(q.raw)-q.at >= len(w) && string(q.raw[q.at:q.at+len(w)]) == w {
		q.at += len(w)
		return true
	}
	return false
}

func (q *quick) value(depth int) bool {
	if q.at >= len(q.raw) {
		return false
	}
	switch q.raw[q.at] {
	case '{':
		return q.object(depth)
	case '[':
		return q.array(depth)
	case '"':
		_, _, ok := q.str()
		return ok
	case 't':
		return q.word("true")
	case 'f':
		return q.word("false")
	case 'n':
		return q.word("null")
	}
	return q.number()
}

func (q *quick) array(depth int) bool {
	q.at++
	if depth > MaxDepth {
		return false
	}
	if q.take(']') {
		return true
	}
	for q.value(depth + 1) {
		if q.take(']') {
			return true
		}
		if !q.take(',') {
			return false
		}
	}
	return false
}

func (q *quick) object(depth int) bool {
	q.at++
	if depth > MaxDepth {
		return false
	}
	if q.take('}') {
		return true
	}
	var last []byte
	lastPlain := true
	for first := true; ; first = false {
		if q.at >= len(q.raw) || q.raw[q.at] != '"' {
			return false
		}
		name, plain, ok := q.str()
		if !ok || !first && !ascends(last, lastPlain, name, plain) || !q.take(':') || !q.value(depth+1) {
			return false
		}
		last, lastPlain = name, plain
		if q.take('}') {
			return true
		}
		if !q.take(',') {
			return false
		}
	}
}

// ascends compares two names as they stand between their quotes. Names of
// plain ASCII compare as bytes; others are unescaped and compared by UTF-16.
func ascends(a []byte, plainA bool, b []byte, plainB bool) bool {
	if plainA && plainB {
		return bytes.Compare(a, b) < 0
	}
	return lessUTF16(unquoted(a), unquoted(b))
}

// unquoted unescapes what stands between the quotes of a checked string.
func unquoted(body []byte) string {
	quoted := append(append(append(make([]byte, 0, len(body)+2), '"'), body...), '"')
	s := scanner{raw: quoted}
	text, _ := s.str() // checked before
	return string(text)
}

// str reads a string and returns what stands between its quotes; plain says
// that this is ASCII without escapes.
func (q *quick) str() (body []byte, plain, ok bool) {
	q.at++
	start := q.at
	plain = true
	for q.at < len(q.raw) {
		c := q.raw[q.at]
		switch {
		case c == '"':
			q.at++
			return q.raw[start : q.at-1], plain, true
		case c == '\\':
			plain = false
			if !q.escape() {
				return nil, false, false
			}
		case c < 0x20:
			return nil, false, false
		case c < utf8.RuneSelf:
			q.at++
		default:
			plain = false
			r, size := utf8.DecodeRune(q.raw[q.at:])
			if r == utf8.RuneError && size < 2 {
				return nil, false, false
			}
			q.at += size
		}
	}
	return nil, false, false
}

// escape accepts the escapes that RFC 8785 section 3.2.2.2 wants, and no other.
func (q *quick) escape() bool {
	rest := q.raw[q.at:]
	if len(rest) < 2 {
		return false
	}
	switch rest[1] {
	case '"', '\\', 'b', 'f', 'n', 'r', 't':
		q.at += 2
		return true
	case 'u':
		if len(rest) < 6 || rest[2] != '0' || rest[3] != '0' || rest[4] != '0' && rest[4] != '1' || bytes.IndexByte([]byte("0123456789abcdef"), rest[5]) < 0 {
			return false
		}
		if rest[4] == '0' && bytes.IndexByte([]byte("89acd"), rest[5]) >= 0 {
			return false // \b \t \n \f \r
		}
		q.at += 6
		return true
	}
	return false
}

func (q *quick) number() bool {
	start := q.at
	neg := q.take('-')
	first := q.at
	for q.at < len(q.raw) && q.raw[q.at] >= '0' && q.raw[q.at] <= '9' {
		q.at++
	}
	n := q.at - first
	if n == 0 {
		return false
	}
	if q.raw[first] == '0' && (n > 1 || neg && !q.fraction()) {
		return false
	}
	if n <= 15 && !q.fraction() {
		return true // a short integer is its own canonical form
	}
	q.at = start
	s := scanner{raw: q.raw, at: start, integers: true}
	if s.number() != nil {
		return false
	}
	q.at = s.at
	text := string(q.raw[start:q.at])
	f, _ := strconv.ParseFloat(text, 64) // s.number has checked the range
	want, err := jcs.NumberToJSON(f)
	return err == nil && want == text
}

// fraction reports whether a number goes on after its digits.
func (q *quick) fraction() bool {
	if q.at >= len(q.raw) {
		return false
	}
	switch q.raw[q.at] {
	case '.', 'e', 'E':
		return true
	}
	return false
}
