package canon

import (
	"bytes"
	"fmt"
	"strconv"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/gowebpki/jcs"
)

// CheckCanonical is [CheckIntegers] and also refuses a text that is not its
// own RFC 8785 form: white space, another member order, another spelling of a
// string or a number. It costs a fraction of canonicalizing.
func CheckCanonical(raw []byte) error {
	if isCanonical(raw) {
		return nil
	}
	return notCanonical(raw)
}

// notCanonical finds out what is wrong with a text, and where; nil when nothing is.
func notCanonical(raw []byte) error {
	if err := CheckIntegers(raw); err != nil {
		return err
	}
	c := canonical{raw: raw}
	c.value()
	if c.at != len(raw) && c.wrong == "" {
		c.wrong = "white space"
	}
	if c.wrong != "" {
		return &Error{Code: NotCanonical, Offset: c.at, Detail: c.wrong}
	}
	return nil
}

// NotCanonical is the code of a text that is not its own RFC 8785 form.
const NotCanonical Code = "not_canonical"

// canonical walks a text already known to be JSON; wrong is the first
// departure from RFC 8785.
type canonical struct {
	raw   []byte
	at    int
	wrong string
}

func (c *canonical) value() {
	if c.wrong != "" || c.at >= len(c.raw) {
		return
	}
	switch b := c.raw[c.at]; b {
	case '{':
		c.list('}', c.member())
	case '[':
		c.list(']', c.value)
	case '"':
		c.str()
	case ' ', '\t', '\r', '\n':
		c.wrong = "white space"
	case 't', 'n':
		c.at += 4
	case 'f':
		c.at += 5
	default:
		c.number()
	}
}

func (c *canonical) list(end byte, item func()) {
	c.at++
	if c.raw[c.at] == end {
		c.at++
		return
	}
	for c.wrong == "" {
		item()
		if c.wrong != "" {
			return
		}
		switch c.raw[c.at] {
		case ',':
			c.at++
		case end:
			c.at++
			return
		default:
			c.wrong = "white space"
		}
	}
}

// member returns a reader of members that remembers the last name.
func (c *canonical) member() func() {
	last, first := "", true
	return func() {
		if c.raw[c.at] != '"' {
			c.wrong = "white space"
			return
		}
		name := c.str()
		if c.wrong != "" {
			return
		}
		if !first && !lessUTF16(last, name) {
			c.wrong = fmt.Sprintf("member %q out of order", name)
			return
		}
		last, first = name, false
		if c.raw[c.at] != ':' {
			c.wrong = "white space"
			return
		}
		c.at++
		c.value()
	}
}

// str reads a string, checks that every escape is the one RFC 8785 wants, and
// returns the text unescaped.
func (c *canonical) str() string {
	start := c.at
	s := scanner{raw: c.raw, at: c.at}
	text, err := s.str()
	if err != nil {
		c.wrong = err.Error()
		return ""
	}
	c.at = s.at
	if body := c.raw[start+1 : s.at-1]; bytes.IndexByte(body, '\\') >= 0 && !bytes.Equal(body, appendEscaped(nil, text)) {
		c.at, c.wrong = start, "another spelling of a string"
	}
	return string(text)
}

// appendEscaped spells a string as RFC 8785 section 3.2.2.2 wants, without the quotes.
func appendEscaped(out, text []byte) []byte {
	verbatim := 0 // text up to here is in out
	for i, b := range text {
		if b >= 0x20 && b != '"' && b != '\\' {
			continue
		}
		out = append(out, text[verbatim:i]...)
		verbatim = i + 1
		if short := bytes.IndexByte([]byte("\"\\\b\f\n\r\t"), b); short >= 0 {
			out = append(out, '\\', `"\bfnrt`[short])
		} else {
			out = append(out, '\\', 'u', '0', '0', '0'+b>>4, "0123456789abcdef"[b&15])
		}
	}
	return append(out, text[verbatim:]...)
}

func (c *canonical) number() {
	s := scanner{raw: c.raw, at: c.at}
	if err := s.number(); err != nil {
		c.wrong = err.Error()
		return
	}
	digits := c.raw[c.at:s.at]
	c.at = s.at
	if len(digits) <= 15 && onlyDigits(digits) {
		return // a short integer without sign or leading zero is its own canonical form
	}
	text := string(digits)
	f, err := strconv.ParseFloat(text, 64)
	if err != nil && f != 0 {
		c.wrong = err.Error()
		return
	}
	if want, err := jcs.NumberToJSON(f); err != nil || want != text {
		c.wrong = "another spelling of a number"
	}
}

func onlyDigits(text []byte) bool {
	for i := range len(text) {
		if text[i] < '0' || text[i] > '9' {
			return false
		}
	}
	return true
}

// lessUTF16 orders names by UTF-16 code units, as RFC 8785 section 3.2.3 does.
func lessUTF16(a, b string) bool {
	for i := 0; i < len(a) && i < len(b); i++ {
		if a[i] == b[i] {
			continue
		}
		if a[i] < utf8.RuneSelf && b[i] < utf8.RuneSelf {
			return a[i] < b[i]
		}
		x, y := utf16.Encode([]rune(a)), utf16.Encode([]rune(b))
		for k := 0; k < len(x) && k < len(y); k++ {
			if x[k] != y[k] {
				return x[k] < y[k]
			}
		}
		return len(x) < len(y)
	}
	return len(a) < len(b)
}
