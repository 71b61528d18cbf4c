package pbft

import "github.com/deliberd/deliberd/machine"

// Guilt proves that a member cast two different votes in one slot: same
// genesis, generation, epoch, instance, view and phase, both signed by its key
// of that epoch. An honest member cannot come to produce one.
type Guilt struct {
	Domain Domain
	A, B   Vote // without their own proofs
	ProofA Proof
	ProofB Proof
}

// Signer is the index of the guilty member.
func (g Guilt) Signer() int { return g.ProofA.Signer }

// Verify checks the proof against the committee of its epoch.
func (g Guilt) Verify(c *Committee) error {
	if g.Domain.Protocol != Protocol {
		return machine.Refuse(CodeOtherDomain, "", "the votes are of protocol %q, expected %q", g.Domain.Protocol, Protocol)
	}
	if g.A.Key != g.B.Key || g.A.slot() != g.B.slot() || g.ProofA.Signer != g.ProofB.Signer {
		return machine.Refuse(CodeMalformed, "", "the votes are not of one slot and one signer")
	}
	if g.A.same(g.B) {
		return machine.Refuse(CodeMalformed, "", "both votes say the same")
	}
	if err := g.ProofA.verify(c, g.Domain, g.A); err != nil {
		return err
	}
	return g.ProofB.verify(c, g.Domain, g.B)
}
