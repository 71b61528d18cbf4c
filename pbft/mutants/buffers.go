package main

// buffers hold too much, or drop what is needed.
var buffers = []Mutant{
	{
		Name: "unbounded-votes", Breaks: "The votes kept of one member have no bound.",
		Edits: []Edit{{tallyGo, `	if len(list) == window {
		copy(list, list[1:])
		list = list[:window-1]
	}
`, ``}},
	},
	{
		Name: "newest-votes-dropped", Breaks: "A full window keeps the oldest views and drops the newest.",
		Edits: []Edit{{tallyGo, `	return len(list) < window || s.view > list[0].vote.View`, `	return len(list) < window`}},
	},
	{
		Name: "window-keeps-arrival-order", Breaks: "Votes are kept in order of arrival, so the latest to arrive pushes out the first, whatever their views.",
		Edits: []Edit{
			{tallyGo, `	for at > 0 && list[at-1].vote.View > c.vote.View {
		at--
	}
`, ``},
			{tallyGo, `	list := b.of[s.phase]
	return len(list) < window || s.view > list[0].vote.View`, `	return true`},
		},
		Unseen: "what a stale vote pushes out is sent again",
	},
	{
		Name: "unbounded-own-votes", Breaks: "A replica never forgets its votes of old views.",
		Edits: []Edit{{viewsGo, `		if s.view+window < view {
			delete`, `		if view == MaxView {
			delete`}},
		Unseen: "it takes more views than a schedule has",
	},
	{
		Name: "unbounded-resends", Breaks: "The frames of views that were left are sent again for ever.",
		Edits: []Edit{{viewsGo, `	e.view, e.armed, e.sent = view, false, nil
`, `	e.view, e.armed = view, false
`}},
		Unseen: "it takes more views than a schedule has",
	},
	{
		Name: "later-votes-found", Breaks: "A member's vote of a later view is taken for the one that is looked for.",
		Edits: []Edit{{tallyGo, `		if list[i].vote.View == s.view {`, `		if list[i].vote.View >= s.view {`}},
	},
	{
		Name: "view-changes-unwanted", Breaks: "View changes for the current view are dropped unverified.",
		Edits: []Edit{{engineGo, `	case PrePrepare, ViewChange:
		return v.View >= e.view`, `	case PrePrepare, ViewChange:
		return v.View > e.view`}},
	},
	{
		Name: "refused-vote-hides-the-frame", Breaks: "The first refused vote of a frame keeps the others from being counted.",
		Edits: []Edit{{engineGo, `			errs = append(errs, e.StepVote(v, i))
`, `			if err := e.StepVote(v, i); err != nil {
				return err
			}
`}},
		Unseen: "a later view makes up for what one view loses",
	},
}
