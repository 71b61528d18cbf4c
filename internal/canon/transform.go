package canon

import (
	"bytes"
	"fmt"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// transform writes the RFC 8785 form of one JSON text. It refuses what has
// none: bad syntax, duplicate members, lone surrogates, bad UTF-8, numbers
// beyond the double range. It does not bound size, and depth only by
// maxNesting, since it also serves texts that a program made.
func transform(raw []byte) ([]byte, error) {
	t := transformer{s: scanner{raw: raw}, out: make([]byte, 0, len(raw))}
	t.s.space()
	if err := t.value(1); err != nil {
		return nil, err
	}
	t.s.space()
	if t.s.at != len(raw) {
		return nil, t.s.bad("text goes on after the value")
	}
	return t.out, nil
}

// maxNesting is encoding/json's bound.
const maxNesting = 10000

// transformer writes values as they come; an object whose members did not
// come in order is put in order when it ends.
type transformer struct {
	s       scanner
	out     []byte
	members []member // of the objects that are open, innermost last
	spare   []byte
}

// member is where one member stands in out, with its name unescaped.
type member struct {
	name       []byte
	plain      bool // ASCII: bytes order as UTF-16 does
	start, end int
}

func (t *transformer) value(depth int) error {
	s := &t.s
	switch c := s.peek(); {
	case depth > maxNesting:
		return s.fail(TooDeep, "nested deeper than encoding/json reads")
	case c == '{':
		return t.object(depth)
	case c == '[':
		return t.array(depth)
	case c == '"':
		_, err := t.str()
		return err
	case c == '-' || c >= '0' && c <= '9':
		return t.number()
	}
	start := s.at
	if err := s.value(depth); err != nil { // a literal, or what is none
		return err
	}
	t.out = append(t.out, s.raw[start:s.at]...)
	return nil
}

func (t *transformer) number() error {
	start := t.s.at
	if err := t.s.number(); err != nil {
		return err
	}
	text := t.s.raw[start:t.s.at]
	if len(text) <= 15 && onlyDigits(text) {
		t.out = append(t.out, text...)
		return nil
	}
	f, _ := strconv.ParseFloat(string(text), 64) // number has checked the range
	canonical, err := jcs.NumberToJSON(f)
	if err != nil {
		return t.s.fail(NumberOverflow, "beyond the range of a double")
	}
	t.out = append(t.out, canonical...)
	return nil
}

// str copies a string in its one spelling and returns it unescaped.
func (t *transformer) str() ([]byte, error) {
	text, err := t.s.str()
	if err != nil {
		return nil, err
	}
	t.out = append(t.out, '"')
	t.out = appendEscaped(t.out, text)
	t.out = append(t.out, '"')
	return text, nil
}

func (t *transformer) array(depth int) error {
	s := &t.s
	s.at++
	t.out = append(t.out, '[')
	s.space()
	if s.peek() == ']' {
		s.at++
		t.out = append(t.out, ']')
		return nil
	}
	for {
		if err := t.value(depth + 1); err != nil {
			return err
		}
		s.space()
		switch s.peek() {
		case ',':
			s.at++
			s.space()
			t.out = append(t.out, ',')
		case ']':
			s.at++
			t.out = append(t.out, ']')
			return nil
		default:
			return s.bad("an array goes on with a comma or ends")
		}
	}
}

func (t *transformer) object(depth int) error {
	s := &t.s
	s.at++
	t.out = append(t.out, '{')
	s.space()
	if s.peek() == '}' {
		s.at++
		t.out = append(t.out, '}')
		return nil
	}
	base, sorted := len(t.members), true
	for {
		if s.peek() != '"' {
			return s.bad("a member name must be a string")
		}
		m := member{start: len(t.out)}
		var err error
		if m.name, err = t.str(); err != nil {
			return err
		}
		m.plain = ascii(m.name)
		s.space()
		if s.peek() != ':' {
			return s.bad("a colon must follow a member name")
		}
		s.at++
		s.space()
		t.out = append(t.out, ':')
		if err := t.value(depth + 1); err != nil {
			return err
		}
		m.end = len(t.out)
		if n := len(t.members); sorted && n > base && !t.members[n-1].before(m) {
			sorted = false
		}
		t.members = append(t.members, m)
		s.space()
		switch s.peek() {
		case ',':
			s.at++
			s.space()
			t.out = append(t.out, ',')
			continue
		case '}':
			s.at++
		default:
			return s.bad("an object goes on with a comma or ends")
		}
		if !sorted {
			if err := t.order(t.members[base:]); err != nil {
				return err
			}
		}
		t.members = t.members[:base]
		t.out = append(t.out, '}')
		return nil
	}
}

// order puts the members at the end of out in order.
func (t *transformer) order(members []member) error {
	start := members[0].start
	slices.SortFunc(members, func(a, b member) int {
		switch {
		case a.before(b):
			return -1
		case b.before(a):
			return 1
		}
		return 0
	})
	t.spare = append(t.spare[:0], t.out[start:]...)
	t.out = t.out[:start]
	for i, m := range members {
		if i > 0 {
			if bytes.Equal(members[i-1].name, m.name) {
				return &Error{Code: DuplicateMember, Offset: -1, Detail: fmt.Sprintf("member %q stands twice", m.name)}
			}
			t.out = append(t.out, ',')
		}
		t.out = append(t.out, t.spare[m.start-start:m.end-start]...)
	}
	return nil
}

// before orders members by name; equal names are not before each other.
func (m member) before(other member) bool {
	if m.plain && other.plain {
		return bytes.Compare(m.name, other.name) < 0
	}
	return lessUTF16(string(m.name), string(other.name))
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf {
			return false
		}
	}
	return true
}
