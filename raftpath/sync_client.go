package raftpath

import (
	"context"
	"fmt"
	"io"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
)

// fetch takes state and entries from one peer until stop says so, ctx ends or
// the stream fails. It returns the last entry it applied; nil when none.
type fetch struct {
	p     *Path
	s     *p2p.Stream
	peer  string
	start time.Time
	prog  Progress
	last  *raft.Log // the last applied entry, as it came
	stop  func(Progress) bool
}

// fetchFrom runs one fetch.
func (p *Path) fetchFrom(ctx context.Context, peer string, stop func(Progress) bool) (last *raft.Log, err error) {
	s, err := p.cfg.Host.Open(ctx, peer, p2p.Sync)
	if err != nil {
		return nil, err
	}
	defer s.Reset()
	end := context.AfterFunc(ctx, s.Reset)
	defer end()
	f := &fetch{p: p, s: s, peer: peer, start: time.Now(), prog: Progress{From: peer}, stop: stop}
	head := p.Head()
	seq, _ := p.Applied()
	s.SetWriteDeadline(time.Now().Add(p.cfg.Timing.RPC))
	if err := s.Send(syncRequest{generation: head.Generation, index: head.Index, term: head.Term, seq: seq}.encode()); err != nil {
		return nil, err
	}
	err = f.run()
	if ctx.Err() != nil {
		err = ctx.Err()
	}
	return f.last, err
}

func (f *fetch) recv() ([]byte, error) {
	f.s.SetReadDeadline(time.Now().Add(f.p.cfg.Timing.CatchUp))
	frame, err := f.s.Recv()
	if err == nil && len(frame) == 0 {
		err = errFrame
	}
	return frame, err
}

func (f *fetch) run() error {
	for {
		frame, err := f.recv()
		if err != nil {
			return err
		}
		switch frame[0] {
		case syncState:
			err = f.takeState(frame[1:])
		case syncEntries:
			err = f.takeEntries(frame[1:])
		case syncBeat:
			var m beatFrame
			if m, err = decodeBeatFrame(frame[1:]); err == nil {
				f.heard(m)
			}
		default:
			err = errFrame
		}
		if err != nil {
			return err
		}
		f.report()
		if f.stop(f.prog) {
			return nil
		}
	}
}

func (f *fetch) heard(m beatFrame) {
	f.prog.Target = m.target
	f.p.hear(m.leader, m.target)
}

// report tells how far the fetch is.
func (f *fetch) report() {
	f.prog.Index = f.p.Head().Index
	f.prog.Done = f.prog.Target > 0 && f.prog.Index >= f.prog.Target
	f.prog.Elapsed = time.Since(f.start)
	if f.p.cfg.OnProgress != nil {
		f.p.cfg.OnProgress(f.prog)
	}
}

// takeState puts a peer's state in the place of this node's. Its hash shows
// that it arrived whole; whether it is true is for others to check.
func (f *fetch) takeState(b []byte) error {
	m, err := decodeStateHeader(b)
	if err != nil {
		return err
	}
	f.prog.Of = m.size
	p := f.p
	p.applying.Lock()
	defer p.applying.Unlock()
	if err := p.Fatal(); err != nil {
		return halted(err)
	}
	before := p.Head()
	if f.s.Generation() == before.Generation && m.last.Index < before.Index {
		return machine.Refuse(CodeNotReady, "ask another node", "the state of %s ends at raft index %d, behind this node's %d", f.peer, m.last.Index, before.Index)
	}
	r := &stateReader{f: f}
	if _, err := p.cfg.Store.Replace(r); err != nil {
		return err
	}
	if len(r.piece) > 0 {
		return errFrame
	}
	if err := p.loadHead(); err != nil {
		return err
	}
	if head := p.Head(); head.Index != m.last.Index || head.Term != m.last.Term {
		return p.fail(fmt.Errorf("the state of %s ends at raft index %d, its last entry is %d", f.peer, head.Index, m.last.Index))
	}
	f.last = m.last
	if before.ConfigIndex != p.Head().ConfigIndex {
		p.configured(before, p.Head())
	}
	return nil
}

// stateReader is a state's stream as it comes, byte by byte so that nothing
// behind its end is read.
type stateReader struct {
	f     *fetch
	piece []byte
}

func (r *stateReader) fill() error {
	if len(r.piece) > 0 {
		return nil
	}
	frame, err := r.f.recv()
	if err != nil {
		return err
	}
	if frame[0] != syncData || len(frame) == 1 {
		return errFrame
	}
	r.piece = frame[1:]
	r.f.prog.Bytes += int64(len(r.piece))
	r.f.report()
	return nil
}

func (r *stateReader) Read(b []byte) (int, error) {
	if err := r.fill(); err != nil {
		return 0, noEOF(err)
	}
	n := copy(b, r.piece)
	r.piece = r.piece[n:]
	return n, nil
}

func (r *stateReader) ReadByte() (byte, error) {
	if err := r.fill(); err != nil {
		return 0, noEOF(err)
	}
	b := r.piece[0]
	r.piece = r.piece[1:]
	return b, nil
}

// noEOF keeps a connection's end from looking like the state's.
func noEOF(err error) error {
	if err == io.EOF {
		return io.ErrUnexpectedEOF
	}
	return err
}

// takeEntries applies a frame of entries in one transaction, which does not
// commit when this node's decision log then differs from the peer's.
func (f *fetch) takeEntries(b []byte) error {
	m, err := decodeEntriesFrame(b)
	if err != nil {
		return err
	}
	if len(m.entries) == 0 || m.entries[0].Index <= f.p.Head().Index {
		return errFrame
	}
	f.heard(m.beatFrame)
	_, err = f.p.apply(m.entries, func(tx machine.Tx) error {
		own, err := f.p.checkpointIn(tx, m.check.Seq)
		if err != nil || m.check.Seq == 0 || own == m.check {
			return err
		}
		return machine.Refuse(CodeDiverged, "compare the two nodes' logs; do not act on either",
			"after entry %d node %s computed the decision log %x (size %d), this node %x (size %d)",
			m.check.Seq, f.peer, m.check.Root[:8], m.check.Size, own.Root[:8], own.Size)
	})
	if err != nil {
		return err
	}
	f.last = m.entries[len(m.entries)-1]
	return nil
}
