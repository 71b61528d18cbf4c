package raftpath

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/deliberd/deliberd/machine"
)

// ledger is an Applier that keeps each action under its own text, counts its
// calls, and chains a hash over all entries. An action "due N" schedules
// something at stamp N.
type ledger struct {
	applied atomic.Int64 // Apply calls in this process
	fresh   atomic.Int64 // actions among them that had not been applied before, here or in an earlier process
	fail    atomic.Bool  // Apply errs: local corruption
	lie     atomic.Bool  // the chain differs from everybody else's
	stall   atomic.Int64 // Apply takes this many nanoseconds
}

type entry struct {
	generation, epoch uint64
	stamp             machine.Stamp
	actions           [][]byte
}

func encodeEntry(generation, epoch uint64, stamp machine.Stamp, actions [][]byte) []byte {
	b := binary.BigEndian.AppendUint64(nil, generation)
	b = binary.BigEndian.AppendUint64(b, epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(stamp))
	b = binary.AppendUvarint(b, uint64(len(actions)))
	for _, a := range actions {
		b = appendBytes(b, a)
	}
	return b
}

func (l *ledger) Prepare(_ machine.Tx, raw []byte) any {
	r := &reader{b: raw}
	e := &entry{generation: r.u64(), epoch: r.u64(), stamp: machine.Stamp(r.u64())}
	for n := r.uvarint(1 << 20); n > 0; n-- {
		e.actions = append(e.actions, r.bytes())
	}
	if r.end() != nil {
		return nil
	}
	return e
}

func u64(b []byte) uint64 {
	if len(b) < 8 {
		return 0
	}
	return binary.BigEndian.Uint64(b)
}

func be(v uint64) []byte { return binary.BigEndian.AppendUint64(nil, v) }

func (l *ledger) Apply(tx machine.Tx, prepared any) (Outcome, error) {
	l.applied.Add(1)
	time.Sleep(time.Duration(l.stall.Load()))
	if l.fail.Load() {
		return Outcome{}, errors.New("a broken page")
	}
	seq, last, err := l.Head(tx)
	if err != nil {
		return Outcome{}, err
	}
	chain, err := tx.Get([]byte("m/chain"))
	if err != nil {
		return Outcome{}, err
	}
	h := sha256.New()
	h.Write(chain)
	out := Outcome{Seq: seq + 1, Stamp: last}
	if e, ok := prepared.(*entry); ok && e != nil {
		if e.stamp < last {
			return Outcome{}, fmt.Errorf("time goes back from %d to %d", last, e.stamp)
		}
		out.Stamp = e.stamp
		if err := l.due(tx, e.stamp); err != nil {
			return Outcome{}, err
		}
		for _, a := range e.actions {
			h.Write(a)
			answer, err := l.action(tx, a, seq+1)
			if err != nil {
				return Outcome{}, err
			}
			out.Answers = append(out.Answers, answer)
		}
	}
	if l.lie.Load() {
		h.Write([]byte("lie"))
	}
	sum := h.Sum(nil)
	return out, errors.Join(
		tx.Put([]byte("m/chain"), sum),
		tx.Put([]byte("m/head"), append(be(out.Seq), be(uint64(out.Stamp))...)),
		tx.Put(append([]byte("m/cp/"), be(out.Seq)...), sum))
}

// due fires what is scheduled at or before now.
func (l *ledger) due(tx machine.Tx, now machine.Stamp) error {
	at, err := tx.Get([]byte("m/due"))
	if err != nil || at == nil || machine.Stamp(u64(at)) > now {
		return err
	}
	return errors.Join(tx.Delete([]byte("m/due")), tx.Put([]byte("m/fired"), be(uint64(now))))
}

// action keeps the first answer under the action's text.
func (l *ledger) action(tx machine.Tx, a []byte, seq uint64) ([]byte, error) {
	key := append([]byte("a/"), a...)
	if old, err := tx.Get(key); err != nil || old != nil {
		return bytes.Clone(old), err
	}
	var at uint64
	if n, _ := fmt.Sscanf(string(a), "due %d", &at); n == 1 {
		if err := tx.Put([]byte("m/due"), be(at)); err != nil {
			return nil, err
		}
	}
	l.fresh.Add(1)
	answer := fmt.Appendf(nil, "%s at %d", a, seq)
	return answer, tx.Put(key, answer)
}

func (l *ledger) Next(tx machine.Tx) (machine.Stamp, bool, error) {
	b, err := tx.Get([]byte("m/due"))
	return machine.Stamp(u64(b)), b != nil, err
}

func (l *ledger) Head(tx machine.Tx) (uint64, machine.Stamp, error) {
	b, err := tx.Get([]byte("m/head"))
	if err != nil || b == nil {
		return 0, 0, err
	}
	return u64(b), machine.Stamp(u64(b[8:])), nil
}

func (l *ledger) CheckpointAt(tx machine.Tx, seq uint64) (c machine.Checkpoint, ok bool, err error) {
	b, err := tx.Get(append([]byte("m/cp/"), be(seq)...))
	if err != nil || b == nil {
		return c, false, err
	}
	c.Seq, c.Size = seq, seq
	copy(c.Root[:], b)
	return c, true, nil
}

var (
	_ Applier      = (*ledger)(nil)
	_ Checkpointer = (*ledger)(nil)
)
