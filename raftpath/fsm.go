package raftpath

import (
	"errors"
	"fmt"
	"io"
	"runtime"

	"github.com/hashicorp/raft"
	"golang.org/x/sync/errgroup"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/store"
)

// fsm is what raft applies to: one transaction a batch.
type fsm struct {
	p   *Path
	run *run
}

var (
	_ raft.FSM         = (*fsm)(nil)
	_ raft.BatchingFSM = (*fsm)(nil)
)

// Apply implements raft.FSM.
func (f *fsm) Apply(l *raft.Log) any { return f.ApplyBatch([]*raft.Log{l})[0] }

// ApplyBatch implements raft.BatchingFSM. Each answer is a *Outcome, an error,
// or nil for what needs none.
func (f *fsm) ApplyBatch(logs []*raft.Log) []any {
	<-f.run.ready
	f.run.announce(logs)
	out, err := f.p.apply(logs, nil)
	if err != nil {
		out = make([]any, len(logs))
		for i := range out {
			out[i] = err
		}
	}
	return out
}

// Snapshot implements raft.FSM: a read transaction at this moment.
func (f *fsm) Snapshot() (raft.FSMSnapshot, error) {
	s, err := f.p.cfg.Store.Snapshot()
	if err != nil {
		return nil, err
	}
	return fsmSnapshot{s}, nil
}

// Restore implements raft.FSM. It happens only at a start with a state older
// than the newest snapshot, such as after the state file was lost.
func (f *fsm) Restore(r io.ReadCloser) error {
	_, err := f.p.cfg.Store.Replace(r)
	if err = errors.Join(err, r.Close()); err != nil {
		return err
	}
	return f.p.loadHead()
}

type fsmSnapshot struct{ s *store.Snapshot }

func (s fsmSnapshot) Persist(sink raft.SnapshotSink) error {
	if _, err := s.s.Stream(sink); err != nil {
		return errors.Join(err, sink.Cancel())
	}
	return sink.Close()
}

func (s fsmSnapshot) Release() { s.s.Release() }

// apply applies entries in one transaction and skips those applied before. The
// answers match logs. check, when not nil, sees the transaction before it
// commits. An error is final: the node stops applying.
func (p *Path) apply(logs []*raft.Log, check func(machine.Tx) error) ([]any, error) {
	p.applying.Lock()
	defer p.applying.Unlock()
	if err := p.Fatal(); err != nil {
		return nil, halted(err)
	}
	defer p.watch.begin("apply of entries")()
	answers := make([]any, len(logs))
	head := p.Head()
	first := 0
	for first < len(logs) && logs[first].Index <= head.Index {
		first++
	}
	if first == len(logs) {
		return answers, nil
	}
	prepared, err := p.prepare(logs[first:])
	if err != nil {
		return nil, p.fail(err)
	}
	var outcomes []Outcome
	err = p.cfg.Store.Update(func(tx machine.Tx) error {
		outcomes, err = p.applyAll(tx, logs[first:], prepared, answers[first:], &head)
		if err != nil || check == nil {
			return err
		}
		return check(tx)
	})
	if err != nil {
		return nil, p.fail(err)
	}
	p.advance(head, outcomes)
	return answers, nil
}

// applyAll applies entries inside the transaction and moves the head.
func (p *Path) applyAll(tx machine.Tx, logs []*raft.Log, prepared, answers []any, head *Head) (outcomes []Outcome, err error) {
	for i, l := range logs {
		switch l.Type {
		case raft.LogConfiguration:
			head.Config, head.ConfigIndex = append([]byte(nil), l.Data...), l.Index
		case raft.LogCommand:
			o, err := p.cfg.Applier.Apply(tx, prepared[i])
			if err != nil {
				return nil, fmt.Errorf("apply entry at raft index %d: %w", l.Index, err)
			}
			o.Index, o.Term = l.Index, l.Term
			outcomes = append(outcomes, o)
			answers[i] = &o
		}
		head.Index, head.Term = l.Index, l.Term
	}
	return outcomes, tx.Put(headKey, head.encode())
}

// prepare decodes the commands of a batch and runs their checks on all cores.
// The result matches logs.
func (p *Path) prepare(logs []*raft.Log) ([]any, error) {
	prepared := make([]any, len(logs))
	err := p.cfg.Store.View(func(tx machine.Tx) error {
		for i, l := range logs {
			if l.Type == raft.LogCommand {
				prepared[i] = p.cfg.Applier.Prepare(tx, l.Data)
			}
		}
		return nil
	})
	checker, ok := p.cfg.Applier.(Checker)
	if err != nil || !ok {
		return prepared, err
	}
	type check struct {
		prepared any
		i        int
	}
	var all []check
	for i, l := range logs {
		if l.Type != raft.LogCommand {
			continue
		}
		for j := range checker.Checks(prepared[i]) {
			all = append(all, check{prepared[i], j})
		}
	}
	workers := min(runtime.GOMAXPROCS(0), (len(all)+minChecks-1)/minChecks)
	if workers < 2 {
		for _, c := range all {
			checker.Check(c.prepared, c.i)
		}
		return prepared, nil
	}
	var group errgroup.Group
	for w := range workers {
		group.Go(func() error {
			for i := w; i < len(all); i += workers {
				checker.Check(all[i].prepared, all[i].i)
			}
			return nil
		})
	}
	return prepared, group.Wait()
}

// minChecks is how many checks are worth a goroutine.
const minChecks = 4
