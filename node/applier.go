package node

import (
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"

	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/raftpath"
)

// applier lets raftpath drive the state machine.
type applier struct{ f *fsm.FSM }

var (
	_ raftpath.Applier      = applier{}
	_ raftpath.Checker      = applier{}
	_ raftpath.Checkpointer = applier{}
)

func (a applier) Prepare(tx machine.Tx, entry []byte) any {
	p := fsm.Decode(entry)
	if err := a.f.FindKeys(tx, p); err != nil {
		return err // Apply reports it
	}
	return p
}

func (a applier) Checks(prepared any) int {
	if p, ok := prepared.(*fsm.Prepared); ok {
		return p.Len()
	}
	return 0
}

func (a applier) Check(prepared any, i int) { a.f.Verify(prepared.(*fsm.Prepared), i) }

func (a applier) Apply(tx machine.Tx, prepared any) (raftpath.Outcome, error) {
	p, ok := prepared.(*fsm.Prepared)
	if !ok {
		return raftpath.Outcome{}, fmt.Errorf("prepare: %v", prepared)
	}
	out, err := a.f.Apply(tx, p)
	if err != nil {
		return raftpath.Outcome{}, err
	}
	answers := make([][]byte, 0, len(out.Answers))
	for _, answer := range out.Answers {
		text, err := encodeAnswer(answer)
		if err != nil {
			return raftpath.Outcome{}, fmt.Errorf("encode answer: %w", err)
		}
		answers = append(answers, text)
	}
	return raftpath.Outcome{Seq: out.Head.Seq, Stamp: out.Head.Stamp, Answers: answers, Events: out}, nil
}

// encodeAnswer is [json.Marshal], quick for what every node encodes for every
// accepted action: an id that is a ULID, numbers, and canonical JSON.
func encodeAnswer(a fsm.Answer) ([]byte, error) {
	if a.Refusal != nil || len(a.Result) == 0 {
		return json.Marshal(a)
	}
	out := append(append(make([]byte, 0, len(a.Result)+128), `{"action_id":"`...), a.ActionID...)
	out = strconv.AppendUint(append(out, `","seq":`...), a.Seq, 10)
	out = strconv.AppendInt(append(out, `,"stamp_ms":`...), int64(a.Stamp), 10)
	out = append(append(out, `,"result":`...), a.Result...)
	if a.Repeated {
		out = append(out, `,"repeated":true`...)
	}
	return append(out, '}'), nil
}

func (a applier) Next(tx machine.Tx) (machine.Stamp, bool, error) { return a.f.Next(tx) }

func (a applier) Head(tx machine.Tx) (uint64, machine.Stamp, error) {
	h, err := fsm.ReadHead(tx)
	if errors.Is(err, fsm.ErrNoGenesis) {
		return 0, 0, nil // a joiner before it has the state
	}
	return h.Seq, h.Stamp, err
}

func (a applier) CheckpointAt(tx machine.Tx, seq uint64) (machine.Checkpoint, bool, error) {
	return fsm.CheckpointAt(tx, seq)
}

// encoder writes this cluster's entries.
func encoder(genesis string) (raftpath.Encode, error) {
	raw, err := hex.DecodeString(genesis)
	if err != nil || len(raw) != 32 {
		return nil, fmt.Errorf("genesis hash %q is not 64 hex digits", genesis)
	}
	id := [32]byte(raw)
	return func(generation, epoch uint64, stamp machine.Stamp, actions [][]byte) []byte {
		return fsm.Entry{Genesis: id, Generation: generation, Epoch: epoch, Stamp: stamp, Actions: actions}.Encode()
	}, nil
}
