package raftpath

import (
	"encoding/binary"
	"fmt"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
)

// headKey is where the state keeps raft's position; the prefix "r/" is this
// package's.
var headKey = []byte("r/head")

func (h Head) encode() []byte {
	b := []byte{1}
	for _, v := range []uint64{h.Generation, h.Index, h.Term, h.ConfigIndex} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return appendBytes(b, h.Config)
}

func decodeHead(b []byte) (Head, error) {
	r := &reader{b: b}
	if r.byte() != 1 {
		r.fail()
	}
	h := Head{Generation: r.u64(), Index: r.position(), Term: r.position(), ConfigIndex: r.position()}
	h.Config = append([]byte(nil), r.bytes()...)
	if err := r.end(); err != nil {
		return Head{}, fmt.Errorf("raft's head in the state: %w", err)
	}
	return h, nil
}

// ReadHead reads raft's position from the state; the zero Head when nothing
// has been applied.
func ReadHead(tx machine.Tx) (Head, error) {
	b, err := tx.Get(headKey)
	if err != nil || b == nil {
		return Head{}, err
	}
	return decodeHead(b)
}

// configuration is raft's configuration at the head; empty before the first.
func (h Head) configuration() (raft.Configuration, error) {
	if h.ConfigIndex == 0 {
		return raft.Configuration{}, nil
	}
	return decodeConfiguration(h.Config)
}
