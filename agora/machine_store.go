package agora

import (
	"cmp"
	"encoding/binary"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// Keys of the machine. Neither a round's id nor a principal's holds NUL.
//
//	p/ROUND                            record of a round
//	a/ROUND                            the proposed action
//	v/ROUND NUL AGENT                  a voter's seat, with the last vote
//	w/ROUND NUL AGENT                  a vetoer's seat, with the veto
//	s/STATUS NUL ROUND                 rounds by status
//	x/DEADLINE(8, big endian) ROUND    open rounds with a deadline
//	o/AGENT NUL ROUND                  open rounds in which a voter has not voted
//	q/AGENT NUL ROUND                  open rounds in which a vetoer has not vetoed
//	e/ROUND NUL ORDER(4)               the dissent log by round
//	d/AGENT NUL STAMP(8) ROUND NUL KIND  the dissent log by agent
type store struct{ tx machine.Tx }

const (
	nul       = "\x00"
	open      = "open" // the status of a round that is not resolved
	deadlines = machine.Schedule("x/")
)

// record is what the machine keeps of a round besides its seats.
type record struct {
	ID         string        `json:"id"`
	Proposer   string        `json:"proposer_id"`
	Created    machine.Stamp `json:"created_at_ms"`
	ActionID   string        `json:"action_id"`
	ActionHash string        `json:"action_hash"`
	Auto       bool          `json:"auto_evaluate"`
	Voters     int           `json:"voters"`
	Vetoers    int           `json:"vetoers"`
	Vetoes     uint64        `json:"vetoes"`
	Ballot     Ballot        `json:"ballot"` // a resolution's dissent without reasons
}

// seat is a voter's place.
type seat struct {
	Weight   uint64 `json:"weight"`
	Choice   Choice `json:"choice,omitempty"`
	Reason   string `json:"reason,omitempty"`
	ActionID string `json:"action_id,omitempty"`
}

// vetoSeat is a vetoer's place; N is the veto's place in the order of vetoes, 0 before it.
type vetoSeat struct {
	N        uint64 `json:"n"`
	Reason   string `json:"reason,omitempty"`
	ActionID string `json:"action_id,omitempty"`
}

// DissentRecord is one entry of the dissent log. Entries are never removed.
type DissentRecord struct {
	RoundID string `json:"round_id"`
	Dissent
	Outcome    Outcome `json:"outcome"`
	ResolvedAt int64   `json:"resolved_at_ms"`
}

func (r *record) status() string {
	if r.Ballot.Resolution == nil {
		return open
	}
	return string(r.Ballot.Resolution.Outcome)
}

func (r *record) result() Result {
	return Result{RoundID: r.ID, Status: r.status(), Tally: r.Ballot.Tally, Resolution: r.Ballot.Resolution}
}

// insert writes a new round, its seats and its index entries.
func (s store) insert(r *record, p Proposal) error {
	if err := s.tx.Put([]byte("a/"+r.ID), p.Action); err != nil {
		return err
	}
	for _, v := range p.Voters {
		if err := machine.Save(s.tx, "v/"+r.ID+nul+v.ID, seat{Weight: max(1, v.Weight)}); err != nil {
			return err
		}
		if err := s.mark("o/" + v.ID + nul + r.ID); err != nil {
			return err
		}
	}
	for _, id := range p.Vetoers {
		if err := machine.Save(s.tx, "w/"+r.ID+nul+id, vetoSeat{}); err != nil {
			return err
		}
		if err := s.mark("q/" + id + nul + r.ID); err != nil {
			return err
		}
	}
	if p.Deadline != nil {
		if err := s.mark(string(deadlines.Key(machine.Stamp(*p.Deadline), r.ID))); err != nil {
			return err
		}
	}
	if err := s.mark("s/" + open + nul + r.ID); err != nil {
		return err
	}
	return s.put(r)
}

// resolve keeps what the ballot has just decided: the dissent log, the new
// status, and no more questions. a is the action that did it, empty for time.
func (s store) resolve(r *record, a machine.Action) (machine.Event, error) {
	votes, vetoes, voters, vetoers, err := s.everybody(r.ID)
	if err != nil {
		return machine.Event{}, err
	}
	full := dissent(vetoes, votes)
	if err := s.logDissent(r, full); err != nil {
		return machine.Event{}, err
	}
	if err := s.close(r, voters, vetoers); err != nil {
		return machine.Event{}, err
	}
	r.Ballot.Resolution.Dissent = []Dissent{}
	for _, d := range full {
		r.Ballot.Resolution.Dissent = append(r.Ballot.Resolution.Dissent, Dissent{AgentID: d.AgentID, Kind: d.Kind})
	}
	return machine.Event{
		Type: "agora.resolved", Subject: r.ID, To: electorate(r.Proposer, voters, vetoers),
		Data: resolvedEvent{RoundID: r.ID, Resolution: *r.Ballot.Resolution, ActionHash: r.ActionHash, Actor: a.Actor, ActionID: a.ID},
	}, s.put(r)
}

// close takes the round out of the indexes of open rounds.
func (s store) close(r *record, voters []Voter, vetoers []string) error {
	gone := []string{"s/" + open + nul + r.ID}
	for _, v := range voters {
		gone = append(gone, "o/"+v.ID+nul+r.ID)
	}
	for _, id := range vetoers {
		gone = append(gone, "q/"+id+nul+r.ID)
	}
	if r.Ballot.Deadline != nil {
		gone = append(gone, string(deadlines.Key(machine.Stamp(*r.Ballot.Deadline), r.ID)))
	}
	for _, k := range gone {
		if err := s.tx.Delete([]byte(k)); err != nil {
			return err
		}
	}
	return s.mark("s/" + r.status() + nul + r.ID)
}

func (s store) logDissent(r *record, all []Dissent) error {
	for i, d := range all {
		entry := DissentRecord{RoundID: r.ID, Dissent: d, Outcome: r.Ballot.Resolution.Outcome, ResolvedAt: r.Ballot.Resolution.ResolvedAt}
		order := binary.BigEndian.AppendUint32(nil, uint32(i))
		if err := machine.Save(s.tx, "e/"+r.ID+nul+string(order), entry); err != nil {
			return err
		}
		at := binary.BigEndian.AppendUint64(nil, uint64(entry.ResolvedAt))
		if err := machine.Save(s.tx, "d/"+d.AgentID+nul+string(at)+r.ID+nul+d.Kind, entry); err != nil {
			return err
		}
	}
	return nil
}

// everybody reads all seats: the votes by agent, the vetoes as they came, who
// may vote and who may veto.
func (s store) everybody(round string) (votes []Vote, vetoes []Veto, voters []Voter, vetoers []string, err error) {
	err = machine.EachRecord(s.tx, "v/"+round+nul, "", func(agent string, v *seat) (bool, error) {
		voters = append(voters, Voter{ID: agent, Weight: v.Weight})
		if v.Choice != "" {
			votes = append(votes, Vote{AgentID: agent, Choice: v.Choice, Reason: v.Reason})
		}
		return true, nil
	})
	if err != nil {
		return
	}
	type nth struct {
		n    uint64
		veto Veto
	}
	var cast []nth
	err = machine.EachRecord(s.tx, "w/"+round+nul, "", func(agent string, v *vetoSeat) (bool, error) {
		vetoers = append(vetoers, agent)
		if v.N != 0 {
			cast = append(cast, nth{v.N, Veto{AgentID: agent, Reason: v.Reason}})
		}
		return true, nil
	})
	slices.SortFunc(cast, func(a, b nth) int { return cmp.Compare(a.n, b.n) })
	for _, v := range cast {
		vetoes = append(vetoes, v.veto)
	}
	return
}

func (s store) has(id string) (bool, error) { return machine.Has(s.tx, "p/"+id) }

// get refuses with not_found.
func (s store) get(id string) (*record, error) {
	r, err := machine.Load[record](s.tx, "p/"+id)
	if err == nil && r == nil {
		return nil, machine.Refuse(machine.CodeNotFound, "look it up with agora.list", "no round %.64q", id)
	}
	return r, err
}

// open is get for a round that takes votes; it refuses with round_already_resolved too.
func (s store) open(id string) (*record, error) {
	r, err := s.get(id)
	if err == nil && r.Ballot.Resolution != nil {
		return nil, resolved(r.Ballot.Resolution.Outcome)
	}
	return r, err
}

func (s store) put(r *record) error { return machine.Save(s.tx, "p/"+r.ID, r) }

// seat is nil for somebody who may not vote.
func (s store) seat(round, agent string) (*seat, error) {
	return machine.Load[seat](s.tx, "v/"+round+nul+agent)
}

func (s store) putSeat(round, agent string, v *seat) error {
	if err := s.tx.Delete([]byte("o/" + agent + nul + round)); err != nil {
		return err
	}
	return machine.Save(s.tx, "v/"+round+nul+agent, v)
}

// vetoSeat is nil for somebody who may not veto.
func (s store) vetoSeat(round, agent string) (*vetoSeat, error) {
	return machine.Load[vetoSeat](s.tx, "w/"+round+nul+agent)
}

func (s store) putVeto(round, agent string, v *vetoSeat) error {
	if err := s.tx.Delete([]byte("q/" + agent + nul + round)); err != nil {
		return err
	}
	return machine.Save(s.tx, "w/"+round+nul+agent, v)
}

func (s store) mark(key string) error { return s.tx.Put([]byte(key), []byte{1}) }
