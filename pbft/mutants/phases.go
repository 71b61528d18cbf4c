package main

// phases skip a step of the protocol, take it twice or take it unasked.
var phases = []Mutant{
	{
		Name: "skip-prepare", Breaks: "A replica commits on the primary's pre-prepare alone.",
		Edits: []Edit{{viewsGo, `	digest, proofs := e.quorumFor(func(m int) *cast { return e.accepted(m, e.view) })
`, `	var digest Digest
	var proofs []Proof
	if c := e.accepted(e.committee.Primary(e.key, e.view), e.view); c != nil {
		digest, proofs = c.vote.Digest, []Proof{c.proof}
	}
`}},
	},
	{
		Name: "skip-commit", Breaks: "A replica decides as soon as a quorum has prepared.",
		Edits: []Edit{{viewsGo, `	e.ready.Prepared = e.locked
`, `	e.ready.Prepared = e.locked
	_ = e.decide(&Certificate{Instance: e.instance, View: e.view, Digest: digest, Votes: proofs})
`}},
	},
	{
		Name: "second-vote-in-a-slot", Breaks: "A replica votes again in a slot when the value it would vote for has changed.",
		Edits: []Edit{{viewsGo, `	if _, done := e.own[v.slot()]; done {
		return false`, `	if mine, done := e.own[v.slot()]; done && mine.same(v) {
		return false`}},
	},
	{
		Name: "invalid-value-prepared", Breaks: "A replica prepares whatever the primary names.",
		Edits: []Edit{{viewsGo, `	if e.valid(value) {`, `	if !value.IsZero() {`}},
	},
	{
		Name: "invalid-value-committed", Breaks: "A replica commits to what a quorum prepared without asking whether it is right.",
		Edits:  []Edit{{viewsGo, `if proofs == nil || !e.valid(digest) {`, `if proofs == nil {`}},
		Unseen: "a quorum that prepares a wrong value has f+1 liars in it",
	},
	{
		Name: "invalid-value-reproposed", Breaks: "A primary re-proposes what was prepared without asking whether it is right.",
		Edits: []Edit{
			{viewsGo, `	if e.valid(v.Digest) {`, `	if !v.Digest.IsZero() {`},
			{viewsGo, ` || c.vote.prepared != nil && !e.valid(c.vote.Digest) {`, ` {`},
		},
		Unseen: "a quorum that prepares a wrong value has f+1 liars in it",
	},
	{
		Name: "invalid-value-decided", Breaks: "A replica that knows the right value takes a certificate of another.",
		Edits: []Edit{{engineGo, `	if !e.cfg.Expected.IsZero() && cert.Digest != e.cfg.Expected {
		return machine.Refuse(CodeUnexpected, "compare this node's state with its peers'", "%s is certified, this replica expected %s", cert.Digest, e.cfg.Expected)
	}
`, ``}},
		Unseen: "a certificate of a wrong value has f+1 liars in it",
	},
	{
		Name: "anybody-pre-prepares", Breaks: "A pre-prepare counts whoever sent it.",
		Edits: []Edit{
			{engineGo, `	if (v.Phase == PrePrepare) != (from == primary) && (v.Phase == PrePrepare || v.Phase == Prepare) {`,
				`	if v.Phase == Prepare && from == primary {`},
			{viewsGo, `	if c := e.votes[primary].find(slot{e.view, PrePrepare}); c != nil {
		value = c.vote.Digest
	} else if e.view == 0 {
		value = e.cfg.Expected
	}`, `	if e.view == 0 {
		value = e.cfg.Expected
	}
	for m := range e.votes {
		if c := e.votes[m].find(slot{e.view, PrePrepare}); c != nil {
			value = c.vote.Digest
		}
	}`},
			{tallyGo, `	return e.votes[member].find(slot{view, phase})
}`, `	if c := e.votes[member].find(slot{view, PrePrepare}); c != nil {
		return c
	}
	return e.votes[member].find(slot{view, phase})
}`},
		},
	},
	{
		Name: "primarys-word-not-counted", Breaks: "The primary's pre-prepare is not counted as its acceptance.",
		Edits: []Edit{{tallyGo, `	phase := Prepare
	if member == e.committee.Primary(e.key, view) {
		phase = PrePrepare
	}
	return`, `	phase := Prepare
	return`}},
	},
	{
		Name: "primarys-word-not-provable", Breaks: "A prepared certificate is checked as if the primary had sent a prepare.",
		Edits: []Edit{{newviewGo, `		if signer == primary {
			phase = PrePrepare
		}
		return Vote`, `		_ = primary
		return Vote`}},
	},
	{
		Name: "commit-after-leaving", Breaks: "A replica that has left a view still commits in it when the quorum of prepares comes late.",
		Edits: []Edit{
			{engineGo, `v.View < e.view && v.Phase != Commit {`, `v.View+1 < e.view && v.Phase != Commit {`},
			{viewsGo, `	s := slot{e.view, Commit}
	if _, done := e.own[s]; done {
		return
	}
	digest, proofs := e.quorumFor(func(m int) *cast { return e.accepted(m, e.view) })
	if proofs == nil || !e.valid(digest) {
		return
	}
	e.locked = &Prepared{View: e.view, Digest: digest, Votes: proofs}
	e.cast(Vote{Key: e.key, View: e.view, Phase: Commit, Digest: digest})
	e.ready.Prepared = e.locked
`, `	for _, view := range []uint64{e.view, max(e.view, 1) - 1} {
		if _, done := e.own[slot{view, Commit}]; done {
			continue
		}
		digest, proofs := e.quorumFor(func(m int) *cast { return e.accepted(m, view) })
		if proofs == nil || !e.valid(digest) {
			continue
		}
		if e.locked == nil || view > e.locked.View {
			e.locked = &Prepared{View: view, Digest: digest, Votes: proofs}
		}
		e.cast(Vote{Key: e.key, View: view, Phase: Commit, Digest: digest})
		e.ready.Prepared = e.locked
	}
`},
		},
	},
	{
		Name: "observer-votes", Breaks: "A replica without a seat votes.",
		Edits: []Edit{{viewsGo, `	if e.cert != nil || e.self == Observer {
		return err
	}
	e.follow()`, `	if e.cert != nil {
		return err
	}
	e.follow()`}},
	},
	{
		Name: "primary-never-rotates", Breaks: "The first view's primary is every view's.",
		Edits: []Edit{{committeeGo, `(binary.BigEndian.Uint64(key[:8])%n + view%n) % n`, `binary.BigEndian.Uint64(key[:8]) % n`}},
	},
	{
		Name: "decides-again", Breaks: "A decided replica decides again on another certificate.",
		Edits: []Edit{{engineGo, `	if e.cert != nil {
		return nil
	}
	e.cert, e.armed`, `	e.cert, e.armed`}},
	},
	{
		Name: "decided-casts-on", Breaks: "A decided replica goes on to vote when what it had stored comes back.",
		Edits: []Edit{{viewsGo, `	err := e.tryDecide()
	if e.cert != nil || e.self == Observer {`, `	err := e.tryDecide()
	if e.self == Observer {`}},
	},
	{
		Name: "own-prepare-not-filed", Breaks: "A replica that has prepared does not count its own prepare.",
		Edits: []Edit{{viewsGo, `		if e.votes[e.self].find(vote.slot()) == nil {
			e.file(`, `		if e.votes[e.self].find(vote.slot()) == nil && vote.Phase != Prepare {
			e.file(`}},
	},
}
