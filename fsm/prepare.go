package fsm

import (
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

// Prepared is a decoded entry whose signatures may have been checked ahead.
type Prepared struct {
	raw   []byte
	entry Entry
	err   error // ErrEntry
	items []prepared
}

// prepared is one action. A key is named by its own hash, so a signature
// checked under kid holds whatever the state says later; whether the actor
// still holds that key is decided in Apply.
type prepared struct {
	read     sign.Unverified
	err      error // of decoding
	key      sign.PublicKey
	verified *machine.Verified
	sigErr   error
}

// Decode reads an entry. It does not fail: an undecodable entry applies as a
// no-op, an undecodable action is refused.
func Decode(raw []byte) *Prepared {
	p := &Prepared{raw: raw}
	if p.entry, p.err = DecodeEntry(raw); p.err != nil {
		return p
	}
	p.items = make([]prepared, len(p.entry.Actions))
	for i, text := range p.entry.Actions {
		p.items[i].read, p.items[i].err = sign.Read(text)
	}
	return p
}

// Len is the number of actions in the entry.
func (p *Prepared) Len() int { return len(p.items) }

// FindKeys looks up the keys that the actions claim. Keys registered by an
// entry that is not applied yet are found in Apply instead.
func (f *FSM) FindKeys(tx machine.Tx, p *Prepared) error {
	w := world{f, tx}
	for i := range p.items {
		it := &p.items[i]
		if it.err != nil {
			continue
		}
		a := it.action()
		key, _, err := w.key(a.Actor, a.KID)
		if err != nil {
			return err
		}
		it.key = key
	}
	return nil
}

// Verify checks the signature of action i if its key has been found. Calls
// for different i may run in parallel.
func (f *FSM) Verify(p *Prepared, i int) {
	it := &p.items[i]
	if it.err == nil && !it.key.IsZero() {
		it.check(f)
	}
}

// action is what the action says; of one that could not be read what there is.
func (it *prepared) action() sign.Action { return it.read.Action() }

func (it *prepared) check(f *FSM) {
	v, err := f.verify(it.read, it.key)
	if err != nil {
		it.sigErr = err
		return
	}
	it.verified = &v
}
