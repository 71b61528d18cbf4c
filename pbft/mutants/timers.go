package main

// timers fire too early, too late or not at all; repetitions stop.
var timers = []Mutant{
	{
		Name: "timer-never-armed", Breaks: "The timer of a view never runs.",
		Edits: []Edit{{viewsGo, `	e.armed = true
`, ``}},
	},
	{
		Name: "timer-armed-alone", Breaks: "A view's timer runs before a quorum has reached the view: a replica cut off runs ahead.",
		Edits: []Edit{{viewsGo, `	if e.view > 0 && e.reached(e.view) < e.committee.q {
		return
	}
`, ``}},
	},
	{
		Name: "timer-armed-by-all", Breaks: "A view's timer waits until every member has reached the view.",
		Edits: []Edit{{viewsGo, `e.reached(e.view) < e.committee.q {`, `e.reached(e.view) < e.committee.N() {`}},
	},
	{
		Name: "timer-restarted-by-messages", Breaks: "Whatever arrives starts the view's timer anew.",
		Edits: []Edit{{viewsGo, `	if e.armed || e.self == Observer || e.cert != nil {`, `	if e.self == Observer || e.cert != nil {`}},
	},
	{
		Name: "timer-not-doubled", Breaks: "Every view gets the first view's time.",
		Edits: []Edit{{viewsGo, `e.cfg.Timeout << min(e.view, uint64(e.cfg.Doubling))`, `e.cfg.Timeout`}},
	},
	{
		Name: "timer-doubled-without-end", Breaks: "The time of a view doubles without end.",
		Edits:  []Edit{{viewsGo, `e.cfg.Timeout << min(e.view, uint64(e.cfg.Doubling))`, `e.cfg.Timeout << e.view`}},
		Unseen: "it takes more views than a schedule has",
	},
	{
		Name: "timer-kept-over-views", Breaks: "Entering a view leaves the old view's timer running.",
		Edits: []Edit{{viewsGo, `	e.view, e.armed, e.sent = view, false, nil
`, `	e.view, e.sent = view, nil
`}},
	},
	{
		Name: "timer-runs-after-decision", Breaks: "A decided replica goes on to change views.",
		Edits: []Edit{
			{viewsGo, `	e.now++
	if e.cert != nil || e.self == Observer {`, `	e.now++
	if e.self == Observer {`},
			{engineGo, `	e.cert, e.armed, e.sent = cert, false, nil`, `	e.cert, e.sent = cert, nil`},
		},
	},
	{
		Name: "nothing-sent-again", Breaks: "Nothing is sent again.",
		Edits: []Edit{{viewsGo, `		e.ready.Resend = append(e.ready.Resend[:0:0], e.sent...)
`, ``}},
	},
	{
		Name: "sent-again-once", Breaks: "Votes are sent again only once.",
		Edits: []Edit{{viewsGo, `	if e.resendIn--; e.resendIn <= 0 {
		e.resendIn = e.cfg.Resend
`, `	if e.resendIn--; e.resendIn == 0 {
`}},
	},
	{
		Name: "view-changes-not-sent-again", Breaks: "View changes are not sent again.",
		Edits: []Edit{{viewsGo, `vote.View == e.view
`, `vote.View == e.view && vote.Phase != ViewChange
`}},
	},
	{
		Name: "commits-not-sent-again", Breaks: "Commits are not sent again.",
		Edits: []Edit{{viewsGo, `vote.View == e.view
`, `vote.View == e.view && vote.Phase != Commit
`}},
		Unseen: "a later view makes up for what one view loses",
	},
	{
		Name: "latest-frame-sent-again", Breaks: "Only the latest frame of a view is sent again.",
		Edits:  []Edit{{viewsGo, `		e.sent = append(e.sent, v.frame)`, `		e.sent = []*Frame{v.frame}`}},
		Unseen: "a later view makes up for what one view loses",
	},
}
