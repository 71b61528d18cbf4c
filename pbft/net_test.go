package pbft

import (
	"crypto/ed25519"
	"crypto/sha256"
	"fmt"
	"io"
	"strings"

	"github.com/deliberd/deliberd/machine"
)

// testGenesis is the cluster of every test.
const testGenesis = "00000000000000000000000000000000000000000000000000000000000000ff"

func testKeys(n int) []ed25519.PrivateKey {
	keys := make([]ed25519.PrivateKey, n)
	for i := range keys {
		seed := sha256.Sum256([]byte(fmt.Sprint("key ", i)))
		keys[i] = ed25519.NewKeyFromSeed(seed[:])
	}
	return keys
}

func testMembers(keys []ed25519.PrivateKey, epoch uint64) machine.Committee {
	c := machine.Committee{Epoch: epoch}
	for i, k := range keys {
		c.Members = append(c.Members, machine.Member{Node: fmt.Sprintf("node%03d", i), Key: [32]byte(k.Public().(ed25519.PublicKey))})
	}
	return c
}

func testCommittee(keys []ed25519.PrivateKey, epoch uint64) *Committee {
	c, err := NewCommittee(testMembers(keys, epoch))
	if err != nil {
		panic(err)
	}
	return c
}

// testInstance is an instance whose first primary is member 0.
func testInstance(c *Committee, name string) Instance {
	in := Instance{Protocol: Protocol, Genesis: testGenesis, Generation: 1, Epoch: c.epoch, Purpose: "test", ID: name}
	for i := 0; c.Primary(in.Key(), 0) != 0; i++ {
		in.ID = fmt.Sprint(name, "-", i)
	}
	return in
}

// valueOf is the digest of a one-letter value; letterOf is its inverse.
func valueOf(name string) Digest { return sha256.Sum256([]byte(name)) }

func letterOf(d Digest) string {
	for c := 'A'; c <= 'Z'; c++ {
		if valueOf(string(c)) == d {
			return string(c)
		}
	}
	if d.IsZero() {
		return "nothing"
	}
	return d.String()[:8]
}

func describe(v Vote) string {
	if v.Phase == ViewChange {
		if v.Prepared == 0 {
			return fmt.Sprintf("view-change(%d, nothing prepared)", v.View)
		}
		return fmt.Sprintf("view-change(%d, %s prepared in view %d)", v.View, letterOf(v.Digest), v.Prepared-1)
	}
	return fmt.Sprintf("%s(%d, %s)", v.Phase, v.View, letterOf(v.Digest))
}

// packet is one message under way.
type packet struct {
	from, to int
	frame    *Frame
	cert     *Certificate
}

func (p packet) String() string {
	if p.cert != nil {
		return fmt.Sprintf("%d→%d certificate(%d, %s)", p.from, p.to, p.cert.View, letterOf(p.cert.Digest))
	}
	var votes []string
	for _, v := range p.frame.votes {
		votes = append(votes, describe(v))
	}
	return fmt.Sprintf("%d→%d %s", p.from, p.to, strings.Join(votes, " "))
}

// member is one replica with its disk.
type member struct {
	engine *Engine
	down   bool
	disk   Restored // frames and certificates, as stored
	guilt  []Guilt
}

// network is replicas and the messages between them; nothing moves by itself.
type network struct {
	keys      []ed25519.PrivateKey
	committee *Committee
	config    Config
	members   []*member
	queue     []packet
	log       io.Writer
	dying     int  // one more than the replica that stops when it has next stored a frame; 0 for none
	lazy      bool // drop unverified what engines do not want, as drivers do
}

func newNetwork(n int, cfg Config, log io.Writer) *network {
	keys := testKeys(n)
	c := testCommittee(keys, 1)
	if cfg.Instance == (Instance{}) {
		cfg.Instance = testInstance(c, "round")
	}
	cfg.Committee = c
	net := &network{keys: keys, committee: c, config: cfg, log: log}
	for range n {
		net.members = append(net.members, &member{down: true})
	}
	return net
}

func (n *network) logf(format string, args ...any) {
	if n.log != nil {
		fmt.Fprintf(n.log, format+"\n", args...)
	}
}

// start runs a replica from its disk.
func (n *network) start(i int) error {
	m := n.members[i]
	cfg := n.config
	cfg.Self, cfg.Restored = i, m.disk
	engine, err := New(cfg)
	if err != nil {
		return err
	}
	m.engine, m.down = engine, false
	return n.settle(i, 0)
}

func (n *network) startAll() error {
	for i := range n.members {
		if err := n.start(i); err != nil {
			return err
		}
	}
	return nil
}

func (n *network) crash(i int) {
	n.members[i].down, n.members[i].engine = true, nil
}

// settle does what a driver must after each call. With crashAfter > 0 the
// replica stops after that many steps of it: 1 after storing, 2 after sending to one.
func (n *network) settle(i, crashAfter int) error {
	m := n.members[i]
	for m.engine.HasReady() {
		r := m.engine.Ready()
		var stored []Verified
		var frame *Frame
		if len(r.Votes) > 0 {
			frame = Sign(m.engine.domain, i, r.Votes, n.keys[i])
			m.disk.Frames = append(m.disk.Frames, frame)
			if r.Prepared != nil {
				m.disk.Prepared = append(m.disk.Prepared, r.Prepared)
			}
			v, err := n.committee.Verify(frame)
			if err != nil {
				return err
			}
			stored = append(stored, v)
			n.logf("  %d stores and sends %s", i, strings.SplitN(packet{frame: frame}.String(), " ", 2)[1])
		}
		if frame != nil && n.dying == i+1 {
			n.logf("  %d stops before anything is sent", i)
			n.dying, crashAfter = 0, 1
		}
		if crashAfter == 1 {
			n.crash(i)
			return nil
		}
		if err := m.engine.Advance(stored...); err != nil {
			return err
		}
		if frame != nil {
			n.send(i, packet{frame: frame}, crashAfter == 2)
		}
		if crashAfter == 2 {
			n.crash(i)
			return nil
		}
		n.settleRest(i, r)
	}
	return nil
}

func (n *network) settleRest(i int, r Ready) {
	m := n.members[i]
	for _, f := range r.Resend {
		n.logf("  %d sends again %s", i, strings.SplitN(packet{frame: f}.String(), " ", 2)[1])
		n.send(i, packet{frame: f}, false)
	}
	for _, to := range r.Answers {
		n.logf("  %d answers %d with the certificate", i, to)
		n.queue = append(n.queue, packet{from: i, to: to, cert: m.engine.Decision()})
	}
	for _, g := range r.Guilt {
		n.logf("  %d holds proof that %d is guilty: %s and %s", i, g.Signer(), describe(g.A), describe(g.B))
		m.guilt = append(m.guilt, g)
	}
	if r.Decided != nil {
		n.logf("  %d decides %s in view %d, signed by %v", i, letterOf(r.Decided.Digest), r.Decided.View, r.Decided.Signers())
		m.disk.Certificate = r.Decided
	}
}

func (n *network) send(from int, p packet, onlyOne bool) {
	for to := range n.members {
		if to != from {
			n.queue = append(n.queue, packet{from: from, to: to, frame: p.frame})
			if onlyOne {
				return
			}
		}
	}
}

// deliver hands one packet over, through its encoding as a network would.
func (n *network) deliver(p packet) error {
	m := n.members[p.to]
	if m.down {
		n.logf("%s: lost, %d is down", p, p.to)
		return nil
	}
	var refused error
	if p.cert != nil {
		_, cert, err := Decode(p.cert.Encode())
		if err != nil {
			return err
		}
		var v VerifiedCertificate
		if v, refused = n.committee.CheckCertificate(n.config.Instance, cert); refused == nil {
			refused = m.engine.StepCertificate(v)
		}
	} else {
		frame, _, err := Decode(p.frame.Encode())
		if err != nil {
			return err
		}
		if n.lazy && !m.engine.Wants(frame) {
			return nil
		}
		var v Verified
		if v, refused = n.committee.Verify(frame); refused == nil {
			refused = m.engine.Step(v)
		}
	}
	if refused == nil {
		n.logf("%s", p)
	} else {
		n.logf("%s: %s", p, strings.ReplaceAll(refused.Error(), "\n", "; "))
	}
	return n.settle(p.to, 0)
}

// run delivers until nothing that matches is under way.
func (n *network) run(match func(packet) bool) error {
	for range 100_000 {
		at := -1
		for i, p := range n.queue {
			if match(p) {
				at = i
				break
			}
		}
		if at < 0 {
			return nil
		}
		p := n.queue[at]
		n.queue = append(n.queue[:at:at], n.queue[at+1:]...)
		if err := n.deliver(p); err != nil {
			return err
		}
	}
	return fmt.Errorf("the network does not come to rest")
}

func all(packet) bool { return true }

// tick lets time pass at the replicas that are up.
func (n *network) tick(i int) error {
	if n.members[i].down {
		return nil
	}
	n.members[i].engine.Tick()
	return n.settle(i, 0)
}
