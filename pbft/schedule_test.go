package pbft

import (
	"testing"

	"pgregory.net/rapid"
)

// chaos is one random run: some honest replicas, at most f liars that say
// anything their key can sign, and a network that loses, repeats and reorders.
type chaos struct {
	*network
	liars   map[int]bool
	decided Digest
}

func newChaos(t *rapid.T) *chaos {
	n := rapid.SampledFrom([]int{1, 2, 3, 4, 5, 6, 7}).Draw(t, "n")
	cfg := Config{Timeout: 6, Resend: 3, Doubling: 4}
	if rapid.Bool().Draw(t, "value known") {
		cfg.Expected = valueOf("A")
	} else {
		cfg.Validate = func(d Digest) bool { return d == valueOf("A") || d == valueOf("B") }
	}
	c := &chaos{network: newNetwork(n, cfg, nil), liars: map[int]bool{}}
	c.lazy = rapid.Bool().Draw(t, "unwanted frames dropped")
	for i := range rapid.IntRange(0, c.committee.F()).Draw(t, "liars") {
		c.liars[(i*3+rapid.IntRange(0, n-1).Draw(t, "first liar"))%n] = true
	}
	for i := range n {
		if !c.liars[i] {
			c.must(t, c.start(i))
			c.propose(i)
		}
	}
	return c
}

func (c *chaos) must(t *rapid.T, err error) {
	if err != nil {
		t.Fatal(err)
	}
}

// propose gives each replica its own preference, so that views compete.
func (c *chaos) propose(i int) {
	c.members[i].engine.Propose(valueOf(string("AB"[i%2])))
}

func (c *chaos) step(t *rapid.T) {
	i := rapid.IntRange(0, len(c.members)-1).Draw(t, "replica")
	switch rapid.IntRange(0, 11).Draw(t, "action") {
	case 0: // crash, perhaps in the middle of what it had to do
		if !c.members[i].down {
			c.members[i].engine.Tick()
			c.must(t, c.settle(i, rapid.IntRange(0, 2).Draw(t, "crash after")))
			c.crash(i)
		}
	case 1:
		c.revive(t, i)
	case 2, 3:
		c.must(t, c.tick(i))
	case 4:
		if c.liars[i] {
			c.lie(t, i)
		}
	default:
		if len(c.queue) == 0 {
			c.must(t, c.tick(i))
			return
		}
		at := rapid.IntRange(0, len(c.queue)-1).Draw(t, "packet")
		p := c.queue[at]
		if rapid.IntRange(0, 5).Draw(t, "repeated") > 0 {
			c.queue = append(c.queue[:at:at], c.queue[at+1:]...)
		}
		if rapid.IntRange(0, 5).Draw(t, "kept") > 0 && !c.liars[p.to] {
			c.must(t, c.deliver(p))
		}
	}
}

func (c *chaos) revive(t *rapid.T, i int) {
	if c.members[i].down && !c.liars[i] {
		c.must(t, c.start(i))
		c.propose(i)
		c.must(t, c.settle(i, 0))
	}
}

// lie sends one vote of a liar to some: any phase, a view near the others', any value,
// and the proof of a real view change or new view when one is about.
func (c *chaos) lie(t *rapid.T, i int) {
	v := Vote{Key: c.config.Instance.Key(), Phase: Phase(rapid.IntRange(1, 4).Draw(t, "phase"))}
	v.View = uint64(rapid.IntRange(0, 4).Draw(t, "view"))
	v.Digest = valueOf(string("AB"[rapid.IntRange(0, 1).Draw(t, "value")]))
	if v.Phase == ViewChange {
		v.View++
		v.Digest = Digest{}
	}
	if v.Phase == ViewChange || v.Phase == PrePrepare && v.View > 0 {
		c.borrow(t, &v)
	}
	frame := Sign(c.config.Instance.Domain(), i, []Vote{v}, c.keys[i])
	if v.check() != nil {
		return // would not even decode
	}
	for to := range c.members {
		if to != i && rapid.Bool().Draw(t, "told") {
			c.queue = append(c.queue, packet{from: i, to: to, frame: frame})
		}
	}
}

// borrow gives a lie a proof taken from an honest frame, or garbage.
func (c *chaos) borrow(t *rapid.T, v *Vote) {
	for _, p := range c.queue {
		for _, o := range p.frame.orNone() {
			if o.Phase == v.Phase && len(o.Proof) > 0 && rapid.Bool().Draw(t, "borrowed") {
				v.Proof, v.Prepared, v.Digest = o.Proof, o.Prepared, o.Digest
				return
			}
		}
	}
	if v.Phase == PrePrepare {
		v.Proof = []byte("garbage")
	}
}

func (f *Frame) orNone() []Vote {
	if f == nil {
		return nil
	}
	return f.votes
}

// check holds the run against what must always be true.
func (c *chaos) check(t *rapid.T) {
	for i, m := range c.members {
		if cert := m.disk.Certificate; cert != nil {
			if c.decided.IsZero() {
				c.decided = cert.Digest
			}
			if cert.Digest != c.decided {
				t.Fatalf("%d decided %s, another %s", i, letterOf(cert.Digest), letterOf(c.decided))
			}
			if err := c.committee.VerifyCertificate(c.config.Instance, c.decided, *cert); err != nil {
				t.Fatalf("the certificate of %d: %v", i, err)
			}
		}
		for _, g := range m.guilt {
			if !c.liars[g.Signer()] {
				t.Fatalf("%d holds proof against honest %d: %s and %s", i, g.Signer(), describe(g.A), describe(g.B))
			}
			if err := g.Verify(c.committee); err != nil {
				t.Fatalf("a guilt proof does not verify: %v", err)
			}
		}
		c.checkDisk(t, i)
	}
}

// checkDisk demands one vote per slot over all that a replica ever signed.
func (c *chaos) checkDisk(t *rapid.T, i int) {
	said := map[slot]Vote{}
	for _, f := range c.members[i].disk.Frames {
		for _, v := range f.votes {
			if o, ok := said[v.slot()]; ok && !o.same(v) {
				t.Fatalf("%d signed %s and %s", i, describe(o), describe(v))
			}
			said[v.slot()] = v
		}
	}
}

// settleDown heals everything and demands that all honest replicas decide.
func (c *chaos) settleDown(t *rapid.T) {
	for range 3000 {
		undecided := false
		for i, m := range c.members {
			if c.liars[i] {
				continue
			}
			c.revive(t, i)
			c.must(t, c.tick(i))
			undecided = undecided || m.engine.Decision() == nil
		}
		if !undecided {
			return
		}
		c.must(t, c.run(func(p packet) bool { return !c.liars[p.to] }))
		c.queue = nil
	}
	for i, m := range c.members {
		if !m.down {
			t.Logf("%d: view %d, armed %v, decided %v", i, m.engine.view, m.engine.armed, m.engine.cert != nil)
		}
	}
	t.Fatal("not all honest replicas decide after the network healed")
}

func TestUnderAnyScheduleTheHonestAgreeAndDecideOnceTheNetworkHeals(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		c := newChaos(t)
		for range rapid.IntRange(0, 250).Draw(t, "steps") {
			c.step(t)
		}
		c.check(t)
		c.settleDown(t)
		c.check(t)
	})
}
