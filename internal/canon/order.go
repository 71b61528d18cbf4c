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
		end := w.at
		w.sort(members)
		out = append(out, '{')
		for i, m := range members {
			if i > 0 {
				out = append(out, ',')
			}
			out = append(out, w.raw[m.start:m.colon+1]...)
			w.at = m.colon + 1
			out = w.ordered(out, depth+1)
		}
		w.at = end
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

// sort orders members by name. Mostly they are few, and nearly in order.
func (w *walker) sort(members []span) {
	if len(members) > 32 {
		slices.SortFunc(members, func(a, b span) int { return bytes.Compare(w.name(a), w.name(b)) })
		return
	}
	for i := 1; i < len(members); i++ {
		for k := i; k > 0 && bytes.Compare(w.name(members[k]), w.name(members[k-1])) < 0; k-- {
			members[k], members[k-1] = members[k-1], members[k]
		}
	}
}

// name is a member's name as it is spelled, without its quotes.
func (w *walker) name(m span) []byte { return w.raw[m.start+1 : m.colon-1] }
