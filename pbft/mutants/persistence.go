package main

// persistence forgets over a restart, or lets a vote out before it is stored.
var persistence = []Mutant{
	{
		Name: "lock-not-restored", Breaks: "A restarted replica does not know what it committed to.",
		Edits: []Edit{
			{viewsGo, `		if e.locked == nil || p.View > e.locked.View {
			e.locked = p
		}
`, ``},
			{viewsGo, `		if s.phase == Commit && (e.locked == nil || e.locked.View < s.view) {`, `		if s.phase == Commit && e.locked != nil && e.locked.View < s.view {`},
		},
	},
	{
		Name: "oldest-lock-restored", Breaks: "A restarted replica takes up the first certificate that it stored.",
		Edits: []Edit{
			{viewsGo, `		if e.locked == nil || p.View > e.locked.View {
			e.locked = p`, `		if e.locked == nil {
			e.locked = p`},
			{viewsGo, `		if s.phase == Commit && (e.locked == nil || e.locked.View < s.view) {`, `		if s.phase == Commit && e.locked == nil {`},
		},
	},
	{
		Name: "slots-not-restored", Breaks: "A restarted replica votes again in the slots that it has voted in.",
		Edits: []Edit{{viewsGo, `		if err := e.keep(v); err != nil {
			return err
		}
	}
	// A commit`, `		for _, vote := range v.votes {
			if vote.Key == e.key && e.votes[e.self].find(vote.slot()) == nil {
				e.file(e.self, cast{vote, v.frame.Proof()})
			}
		}
	}
	// A commit`}},
	},
	{
		Name: "only-last-frame-restored", Breaks: "A restarted replica takes up only the last frame that it stored.",
		Edits: []Edit{
			{viewsGo, `e.committee.VerifyAll(r.Frames)`, `e.committee.VerifyAll(r.Frames[max(len(r.Frames), 1)-1:])`},
		},
	},
	{
		Name: "view-not-restored", Breaks: "A restarted replica forgets that it was leaving a view.",
		Edits: []Edit{{viewsGo, `			if vote.Key == e.key && vote.View > e.view {
				e.move(vote.View)
			}`, `			if vote.Key == e.key && vote.View > e.view && vote.Phase != ViewChange {
				e.move(vote.View)
			}`}},
	},
	{
		Name: "certificate-not-stored", Breaks: "A commit is handed out without the prepared certificate behind it.",
		Edits: []Edit{{viewsGo, `	e.ready.Prepared = e.locked
`, ``}},
	},
	{
		Name: "certificate-lost-behind-a-write", Breaks: "The certificate of a commit that waits for an earlier write is dropped.",
		Edits: []Edit{{engineGo, `		e.ready.Votes, e.ready.Prepared = r.Votes, r.Prepared
		r.Votes`, `		e.ready.Votes = r.Votes
		r.Votes`}},
	},
	{
		Name: "votes-behind-a-write-lost", Breaks: "Votes that come up while others are being stored are dropped.",
		Edits: []Edit{{engineGo, `		e.ready.Votes, e.ready.Prepared = r.Votes, r.Prepared
		r.Votes`, `		r.Votes`}},
	},
	{
		Name: "votes-overtake-a-write", Breaks: "More votes are handed out before the earlier ones are stored.",
		Edits: []Edit{
			{engineGo, `	if len(e.handed) > 0 {
		e.ready.Votes, e.ready.Prepared = r.Votes, r.Prepared
		r.Votes, r.Prepared = nil, nil
		return r
	}
	e.handed = r.Votes`, `	e.handed = append(e.handed, r.Votes...)`},
			{engineGo, `len(r.Votes) > 0 && len(e.handed) == 0 ||`, `len(r.Votes) > 0 ||`},
		},
	},
	{
		Name: "advance-believes", Breaks: "Advance does not ask whether every vote was stored.",
		Edits: []Edit{{engineGo, `	for _, v := range handed {
		if !e.own[v.slot()].stored {`, `	for _, v := range handed {
		if len(stored) > 0 && !e.own[v.slot()].stored {`}},
		Unseen: "it catches a driver that does not store",
	},
	{
		Name: "contradicting-frames-restored", Breaks: "Stored frames that contradict each other are taken up.",
		Edits: []Edit{{viewsGo, `		if vote.refused != nil || ok && !mine.same(vote.Vote) {`, `		if vote.refused != nil {`},
			{viewsGo, `		mine, ok := e.own[vote.slot()]
		if vote.refused`, `		if vote.refused`}},
		Unseen: "an honest replica stores no such frames",
	},
	{
		Name: "stored-decision-unchecked", Breaks: "A stored decision is taken up without verifying it.",
		Edits: []Edit{{viewsGo, `		if err := r.Certificate.verify(e.committee, e.instance); err != nil {
			return machine.Refuse(CodeCorrupt, "", "the stored certificate: %v", err)
		}
`, ``}},
		Unseen: "disks lose what was not synced and change nothing",
	},
}
