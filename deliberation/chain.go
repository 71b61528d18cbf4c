package deliberation

import (
	"encoding/json"
	"fmt"

	"github.com/deliberd/deliberd/merkle"
)

// ConstitutionalCheck is the leaf of §4.2. A round has no constitution yet,
// and its chain says so.
type ConstitutionalCheck struct {
	Constitution *string  `json:"constitution"`
	Violations   []string `json:"violations"`
}

// ArgumentRecord is a Position or Challenge leaf: an argument as it stood at the end.
type ArgumentRecord struct {
	Argument
	Content
}

// ConsensusVote is the leaf that shows who carried the verdict.
type ConsensusVote struct {
	Path        Path            `json:"path,omitempty"`
	Why         Why             `json:"why,omitempty"`
	ClosedBy    string          `json:"closed_by"`
	Count       *Count          `json:"confirmations,omitempty"`
	Votes       []MemberVote    `json:"votes"` // ascending by agent
	Freeze      *Freeze         `json:"freeze,omitempty"`
	Certificate json.RawMessage `json:"certificate,omitempty"` // as it came: with the freeze's checkpoint it can be checked offline
	Reviewer    string          `json:"reviewer,omitempty"`
}

// MemberVote is a participant's last word.
type MemberVote struct {
	Agent string `json:"agent"`
	Vote
}

// DissentRecords is the last leaf.
type DissentRecords struct {
	Dissents []Dissent `json:"dissents"`
}

// chain builds the round's evidence chain (§5.1) from what is stored and the
// verdict, whose root is not part of it.
func (s *step) chain(g *Graded, v *Verdict) (*merkle.Chain, error) {
	rec := merkle.Record{RoundMetadata: s.round, ConstitutionalCheck: ConstitutionalCheck{Violations: []string{}}, GradedSemantics: g, DissentRecords: DissentRecords{v.Dissents}}
	args, err := s.arguments()
	if err != nil {
		return nil, err
	}
	for _, a := range args {
		c, err := s.content(s.round.ID, a.ID)
		if err != nil {
			return nil, err
		}
		item := ArgumentRecord{*a, *c}
		if a.Kind == PositionKind {
			rec.Positions = append(rec.Positions, item)
		} else {
			rec.Challenges = append(rec.Challenges, item)
		}
	}
	vote := ConsensusVote{Path: v.Path, Why: v.Why, ClosedBy: v.ClosedBy, Count: v.Count, Votes: []MemberVote{}, Freeze: s.state.Freeze, Reviewer: v.Reviewer}
	if vote.Certificate, err = s.Get(key('c', s.round.ID)); err != nil {
		return nil, err
	}
	members, err := s.members()
	if err != nil {
		return nil, err
	}
	for _, m := range members {
		if m.Vote != nil {
			vote.Votes = append(vote.Votes, MemberVote{m.Agent, *m.Vote})
		}
	}
	bare := *v
	bare.EvidenceRoot = ""
	rec.ConsensusVote, rec.Verdict = vote, bare
	return merkle.Build(rec)
}

// seal stores the graded semantics that the chain holds and puts the chain's root into the verdict.
func (s *step) seal(v *Verdict) error {
	if s.graded == nil {
		if err := s.regrade(); err != nil {
			return err
		}
	}
	if err := s.save(key('g', s.round.ID), s.graded); err != nil {
		return err
	}
	chain, err := s.chain(s.graded, v)
	if err != nil {
		return corrupt(err)
	}
	v.EvidenceRoot = chain.Root().String()
	return nil
}

// sealed rebuilds the evidence chain of an ended round; nil while it goes on.
func (s *step) sealed() (*merkle.Chain, *Verdict, error) {
	v, err := s.verdict(s.round.ID)
	if err != nil || v == nil {
		return nil, nil, err
	}
	g := &Graded{}
	if ok, err := s.load(key('g', s.round.ID), g); err != nil {
		return nil, nil, err
	} else if !ok {
		return nil, nil, fmt.Errorf("deliberation: round %s has ended without graded semantics", s.round.ID)
	}
	chain, err := s.chain(g, v)
	if err != nil {
		return nil, nil, corrupt(err)
	}
	if chain.Root().String() != v.EvidenceRoot {
		return nil, nil, fmt.Errorf("deliberation: the stored evidence of round %s gives root %s, its verdict says %s", s.round.ID, chain.Root(), v.EvidenceRoot)
	}
	return chain, v, nil
}
