package agora

import (
	"cmp"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// Page sizes of agora.list and agora.dissents.
const (
	DefaultPage = 50
	MaxPage     = 500
)

// Queries implements machine.Machine.
func (*Machine) Queries() []machine.Query {
	return []machine.Query{
		{Name: "agora.get", Schema: schema("get"), Summary: "Show a round with its votes, vetoes and resolution.", Run: get},
		{Name: "agora.list", Schema: schema("list"), Summary: "List rounds by id, by status if given.", Run: list},
		{Name: "agora.dissents", Schema: schema("dissents"), Summary: "Read the dissent log of a round or of an agent.", Run: dissents},
	}
}

// View is the answer of agora.get.
type View struct {
	Proposal
	Status       string        `json:"status"` // open, or the outcome
	AutoEvaluate bool          `json:"auto_evaluate"`
	CreatedAt    machine.Stamp `json:"created_at_ms"`
	ActionHash   string        `json:"action_hash"`
	Tally        Tally         `json:"tally"`
	Needed       uint64        `json:"needed"` // votes that meet the quorum
	Votes        []Vote        `json:"votes"`  // by agent
	Vetoes       []Veto        `json:"vetoes"` // as they came
	Resolution   *Resolution   `json:"resolution"`
}

func get(tx machine.Tx, _ machine.Ctx, _ string, params json.RawMessage) (any, error) {
	var in EvaluateBody
	if err := machine.DecodeParams(params, &in); err != nil {
		return nil, err
	}
	if err := checkID(in.RoundID); err != nil {
		return nil, err
	}
	s := store{tx}
	r, err := s.get(in.RoundID)
	if err != nil {
		return nil, err
	}
	return s.view(r)
}

func (s store) view(r *record) (*View, error) {
	action, err := s.tx.Get([]byte("a/" + r.ID))
	if err != nil {
		return nil, err
	}
	votes, vetoes, voters, vetoers, err := s.everybody(r.ID)
	if err != nil {
		return nil, err
	}
	v := &View{
		Proposal: Proposal{
			ID: r.ID, ProposerID: r.Proposer, Action: slices.Clone(action), Voters: voters, Vetoers: vetoers,
			Quorum: r.Ballot.Quorum, Deadline: r.Ballot.Deadline,
		},
		Status: r.status(), AutoEvaluate: r.Auto, CreatedAt: r.Created, ActionHash: r.ActionHash, Tally: r.Ballot.Tally,
		Votes: append([]Vote{}, votes...), Vetoes: append([]Veto{}, vetoes...), Resolution: r.Ballot.Resolution,
	}
	v.Needed, _ = r.Ballot.Quorum.Needed(r.Ballot.Tally.Registered)
	if v.Resolution != nil {
		v.Resolution.Dissent = dissent(vetoes, votes)
	}
	return v, nil
}

// Row is one round in agora.list.
type Row struct {
	RoundID    string        `json:"round_id"`
	ProposerID string        `json:"proposer_id"`
	Status     string        `json:"status"`
	Tally      Tally         `json:"tally"`
	Quorum     Quorum        `json:"quorum"`
	CreatedAt  machine.Stamp `json:"created_at_ms"`
	Deadline   *int64        `json:"deadline_ms,omitempty"`
	ResolvedAt int64         `json:"resolved_at_ms,omitempty"`
}

// Page is the answer of agora.list; Next continues it as "after", "" ends it.
type Page struct {
	Rounds []Row  `json:"rounds"`
	Next   string `json:"next,omitempty"`
}

var statuses = []string{open, string(Approved), string(Rejected), string(Vetoed), string(TimedOut)}

func list(tx machine.Tx, _ machine.Ctx, _ string, params json.RawMessage) (any, error) {
	var in struct {
		Status string `json:"status"`
		After  string `json:"after"`
		Limit  *int   `json:"limit"`
	}
	if err := machine.DecodeParams(params, &in); err != nil {
		return nil, err
	}
	limit, err := machine.PageSize(in.Limit, DefaultPage, MaxPage)
	if err != nil {
		return nil, err
	}
	prefix := "p/"
	if in.Status != "" {
		if !slices.Contains(statuses, in.Status) {
			return nil, malformed("no status %.64q", in.Status)
		}
		prefix = "s/" + in.Status + nul
	}
	if in.After != "" {
		if err := checkID(in.After); err != nil {
			return nil, err
		}
	}
	ids, next, err := machine.Page(tx, prefix, in.After, limit)
	if err != nil {
		return nil, err
	}
	s, page := store{tx}, Page{Rounds: []Row{}, Next: next}
	for _, id := range ids {
		r, err := s.get(id)
		if err != nil {
			return nil, err
		}
		page.Rounds = append(page.Rounds, r.row())
	}
	return page, nil
}

func (r *record) row() Row {
	row := Row{
		RoundID: r.ID, ProposerID: r.Proposer, Status: r.status(), Tally: r.Ballot.Tally, Quorum: r.Ballot.Quorum,
		CreatedAt: r.Created, Deadline: r.Ballot.Deadline,
	}
	if r.Ballot.Resolution != nil {
		row.ResolvedAt = r.Ballot.Resolution.ResolvedAt
	}
	return row
}

// DissentPage is the answer of agora.dissents; Next continues it as "after".
type DissentPage struct {
	Dissents []DissentRecord `json:"dissents"`
	Next     string          `json:"next,omitempty"`
}

// dissents reads the log of a round (vetoes first) or of an agent (oldest
// first). The cursor is the hex of the last key's rest.
func dissents(tx machine.Tx, _ machine.Ctx, _ string, params json.RawMessage) (any, error) {
	var in struct {
		RoundID string `json:"round_id"`
		AgentID string `json:"agent_id"`
		After   string `json:"after"`
		Limit   *int   `json:"limit"`
	}
	if err := machine.DecodeParams(params, &in); err != nil {
		return nil, err
	}
	limit, err := machine.PageSize(in.Limit, DefaultPage, MaxPage)
	if err != nil {
		return nil, err
	}
	after, err := hex.DecodeString(in.After)
	if err != nil || (in.RoundID == "") == (in.AgentID == "") {
		return nil, malformed("give round_id or agent_id, and as after only what next said")
	}
	if err := checkID(in.RoundID + in.AgentID); err != nil { // one of them is empty
		return nil, err
	}
	prefix := "e/" + in.RoundID + nul
	if in.AgentID != "" {
		prefix = "d/" + in.AgentID + nul
	}
	page, last := DissentPage{Dissents: []DissentRecord{}}, ""
	err = machine.EachRecord(tx, prefix, string(after), func(rest string, d *DissentRecord) (bool, error) {
		if len(page.Dissents) == limit {
			page.Next = hex.EncodeToString([]byte(last))
			return false, nil
		}
		page.Dissents, last = append(page.Dissents, *d), rest
		return true, nil
	})
	return page, err
}

// MaxAsks is the most asks a principal is shown at once: the ones with the
// earliest deadlines. More appear as these are answered.
const MaxAsks = 500

// inlineAction is the longest action an ask carries; a longer one is read with agora.get.
const inlineAction = 4096

// Asks implements machine.Machine: a vote for every open round in which the
// principal may vote and has not, and one for those he may veto.
func (*Machine) Asks(tx machine.Tx, _ machine.Ctx, principal string) ([]machine.Ask, error) {
	s := store{tx}
	var asks []machine.Ask
	for _, veto := range []bool{false, true} {
		prefix := "o/" + principal + nul
		if veto {
			prefix = "q/" + principal + nul
		}
		var ids []string
		err := machine.Each(tx, prefix, "", func(id string, _ []byte) (bool, error) {
			ids = append(ids, id)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			ask, err := s.ask(id, veto)
			if err != nil {
				return nil, err
			}
			asks = append(asks, ask)
		}
	}
	slices.SortStableFunc(asks, func(a, b machine.Ask) int {
		return cmp.Or(machine.CompareDeadlines(a.Deadline, b.Deadline), cmp.Compare(a.Subject, b.Subject))
	})
	return asks[:min(len(asks), MaxAsks)], nil
}

// askContext is what one needs to know to answer.
type askContext struct {
	Veto       bool            `json:"veto"` // this asks for a veto, if there is a reason for one
	ProposerID string          `json:"proposer_id"`
	Action     json.RawMessage `json:"action,omitempty"` // absent when long: read it with agora.get
	ActionHash string          `json:"action_hash"`
	Tally      Tally           `json:"tally"`
	Quorum     Quorum          `json:"quorum"`
	Vetoed     *Veto           `json:"vetoed,omitempty"` // a veto that waits for the evaluation
}

func (s store) ask(id string, veto bool) (machine.Ask, error) {
	r, err := s.get(id)
	if err != nil {
		return machine.Ask{}, err
	}
	action, err := s.tx.Get([]byte("a/" + id))
	if err != nil {
		return machine.Ask{}, err
	}
	c := askContext{Veto: veto, ProposerID: r.Proposer, ActionHash: r.ActionHash, Tally: r.Ballot.Tally, Quorum: r.Ballot.Quorum, Vetoed: r.Ballot.Veto}
	if len(action) <= inlineAction {
		c.Action = slices.Clone(action)
	}
	ask := machine.Ask{
		Ask: "vote", Kind: "agora.vote", Subject: id, Schema: schema("vote"), Context: c,
		Title: fmt.Sprintf("Vote on round %s of %s", id, r.Proposer),
	}
	if veto {
		ask.Kind, ask.Schema = "agora.veto", schema("veto")
		ask.Title = fmt.Sprintf("Veto round %s of %s if it must not happen", id, r.Proposer)
	}
	if r.Ballot.Deadline != nil {
		ask.Deadline = machine.Stamp(*r.Ballot.Deadline)
	}
	return ask, nil
}
