package bftpath

import (
	"slices"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

// arrival is a frame that a peer sent.
type arrival struct {
	peer     string
	size     int
	frame    *pbft.Frame
	verified *pbft.Verified // once checked
}

// receive keeps what is early, drops what cannot matter, verifies the rest
// together and hands each vote to its engine.
func (l *loop) receive(frames []*arrival) {
	byCommittee := map[*epochCommittee][]*arrival{}
	var order []*epochCommittee // one in all but odd cases
	for _, a := range frames {
		c := l.sort(a)
		if c == nil {
			continue
		}
		if byCommittee[c] == nil {
			order = append(order, c)
		}
		byCommittee[c] = append(byCommittee[c], a)
	}
	for _, c := range order {
		l.verify(c, byCommittee[c])
	}
}

// sort looks at a frame's votes: one of an instance not started yet makes it
// wait too; the committee is returned when a known engine wants one of them.
func (l *loop) sort(a *arrival) *epochCommittee {
	var wanted *epochCommittee
	early := false
	votes := a.frame.Votes()
	for i := range votes {
		in := l.instances[votes[i].Key]
		if in == nil {
			early = early || !l.buried(votes[i].Key)
			continue
		}
		if wanted == nil && in.engine.WantsVote(a.frame, i) && in.committee.prepared.Node(a.frame.Signer()) == a.peer {
			wanted = in.committee
		}
	}
	if early {
		if dropped := l.early.keep(a); dropped > 0 {
			l.count(func(s *Stats) { s.Dropped += uint64(dropped) })
		}
	}
	return wanted
}

// waits reports whether votes of the instance are kept for its start.
func (l *loop) waits(key pbft.Digest) bool { return l.instances[key] == nil && !l.buried(key) }

func (l *loop) buried(key pbft.Digest) bool {
	l.d.mu.Lock()
	defer l.d.mu.Unlock()
	return l.d.forgotten.holds(key)
}

func (l *loop) verify(c *epochCommittee, arrivals []*arrival) {
	frames, at := make([]*pbft.Frame, 0, len(arrivals)), make([]*arrival, 0, len(arrivals))
	for _, a := range arrivals {
		if a.verified == nil {
			frames, at = append(frames, a.frame), append(at, a)
		}
	}
	verified, errs := c.prepared.VerifyAll(frames)
	l.count(func(s *Stats) { s.Verified += uint64(len(frames)) })
	for i, a := range at {
		if errs[i] != nil {
			l.refuse("a frame is refused", a.peer, errs[i])
			continue
		}
		a.verified = &verified[i]
	}
	for _, a := range arrivals {
		if a.verified != nil {
			l.step(a.peer, *a.verified)
		}
	}
}

// step hands the votes of a verified frame to their engines.
func (l *loop) step(peer string, v pbft.Verified) {
	votes := v.Frame().Votes()
	for i := range votes {
		in := l.instances[votes[i].Key]
		if in == nil {
			continue
		}
		if err := in.engine.StepVote(v, i); err != nil && !ordinary(err) {
			l.refuse("a vote is refused", peer, err, "instance", in.engine.Instance().ID, "phase", votes[i].Phase, "view", votes[i].View)
		}
		l.touch(in)
	}
}

// ordinary tells refusals that honest peers and networks cause.
func ordinary(err error) bool {
	r, ok := machine.IsRefusal(err)
	return ok && (r.Code == pbft.CodeDuplicate || r.Code == pbft.CodeOld)
}

// early is the frames of instances that have not started, bounded per sender.
type early struct{ of map[string]*earlyList }

type earlyList struct {
	frames []*arrival
	bytes  int
}

func (e *early) init() { e.of = map[string]*earlyList{} }

// keep holds a frame and drops the sender's oldest beyond its bounds; it
// returns how many.
func (e *early) keep(a *arrival) (dropped int) {
	list := e.of[a.peer]
	if list == nil {
		list = &earlyList{}
		e.of[a.peer] = list
	}
	list.frames = append(list.frames, a)
	list.bytes += a.size
	for len(list.frames) > maxEarly || list.bytes > maxEarlyBytes {
		list.bytes -= list.frames[0].size
		list.frames = list.frames[1:]
		dropped++
	}
	return dropped
}

// take removes and returns the frames that hold a vote of the instance.
func (e *early) take(key pbft.Digest) []*arrival {
	return e.remove(func(f *pbft.Frame) bool { return f.Holds(key) })
}

// forget removes the frames that hold a vote of the instance and none of one
// that others still wait for.
func (e *early) forget(key pbft.Digest, waits func(pbft.Digest) bool) {
	e.remove(func(f *pbft.Frame) bool {
		return f.Holds(key) && !slices.ContainsFunc(f.Votes(), func(v pbft.Vote) bool { return v.Key != key && waits(v.Key) })
	})
}

func (e *early) remove(which func(*pbft.Frame) bool) []*arrival {
	var out []*arrival
	for _, list := range e.of {
		kept := list.frames[:0:0]
		for _, a := range list.frames {
			if !which(a.frame) {
				kept = append(kept, a)
				continue
			}
			out = append(out, a)
			list.bytes -= a.size
		}
		list.frames = kept
	}
	return out
}
