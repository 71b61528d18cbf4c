package deliberation

import (
	"encoding/binary"
	"encoding/json"
	"fmt"

	"github.com/deliberd/deliberd/machine"
)

// Keys. A round id is a ULID of 26 bytes, so what follows it needs no
// separator; an agent's id stands last or before a zero byte.
//
//	d<round>                             Round, never changed
//	s<round>                             State
//	m<round><agent>                      Member
//	a<round><argument>                   Argument
//	b<round><argument>                   Content
//	h<round><answer hash>                id of the position with that answer
//	u<round><target><relation><author>   id of the argument that holds this edge
//	c<round>                             certificate, as it came
//	v<round>                             Verdict
//	g<round>                             Graded, once the round has ended
//	t<stamp, 8 bytes><round>             deadlines
//	f<round>                             frozen rounds without a certificate
//	o<agent>\x00<round>                  rounds in which somebody may be asked something
//	w<round>                             rounds under human review
//	r<agent>                             global Rating
//	r<agent>\x00<domain>                 domain Rating
const idSize = 26

func key(prefix byte, parts ...string) []byte {
	k := []byte{prefix}
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

func deadlineKey(at Stamp, round string) []byte {
	return append(binary.BigEndian.AppendUint64([]byte{'t'}, uint64(at)), round...)
}

// after is the least key above every key that starts with prefix.
func after(prefix []byte) []byte {
	end := append([]byte(nil), prefix...)
	for i := len(end) - 1; i >= 0; i-- {
		if end[i]++; end[i] != 0 {
			return end[:i+1]
		}
	}
	return nil
}

// book is a Tx with records instead of bytes.
type book struct{ machine.Tx }

// load fills v from a key; false when the key is absent.
func (b book) load(k []byte, v any) (bool, error) {
	raw, err := b.Get(k)
	if err != nil || raw == nil {
		return false, err
	}
	if err := json.Unmarshal(raw, v); err != nil {
		return false, fmt.Errorf("deliberation: key %q holds no %T: %w", k, v, err)
	}
	return true, nil
}

// save writes a record. encoding/json writes struct fields in order and map
// keys sorted, so all nodes store the same bytes.
func (b book) save(k []byte, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return fmt.Errorf("deliberation: encode %T: %w", v, err)
	}
	return b.Put(k, raw)
}

// text reads a key that holds an id.
func (b book) text(k []byte) (string, error) {
	raw, err := b.Get(k)
	return string(raw), err
}

// each visits the keys that start with prefix, with the rest of each key.
func (b book) each(prefix []byte, f func(rest string, v []byte) (bool, error)) error {
	return b.Range(prefix, after(prefix), func(k, v []byte) (bool, error) {
		return f(string(k[len(prefix):]), v)
	})
}

// eachAs visits decoded records.
func eachAs[T any](b book, prefix []byte, f func(rest string, v *T) error) error {
	return b.each(prefix, func(rest string, raw []byte) (bool, error) {
		v := new(T)
		if err := json.Unmarshal(raw, v); err != nil {
			return false, fmt.Errorf("deliberation: key %q%q holds no %T: %w", prefix, rest, *v, err)
		}
		return true, f(rest, v)
	})
}

func (b book) round(id string) (*Round, *State, error) {
	if len(id) != idSize {
		return nil, nil, nil
	}
	r, st := &Round{}, &State{}
	if ok, err := b.load(key('d', id), r); err != nil || !ok {
		return nil, nil, err
	}
	ok, err := b.load(key('s', id), st)
	if err == nil && !ok {
		err = fmt.Errorf("deliberation: round %s has no state", id)
	}
	return r, st, err
}

// member reads a participant's part in a round; an empty one when it has not acted.
func (b book) member(round, agent string) (*Member, error) {
	m := &Member{Agent: agent}
	_, err := b.load(key('m', round, agent), m)
	return m, err
}

func (b book) saveMember(round string, m *Member) error {
	return b.save(key('m', round, m.Agent), m)
}

// members lists the participants that have acted, ascending by id.
func (b book) members(round string) ([]*Member, error) {
	var out []*Member
	err := eachAs(b, key('m', round), func(_ string, m *Member) error { out = append(out, m); return nil })
	return out, err
}

func (b book) argument(round, id string) (*Argument, error) {
	if len(id) != idSize {
		return nil, nil
	}
	a := &Argument{}
	ok, err := b.load(key('a', round, id), a)
	if !ok {
		return nil, err
	}
	return a, err
}

// arguments lists a round's arguments, ascending by id.
func (b book) arguments(round string) ([]*Argument, error) {
	var out []*Argument
	err := eachAs(b, key('a', round), func(_ string, a *Argument) error { out = append(out, a); return nil })
	return out, err
}

func (b book) content(round, id string) (*Content, error) {
	c := &Content{}
	_, err := b.load(key('b', round, id), c)
	return c, err
}

func (b book) verdict(round string) (*Verdict, error) {
	v := &Verdict{}
	ok, err := b.load(key('v', round), v)
	if !ok {
		return nil, err
	}
	return v, err
}
