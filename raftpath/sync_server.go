package raftpath

import (
	"context"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
)

// Sizes and times of the sync stream.
const (
	syncPiece     = 256 << 10   // bytes of state in one frame
	syncBatch     = 256         // entries in one frame at most
	syncBatchSize = 1 << 20     // bytes of entries in one frame, beyond the first
	syncEvery     = time.Second // between frames when nothing happens
)

// serveSync sends a node that is behind what it lacks, and then what comes,
// until either end closes. Only a node that runs raft has the log to serve.
func (p *Path) serveSync(ctx context.Context, s *p2p.Stream) error {
	s.SetReadDeadline(time.Now().Add(p.cfg.Timing.RPC))
	frame, err := s.Recv()
	if err != nil {
		return err
	}
	request, err := decodeSyncRequest(frame)
	if err != nil {
		return machine.Refuse("malformed", "", "not a request of the sync protocol")
	}
	s.SetReadDeadline(time.Time{})
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	go func() { // the client sends nothing more: this sees it leave
		defer cancel()
		_, _ = s.Recv()
	}()
	stop := context.AfterFunc(p.ctx, cancel)
	defer stop()
	feed := &feed{p: p, s: s, at: request}
	return feed.run(ctx)
}

// feed is one node being fed.
type feed struct {
	p  *Path
	s  *p2p.Stream
	at syncRequest // where the other node stands after what has been sent
}

func (f *feed) run(ctx context.Context) error {
	if err := f.level(ctx); err != nil {
		return err
	}
	if x := f.p.running(); x == nil {
		return errStopped
	} else if !f.reaches(x) {
		if err := f.sendState(x); err != nil {
			return err
		}
	}
	for ctx.Err() == nil {
		x := f.p.running()
		if x == nil {
			return errStopped
		}
		sent, err := f.sendEntries(x)
		if err != nil {
			return err
		}
		if sent {
			continue
		}
		if err := f.send(f.beat(x).append([]byte{syncBeat})); err != nil {
			return err
		}
		waiting, cancel := context.WithTimeout(ctx, syncEvery)
		// A timeout is as good as news: the next beat is due.
		_ = f.p.pos.wait(waiting, 0, f.at.index+1)
		cancel()
	}
	return nil
}

// level waits a moment for this node to be as far as the one that asks, and
// refuses when it is not: its older state would set that one back.
func (f *feed) level(ctx context.Context) error {
	if f.at.generation != f.p.Head().Generation {
		return nil
	}
	waiting, cancel := context.WithTimeout(ctx, syncEvery)
	defer cancel()
	if err := f.p.pos.wait(waiting, 0, f.at.index); err != nil {
		return machine.Refuse(CodeNotReady, "ask another node", "this node is at raft index %d, behind %d", f.p.Head().Index, f.at.index)
	}
	return nil
}

func (f *feed) send(frame []byte) error {
	f.s.SetWriteDeadline(time.Now().Add(f.p.cfg.Timing.RPC))
	return f.s.Send(frame)
}

func (f *feed) beat(x *run) beatFrame {
	return beatFrame{target: f.p.Head().Index, leader: x.leader()}
}

// reaches reports whether the log goes back to where the other node stands.
func (f *feed) reaches(x *run) bool {
	head := f.p.Head()
	if f.at.index == 0 || f.at.generation != head.Generation || f.at.index > head.Index {
		return false
	}
	term, err := x.termAt(f.at.index)
	return err == nil && term == f.at.term
}

// sendState sends a moment of the state.
func (f *feed) sendState(x *run) error {
	snapshot, err := f.p.cfg.Store.Snapshot()
	if err != nil {
		return err
	}
	defer snapshot.Release()
	var head Head
	var seq uint64
	err = snapshot.View(func(tx machine.Tx) (err error) {
		if head, err = ReadHead(tx); err == nil {
			seq, _, err = f.p.cfg.Applier.Head(tx)
		}
		return err
	})
	if err != nil {
		return err
	}
	if head.Index == 0 {
		return machine.Refuse(CodeNotReady, "ask another node", "this node has no state yet")
	}
	last := new(raft.Log)
	if err := x.disk.logs.GetLog(head.Index, last); err != nil {
		return compacted()
	}
	if err := f.send(stateHeader{size: snapshot.Size(), last: last}.encode()); err != nil {
		return err
	}
	w := &pieces{f: f}
	if _, err := snapshot.Stream(w); err != nil {
		return err
	}
	f.at = syncRequest{generation: head.Generation, index: head.Index, term: head.Term, seq: seq}
	return w.flush()
}

func compacted() error {
	return machine.Refuse(CodeCompacted, "ask again", "the log has been cut meanwhile")
}

// pieces is a writer that cuts a state's stream into frames.
type pieces struct {
	f   *feed
	buf []byte
}

func (w *pieces) Write(b []byte) (int, error) {
	n := len(b)
	for len(b) > 0 {
		if w.buf == nil {
			w.buf = append(make([]byte, 0, syncPiece+1), syncData)
		}
		k := min(len(b), syncPiece+1-len(w.buf))
		w.buf = append(w.buf, b[:k]...)
		b = b[k:]
		if len(w.buf) == syncPiece+1 {
			if err := w.flush(); err != nil {
				return 0, err
			}
		}
	}
	return n, nil
}

func (w *pieces) flush() error {
	if w.buf == nil {
		return nil
	}
	frame := w.buf
	w.buf = nil
	return w.f.send(frame)
}

// sendEntries sends some of what this node has applied and the other has not.
func (f *feed) sendEntries(x *run) (sent bool, err error) {
	m := entriesFrame{beatFrame: f.beat(x)}
	at, size := f.at, 0
	for index := at.index + 1; index <= m.target && len(m.entries) < syncBatch; index++ {
		l := new(raft.Log)
		if err := x.disk.logs.GetLog(index, l); err != nil {
			return false, compacted()
		}
		if l.Type != raft.LogCommand && l.Type != raft.LogConfiguration {
			continue
		}
		if size += len(l.Data); size > syncBatchSize && len(m.entries) > 0 {
			break
		}
		m.entries = append(m.entries, l)
		at.index, at.term = l.Index, l.Term
		if l.Type == raft.LogCommand {
			at.seq++
		}
	}
	if len(m.entries) == 0 {
		return false, nil
	}
	if m.check, err = f.p.checkpoint(at.seq); err != nil {
		return false, err
	}
	if err := f.send(m.encode()); err != nil {
		return false, err
	}
	f.at = at
	return true, nil
}

// checkpoint is the decision log's head at an entry, if the state machine
// remembers it.
func (p *Path) checkpoint(seq uint64) (c machine.Checkpoint, err error) {
	err = p.cfg.Store.View(func(tx machine.Tx) error {
		c, err = p.checkpointIn(tx, seq)
		return err
	})
	return c, err
}

func (p *Path) checkpointIn(tx machine.Tx, seq uint64) (machine.Checkpoint, error) {
	source, ok := p.cfg.Applier.(Checkpointer)
	if !ok || seq == 0 {
		return machine.Checkpoint{}, nil
	}
	c, found, err := source.CheckpointAt(tx, seq)
	if err != nil || !found {
		return machine.Checkpoint{}, err
	}
	return c, nil
}
