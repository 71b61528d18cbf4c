package main

// quorums miscount: how many voters suffice, and who is counted.
var quorums = []Mutant{
	{
		Name: "quorum-2f", Breaks: "A quorum is 2f voters.",
		Edits: []Edit{{quorumGo, `func Q(n int) int { return (n + F(n) + 2) / 2 }`, `func Q(n int) int { return max(1, 2*F(n)) }`}},
	},
	{
		Name: "quorum-2f+1", Breaks: "A quorum is 2f+1 voters, which two quorums of five share only one of.",
		Edits: []Edit{{quorumGo, `func Q(n int) int { return (n + F(n) + 2) / 2 }`, `func Q(n int) int { return 2*F(n) + 1 }`}},
	},
	{
		Name: "quorum-f+1", Breaks: "A quorum is f+1 voters.",
		Edits: []Edit{{quorumGo, `func Q(n int) int { return (n + F(n) + 2) / 2 }`, `func Q(n int) int { return F(n) + 1 }`}},
	},
	{
		Name: "quorum-rounded-down", Breaks: "A quorum is (n+f+1)/2 rounded down: one too few when n+f is even.",
		Edits: []Edit{{quorumGo, `(n + F(n) + 2) / 2`, `(n + F(n) + 1) / 2`}},
	},
	{
		Name: "quorum-all", Breaks: "A quorum is everybody, so one silent member stops the committee.",
		Edits: []Edit{{quorumGo, `func Q(n int) int { return (n + F(n) + 2) / 2 }`, `func Q(n int) int { return n }`}},
	},
	{
		Name: "f-rounded-up", Breaks: "f is n/3, one too many when 3 divides n: the honest are no quorum then.",
		Edits: []Edit{{quorumGo, `return (n - 1) / 3`, `return n / 3`}},
	},
	{
		Name: "engine-counts-2f+1", Breaks: "The engine counts 2f+1 votes itself where the committee's quorum is larger.",
		Edits: []Edit{{tallyGo, `n, q := len(e.votes), e.committee.q`, `n, q := len(e.votes), 2*e.committee.f+1`}},
	},
	{
		Name: "engine-counts-one-less", Breaks: "The engine acts on one vote less than a quorum, as if its own were still to come.",
		Edits: []Edit{{tallyGo, `n, q := len(e.votes), e.committee.q`, `n, q := len(e.votes), max(1, e.committee.q-1)`}},
	},
	{
		Name: "certificate-one-less", Breaks: "A certificate of one vote less than a quorum is accepted.",
		Edits: []Edit{{newviewGo, `if len(proofs) != c.q {`, `if len(proofs) < c.q-1 {`}},
	},
	{
		Name: "certificate-repeated-signers", Breaks: "A certificate may count a signer more than once.",
		Edits: []Edit{{newviewGo, `if p.Signer <= last {`, `if p.Signer < last {`}},
	},
	{
		Name: "certificate-proofs-unchecked", Breaks: "The votes of a certificate are counted and not verified.",
		Edits: []Edit{{newviewGo, `		if err := p.verify(c, d, vote(p.Signer)); err != nil {
			return err
		}
`, ``}},
	},
	{
		Name: "certificate-last-proof-unchecked", Breaks: "The last vote of a certificate is not verified.",
		Edits: []Edit{{newviewGo, `	for _, p := range proofs {
		if p.Signer <= last {`, `	for i, p := range proofs {
		if i == len(proofs)-1 && p.Signer > last {
			return nil
		}
		if p.Signer <= last {`}},
	},
	{
		Name: "own-vote-forgotten", Breaks: "A replica waits for a quorum of others and does not count itself.",
		Edits: []Edit{{tallyGo, `			if c := find(m); c != nil && c.vote.Digest == lead.vote.Digest {
				count++`, `			if c := find(m); m != e.self && c != nil && c.vote.Digest == lead.vote.Digest {
				count++`}},
	},
	{
		Name: "quorum-search-ends-early", Breaks: "The search for a quorum misses the one that begins with the last possible member.",
		Edits: []Edit{{tallyGo, `first <= n-q; first++`, `first < n-q; first++`}},
	},
	{
		Name: "quorum-search-first-value-only", Breaks: "Only the value of the first vote found is counted, so one stray vote hides a quorum.",
		Edits: []Edit{{tallyGo, `		if count < q {
			continue
		}`, `		if count < q {
			return Digest{}, nil
		}`}},
	},
	{
		Name: "digests-counted-together", Breaks: "Prepares and commits are counted whatever value they name.",
		Edits: []Edit{
			{tallyGo, `			if c := find(m); c != nil && c.vote.Digest == lead.vote.Digest {
				count++`, `			if c := find(m); c != nil {
				count++`},
			{tallyGo, `			if c := find(m); c != nil && c.vote.Digest == lead.vote.Digest {
				proofs`, `			if c := find(m); c != nil {
				proofs`},
		},
	},
	{
		Name: "prepares-of-digests-together", Breaks: "A replica commits on a quorum of acceptances of different values.",
		Edits: []Edit{{viewsGo, `	digest, proofs := e.quorumFor(func(m int) *cast { return e.accepted(m, e.view) })
`, `	var digest Digest
	var proofs []Proof
	for m := range e.votes {
		if c := e.accepted(m, e.view); c != nil && len(proofs) < e.committee.q {
			digest, proofs = c.vote.Digest, append(proofs, c.proof)
		}
	}
	if len(proofs) < e.committee.q {
		return
	}
`}},
	},
	{
		Name: "commits-across-views", Breaks: "A member's commit of any view counts for the view that is looked at.",
		Edits: []Edit{{viewsGo, `e.quorumFor(func(m int) *cast { return e.votes[m].find(slot{view, Commit}) })`, `e.quorumFor(func(m int) *cast {
			if list := e.votes[m].of[Commit]; len(list) > 0 {
				return &list[len(list)-1]
			}
			return nil
		})`}},
	},
	{
		Name: "prepares-across-views", Breaks: "A member's prepare of an earlier view counts for the current one.",
		Edits: []Edit{{tallyGo, `	return e.votes[member].find(slot{view, phase})
}`, `	if c := e.votes[member].find(slot{view, phase}); c != nil || view == 0 {
		return c
	}
	return e.accepted(member, view-1)
}`}},
	},
}
