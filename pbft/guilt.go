package pbft

import "github.com/deliberd/deliberd/machine"

// Guilt proves that a member cast two different votes in one slot: same
// instance, view and phase, both signed by its key of the instance's epoch. An
// honest member cannot come to produce one, unless what it had stored was lost
// or replaced by an older copy and it signs nevertheless.
type Guilt struct {
	Instance Instance `json:"instance"`
	A        Vote     `json:"a"` // without its own proof, as is B
	B        Vote     `json:"b"`
	ProofA   Proof    `json:"proof_a"`
	ProofB   Proof    `json:"proof_b"`
}

// Signer is the index of the guilty member.
func (g Guilt) Signer() int { return g.ProofA.Signer }

// Verify checks the proof against the committee of its epoch. It refuses with
// malformed, other_domain, not_a_member or bad_signature.
func (g Guilt) Verify(c *Committee) error {
	if err := g.Instance.Check(); err != nil {
		return err
	}
	if key := g.Instance.Key(); g.A.Key != key || g.B.Key != key {
		return machine.Refuse(CodeMalformed, "", "the votes are not of the instance that the proof names")
	}
	if g.A.slot() != g.B.slot() || g.ProofA.Signer != g.ProofB.Signer {
		return machine.Refuse(CodeMalformed, "", "the votes are not of one slot and one signer")
	}
	if g.A.same(g.B) {
		return machine.Refuse(CodeMalformed, "", "both votes say the same")
	}
	if err := g.ProofA.verify(c, g.Instance.Domain(), g.A); err != nil {
		return err
	}
	return g.ProofB.verify(c, g.Instance.Domain(), g.B)
}
