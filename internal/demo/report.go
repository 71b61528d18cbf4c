package demo

import (
	"github.com/deliberd/deliberd/deliberation"
)

// Report is what the demo came to.
type Report struct {
	Nodes  []NodeReport  `json:"nodes"`
	Rounds []RoundReport `json:"rounds"`
	ACP    ACPReport     `json:"acp"`
	Agora  AgoraReport   `json:"agora"`
}

// NodeReport is one node and its doors.
type NodeReport struct {
	ID   string `json:"id"`
	HTTP string `json:"http"`
}

// RoundReport is one Deliberatic round.
type RoundReport struct {
	RoundID      string             `json:"round_id"`
	Title        string             `json:"title"`
	Path         string             `json:"path"` // fast or conflict
	Winner       string             `json:"winner"`
	Author       string             `json:"author"`
	Gap          float64            `json:"gap"`
	Strengths    []Strength         `json:"strengths"`
	EvidenceRoot string             `json:"evidence_root"`
	Certificate  *CertificateReport `json:"certificate"` // null on the fast path
	NodesAgree   bool               `json:"nodes_agree"`
	VerdictMS    float64            `json:"verdict_ms"` // from the moderator's resolve to the verdict
}

// Strength is σ of one position.
type Strength struct {
	Position string  `json:"position"`
	Author   string  `json:"author"`
	Sigma    float64 `json:"sigma"`
}

// CertificateReport is what certifies a contested verdict.
type CertificateReport struct {
	View    uint64 `json:"view"`
	Signers int    `json:"signers"`
}

// ACPReport is the ACP proposal.
type ACPReport struct {
	ProposalID   string  `json:"proposal_id"`
	Outcome      string  `json:"outcome"`
	Trigger      string  `json:"trigger"`
	VotesFor     float64 `json:"votes_for"`
	VotesAgainst float64 `json:"votes_against"`
	NodesAgree   bool    `json:"nodes_agree"`
}

// AgoraReport is the Agora round.
type AgoraReport struct {
	RoundID    string `json:"round_id"`
	Outcome    string `json:"outcome"`
	Yes        int    `json:"yes"`
	No         int    `json:"no"`
	NodesAgree bool   `json:"nodes_agree"`
}

// nano is a number of 1e-9 as a fraction.
func nano(n int64) float64 { return float64(n) / 1e9 }

func roundReport(title string, v *deliberation.Verdict) RoundReport {
	r := RoundReport{RoundID: v.Round, Title: title, Path: string(v.Path), Winner: v.Winner, Author: v.Author, EvidenceRoot: v.EvidenceRoot}
	if v.GapNano != nil {
		r.Gap = nano(*v.GapNano)
	}
	for _, s := range v.Strengths {
		r.Strengths = append(r.Strengths, Strength{s.Position, s.Author, nano(s.SigmaNano)})
	}
	if c := v.Certificate; c != nil {
		r.Certificate = &CertificateReport{View: c.View, Signers: c.Signers}
	}
	return r
}
