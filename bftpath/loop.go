package bftpath

import (
	"fmt"

	"github.com/deliberd/deliberd/pbft"
)

// loop is what only the driver's goroutine touches.
type loop struct {
	d         *Driver
	instances map[pbft.Digest]*instance
	early     early
	refusals  refusals
	recalled  map[pbft.Digest]*pbft.Restored // from the journal, of instances not started yet
	dirty     []*instance                    // engines that may have something ready

	out     []outgoing  // votes to sign, by domain
	waiting []*instance // whose votes these are
	notes   []item      // to be stored with the next flush, or when there are many
	urgent  bool        // a note does not wait for votes to share its flush
	flying  *signedBatch
	closing bool  // no flush is begun any more
	used    int64 // bytes of items since the file was written afresh
	compact int64 // rewrite beyond this

	resent map[*pbft.Frame]bool // in this pump
}

// instance is one engine and what the journal holds for it.
type instance struct {
	engine    *pbft.Engine
	committee *epochCommittee
	stored    pbft.Restored
	dirty     bool
	decided   bool
	forgotten bool // nothing more is done for it
}

// compactFrom is the journal size at which finished instances are first dropped from it.
const compactFrom = 8 << 20

func (l *loop) init(d *Driver) {
	l.d, l.instances, l.compact = d, map[pbft.Digest]*instance{}, d.cfg.compactFrom
	l.recalled = map[pbft.Digest]*pbft.Restored{}
	l.early.init()
	l.refusals.init(d.cfg.Tick)
}

// run is the driver's goroutine.
func (d *Driver) run() {
	defer close(d.done)
	ticks, stopTicker := d.cfg.Ticker(d.cfg.Tick)
	defer stopTicker()
	l := &d.loop
	for {
		select {
		case <-d.stop:
			l.end()
			return
		case <-d.wake:
			l.work()
		case err := <-d.flusher.done:
			l.landed(err)
		case <-ticks:
			l.tick()
		}
	}
}

// end waits for the write under way and stores what is left. Nothing is signed any more.
func (l *loop) end() {
	l.closing = true
	if l.flying != nil {
		l.landed(<-l.d.flusher.done)
	}
	l.lastNotes()
}

func (l *loop) tick() {
	l.refusals.now++
	for _, in := range l.instances {
		in.engine.Tick()
		if in.engine.HasReady() {
			l.touch(in)
		}
	}
	l.pump()
}

// maxWork is how many messages are looked at before what they cause is sent.
const maxWork = 256

// work takes what has come in, verifies what matters in one batch and counts it.
func (l *loop) work() {
	d := l.d
	d.mu.Lock()
	batch := d.inbox
	if d.inbox = nil; len(batch) > maxWork {
		d.inbox = batch[maxWork:]
		batch = batch[:maxWork:maxWork]
		d.poke()
	}
	for i := range batch {
		if u := d.queued[batch[i].peer]; u != nil {
			u.count--
			u.bytes -= batch[i].size
		}
	}
	d.mu.Unlock()
	var frames []*arrival
	for i := range batch {
		switch in := &batch[i]; {
		case in.start != nil:
			frames = append(frames, l.begin(in.start)...)
		case in.forget != nil:
			l.forget(*in.forget)
		case in.frame != nil:
			frames = append(frames, &arrival{peer: in.peer, frame: in.frame, size: in.size})
		case in.cert != nil:
			l.certificate(in.peer, in.cert)
		}
	}
	l.receive(frames)
	l.pump()
}

// begin starts an engine where the journal left it and returns the frames that
// came early.
func (l *loop) begin(s *startCommand) []*arrival {
	cfg := pbft.Config{
		Instance: s.instance, Committee: s.committee.prepared, Self: s.committee.self,
		Expected: s.digest, Timeout: l.d.cfg.Timeout, Resend: l.d.cfg.Resend,
	}
	if r := l.recalled[s.key]; r != nil {
		cfg.Restored = *r
		delete(l.recalled, s.key)
		if l.contradicts(s, r) {
			l.recalled[s.key] = r
			l.d.mu.Lock()
			delete(l.d.started, s.key) // it may be started with the value that was decided
			l.d.mu.Unlock()
			return nil
		}
	}
	engine, err := pbft.New(cfg)
	if engine == nil {
		l.d.fail(fmt.Errorf("%w: %s %s: %w", ErrJournalCorrupt, s.instance.Purpose, s.instance.ID, err))
		return nil
	}
	if err != nil {
		l.d.log.Error("a stored quorum decided another value than this node holds right", "instance", s.instance.ID, "err", err)
	}
	in := &instance{engine: engine, committee: s.committee, stored: cfg.Restored}
	prune(&in.stored, s.key)
	l.instances[s.key] = in
	l.count(func(st *Stats) { st.Undecided++ })
	l.touch(in)
	return l.early.take(s.key)
}

// forget drops an engine and remembers that it must not start again.
func (l *loop) forget(key pbft.Digest) {
	if in := l.instances[key]; in != nil {
		in.forgotten = true
		delete(l.instances, key)
		if !in.decided {
			l.count(func(st *Stats) { st.Undecided-- })
		}
	}
	delete(l.recalled, key)
	l.early.forget(key, l.waits)
	if l.d.Err() == nil {
		l.notes = append(l.notes, item{itemForgotten, key[:]})
	}
}

// certificate hands a decision that a peer sent to its engine.
func (l *loop) certificate(peer string, cert *pbft.Certificate) {
	in := l.instances[cert.Instance.Key()]
	if in == nil || in.engine.Decision() != nil {
		return
	}
	v, err := in.committee.prepared.CheckCertificate(in.engine.Instance(), cert)
	if err == nil {
		err = in.engine.StepCertificate(v)
	}
	if err != nil {
		l.refuse("a certificate is refused", peer, err, "instance", cert.Instance.ID)
		return
	}
	l.touch(in)
}

func (l *loop) touch(in *instance) {
	if !in.dirty {
		in.dirty = true
		l.dirty = append(l.dirty, in)
	}
}

func (l *loop) count(f func(*Stats)) {
	l.d.mu.Lock()
	f(&l.d.stats)
	l.d.mu.Unlock()
}

// fail stops signing for good and says why, once.
func (d *Driver) fail(err error) {
	d.mu.Lock()
	first := d.failed == nil
	if first {
		d.failed = err
	}
	d.mu.Unlock()
	if first {
		d.log.Error("PBFT stops signing", "err", err)
		if d.cfg.OnFailure != nil {
			d.cfg.OnFailure(err)
		}
	}
}
