package raftpath

import (
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath/guard"
)

// announce tells the other voters that entries are committed, as this node's
// state machine begins to apply them. raft itself would tell them with the
// next entry, or after CommitTimeout. The notice is an AppendEntries without
// entries, the very message raft sends later. A voter that these entries
// remove is told as well: raft has sent it the entry, and stops there.
func (x *run) announce(logs []*raft.Log) {
	term, ok := x.leads()
	if !ok {
		return
	}
	to := voters(x.r.GetConfiguration().Configuration())
	if slices.ContainsFunc(logs, func(l *raft.Log) bool { return l.Type == raft.LogConfiguration }) {
		if before, err := x.p.Head().configuration(); err == nil {
			to = append(to, voters(before)...)
			slices.Sort(to)
			to = slices.Compact(to)
		}
	}
	last := logs[len(logs)-1]
	for _, id := range to {
		if id == x.p.id {
			continue
		}
		m := &guard.Append{Term: term, Prev: last.Index, PrevTerm: last.Term, Commit: last.Index}
		if x.t.stopped() || x.t.guard.SealAppend(id, m) != nil {
			return
		}
		// A notice that does not get through is no loss: raft repeats it.
		_ = x.p.cfg.Host.SendLatest(id, p2p.Notice, encodeAppend(m))
	}
}

// takeNotice gives a commit notice to raft.
func (p *Path) takeNotice(from string, frame []byte) error {
	x := p.running()
	if x == nil || x.t.stopped() {
		return nil
	}
	if len(frame) == 0 || frame[0] != kindAppend {
		return errFrame
	}
	m, err := decodeAppend(frame[1:])
	if err != nil || len(m.Entries) != 0 || m.Prev != m.Commit || m.Prev == 0 {
		return errFrame
	}
	if err := x.t.guard.CheckAppend(from, m); err != nil {
		return err
	}
	p.heardCommit(m.Commit)
	x.t.serial.Lock()
	defer x.t.serial.Unlock()
	x.t.notice(x.r, from, m)
	return nil
}

// lagGrace is how long a node may be behind a commit it has heard of and
// still pass for caught up.
const lagGrace = 2 * time.Second

// heardCommit remembers what the leader says is committed: a node whose disk
// takes nothing any more hears of commits and cannot follow them.
func (p *Path) heardCommit(index uint64) {
	applied := p.Head().Index
	p.mu.Lock()
	defer p.mu.Unlock()
	p.heard = max(p.heard, index)
	if applied < p.heard && p.behind.IsZero() {
		p.behind = time.Now()
	}
}

// lags reports whether this node has long been behind a commit it has heard of.
func (p *Path) lags(applied uint64) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	if applied >= p.heard {
		p.behind = time.Time{}
		return false
	}
	return !p.behind.IsZero() && time.Since(p.behind) > lagGrace
}

// early is a notice that came before its entry: the two travel on different
// streams.
type early struct {
	from string
	m    *guard.Append
}

// notice passes a notice on, or keeps it until its entry has come; the caller
// holds serial. What raft answers interests nobody.
func (t *transport) notice(r *raft.Raft, from string, m *guard.Append) {
	switch {
	case m.Term != r.CurrentTerm() || r.CommitIndex() >= m.Commit:
	case r.LastIndex() < m.Prev:
		t.early = &early{from, m}
	default:
		_, _ = t.append(from, m, m)
	}
}

// late gives raft a notice whose entry has just come; the caller holds serial.
func (t *transport) late(r *raft.Raft) {
	if e := t.early; e != nil && r.LastIndex() >= e.m.Prev {
		t.early = nil
		t.notice(r, e.from, e.m)
	}
}
