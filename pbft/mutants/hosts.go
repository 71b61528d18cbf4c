package main

const hostGo = "pbft/sim/replica.go"

// hosts neglect what package pbft demands of its caller, in the simulation's
// own hosts: what follows must be visible on the network.
var hosts = []Mutant{
	{
		Name: "host-sends-before-storing", Breaks: "A frame is sent before it is stored, and a crash comes between.",
		Edits: []Edit{{hostGo, `	if c != nil && c.Stage == 0 {
		r.crash(`, `	if c != nil && c.Stage == 0 {
		if m := r.admit(r.sign(r.domain, p.seat, rd.Votes).Encode(), p.idx, r.identity(p)); m != nil {
			r.broadcast(p, m)
		}
		r.crash(`}},
	},
	{
		Name: "host-does-not-store", Breaks: "Frames are sent and never stored.",
		Edits: []Edit{{hostGo, `	d.frames, d.view = append(d.frames, m.frame.Encode()), max(d.view, m.view)
`, `	d.view = max(d.view, m.view)
`}},
	},
	{
		Name: "host-does-not-store-certificates", Breaks: "The prepared certificate behind a commit is not stored.",
		Edits: []Edit{{hostGo, `	d.prepared, d.lock = append(d.prepared, lock.Encode()), max(d.lock, lock.View)
`, `	d.lock = max(d.lock, lock.View)
`}},
	},
	{
		Name: "host-stores-the-latest-frame-only", Breaks: "Each frame stored replaces the one before.",
		Edits: []Edit{{hostGo, `	d.frames, d.view = append(d.frames, m.frame.Encode()), max(d.view, m.view)
`, `	d.frames, d.view = [][]byte{m.frame.Encode()}, max(d.view, m.view)
`}},
	},
	{
		Name: "host-drops-locks-with-their-views", Breaks: "Entering a later view drops the stored certificates along with the frames of earlier views.",
		Edits: []Edit{{hostGo, `		d.frames = d.frames[:0:0]
`, `		d.frames, d.prepared = d.frames[:0:0], d.prepared[:0:0]
`}},
	},
}
