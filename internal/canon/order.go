package canon

import (
	"bytes"
	"slices"
)

// ordered is a compact JSON text with the members of every object in byte
// order of their names as they are spelled: for what encoding/json writes of a
// struct nearly always its RFC 8785 form, and whether it is one isCanonical says.
func ordered(text []byte) []byte {
	w := walker{raw: text}
	return w.ordered(make([]byte, 0, len(text)), 1)
}

// span is where one member stands: its name, the colon, its value.
type span struct{ start, colon, end int }

func (w *walker) ordered(out []byte, depth int) []byte {
	switch c := w.peek(); {
	case depth > MaxDepth: // not canonical anyhow
	case c == '{':
		var few [16]span
		members := few[:0]
		for w.next('}') {
			m := span{start: w.at}
			w.skip()
			m.colon = w.at
			w.at++
			w.skip()
			m.end = w.at
			members = append(members, m)
		}
		slices.SortFunc(members, func(a, b span) int {
			return bytes.Compare(w.raw[a.start+1:a.colon-1], w.raw[b.start+1:b.colon-1])
		})
		out = append(out, '{')
		for i, m := range members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, w.raw[m.start:m.colon+1]...)
			value := walker{w.raw[:m.end], m.colon + 1}
			out = value.ordered(out, depth+1)
		}
		return append(out, '}')
	case c == '[':
		out = append(out, '[')
		for first := true; w.next(']'); first = false {
			if !first {
				out = append(out, ',')
			}
			out = w.ordered(out, depth+1)
		}
		return append(out, ']')
	}
	start := w.at
	w.skip()
	return append(out, w.raw[start:w.at]...)
}
