package membership

import (
	"encoding/json"
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// MembersAnswer is the answer of cluster.members.
type MembersAnswer struct {
	Genesis    string `json:"genesis"` // hash: the cluster's id
	Epoch      uint64 `json:"epoch"`
	N          int    `json:"n"`
	F          int    `json:"f"` // 0 below 4 voters: no fault is tolerated
	Quorum     int    `json:"quorum"`
	FSMVersion uint64 `json:"fsm_version"`
	Members    []Node `json:"members"` // ascending by node
	Removed    []Node `json:"removed"`
}

// GenesisAnswer is the answer of cluster.genesis.
type GenesisAnswer struct {
	Hash    string  `json:"hash"`
	Genesis Genesis `json:"genesis"`
}

// InvitationsAnswer is the answer of cluster.invitations, by key.
type InvitationsAnswer struct {
	Invitations []InvitationView `json:"invitations"`
}

// Change is a change of the voters that waits for approvals.
type Change struct {
	Change    string        `json:"change"`
	What      string        `json:"what"`    // invite or remove
	Subject   string        `json:"subject"` // the invitation's x, or the node
	Operator  string        `json:"operator,omitempty"`
	Approvals []string      `json:"approvals"`
	Weight    int           `json:"weight"` // current voters stood for
	Needed    int           `json:"needed"`
	ExpiresMS machine.Stamp `json:"expires_ms"`
}

// ChangesAnswer is the answer of cluster.changes, oldest first.
type ChangesAnswer struct {
	Changes []Change `json:"changes"`
}

// Queries implements machine.Machine.
func (*Machine) Queries() []machine.Query {
	return []machine.Query{
		{Name: "cluster.members", Schema: schemaOf("cluster.members"), Summary: "List the nodes of the cluster.", Run: queryMembers},
		{Name: "cluster.genesis", Schema: schemaOf("cluster.genesis"), Summary: "Show the genesis.", Run: queryGenesis},
		{Name: "cluster.invitations", Schema: schemaOf("cluster.invitations"), Summary: "List invitations.", Run: queryInvitations},
		{Name: "cluster.changes", Schema: schemaOf("cluster.changes"), Summary: "List changes of the voters that wait for approvals.", Run: queryChanges},
	}
}

type noParams struct{}

func (noParams) shape() *machine.Refusal { return nil }

type invitationsParams struct {
	State InvitationState `json:"state,omitempty"`
}

func (p invitationsParams) shape() *machine.Refusal {
	if p.State != "" && !slices.Contains([]InvitationState{PendingApproval, Open, Used, Expired}, p.State) {
		return machine.Malformed("state is none of pending_approval, open, used, expired")
	}
	return nil
}

func queryMembers(tx machine.Tx, ctx machine.Ctx, _ string, raw json.RawMessage) (any, error) {
	if _, err := params[noParams](raw); err != nil {
		return nil, err
	}
	e, err := state{tx}.current()
	if err != nil {
		return nil, err
	}
	n := len(e.Voters)
	out := MembersAnswer{Genesis: ctx.Genesis, Epoch: e.Epoch, N: n, F: Faults(n), Quorum: Quorum(n)}
	if out.FSMVersion, err = FSMVersion(tx); err != nil {
		return nil, err
	}
	if out.Members, err = Members(tx); err != nil {
		return nil, err
	}
	out.Removed, err = Removed(tx)
	return out, err
}

func queryGenesis(tx machine.Tx, _ machine.Ctx, _ string, raw json.RawMessage) (any, error) {
	if _, err := params[noParams](raw); err != nil {
		return nil, err
	}
	g, err := Founding(tx)
	return GenesisAnswer{Hash: g.Hash(), Genesis: g}, err
}

func queryInvitations(tx machine.Tx, _ machine.Ctx, _ string, raw json.RawMessage) (any, error) {
	p, err := params[invitationsParams](raw)
	if err != nil {
		return nil, err
	}
	list, err := state{tx}.invitations(func(i *invitationRecord) bool { return p.State == "" || p.State == i.State })
	return InvitationsAnswer{Invitations: list}, err
}

func (s state) invitations(want func(*invitationRecord) bool) ([]InvitationView, error) {
	out := []InvitationView{}
	err := machine.EachRecord(s.tx, prefixInvitation, "", func(_ string, i *invitationRecord) (bool, error) {
		if !want(i) {
			return true, nil
		}
		v, err := i.view()
		out = append(out, v)
		return err == nil, err
	})
	return out, err
}

func queryChanges(tx machine.Tx, _ machine.Ctx, _ string, raw json.RawMessage) (any, error) {
	if _, err := params[noParams](raw); err != nil {
		return nil, err
	}
	list, err := state{tx}.changes()
	return ChangesAnswer{Changes: list}, err
}

// changes lists the pending changes by id; ids are ULIDs, so the oldest first.
func (s state) changes() ([]Change, error) {
	out := []Change{}
	err := machine.EachRecord(s.tx, prefixChange, "", func(_ string, c *changeRecord) (bool, error) {
		a, err := s.weigh(c)
		out = append(out, Change{Change: c.Change, What: string(c.What), Subject: c.Subject, Operator: c.Operator,
			Approvals: c.Approvals, Weight: a.Weight, Needed: a.Needed, ExpiresMS: c.Expires})
		return err == nil, err
	})
	return out, err
}

// asks lists the changes that an operator has not approved yet and whose
// approval would count: it answers for a voter, or will for the invited node.
func (s state) asks(principal string) ([]machine.Ask, error) {
	raw, err := s.tx.Get([]byte(prefixOperator + principal))
	if err != nil || raw == nil {
		return nil, err
	}
	e, err := s.current()
	if err != nil {
		return nil, err
	}
	stands := slices.ContainsFunc(e.Voters, func(v Voter) bool { return v.Operator == principal })
	list, err := s.changes()
	if err != nil {
		return nil, err
	}
	var out []machine.Ask
	for _, c := range list {
		if slices.Contains(c.Approvals, principal) || !stands && c.Operator != principal {
			continue
		}
		out = append(out, machine.Ask{Ask: "review", Kind: KindApprove, Subject: c.Change, Title: c.What + " " + c.Subject,
			Deadline: c.ExpiresMS, Schema: schemaOf(KindApprove), Context: c})
	}
	slices.SortStableFunc(out, func(a, b machine.Ask) int { return machine.CompareDeadlines(a.Deadline, b.Deadline) })
	return out, nil
}
