package main

// viewChanges lose what was prepared, or let others lose it.
var viewChanges = []Mutant{
	{
		Name: "lock-forgotten", Breaks: "A view change claims nothing, whatever was prepared.",
		Edits: []Edit{{viewsGo, `	if e.locked != nil {
		v.Prepared, v.Digest, v.Proof = e.locked.View+1, e.locked.Digest, e.locked.Encode()
	}
`, ``}},
	},
	{
		Name: "lock-claimed-once", Breaks: "A view change claims only what was prepared in the view just left.",
		Edits: []Edit{{viewsGo, `	if e.locked != nil {
		v.Prepared`, `	if e.locked != nil && e.locked.View+1 == view {
		v.Prepared`}},
	},
	{
		Name: "first-lock-kept", Breaks: "A replica keeps the first prepared certificate it committed on instead of the latest.",
		Edits: []Edit{{viewsGo, `	e.locked = &Prepared{View: e.view, Digest: digest, Votes: proofs}
	e.cast(Vote{Key: e.key, View: e.view, Phase: Commit, Digest: digest})
	e.ready.Prepared = e.locked
`, `	p := &Prepared{View: e.view, Digest: digest, Votes: proofs}
	if e.locked == nil {
		e.locked = p
	}
	e.cast(Vote{Key: e.key, View: e.view, Phase: Commit, Digest: digest})
	e.ready.Prepared = p
`}},
	},
	{
		Name: "highest-is-first", Breaks: "The first claim decides what a new view proposes, not the highest.",
		Edits: []Edit{{newviewGo, `(best < 0 || c.Prepared > claims[best].Prepared)`, `best < 0`}},
	},
	{
		Name: "highest-is-last", Breaks: "The last claim decides what a new view proposes, not the highest.",
		Edits: []Edit{{newviewGo, `		if c.Prepared > 0 && (best < 0 || c.Prepared > claims[best].Prepared) {`, `		if c.Prepared > 0 {`}},
	},
	{
		Name: "highest-is-lowest", Breaks: "The claim of the lowest view decides what a new view proposes.",
		Edits: []Edit{{newviewGo, `c.Prepared > claims[best].Prepared`, `c.Prepared < claims[best].Prepared`}},
	},
	{
		Name: "free-unless-all-claim", Breaks: "A new view is free to choose when one of its view changes claims nothing.",
		Edits: []Edit{{newviewGo, `	for i, c := range claims {
		if c.Prepared > 0 &&`, `	for i, c := range claims {
		if c.Prepared == 0 {
			return -1, false
		}
		if c.Prepared > 0 &&`}},
	},
	{
		Name: "free-unless-f+1-claim", Breaks: "A new view is free to choose unless f+1 of its view changes claim the value: one certificate is not believed.",
		Edits: []Edit{{newviewGo, `	return best, best >= 0
`, `	same := 0
	for _, c := range claims {
		if best >= 0 && c.Digest == claims[best].Digest {
			same++
		}
	}
	return best, 3*same > len(claims)
`}},
	},
	{
		Name: "primary-ignores-highest", Breaks: "The primary of a new view proposes its own value whatever was prepared.",
		Edits: []Edit{{viewsGo, `		if nv.Highest != nil {
			v.Digest = nv.Highest.Digest
		}
`, ``}},
	},
	{
		Name: "nobody-demands-highest", Breaks: "Neither does the primary of a new view re-propose what was prepared, nor do the others demand it.",
		Edits: []Edit{
			{viewsGo, `		if nv.Highest != nil {
			v.Digest = nv.Highest.Digest
		}
`, ``},
			{newviewGo, `	case nv.Highest.Digest != v.Digest:
		return machine.Refuse(CodeNotJustified, "", "another value than the highest prepared one is proposed")
`, ``},
		},
	},
	{
		Name: "new-view-value-unchecked", Breaks: "A new view may propose another value than the highest prepared one.",
		Edits: []Edit{{newviewGo, `	case nv.Highest.Digest != v.Digest:
		return machine.Refuse(CodeNotJustified, "", "another value than the highest prepared one is proposed")
`, ``}},
	},
	{
		Name: "new-view-certificate-left-out", Breaks: "A new view that leaves the highest certificate out is free to choose.",
		Edits: []Edit{{newviewGo, `	case !claimed && nv.Highest == nil:
		return nil`, `	case nv.Highest == nil:
		return nil`}},
	},
	{
		Name: "new-view-certificate-of-another-view", Breaks: "A new view may quote a certificate of another view than the highest claim's.",
		Edits: []Edit{{newviewGo, `	case nv.Highest.View+1 != nv.Claims[best].Prepared || nv.Highest.Digest`, `	case nv.Highest.Digest`}},
	},
	{
		Name: "new-view-certificate-of-another-value", Breaks: "A new view may quote a certificate of another value than the highest claim names.",
		Edits: []Edit{{newviewGo, ` || nv.Highest.Digest != nv.Claims[best].Digest:`, `:`}},
	},
	{
		Name: "new-view-certificate-unverified", Breaks: "The certificate behind a new view's highest claim is not verified.",
		Edits: []Edit{{newviewGo, `	return nv.Highest.verify(c, d, v.Key)`, `	return nil`}},
	},
	{
		Name: "new-view-f+1-claims", Breaks: "A new view of f+1 view changes is opened and accepted.",
		Edits: []Edit{
			{newviewGo, `	if len(nv.Claims) != c.q {`, `	if len(nv.Claims) != c.f+1 {`},
			{viewsGo, `len(nv.Claims) == e.committee.q ||`, `len(nv.Claims) == e.committee.f+1 ||`},
			{viewsGo, `	if len(nv.Claims) < e.committee.q {
		return nil
	}`, `	if len(nv.Claims) <= e.committee.f {
		return nil
	}`},
		},
	},
	{
		Name: "new-view-fewer-claims-accepted", Breaks: "A new view of fewer view changes than a quorum is accepted.",
		Edits: []Edit{{newviewGo, `	if len(nv.Claims) != c.q {`, `	if len(nv.Claims) <= c.f {`}},
	},
	{
		Name: "new-view-opened-early", Breaks: "The primary opens its view one view change short of a quorum, which nobody accepts.",
		Edits: []Edit{{viewsGo, `	if len(nv.Claims) < e.committee.q {
		return nil
	}`, `	if len(nv.Claims) < e.committee.q-1 {
		return nil
	}`}},
	},
	{
		Name: "new-view-repeated-signers", Breaks: "One view change may stand for several in a new view.",
		Edits: []Edit{{newviewGo, `if claim.Proof.Signer <= last {`, `if claim.Proof.Signer < last {`}},
	},
	{
		Name: "new-view-claims-unverified", Breaks: "The signatures of the view changes that a new view quotes are not verified.",
		Edits: []Edit{{newviewGo, `		if err := claim.Proof.verify(c, d, vote); err != nil {
			return nil, err
		}
`, `		_ = vote
`}},
	},
	{
		Name: "new-view-unjustified", Breaks: "A pre-prepare of a later view is accepted without looking at its proof.",
		Edits: []Edit{{frameGo, `			votes[i].newView, votes[i].refused = c.newView(f.domain, v)`, `			votes[i].newView, _ = c.newView(f.domain, v)`}},
	},
	{
		Name: "claim-unverified", Breaks: "The certificate of a view change is not verified, so an honest primary quotes a liar's.",
		Edits: []Edit{{newviewGo, `	return p, p.verify(c, d, v.Key)`, `	return p, nil`}},
	},
	{
		Name: "claim-of-another-view", Breaks: "A view change may carry a certificate of another view than it claims.",
		Edits: []Edit{{newviewGo, `p.View+1 != v.Prepared || p.Digest != v.Digest`, `p.Digest != v.Digest`}},
	},
	{
		Name: "claims-certificate-misaligned", Breaks: "The primary looks the highest claim's certificate up in a list that has certificates only of those who claim.",
		Edits: []Edit{{viewsGo, `		certs = append(certs, c.vote.prepared)
`, `		if c.vote.prepared != nil {
			certs = append(certs, c.vote.prepared)
		}
`}},
	},
	{
		Name: "view-changes-of-other-views-quoted", Breaks: "The primary quotes each member's latest view change, whatever view it is for.",
		Edits: []Edit{{viewsGo, `		c := e.votes[m].find(slot{e.view, ViewChange})
`, `		c := (*cast)(nil)
		if list := e.votes[m].of[ViewChange]; len(list) > 0 {
			c = &list[len(list)-1]
		}
`}},
	},
	{
		Name: "wrong-claims-quoted", Breaks: "The primary quotes view changes that claim what it may not vote for, and then proposes nothing.",
		Edits:  []Edit{{viewsGo, ` || c.vote.prepared != nil && !e.valid(c.vote.Digest) {`, ` {`}},
		Unseen: "a quorum that prepares a wrong value has f+1 liars in it",
	},
	{
		Name: "follows-one-liar", Breaks: "A replica follows a single member into a later view.",
		Edits: []Edit{{tallyGo, `e.reached(v) > e.committee.f {`, `e.reached(v) > 0 {`}},
	},
	{
		Name: "joins-a-quorum-only", Breaks: "A replica joins a later view only when a quorum has reached it.",
		Edits:  []Edit{{tallyGo, `e.reached(v) > e.committee.f {`, `e.reached(v) >= e.committee.q {`}},
		Unseen: "the timers bring the late along, only later",
	},
	{
		Name: "never-joins", Breaks: "A replica never joins a later view, it waits for its own timer.",
		Edits: []Edit{{viewsGo, `	if view := e.joinable(); view > 0 {
		e.enter(view)
	}
`, ``}},
		Unseen: "the timers bring the late along, only later",
	},
	{
		Name: "never-follows", Breaks: "A new view that proves itself takes nobody along.",
		Edits: []Edit{{viewsGo, `	e.follow()
	if view`, `	if view`}},
		Unseen: "f+1 members bring the late along as well",
	},
	{
		Name: "follows-to-invalid-values", Breaks: "A replica enters a later view by a new view whose value it may not vote for.",
		Edits:  []Edit{{viewsGo, `c.vote.View > e.view && e.valid(c.vote.Digest) {`, `c.vote.View > e.view {`}},
		Unseen: "entering a view is safe, and the view is left again by its timer",
	},
	{
		Name: "new-view-shows-nobody", Breaks: "The members that a new view quotes are not taken to have reached it.",
		Edits: []Edit{{engineGo, `			b.highest = max(b.highest, c.vote.View)
`, `			_ = b
`}},
		Unseen: "their own votes show it a little later",
	},
	{
		Name: "claims-of-unopened-views", Breaks: "A new view may quote a claim of what was prepared in that very view.",
		Edits:  []Edit{{newviewGo, ` || claim.Prepared > v.View {`, ` {`}},
		Unseen: "nothing can be prepared there before it is opened, so no certificate backs such a claim",
	},
}
