package raftpath

import (
	"context"
	"encoding/binary"

	"github.com/deliberd/deliberd/p2p"
)

// standing is how far a node is, told to another that asks.
type standing struct {
	raft                      bool // raft runs there
	generation, last, applied uint64
	leader                    string // as that node knows
	config                    uint64 // raft index of its committed configuration
	votes                     bool   // the one who asks is a voter in it
}

func (s standing) encode() []byte {
	b := appendBool(nil, s.raft)
	for _, v := range []uint64{s.generation, s.last, s.applied, s.config} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return appendBytes(appendBool(b, s.votes), []byte(s.leader))
}

func decodeStanding(b []byte) (standing, error) {
	r := &reader{b: b}
	s := standing{raft: r.bool(), generation: r.u64(), last: r.position(), applied: r.position(), config: r.position(), votes: r.bool(), leader: string(r.bytes())}
	return s, r.end()
}

// standing is this node's, as it tells peer.
func (p *Path) standing(peer string) standing {
	head := p.Head()
	s := standing{generation: head.Generation, last: head.Index, applied: head.Index, leader: p.leaderNow(), config: head.ConfigIndex}
	if config, err := head.configuration(); err == nil {
		s.votes = hasVoter(config, peer)
	}
	if x := p.running(); x != nil {
		s.raft, s.last = true, x.r.LastIndex()
	}
	return s
}

// leftOut reports whether the node that told s says that id, a voter in its
// own state, has been one no more since. A node that has been removed never
// becomes a voter again under its id.
func (s standing) leftOut(own Head, id string) bool {
	config, err := own.configuration()
	return err == nil && hasVoter(config, id) && s.generation == own.Generation && s.config > own.ConfigIndex && !s.votes
}

// standingOf asks a node how far it is.
func (p *Path) standingOf(id string) (standing, error) {
	ctx, cancel := context.WithTimeout(p.ctx, p.cfg.Timing.Heartbeat)
	defer cancel()
	reply, err := p.cfg.Host.Call(ctx, id, p2p.Forward, []byte{askStanding})
	if err != nil {
		return standing{}, err
	}
	return decodeStanding(reply)
}
