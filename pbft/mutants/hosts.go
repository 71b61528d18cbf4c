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
		Edits: []Edit{{hostGo, `	p.disk.frames = append(p.disk.frames, m.frame.Encode())
`, ``}},
	},
	{
		Name: "host-does-not-store-certificates", Breaks: "The prepared certificate behind a commit is not stored.",
		Edits: []Edit{{hostGo, `	if p.proof != nil {
		p.disk.prepared = append(p.disk.prepared, p.proof.Encode())
	}
`, ``}},
	},
	{
		Name: "host-stores-the-latest-only", Breaks: "Each frame stored replaces the one before.",
		Edits: []Edit{{hostGo, `	p.disk.frames = append(p.disk.frames, m.frame.Encode())
`, `	p.disk.frames = [][]byte{m.frame.Encode()}
`}},
	},
}
