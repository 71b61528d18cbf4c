package deliberation

import (
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

const deadlines = machine.Schedule("t")

func key(prefix byte, parts ...string) []byte {
	k := []byte{prefix}
	for _, p := range parts {
		k = append(k, p...)
	}
	return k
}

// book is a Tx with records instead of bytes.
type book struct{ machine.Tx }

// load fills v from a key; false when the key is absent.
func (b book) load(k []byte, v any) (bool, error) { return machine.Read(b.Tx, k, v) }

func (b book) save(k []byte, v any) error { return machine.Save(b.Tx, k, v) }

// text reads a key that holds an id.
func (b book) text(k []byte) (string, error) {
	raw, err := b.Get(k)
	return string(raw), err
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
	err := machine.EachRecord(b.Tx, key('m', round), "", func(_ string, m *Member) (bool, error) { out = append(out, m); return true, nil })
	return out, err
}

func (b book) argument(round, id string) (*Argument, error) {
	if len(id) != idSize {
		return nil, nil
	}
	return machine.Load[Argument](b.Tx, key('a', round, id))
}

// arguments lists a round's arguments, ascending by id.
func (b book) arguments(round string) ([]*Argument, error) {
	var out []*Argument
	err := machine.EachRecord(b.Tx, key('a', round), "", func(_ string, a *Argument) (bool, error) { out = append(out, a); return true, nil })
	return out, err
}

func (b book) content(round, id string) (*Content, error) {
	c := &Content{}
	_, err := b.load(key('b', round, id), c)
	return c, err
}

func (b book) verdict(round string) (*Verdict, error) {
	return machine.Load[Verdict](b.Tx, key('v', round))
}
