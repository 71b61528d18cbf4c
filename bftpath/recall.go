package bftpath

import (
	"bytes"
	"fmt"

	"github.com/deliberd/deliberd/pbft"
)

// recall sorts what the journal holds by instance. Nothing of it is acted on
// before its instance is started again.
func (l *loop) recall(items []item) error {
	l.used = sizeOf(items)
	for i, it := range items {
		if err := l.recallItem(it); err != nil {
			return fmt.Errorf("%w: item %d: %w", ErrJournalCorrupt, i, err)
		}
	}
	for _, r := range l.recalled {
		if r.Certificate != nil {
			*r = pbft.Restored{Certificate: r.Certificate} // all else served the decision
		}
	}
	return nil
}

func (l *loop) recallItem(it item) error {
	switch it.kind {
	case itemFrame:
		f, err := pbft.DecodeFrame(bytes.Clone(it.data)) // it.data is part of the whole file's text
		if err != nil {
			return err
		}
		for _, v := range f.Votes() {
			r := l.restored(v.Key)
			if n := len(r.Frames); n == 0 || r.Frames[n-1] != f {
				r.Frames = append(r.Frames, f)
			}
		}
	case itemCertificate:
		c, err := pbft.DecodeCertificate(it.data)
		if err != nil {
			return err
		}
		l.restored(c.Instance.Key()).Certificate = c
	case itemGuilt:
		g, err := pbft.DecodeGuilt(it.data)
		if err != nil {
			return err
		}
		l.d.guilty.add(*g)
	case itemPrepared, itemForgotten:
		var key pbft.Digest
		if copy(key[:], it.data) < len(key) {
			return fmt.Errorf("no instance key")
		}
		if it.kind == itemForgotten {
			l.d.forgotten.add(key)
			delete(l.recalled, key)
			return nil
		}
		p, err := pbft.DecodePrepared(it.data[len(key):])
		if err != nil {
			return err
		}
		r := l.restored(key)
		r.Prepared = append(r.Prepared, p)
	}
	return nil
}

func (l *loop) restored(key pbft.Digest) *pbft.Restored {
	if l.d.forgotten.holds(key) {
		return &pbft.Restored{} // a frame shared with a forgotten instance: not kept
	}
	if l.recalled[key] == nil {
		l.recalled[key] = &pbft.Restored{}
	}
	return l.recalled[key]
}

// prune drops from what is stored of an instance all that a later view has made
// idle: a replica comes back from its votes in its highest view and its highest
// lock. Without it an instance that stays undecided would grow with every view.
func prune(r *pbft.Restored, key pbft.Digest) {
	if len(r.Prepared) > 1 {
		highest := r.Prepared[0]
		for _, p := range r.Prepared[1:] {
			if p.View > highest.View {
				highest = p
			}
		}
		r.Prepared = []*pbft.Prepared{highest}
	}
	last := uint64(0)
	for _, f := range r.Frames {
		last = max(last, lastView(f, key))
	}
	kept := r.Frames[:0:0]
	for _, f := range r.Frames {
		if lastView(f, key) == last {
			kept = append(kept, f)
		}
	}
	r.Frames = kept
}

// lastView is the highest view that a frame's votes of an instance name.
func lastView(f *pbft.Frame, key pbft.Digest) (view uint64) {
	votes := f.Votes()
	for i := range votes {
		if votes[i].Key == key {
			view = max(view, votes[i].View)
		}
	}
	return view
}

// contradicts looks for another value than this node now holds right: its state
// is not what it was. A stored decision stands, and the instance is not started,
// since there is nothing left to vote on; votes stand, and the engine goes on.
func (l *loop) contradicts(s *startCommand, r *pbft.Restored) bool {
	if c := r.Certificate; c != nil && c.Digest != s.digest {
		l.d.log.Error("the stored decision is another value than this node now holds right; compare its state with its peers'",
			"instance", s.instance.ID, "decided", c.Digest, "now", s.digest)
		return true
	}
	for _, f := range r.Frames {
		for _, v := range f.Votes() {
			if v.Key == s.key && v.Phase != pbft.ViewChange && v.Digest != s.digest {
				l.d.log.Error("this node voted for another value before it restarted; its votes stand", "instance", s.instance.ID,
					"view", v.View, "voted", v.Digest, "now", s.digest)
				return false
			}
		}
	}
	return false
}

// rewrite drops from the journal what serves finished instances only.
func (l *loop) rewrite() {
	items := l.live()
	l.notes, l.urgent = nil, false // all of it is among these
	l.used = sizeOf(items)
	l.compact = max(l.d.cfg.compactFrom, 2*l.used)
	l.flying = &signedBatch{}
	l.d.flusher.work <- flight{items: items, rewrite: true}
}

// live is everything that must be remembered.
func (l *loop) live() []item {
	var items []item
	l.d.mu.Lock()
	for _, key := range l.d.forgotten.order {
		items = append(items, item{itemForgotten, append([]byte(nil), key[:]...)})
	}
	for i := range l.d.guilty.proofs {
		items = append(items, item{itemGuilt, l.d.guilty.proofs[i].Encode()})
	}
	l.d.mu.Unlock()
	written := map[*pbft.Frame]bool{}
	keep := func(key pbft.Digest, r *pbft.Restored) {
		for _, f := range r.Frames {
			if !written[f] {
				written[f] = true
				items = append(items, item{itemFrame, f.Encode()})
			}
		}
		for _, p := range r.Prepared {
			items = append(items, item{itemPrepared, append(append([]byte(nil), key[:]...), p.Encode()...)})
		}
		if r.Certificate != nil {
			items = append(items, item{itemCertificate, r.Certificate.Encode()})
		}
	}
	for key, in := range l.instances {
		keep(key, &in.stored)
	}
	for key, r := range l.recalled {
		keep(key, r)
	}
	return items
}

// lastNotes stores at a clean end what waited for company.
func (l *loop) lastNotes() {
	if len(l.notes) > 0 && l.d.Err() == nil {
		l.d.flusher.work <- flight{items: l.notes}
		if err := <-l.d.flusher.done; err != nil {
			l.d.fail(fmt.Errorf("journal: %w", err))
		}
	}
}

func sizeOf(items []item) int64 {
	size := int64(recordHead)
	for _, it := range items {
		size += 5 + int64(len(it.data))
	}
	return size
}
