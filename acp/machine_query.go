package acp

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/deliberd/deliberd/machine"
)

// Page sizes of acp.list.
const (
	DefaultPage = 50
	MaxPage     = 500
)

// Queries implements machine.Machine.
func (*Machine) Queries() []machine.Query {
	return []machine.Query{
		{Name: "acp.get", Schema: schema("get"), Summary: "Show a proposal with its responses and decisions.", Run: get},
		{Name: "acp.list", Schema: schema("list"), Summary: "List proposals by id, by status and domain if given.", Run: list},
	}
}

type wireProposal Proposal // without its MarshalJSON, so that View can add members

// View is the answer of acp.get: the wire Proposal with what the schema
// leaves to extensions.
type View struct {
	wireProposal
	QuorumPolicy *policyView     `json:"quorum_policy,omitempty"`
	Tally        tallyView       `json:"tally"`
	PayloadHash  string          `json:"payload_hash"`
	Escalation   *escalation     `json:"escalation,omitempty"`
	Note         string          `json:"resolution_note,omitempty"`
	Decisions    []DecisionEvent `json:"decisions"`
}

type policyView struct {
	Type      string `json:"type"`
	Threshold string `json:"threshold,omitempty"`
}

type tallyView struct {
	Responses    uint64 `json:"responses"`
	VotesFor     string `json:"votes_for"`
	VotesAgainst string `json:"votes_against"`
}

func get(tx machine.Tx, _ machine.Ctx, _ string, params json.RawMessage) (any, error) {
	var in struct {
		ProposalID string `json:"proposal_id"`
	}
	if err := machine.DecodeParams(params, &in); err != nil {
		return nil, err
	}
	if err := CheckID(in.ProposalID); err != nil {
		return nil, err
	}
	s := store{tx}
	p, err := s.get(in.ProposalID)
	if err != nil {
		return nil, err
	}
	wire, err := s.wire(p)
	if err != nil {
		return nil, err
	}
	v := View{
		wireProposal: wireProposal(wire), PayloadHash: p.PayloadHash, Escalation: p.Escalation, Note: p.ResolutionNote,
		Tally:     tallyView{p.Responses, p.VotesFor.String(), p.VotesAgainst.String()},
		Decisions: append([]DecisionEvent{}, p.Decisions...),
	}
	if p.Policy != "" {
		v.QuorumPolicy = &policyView{Type: p.Policy}
		if p.Threshold != nil {
			v.QuorumPolicy.Threshold = p.Threshold.String()
		}
	}
	return v, nil
}

// wire puts a proposal together from its keys.
func (s store) wire(p *record) (Proposal, error) {
	out := Proposal{
		SchemaVersion: SchemaVersion, ProposalID: p.ID, Type: p.Type, Domain: p.Domain, Author: p.Author,
		Status: p.Status, Quorum: p.Quorum, CreatedAt: At(p.Created), ExpiresAt: p.state().ExpiresAt, Responses: []Response{},
	}
	var err error
	if out.Payload, err = s.payload(p.ID); err != nil {
		return out, err
	}
	if n := len(p.Decisions); n > 0 {
		d := p.Decisions[n-1]
		out.Resolution = &Resolution{
			SchemaVersion: SchemaVersion, Outcome: d.Outcome, Trigger: d.Trigger,
			VotesFor: d.VotesFor, VotesAgainst: d.VotesAgainst, DecidedAt: d.DecidedAt, Auto: d.Auto,
		}
	}
	var kept []keptResponse
	err = machine.EachRecord(s.tx, "r/"+p.ID+nul, "", func(_ string, r *keptResponse) (bool, error) {
		kept = append(kept, *r)
		return true, nil
	})
	slices.SortFunc(kept, func(a, b keptResponse) int { return int(a.N) - int(b.N) })
	for _, r := range kept {
		out.Responses = append(out.Responses, r.Response)
	}
	return out, err
}

// Row is one proposal in acp.list.
type Row struct {
	ProposalID string    `json:"proposal_id"`
	Type       EntryType `json:"type"`
	Domain     string    `json:"domain"`
	Author     string    `json:"author"`
	Status     Status    `json:"status"`
	Responses  uint64    `json:"responses"`
	Quorum     uint64    `json:"quorum"`
	CreatedAt  Time      `json:"created_at"`
	ExpiresAt  *Time     `json:"expires_at"`
	Outcome    Outcome   `json:"outcome,omitempty"`
	Trigger    Trigger   `json:"trigger,omitempty"`
}

// Page is the answer of acp.list; Next continues it as "after", "" ends it.
type Page struct {
	Proposals []Row  `json:"proposals"`
	Next      string `json:"next,omitempty"`
}

func list(tx machine.Tx, _ machine.Ctx, _ string, params json.RawMessage) (any, error) {
	var in struct {
		Status Status `json:"status"`
		Domain string `json:"domain"`
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
	prefix, err := listPrefix(in.Status, in.Domain)
	if err != nil {
		return nil, err
	}
	if in.After != "" {
		if err := CheckID(in.After); err != nil {
			return nil, err
		}
	}
	return store{tx}.page(prefix, in.After, limit)
}

func listPrefix(status Status, domain string) (string, error) {
	if status != "" && !slices.Contains([]Status{Pending, Resolved, Escalated, Expired}, status) {
		return "", malformed("no status %.64q", string(status))
	}
	if domain != "" {
		if err := checkDomain(domain); err != nil {
			return "", err
		}
	}
	switch {
	case status != "" && domain != "":
		return "t/" + string(status) + nul + domain + nul, nil
	case status != "":
		return "s/" + string(status) + nul, nil
	case domain != "":
		return "n/" + domain + nul, nil
	}
	return "p/", nil
}

func (s store) page(prefix, after string, limit int) (Page, error) {
	ids, next, err := machine.Page(s.tx, prefix, after, limit)
	if err != nil {
		return Page{}, err
	}
	page := Page{Proposals: []Row{}, Next: next}
	for _, id := range ids {
		p, err := s.get(id)
		if err != nil {
			return Page{}, err
		}
		row := Row{
			ProposalID: p.ID, Type: p.Type, Domain: p.Domain, Author: p.Author, Status: p.Status,
			Responses: p.Responses, Quorum: p.Quorum, CreatedAt: At(p.Created), ExpiresAt: p.state().ExpiresAt,
		}
		if n := len(p.Decisions); n > 0 {
			row.Outcome, row.Trigger = p.Decisions[n-1].Outcome, p.Decisions[n-1].Trigger
		}
		page.Proposals = append(page.Proposals, row)
	}
	return page, nil
}

// MaxAsks is the most asks of one kind that a principal is shown at once: the
// ones with the earliest deadlines. More appear as these are answered.
const MaxAsks = 500

// inlinePayload is the longest payload an ask carries; a longer one is read with acp.get.
const inlinePayload = 4096

// Asks implements machine.Machine: a response for every pending proposal in
// the principal's domains, a review of the escalated ones for humans.
func (*Machine) Asks(tx machine.Tx, ctx machine.Ctx, principal string) ([]machine.Ask, error) {
	s := store{tx}
	who, ok, err := ctx.World.Principal(principal)
	if err != nil || !ok || !who.Active || who.Kind == machine.Node {
		return nil, err
	}
	asked, err := s.asked(ctx, principal, Pending, func(p *record) (bool, error) {
		if again, err := s.hasResponded(p.ID, principal); err != nil || again {
			return false, err
		}
		if p.Policy == policyUnanimous {
			return s.eligible(p.ID, principal)
		}
		return true, nil
	})
	if err != nil {
		return nil, err
	}
	if who.Kind == machine.Human {
		review, err := s.asked(ctx, principal, Escalated, func(*record) (bool, error) { return true, nil })
		if err != nil {
			return nil, err
		}
		asked = append(asked, review...)
		slices.SortFunc(asked, byDeadline)
	}
	asks := make([]machine.Ask, 0, len(asked))
	for _, p := range asked {
		ask, err := s.ask(p)
		if err != nil {
			return nil, err
		}
		asks = append(asks, ask)
	}
	return asks, nil
}

// asked lists the proposals of a status in the principal's domains that are
// not his own and pass want, by deadline (none last), then id.
func (s store) asked(ctx machine.Ctx, principal string, status Status, want func(*record) (bool, error)) ([]*record, error) {
	domains, err := s.heldDomains(ctx, principal, status)
	if err != nil {
		return nil, err
	}
	var out []*record
	for _, domain := range domains {
		var ids []string
		err := machine.Each(s.tx, "t/"+string(status)+nul+domain+nul, "", func(id string, _ []byte) (bool, error) {
			ids = append(ids, id)
			return true, nil
		})
		if err != nil {
			return nil, err
		}
		for _, id := range ids {
			p, err := s.get(id)
			if err != nil {
				return nil, err
			}
			if p.Author == principal {
				continue
			}
			if ok, err := want(p); err != nil {
				return nil, err
			} else if ok {
				out = append(out, p)
			}
		}
	}
	slices.SortFunc(out, byDeadline)
	return out[:min(len(out), MaxAsks)], nil
}

func byDeadline(a, b *record) int {
	return cmp.Or(machine.CompareDeadlines(a.deadline(), b.deadline()), cmp.Compare(a.ID, b.ID))
}

// deadline is 0 when there is none; an escalated proposal does not expire.
func (p *record) deadline() machine.Stamp {
	if p.Status != Pending {
		return 0
	}
	return p.Expires
}

// heldDomains lists the domains with proposals of a status in which the
// principal holds a grant. It jumps from domain to domain.
func (s store) heldDomains(ctx machine.Ctx, principal string, status Status) ([]string, error) {
	prefix := "t/" + string(status) + nul
	var held []string
	for after := ""; ; {
		domain, found := "", false
		err := machine.Each(s.tx, prefix, after, func(rest string, _ []byte) (bool, error) {
			domain, _, found = strings.Cut(rest, nul)
			return false, nil
		})
		if err != nil || !found {
			return held, err
		}
		if _, ok, err := ctx.World.Grant(principal, domain); err != nil {
			return nil, err
		} else if ok {
			held = append(held, domain)
		}
		after = domain + "\x01" // behind all its proposals, before the next domain
	}
}

// askContext is what one needs to know to answer.
type askContext struct {
	Type         EntryType       `json:"type"`
	Domain       string          `json:"domain"`
	Author       string          `json:"author"`
	Responses    uint64          `json:"responses"`
	Quorum       uint64          `json:"quorum"`
	Payload      json.RawMessage `json:"payload,omitempty"` // absent when long: read it with acp.get
	PayloadHash  string          `json:"payload_hash"`
	VotesFor     string          `json:"votes_for,omitempty"` // of an escalation
	VotesAgainst string          `json:"votes_against,omitempty"`
	Escalation   *escalation     `json:"escalation,omitempty"`
}

func (s store) ask(p *record) (machine.Ask, error) {
	c := askContext{Type: p.Type, Domain: p.Domain, Author: p.Author, Responses: p.Responses, Quorum: p.Quorum, PayloadHash: p.PayloadHash}
	payload, err := s.payload(p.ID)
	if err != nil {
		return machine.Ask{}, err
	}
	if len(payload) <= inlinePayload {
		c.Payload = payload
	}
	ask := machine.Ask{
		Ask: "response", Kind: "acp.respond", Subject: p.ID, Deadline: p.deadline(), Schema: schema("respond"),
		Title: fmt.Sprintf("Endorse or challenge the %s of %s in %s", p.Type, p.Author, p.Domain),
	}
	if p.Status == Escalated {
		c.VotesFor, c.VotesAgainst, c.Escalation = p.VotesFor.String(), p.VotesAgainst.String(), p.Escalation
		ask.Ask, ask.Kind, ask.Schema = "review", "acp.resolve", schema("resolve")
		ask.Title = fmt.Sprintf("Approve or reject the escalated %s of %s in %s", p.Type, p.Author, p.Domain)
	}
	ask.Context = c
	return ask, nil
}
