package agora

import (
	"bytes"
	"encoding/json"
	"unicode/utf8"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// Bounds of what an action may carry.
const (
	MaxID         = 128                            // characters of a round's id
	MaxVoters     = 1000                           // voters of a round
	MaxVetoers    = 100                            // vetoers of a round
	MaxReason     = 1024                           // characters of a reason
	MaxDeadlineIn = 10 * 365 * 24 * 60 * 60 * 1000 // ms, ten years
	maxDeadline   = int64(253402300799) * 1000     // ms, the end of the year 9999
	fixSchema     = "see the body schema of the kind"
)

// ProposeBody is the body of agora.propose.
type ProposeBody struct {
	ID           string          `json:"id,omitempty"` // "": the action's id serves
	Action       json.RawMessage `json:"action"`       // an object
	Voters       []Voter         `json:"voters"`
	Vetoers      []string        `json:"vetoers,omitempty"`
	Quorum       Quorum          `json:"quorum"`
	DeadlineMS   int64           `json:"deadline_ms,omitempty"`    // absolute; 0: none
	DeadlineInMS int64           `json:"deadline_in_ms,omitempty"` // instead of DeadlineMS; 0: none
	AutoEvaluate bool            `json:"auto_evaluate,omitempty"`  // evaluate after every vote and veto
}

// DecodePropose reads the body of agora.propose. Refusals: malformed,
// invalid_proposal, out_of_range.
func DecodePropose(body json.RawMessage) (ProposeBody, error) {
	var raw struct {
		ID           *string         `json:"id"`
		Action       json.RawMessage `json:"action"`
		Voters       []Voter         `json:"voters"`
		Vetoers      []string        `json:"vetoers"`
		Quorum       json.RawMessage `json:"quorum"`
		DeadlineMS   json.RawMessage `json:"deadline_ms"`
		DeadlineInMS json.RawMessage `json:"deadline_in_ms"`
		AutoEvaluate bool            `json:"auto_evaluate"`
	}
	if err := machine.DecodeBody(body, &raw); err != nil {
		return ProposeBody{}, err
	}
	out := ProposeBody{Action: raw.Action, Voters: raw.Voters, Vetoers: raw.Vetoers, AutoEvaluate: raw.AutoEvaluate}
	if raw.ID != nil {
		out.ID = *raw.ID
		if err := checkID(out.ID); err != nil {
			return out, err
		}
	}
	switch {
	case !bytes.HasPrefix(raw.Action, []byte("{")):
		return out, malformed("action is not an object")
	case raw.Quorum == nil:
		return out, malformed("quorum is missing")
	case raw.DeadlineMS != nil && raw.DeadlineInMS != nil:
		return out, malformed("deadline_ms and deadline_in_ms exclude each other")
	}
	if err := checkElectorate(raw.Voters, raw.Vetoers); err != nil {
		return out, err
	}
	var err error
	if out.Quorum, err = ParseQuorum(raw.Quorum); err != nil {
		return out, err
	}
	if out.DeadlineMS, err = millis("deadline_ms", raw.DeadlineMS, maxDeadline); err != nil {
		return out, err
	}
	out.DeadlineInMS, err = millis("deadline_in_ms", raw.DeadlineInMS, MaxDeadlineIn)
	return out, err
}

// checkElectorate wants 1 to MaxVoters distinct voters and at most MaxVetoers
// distinct vetoers. One may be both.
func checkElectorate(voters []Voter, vetoers []string) error {
	if len(voters) == 0 || len(voters) > MaxVoters || len(vetoers) > MaxVetoers {
		return invalid("name 1 to 1000 voters and at most 100 vetoers", "%d voters and %d vetoers", len(voters), len(vetoers))
	}
	seen := make(map[string]bool, len(voters))
	for _, v := range voters {
		if v.ID == "" {
			return invalid("name voters by their ids", "a voter's id is empty")
		}
		if seen[v.ID] {
			return invalid("name each voter once", "voter %.64q is named twice", v.ID)
		}
		seen[v.ID] = true
	}
	clear(seen)
	for _, id := range vetoers {
		if id == "" {
			return invalid("name vetoers by their ids", "a vetoer's id is empty")
		}
		if seen[id] {
			return invalid("name each vetoer once", "vetoer %.64q is named twice", id)
		}
		seen[id] = true
	}
	return nil
}

func millis(name string, raw json.RawMessage, most int64) (int64, error) {
	if raw == nil {
		return 0, nil
	}
	n, err := canon.Integer(raw)
	if err != nil || n == 0 || n > uint64(most) {
		return 0, machine.Refuse(machine.CodeOutOfRange, "give whole milliseconds, 1 or more", "%s is %.64s", name, raw)
	}
	return int64(n), nil
}

// VoteBody is the body of agora.vote.
type VoteBody struct {
	RoundID string `json:"round_id"`
	Choice  Choice `json:"choice"`
	Reason  string `json:"reason,omitempty"`
}

// DecodeVote reads the body of agora.vote. Refusals: malformed, invalid_choice.
func DecodeVote(body json.RawMessage) (VoteBody, error) {
	var out VoteBody
	if err := machine.DecodeBody(body, &out); err != nil {
		return out, err
	}
	if err := checkID(out.RoundID); err != nil {
		return out, err
	}
	if err := checkChoice(out.Choice); err != nil {
		return out, err
	}
	return out, checkLength(out.Reason)
}

// VetoBody is the body of agora.veto.
type VetoBody struct {
	RoundID string `json:"round_id"`
	Reason  string `json:"reason"`
}

// DecodeVeto reads the body of agora.veto. Refusals: malformed,
// veto_reason_required, also where the reason is left out.
func DecodeVeto(body json.RawMessage) (VetoBody, error) {
	var out VetoBody
	if err := machine.DecodeBody(body, &out); err != nil {
		return out, err
	}
	if err := checkID(out.RoundID); err != nil {
		return out, err
	}
	if err := checkReason(out.Reason); err != nil {
		return out, err
	}
	return out, checkLength(out.Reason)
}

// EvaluateBody is the body of agora.evaluate.
type EvaluateBody struct {
	RoundID string `json:"round_id"`
}

// DecodeEvaluate reads the body of agora.evaluate. Refusal: malformed.
func DecodeEvaluate(body json.RawMessage) (EvaluateBody, error) {
	var out EvaluateBody
	if err := machine.DecodeBody(body, &out); err != nil {
		return out, err
	}
	return out, checkID(out.RoundID)
}

// MarshalJSON writes a voter of weight 1 as a string, any other as an object.
func (v Voter) MarshalJSON() ([]byte, error) {
	if v.Weight <= 1 {
		return json.Marshal(v.ID)
	}
	type plain Voter
	return json.Marshal(plain(v))
}

// UnmarshalJSON reads both forms; a weight is 1 to [MaxWeight].
func (v *Voter) UnmarshalJSON(raw []byte) error {
	w := struct {
		ID     string  `json:"id"`
		Weight *uint64 `json:"weight"`
	}{}
	if bytes.HasPrefix(raw, []byte(`"`)) {
		if err := json.Unmarshal(raw, &w.ID); err != nil {
			return err
		}
	} else if err := machine.DecodeBody(raw, &w); err != nil {
		return err
	}
	if w.ID == "" {
		return malformed("a voter has no id")
	}
	*v = Voter{ID: w.ID, Weight: 1}
	if w.Weight != nil {
		if v.Weight = *w.Weight; v.Weight == 0 || v.Weight > MaxWeight {
			return malformed("a weight is 1 to %d", MaxWeight)
		}
	}
	return nil
}

func malformed(format string, args ...any) error {
	return machine.Refuse(machine.CodeMalformed, fixSchema, format, args...)
}

// checkID takes 1 to MaxID characters without control characters: a round's
// id is a free text such as "deploy-2026-09-15".
func checkID(id string) error {
	if n := utf8.RuneCountInString(id); n == 0 || n > MaxID {
		return malformed("a round's id has %d characters, 1 to %d are accepted", n, MaxID)
	}
	for _, r := range id {
		if r < ' ' || r == 0x7f {
			return malformed("a round's id holds %q", r)
		}
	}
	return nil
}

func checkLength(reason string) error {
	if utf8.RuneCountInString(reason) > MaxReason {
		return malformed("reason is longer than %d characters", MaxReason)
	}
	return nil
}
