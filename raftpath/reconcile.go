package raftpath

import (
	"encoding/binary"
	"slices"
	"time"

	"github.com/hashicorp/raft"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
)

// reconcileEvery is how often a leader looks whether raft's configuration is
// what it should be, besides at each change of either.
const reconcileEvery = 200 * time.Millisecond

// maxLag is how many entries a node may lack when it is made a voter.
const maxLag = 1024

// Reconcile sets the voters that raft's configuration should hold. Whoever
// leads moves it there, one committed change at a time: additions in ascending
// order, each once that node stands ready, then removals. A node that is among
// the voters and runs no raft yet makes itself ready. Call it on every node
// whenever membership changes.
func (p *Path) Reconcile(voters []string) {
	target := slices.Compact(slices.Sorted(slices.Values(voters)))
	p.mu.Lock()
	p.target = target
	p.mu.Unlock()
	select {
	case p.targeted <- struct{}{}:
	default:
	}
}

func (p *Path) reconcile() {
	tick := time.NewTicker(reconcileEvery)
	defer tick.Stop()
	led := time.Now() // when a leader was last known
	for {
		select {
		case <-p.targeted:
		case <-tick.C:
		case <-p.ctx.Done():
			return
		}
		if p.leaderNow() != "" {
			led = time.Now()
		} else if time.Since(led) > strayAfter*p.cfg.Timing.Election {
			p.stray()
			led = time.Now()
		}
		p.mu.Lock()
		target := p.target
		p.mu.Unlock()
		if target == nil || p.Fatal() != nil {
			continue
		}
		x := p.running()
		switch {
		case x == nil && containsString(target, p.id):
			p.promote()
		case x != nil:
			if err := x.step(target); err != nil {
				p.log.Info("membership step", "err", err)
			}
		}
	}
}

// promote turns an observer that is level with the log into a node that runs
// raft and waits to be added.
func (p *Path) promote() {
	p.life.Lock()
	defer p.life.Unlock()
	if p.ctx.Err() != nil || p.running() != nil || p.following == nil || p.Head().ConfigIndex == 0 {
		return
	}
	p.stopFollowing()
	err := p.becomeVoter()
	if err == nil {
		p.log.Info("ready to become a voter", "index", p.Head().Index)
		return
	}
	p.log.Warn("become a voter", "err", err)
	p.startFollowing()
}

func (p *Path) becomeVoter() error {
	p.mu.Lock()
	last := p.ending
	p.mu.Unlock()
	more, err := p.level(p.others(""))
	if err != nil {
		return err
	}
	if more != nil {
		last = more
	}
	if last == nil || last.Index != p.Head().Index {
		// Nothing has come since this process began: ask for the state's last entry.
		if last, err = p.lastEntry(); err != nil {
			return err
		}
	}
	if err := p.prepareRaft(last); err != nil {
		return err
	}
	return p.startRaft()
}

// lastEntry asks the members for the log entry that this node's state ends with.
func (p *Path) lastEntry() (*raft.Log, error) {
	head := p.Head()
	request := binary.BigEndian.AppendUint64([]byte{askEntry}, head.Index)
	var failed error = machine.Refuse(CodeNoLeader, "", "no member is known")
	for _, peer := range p.others("") {
		reply, err := p.cfg.Host.Call(p.ctx, peer, p2p.Forward, request)
		if err != nil {
			failed = err
			continue
		}
		r := &reader{b: reply}
		l := r.entry(head.Index)
		if err := r.end(); err != nil || l.Term != head.Term {
			failed = errFrame
			continue
		}
		return l, nil
	}
	return nil, failed
}

// step makes the next change towards the target, if this node leads and
// nothing else is under way.
func (x *run) step(target []string) error {
	if _, ok := x.settled(); !ok {
		return nil
	}
	head := x.p.Head()
	config, err := head.configuration()
	if err != nil || head.ConfigIndex == 0 {
		return err
	}
	if !slices.Equal(voters(config), voters(x.r.GetConfiguration().Configuration())) {
		return nil // a change is on its way
	}
	// raft does not say at which index its configuration is; the applied entry does.
	at, limit := head.ConfigIndex, x.p.cfg.Timing.Heartbeat
	for _, id := range target {
		if hasVoter(config, id) {
			continue
		}
		if !x.standsReady(id) {
			continue
		}
		x.p.log.Info("adding a voter", "node", id)
		return x.wait(x.r.AddVoter(raft.ServerID(id), raft.ServerAddress(id), at, limit))
	}
	for _, id := range voters(config) {
		if containsString(target, id) {
			continue
		}
		if !x.complete(target) {
			return nil
		}
		x.p.log.Info("removing a voter", "node", id)
		return x.wait(x.r.RemoveServer(raft.ServerID(id), at, limit))
	}
	return nil
}

// complete reports whether all of the target are voters: removals come last.
func (x *run) complete(target []string) bool {
	config := x.r.GetConfiguration().Configuration()
	for _, id := range target {
		if !hasVoter(config, id) {
			return false
		}
	}
	return true
}

// wait waits for a change to commit, as long as raft runs.
func (x *run) wait(f raft.IndexFuture) error {
	done := make(chan error, 1)
	go func() { done <- f.Error() }()
	select {
	case err := <-done:
		return err
	case <-x.quit:
		return errStopped
	}
}

// strayAfter is how many election timeouts without a leader make a node ask
// the others what it has missed.
const strayAfter = 8

// stray is for a node that was away while the voters changed, or that was
// removed and missed it. The one who leads now may be none in its own
// configuration, and it would refuse him for ever; or nobody speaks to it any
// more. It asks the others, and fetches what it lacks if one of them follows a
// leader it does not know.
func (p *Path) stray() {
	x := p.running()
	if x == nil || p.Fatal() != nil || p.removed() {
		return
	}
	config := x.r.GetConfiguration().Configuration()
	var ahead []string
	for _, peer := range p.others("") {
		s, err := p.standingOf(peer)
		if err != nil {
			continue
		}
		if s.leftOut(p.Head(), p.id) {
			p.hearRemoved(peer)
		} else if s.raft && s.leader != "" && !hasVoter(config, s.leader) && s.applied > p.Head().Index {
			ahead = append(ahead, peer)
		}
	}
	for _, peer := range ahead {
		p.log.Info("the voters have changed while this node was away", "from", peer)
		if err := p.CatchUp(p.ctx, peer); err != nil {
			p.log.Warn("catch up", "from", peer, "err", err)
			continue
		}
		return
	}
}

// standsReady asks a node whether it runs raft with a log that ours can
// continue. One that has fallen behind since it began to wait is told to catch
// up: raft does not speak to a node that is no voter yet.
func (x *run) standsReady(id string) bool {
	s, err := x.p.standingOf(id)
	if err != nil || !s.raft || s.generation != x.p.Head().Generation {
		return false
	}
	first, err := x.disk.logs.FirstIndex()
	if err != nil {
		return false
	}
	if last := x.r.LastIndex(); last > maxLag {
		first = max(first, last-maxLag)
	}
	if s.last >= first {
		return true
	}
	if _, err := x.t.call(id, offer{term: x.r.CurrentTerm(), first: first}.encode(), x.p.cfg.Timing.CatchUp); err != nil {
		x.p.log.Info("a node that is to vote is behind", "node", id, "err", err)
	}
	return false
}
