package model

import (
	"fmt"

	"github.com/deliberd/deliberd/pbft"
)

// replica is a real engine with its disk, and what the specification knows of it.
type replica struct {
	w         *world
	me        int
	engine    *pbft.Engine
	disk      pbft.Restored
	own       Member      // the votes on disk
	handed    []pbft.Vote // taken from the engine and not stored yet
	lock      *pbft.Prepared
	heard     uint64 // packed: the votes of others it has filed since it started
	proposed  bool
	named     bool // some value has come up
	startView int
}

// start runs a member from its disk.
func (w *world) start(me int, disk pbft.Restored) (*replica, error) {
	disk.Frames = disk.Frames[:len(disk.Frames):len(disk.Frames)]
	disk.Prepared = disk.Prepared[:len(disk.Prepared):len(disk.Prepared)]
	r := &replica{w: w, me: me, disk: disk}
	for _, f := range disk.Frames {
		r.own = withVotes(r.own, f.Votes())
	}
	e, err := pbft.New(pbft.Config{
		Instance: w.instance, Committee: w.committee, Self: me,
		Validate: func(d pbft.Digest) bool { return d == digests[A] || d == digests[B] },
		Timeout:  1, Resend: 1 << 20, Restored: disk,
	})
	r.engine = e
	if err == nil {
		e.Ready() // what to send again
	}
	r.startView = r.own.View()
	for v := range MaxViews {
		r.named = r.named || r.own.Accepted[v] != None
	}
	return r, err
}

// copy is a replica that goes its own way from here.
func (r *replica) copy() *replica {
	c := *r
	c.engine = copyEngine(r.engine)
	c.disk.Frames = r.disk.Frames[:len(r.disk.Frames):len(r.disk.Frames)]
	c.disk.Prepared = r.disk.Prepared[:len(r.disk.Prepared):len(r.disk.Prepared)]
	return &c
}

// withVotes is a member after some more votes.
func withVotes(m Member, votes []pbft.Vote) Member {
	for _, v := range votes {
		if int(v.View) < MaxViews {
			m = m.Do(actionOf(v))
		}
	}
	return m
}

// actionOf is the action that casts a vote.
func actionOf(v pbft.Vote) Action {
	a := Action{Kind: Kind(v.Phase), View: int(v.View)}
	if a.Kind != ViewChange {
		a.Value = valueOf(v.Digest)
	}
	return a
}

// knows is what a member with these votes on disk knows: these and what it heard.
func (r *replica) knows(own Member) *Heard {
	h := unpack(r.me, r.heard)
	h.Add(r.me, own)
	return h
}

// hear delivers a vote. It reports whether the engine filed it.
func (r *replica) hear(m *message) bool {
	if err := r.engine.StepVote(m.verified, 0); err != nil {
		return false
	}
	r.named = r.named || m.value != None
	r.heard |= m.bit << voiceAt(r.me, m.from)
	return true
}

// timeout lets the timer of the view end, if it runs.
func (r *replica) timeout() {
	view := r.engine.View()
	for range 1 << view {
		if r.engine.View() == view {
			r.engine.Tick()
		}
	}
}

// take takes what the engine wants stored.
func (r *replica) take() pbft.Ready {
	ready := r.engine.Ready()
	if len(ready.Votes) > 0 {
		r.handed, r.lock = ready.Votes, ready.Prepared
	}
	return ready
}

// store puts what was taken on disk and tells the engine.
func (r *replica) store() error {
	votes := make([]pbft.Vote, len(r.handed))
	copy(votes, r.handed)
	v := r.w.sign(r.me, votes...)
	r.disk.Frames = append(r.disk.Frames, v.Frame())
	if r.lock != nil {
		r.disk.Prepared = append(r.disk.Prepared, r.lock)
	}
	r.own = withVotes(r.own, votes)
	r.handed, r.lock = nil, nil
	return r.engine.Advance(v)
}

// lawful checks that the specification allows votes one after the other, by a
// member with these votes on disk that heard what the replica heard.
func (r *replica) lawful(p Protocol, votes []pbft.Vote) error {
	own := r.own
	for _, v := range votes {
		if int(v.View) >= p.Views {
			return fmt.Errorf("%s is beyond the model", describe(v))
		}
		a := actionOf(v)
		if !contains(p.Enabled(nil, r.me, own, r.knows(own)), a) {
			return fmt.Errorf("casts %s, which is not allowed with %s signed and %s heard", describe(v), tell(own), tellHeard(r.me, r.heard))
		}
		if a.Kind == ViewChange && claimOf(v) != own.Claim(a.View) {
			return fmt.Errorf("casts %s, though %s", describe(v), own.Claim(a.View))
		}
		own = own.Do(a)
	}
	return nil
}

func claimOf(v pbft.Vote) Claim {
	if v.Prepared == 0 {
		return 0
	}
	return ClaimOf(int(v.Prepared)-1, valueOf(v.Digest))
}

func contains(actions []Action, a Action) bool {
	for _, b := range actions {
		if a == b {
			return true
		}
	}
	return false
}

// idle checks that an engine at rest has left nothing undone that the
// specification allows and that needs no timer: engines act eagerly.
func (r *replica) idle(p Protocol) error {
	knows := r.knows(r.own)
	if cert := r.engine.Decision(); cert != nil {
		return r.decided(p, knows, cert)
	}
	for v := range p.Views {
		for _, x := range AllValues {
			if p.Certified(knows, v, x) {
				return fmt.Errorf("does not decide %s in view %d", x, v)
			}
		}
	}
	for _, a := range p.Enabled(nil, r.me, r.own, knows) {
		free := a.Kind == PrePrepare && !r.proposed && (a.View == 0 || p.Justified(&knows.Changed[a.View]) == Both)
		patient := a.Kind == ViewChange && !p.Joinable(knows, a.View)
		if !free && !patient {
			return fmt.Errorf("does not cast %s with %s signed and %s heard", a, tell(r.own), tellHeard(r.me, r.heard))
		}
	}
	return nil
}

// decided checks a decision against what the replica knows.
func (r *replica) decided(p Protocol, knows *Heard, cert *pbft.Certificate) error {
	if !p.Certified(knows, int(cert.View), valueOf(cert.Digest)) {
		return fmt.Errorf("decides %s in view %d on less than a quorum of commits", valueOf(cert.Digest), cert.View)
	}
	return r.w.committee.VerifyCertificate(r.w.instance, cert.Digest, *cert)
}

// tell and tellHeard describe votes for failures.
func tell(m Member) string {
	return fmt.Sprintf("accepted %v committed %v changed %v", m.Accepted, m.Committed, m.Changed)
}

func tellHeard(me int, heard uint64) string { return fmt.Sprintf("%+v", *unpack(me, heard)) }
