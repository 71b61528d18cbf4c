package main

// guilt blames the wrong ones, or nobody, or lets the guilty stop the others.
var guilt = []Mutant{
	{
		Name: "repetition-is-guilt", Breaks: "A vote that comes in another frame than before counts as a second vote.",
		Edits: []Edit{{engineGo, `	if held.vote.same(again.vote.Vote) {`, `	if held.proof.Signature == again.proof.Signature {`}},
	},
	{
		Name: "guilt-across-views", Breaks: "A vote is compared with the member's latest of its phase, whatever view that is of.",
		Edits: []Edit{{engineGo, `	if held := b.find(v.slot()); held != nil {
		return e.compare(`, `	if list := b.of[v.Phase]; len(list) > 0 {
		held := &list[len(list)-1]
		return e.compare(`}},
	},
	{
		Name: "guilt-proof-of-one-vote", Breaks: "A guilt proof shows the first vote twice.",
		Edits: []Edit{{engineGo, `ProofA: held.proof, ProofB: again.proof}`, `ProofA: held.proof, ProofB: held.proof}`}},
	},
	{
		Name: "guilt-slot-unchecked", Breaks: "Guilt is proven by two votes of different views or phases.",
		Edits: []Edit{{guiltGo, `g.A.slot() != g.B.slot() || g`, `g`}},
	},
	{
		Name: "guilt-repetition-accepted", Breaks: "Guilt is proven by one vote shown twice.",
		Edits: []Edit{{guiltGo, `	if g.A.same(g.B) {`, `	if g.ProofA.Signature != g.ProofB.Signature && g.A.same(g.B) {`}},
	},
	{
		Name: "guilt-second-unverified", Breaks: "The second vote of a guilt proof is not verified.",
		Edits: []Edit{{guiltGo, `	return g.ProofB.verify(c, g.Instance.Domain(), g.B)`, `	return nil`}},
	},
	{
		Name: "guilt-of-two-signers", Breaks: "Guilt is proven by the votes of two members.",
		Edits: []Edit{{guiltGo, ` || g.ProofA.Signer != g.ProofB.Signer {`, ` {`}},
	},
	{
		Name: "guilt-unnoticed", Breaks: "A second vote in a slot is passed over as if it repeated the first.",
		Edits: []Edit{{engineGo, `	if held.vote.same(again.vote.Vote) {`, `	if held.vote.slot() == again.vote.slot() {`}},
	},
	{
		Name: "guilt-unwanted", Breaks: "A second vote in a slot is dropped unverified.",
		Edits: []Edit{{engineGo, `		return !b.guilty && !held.vote.same(*v)
`, `		return false
`}},
	},
	{
		Name: "guilt-excused-by-its-proof", Breaks: "A second vote that carries a proof of nothing is refused and not compared.",
		Edits: []Edit{{engineGo, `held != nil && !held.vote.same(v.Vote) {`, `held != nil && false {`}},
	},
	{
		Name: "guilt-in-certificates-unnoticed", Breaks: "The commits that a certificate quotes are not compared with those held.",
		Edits: []Edit{{engineGo, `	e.hear(v.cert)
`, ``}},
	},
	{
		Name: "guilt-reported-again", Breaks: "Every further vote of a guilty member is reported.",
		Edits: []Edit{{engineGo, `		e.votes[from].guilty = true
`, ``}},
	},
	{
		Name: "guilt-stops-the-protocol", Breaks: "A replica that holds a guilt proof votes no more.",
		Edits: []Edit{{viewsGo, `	e.follow()
	if view`, `	for m := range e.votes {
		if e.votes[m].guilty {
			return err
		}
	}
	e.follow()
	if view`}},
	},
	{
		Name: "guilt-of-another-protocol", Breaks: "Votes of another protocol prove guilt in this one.",
		Edits: []Edit{{guiltGo, `	if err := g.Instance.Check(); err != nil {
		return err
	}
`, ``}},
		Unseen: "engines make no such proof; whoever is shown one verifies it",
	},
	{
		Name: "guilt-of-another-instance", Breaks: "A guilt proof may name another instance than its votes do.",
		Edits:  []Edit{{guiltGo, `	if key := g.Instance.Key(); g.A.Key != key || g.B.Key != key {`, `	if key := g.A.Key; g.B.Key != key {`}},
		Unseen: "engines make no such proof; whoever is shown one verifies it",
	},
}
