package agora

import (
	"cmp"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

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
	nul  = "\x00"
	open = "open" // the status of a round that is not resolved
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
		if err := s.save("v/"+r.ID+nul+v.ID, seat{Weight: max(1, v.Weight)}); err != nil {
			return err
		}
		if err := s.mark("o/" + v.ID + nul + r.ID); err != nil {
			return err
		}
	}
	for _, id := range p.Vetoers {
		if err := s.save("w/"+r.ID+nul+id, vetoSeat{}); err != nil {
			return err
		}
		if err := s.mark("q/" + id + nul + r.ID); err != nil {
			return err
		}
	}
	if p.Deadline != nil {
		if err := s.mark(deadlineKey(machine.Stamp(*p.Deadline), r.ID)); err != nil {
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
		gone = append(gone, deadlineKey(machine.Stamp(*r.Ballot.Deadline), r.ID))
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
		if err := s.save("e/"+r.ID+nul+string(order), entry); err != nil {
			return err
		}
		at := binary.BigEndian.AppendUint64(nil, uint64(entry.ResolvedAt))
		if err := s.save("d/"+d.AgentID+nul+string(at)+r.ID+nul+d.Kind, entry); err != nil {
			return err
		}
	}
	return nil
}

// everybody reads all seats: the votes by agent, the vetoes as they came, who
// may vote and who may veto.
func (s store) everybody(round string) (votes []Vote, vetoes []Veto, voters []Voter, vetoers []string, err error) {
	err = each(s, "v/"+round+nul, func(agent string, v seat) (bool, error) {
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
	err = each(s, "w/"+round+nul, func(agent string, v vetoSeat) (bool, error) {
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

func deadlineKey(at machine.Stamp, id string) string {
	return "x/" + string(binary.BigEndian.AppendUint64(nil, uint64(at))) + id
}

// overdue lists the open rounds whose deadline is at or before now, oldest first.
func (s store) overdue(now machine.Stamp) (ids []string, err error) {
	err = s.tx.Range([]byte("x/"), []byte(deadlineKey(now+1, "")), func(k, _ []byte) (bool, error) {
		ids = append(ids, string(k[len("x/")+8:]))
		return true, nil
	})
	return ids, err
}

func (s store) firstDeadline() (at machine.Stamp, ok bool, err error) {
	err = s.tx.Range([]byte("x/"), []byte("x0"), func(k, _ []byte) (bool, error) {
		at, ok = machine.Stamp(binary.BigEndian.Uint64(k[len("x/"):])), true
		return false, nil
	})
	return at, ok, err
}

func (s store) has(id string) (bool, error) {
	v, err := s.tx.Get([]byte("p/" + id))
	return v != nil, err
}

// get refuses with not_found.
func (s store) get(id string) (*record, error) {
	r, err := load[record](s, "p/"+id)
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

func (s store) put(r *record) error { return s.save("p/"+r.ID, r) }

// seat is nil for somebody who may not vote.
func (s store) seat(round, agent string) (*seat, error) { return load[seat](s, "v/"+round+nul+agent) }

func (s store) putSeat(round, agent string, v *seat) error {
	if err := s.tx.Delete([]byte("o/" + agent + nul + round)); err != nil {
		return err
	}
	return s.save("v/"+round+nul+agent, v)
}

// vetoSeat is nil for somebody who may not veto.
func (s store) vetoSeat(round, agent string) (*vetoSeat, error) {
	return load[vetoSeat](s, "w/"+round+nul+agent)
}

func (s store) putVeto(round, agent string, v *vetoSeat) error {
	if err := s.tx.Delete([]byte("q/" + agent + nul + round)); err != nil {
		return err
	}
	return s.save("w/"+round+nul+agent, v)
}

func (s store) mark(key string) error { return s.tx.Put([]byte(key), []byte{1}) }

func (s store) save(key string, v any) error {
	text, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return s.tx.Put([]byte(key), text)
}

func load[T any](s store, key string) (*T, error) {
	text, err := s.tx.Get([]byte(key))
	if err != nil || text == nil {
		return nil, err
	}
	v := new(T)
	if err := json.Unmarshal(text, v); err != nil {
		return nil, corrupt("key %q: %v", key, err)
	}
	return v, nil
}

// each visits the records whose keys start with prefix; f gets the rest of the key.
func each[T any](s store, prefix string, f func(rest string, v T) (bool, error)) error {
	return s.keys(prefix, prefix, func(rest string, text []byte) (bool, error) {
		var v T
		if err := json.Unmarshal(text, &v); err != nil {
			return false, corrupt("key %q: %v", prefix+rest, err)
		}
		return f(rest, v)
	})
}

// keys visits the keys from start on that begin with prefix.
func (s store) keys(prefix, start string, f func(rest string, v []byte) (bool, error)) error {
	end := []byte(prefix)
	end[len(end)-1]++ // prefixes end in '/' or NUL, never 0xff
	return s.tx.Range([]byte(start), end, func(k, v []byte) (bool, error) {
		return f(strings.TrimPrefix(string(k), prefix), v)
	})
}

func corrupt(format string, args ...any) error {
	return fmt.Errorf("agora: local state is corrupt: "+format, args...)
}
