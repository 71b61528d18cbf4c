package raftpath

import (
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
)

// planKey is where the store's local space keeps a plan that has begun.
var planKey = []byte("raft plan")

// plan is a change of the raft folder so that raft starts where the state
// ends: the log holds exactly the state's last entry, or more if it held that
// entry already. It is written down before it begins and carried out again
// after a crash, since a log that is half cut would make this node forget
// what it has voted for.
type plan struct {
	generation uint64
	last       *raft.Log
	config     []byte
	configAt   uint64
}

func (m plan) encode() []byte {
	b := []byte{1}
	for _, v := range []uint64{m.generation, m.configAt, m.last.Index} {
		b = binary.BigEndian.AppendUint64(b, v)
	}
	return appendEntry(appendBytes(b, m.config), m.last)
}

func decodePlan(b []byte) (plan, error) {
	r := &reader{b: b}
	if r.byte() != 1 {
		r.fail()
	}
	m := plan{generation: r.u64(), configAt: r.u64()}
	index := r.position()
	m.config = r.bytes()
	m.last = r.entry(index)
	return m, r.end()
}

// prepareRaft makes raft start where the state ends. last is the log entry at
// the state's head. Raft is stopped; the caller holds life.
func (p *Path) prepareRaft(last *raft.Log) error {
	head := p.Head()
	if last == nil || last.Index != head.Index || last.Term != head.Term || head.ConfigIndex == 0 {
		return fmt.Errorf("raftpath: the state at raft index %d and the entry to start from do not fit", head.Index)
	}
	m := plan{generation: head.Generation, last: last, config: head.Config, configAt: head.ConfigIndex}
	if err := p.cfg.Store.UpdateLocal(func(tx machine.Tx) error { return tx.Put(planKey, m.encode()) }); err != nil {
		return err
	}
	return p.finishPlan()
}

// finishPlan carries out the plan that is written down, if there is one.
func (p *Path) finishPlan() error {
	var raw []byte
	err := p.cfg.Store.Local(func(tx machine.Tx) error {
		b, err := tx.Get(planKey)
		raw = append([]byte(nil), b...)
		return err
	})
	if err != nil || len(raw) == 0 {
		return err
	}
	m, err := decodePlan(raw)
	if err != nil {
		return fmt.Errorf("raft plan: %w", err)
	}
	d, err := p.openDisk(m.generation)
	if err != nil {
		return err
	}
	if err := errors.Join(p.carryOut(m, d), d.bolt.Close()); err != nil {
		return err
	}
	return p.cfg.Store.UpdateLocal(func(tx machine.Tx) error { return tx.Delete(planKey) })
}

func (p *Path) carryOut(m plan, d *disk) error {
	// The term never goes back, and votes stay: they are promises.
	const currentTerm = "CurrentTerm"
	term, err := d.keys.GetUint64([]byte(currentTerm))
	if err != nil && err.Error() != "not found" { // raft-boltdb's error has this text, and raft itself compares it
		return err
	}
	if term < m.last.Term {
		if err := d.keys.SetUint64([]byte(currentTerm), m.last.Term); err != nil {
			return err
		}
	}
	var held raft.Log
	switch err := d.bolt.GetLog(m.last.Index, &held); {
	case err == nil && held.Term == m.last.Term:
		return nil // the log goes through the state's end: nothing to cut
	case err != nil && !errors.Is(err, raft.ErrLogNotFound):
		return err
	}
	if err := p.snapshotAt(m, d); err != nil {
		return err
	}
	first, err := d.bolt.FirstIndex()
	if err != nil {
		return err
	}
	end, err := d.bolt.LastIndex()
	if err != nil {
		return err
	}
	if first > 0 {
		if err := d.logs.DeleteRange(first, end); err != nil {
			return err
		}
	}
	return d.logs.StoreLog(m.last)
}

// snapshotAt leaves one snapshot, without content, that names where the state
// ends. Older ones go first: the newest by term would win.
func (p *Path) snapshotAt(m plan, d *disk) error {
	config, err := decodeConfiguration(m.config)
	if err != nil {
		return err
	}
	if err := os.RemoveAll(filepath.Join(d.dir, "snapshots")); err != nil {
		return err
	}
	snaps, err := raft.NewFileSnapshotStoreWithLogger(d.dir, 1, p.hclog())
	if err != nil {
		return err
	}
	sink, err := snaps.Create(raft.SnapshotVersionMax, m.last.Index, m.last.Term, config, m.configAt, peerNames{})
	if err != nil {
		return err
	}
	return sink.Close()
}

// peerNames is all of a transport that creating a snapshot asks for.
type peerNames struct{ raft.Transport }

func (peerNames) EncodePeer(_ raft.ServerID, a raft.ServerAddress) []byte { return []byte(a) }
