package fsm

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/machine"
)

// Answer is what one action of an entry got.
type Answer struct {
	ActionID string           `json:"action_id"`
	Seq      uint64           `json:"seq"`
	Stamp    machine.Stamp    `json:"stamp_ms"`
	Result   json.RawMessage  `json:"result,omitempty"`
	Refusal  *machine.Refusal `json:"refusal,omitempty"`
	Repeated bool             `json:"repeated,omitempty"` // the first answer, given again
}

// kept is the first answer as the state holds it: codes and values, never
// texts, so that a build with better sentences computes the same state.
type kept struct {
	Code   string          `json:"code,omitempty"`
	Data   map[string]any  `json:"data,omitempty"`
	Hash   []byte          `json:"hash"`
	Result json.RawMessage `json:"result,omitempty"`
	Seq    uint64          `json:"seq"`
	Stamp  machine.Stamp   `json:"stamp"`
}

func idKey(id, actor string) []byte {
	return append(append([]byte{nsID}, id...), actor...)
}

// earlier returns the answer kept for this action, if its id was used before
// by the same actor: the same answer for the same action, a refusal for another.
func earlier(tx machine.Tx, v machine.Verified) (Answer, bool, error) {
	a := v.Action()
	raw, err := tx.Get(idKey(a.ID, a.Actor))
	if err != nil || raw == nil {
		return Answer{}, false, err
	}
	var k kept
	if err := json.Unmarshal(raw, &k); err != nil {
		return Answer{}, false, fmt.Errorf("answer of %s: %w", a.ID, err)
	}
	hash := v.Hash()
	if string(hash[:]) != string(k.Hash) {
		return Answer{ActionID: a.ID, Refusal: machine.Refuse(machine.CodeIDReused, "use a new ULID for a new action", "id %s was used for another action", a.ID)}, true, nil
	}
	answer := Answer{ActionID: a.ID, Seq: k.Seq, Stamp: k.Stamp, Result: k.Result, Repeated: true}
	if k.Code != "" {
		answer.Refusal = machine.Refuse(k.Code, "send it again under a new ULID if the reason is gone", "action %s was refused before, in entry %d", a.ID, k.Seq)
		answer.Refusal.Data = k.Data
	}
	return answer, true, nil
}

// keep stores the first answer.
func keep(tx machine.Tx, v machine.Verified, answer Answer) error {
	hash := v.Hash()
	k := kept{Hash: hash[:], Result: answer.Result, Seq: answer.Seq, Stamp: answer.Stamp}
	if answer.Refusal != nil {
		k.Code, k.Data = answer.Refusal.Code, answer.Refusal.Data
	}
	raw, err := json.Marshal(k)
	if err != nil {
		return fmt.Errorf("keep answer: %w", err)
	}
	a := v.Action()
	return tx.Put(idKey(a.ID, a.Actor), raw)
}

// inWindow refuses an id whose time is outside the replicated window.
func (f *FSM) inWindow(id string, now machine.Stamp) *machine.Refusal {
	parsed, err := ulid.ParseStrict(id)
	if err != nil {
		return machine.Refuse(machine.CodeMalformed, "make the id with a ULID library", "id is not a ULID")
	}
	at := machine.Stamp(parsed.Time())
	if at < now-f.window {
		return machine.Refuse(machine.CodeIDTooOld, "make a new id and check the sender's clock", "the id's time is %d ms before the cluster's", now-at).With("now_ms", now)
	}
	if at > now+f.future {
		return machine.Refuse(machine.CodeIDFromFuture, "make a new id and check the sender's clock", "the id's time is %d ms ahead of the cluster's", at-now).With("now_ms", now)
	}
	return nil
}

// prune forgets answers whose ids have left the window, at most limit of them:
// an action with such an id is refused by its age alone.
func (f *FSM) prune(tx machine.Tx, now machine.Stamp, limit int) error {
	before := now - f.window
	if before <= 0 {
		return nil
	}
	var floor ulid.ULID
	if err := floor.SetTime(uint64(before)); err != nil {
		return errors.Join(errors.New("prune ids"), err)
	}
	var old [][]byte
	err := tx.Range([]byte{nsID}, idKey(floor.String(), ""), func(k, _ []byte) (bool, error) {
		old = append(old, append([]byte(nil), k...))
		return len(old) < limit, nil
	})
	if err != nil {
		return err
	}
	for _, k := range old {
		if err := tx.Delete(k); err != nil {
			return err
		}
	}
	return nil
}
