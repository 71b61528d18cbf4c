package pbft

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/cockroachdb/datadriven"
)

// TestTheTranscriptsHold replays testdata/*.txt: they describe the protocol
// step by step. Regenerate with -rewrite and read the difference.
func TestTheTranscriptsHold(t *testing.T) {
	datadriven.Walk(t, "testdata", func(t *testing.T, path string) {
		if !strings.HasSuffix(path, ".txt") {
			return // what fuzzing and rapid keep of failures
		}
		s := &script{}
		datadriven.RunTest(t, path, func(t *testing.T, d *datadriven.TestData) string {
			s.out.Reset()
			if err := s.do(d); err != nil {
				d.Fatalf(t, "%v", err)
			}
			if s.out.Len() == 0 {
				return "ok\n"
			}
			return s.out.String()
		})
	})
}

// script interprets the commands of a transcript.
type script struct {
	net *network
	out strings.Builder
}

func (s *script) do(d *datadriven.TestData) error {
	switch d.Cmd {
	case "network":
		return s.network(d)
	case "deliver": // [from=…] [to=…] [phase=…] [dies=1: stops between storing and sending]
		if d.HasArg("dies") {
			s.net.dying = number(d, "dies", 0) + 1
		}
		return s.net.run(s.filter(d))
	case "drop":
		match := s.filter(d)
		s.net.queue = slices.DeleteFunc(s.net.queue, func(p packet) bool {
			if match(p) {
				s.net.logf("%s: lost", p)
			}
			return match(p)
		})
		return nil
	case "propose":
		i := number(d, "at", 0)
		s.net.members[i].engine.Propose(valueOf(word(d, "value", "A")))
		return s.net.settle(i, 0)
	case "tick":
		return s.tick(d)
	case "crash":
		for _, i := range numbers(d, "at") {
			s.net.crash(i)
		}
		return nil
	case "start":
		for _, i := range numbers(d, "at") {
			if err := s.net.start(i); err != nil {
				return err
			}
		}
		return nil
	case "forge":
		return s.forge(d)
	case "certify":
		return s.certify(d)
	case "show":
		return s.show()
	}
	return fmt.Errorf("unknown command %s", d.Cmd)
}

// network n=4 [expected=A] [timeout=..] [down=3]
func (s *script) network(d *datadriven.TestData) error {
	n := number(d, "n", 4)
	cfg := Config{Timeout: number(d, "timeout", 10), Resend: number(d, "resend", 100)}
	if v := word(d, "expected", ""); v != "" {
		cfg.Expected = valueOf(v)
	} else {
		cfg.Validate = func(v Digest) bool { return v != valueOf("X") }
	}
	s.net = newNetwork(n, cfg, &s.out)
	fmt.Fprintf(&s.out, "n=%d f=%d q=%d, primaries: 0, 1, …\n", n, s.net.committee.F(), s.net.committee.Q())
	down := numbers(d, "down")
	for i := range n {
		if !slices.Contains(down, i) {
			if err := s.net.start(i); err != nil {
				return err
			}
		}
	}
	return nil
}

func (s *script) tick(d *datadriven.TestData) error {
	at := numbers(d, "at")
	for range number(d, "n", 1) {
		for i := range s.net.members {
			if d.HasArg("at") && !slices.Contains(at, i) {
				continue
			}
			if err := s.net.tick(i); err != nil {
				return err
			}
		}
	}
	return nil
}

// forge signer=0 phase=prepare view=0 value=A [to=(1,2)] [other=instance|epoch|oldepoch|genesis|generation] [prepared=N [certificate=…]] [quotes=…]
//
// A view change with prepared=N claims the view N−1; its certificate is short
// (the default), noise, twice, ofvalue, whole, or of another context, as other= has it. A
// pre-prepare above view 0 quotes nobody, or a quorum of the context that quotes= names.
func (s *script) forge(d *datadriven.TestData) error {
	from := number(d, "signer", 0)
	in := s.context(word(d, "other", ""))
	v := Vote{Key: in.Key(), View: uint64(number(d, "view", 0)), Prepared: uint64(number(d, "prepared", 0))}
	for p := PrePrepare; p <= ViewChange; p++ {
		if p.String() == word(d, "phase", "prepare") {
			v.Phase = p
		}
	}
	if name := word(d, "value", ""); name != "" {
		v.Digest = valueOf(name)
	}
	switch {
	case v.Phase == ViewChange && v.Prepared > 0:
		v.Proof = s.certificate(word(d, "certificate", "short"), v.Prepared-1, v.Digest)
	case v.Phase == PrePrepare && v.View > 0:
		v.Proof = s.newView(word(d, "quotes", ""), v.View).Encode()
	}
	return s.say(d, packet{from: from, frame: Sign(in.Domain(), from, []Vote{v}, s.net.keys[from])})
}

// certify signer=0 value=A view=0 by=(0,1,2) to=(1) [other=…] sends a certificate.
func (s *script) certify(d *datadriven.TestData) error {
	in := s.context(word(d, "other", ""))
	cert := &Certificate{Instance: in, View: uint64(number(d, "view", 0)), Digest: valueOf(word(d, "value", "A"))}
	for _, i := range numbers(d, "by") {
		v := Vote{Key: in.Key(), View: cert.View, Phase: Commit, Digest: cert.Digest}
		cert.Votes = append(cert.Votes, Sign(in.Domain(), i, []Vote{v}, s.net.keys[i]).Proof())
	}
	return s.say(d, packet{from: number(d, "signer", 0), cert: cert})
}

// say delivers a message to those whom to= names.
func (s *script) say(d *datadriven.TestData, p packet) error {
	for _, p.to = range numbers(d, "to") {
		if err := s.net.deliver(p); err != nil {
			return err
		}
	}
	return nil
}

// context is the network's instance, or one that differs from it in one thing.
func (s *script) context(other string) Instance {
	in := s.net.config.Instance
	switch other {
	case "instance":
		in.ID = "another-round"
	case "epoch":
		in.Epoch++
	case "oldepoch":
		in.Epoch--
	case "generation":
		in.Generation++
	case "genesis":
		in.Genesis = strings.Repeat("1", 64)
	}
	return in
}

// certificate is the proof, or what is passed off as one, that a value was
// prepared in a view.
func (s *script) certificate(kind string, view uint64, value Digest) []byte {
	in := s.net.config.Instance
	switch kind {
	case "short":
		return (&Prepared{View: view, Digest: value, Votes: []Proof{{Hashes: []Digest{value}}}}).Encode()
	case "noise":
		return []byte("noise")
	case "instance", "oldepoch", "generation":
		in = s.context(kind)
	}
	p := &Prepared{View: view, Digest: value}
	for i := range s.net.committee.Q() {
		v := Vote{Key: in.Key(), View: view, Phase: Prepare, Digest: value}
		if s.net.committee.Primary(s.net.config.Instance.Key(), view) == i {
			v.Phase = PrePrepare
		}
		p.Votes = append(p.Votes, Sign(in.Domain(), i, []Vote{v}, s.net.keys[i]).Proof())
	}
	switch kind {
	case "twice":
		p.Votes[1] = p.Votes[0]
	case "ofvalue":
		p.Digest = valueOf("Z")
	}
	return p.Encode()
}

// newView quotes nobody, or the view changes that a quorum made in a context.
func (s *script) newView(quotes string, view uint64) *NewView {
	nv := &NewView{}
	if quotes == "" {
		return nv
	}
	in := s.context(quotes)
	for i := range s.net.committee.Q() {
		v := Vote{Key: in.Key(), View: view, Phase: ViewChange}
		nv.Claims = append(nv.Claims, Claim{Proof: Sign(in.Domain(), i, []Vote{v}, s.net.keys[i]).Proof()})
	}
	return nv
}

func (s *script) show() error {
	for i, m := range s.net.members {
		switch {
		case m.down:
			s.net.logf("%d is down", i)
		case m.engine.cert != nil:
			s.net.logf("%d decided %s in view %d", i, letterOf(m.engine.cert.Digest), m.engine.cert.View)
		case m.engine.locked != nil:
			s.net.logf("%d is in view %d, holds %s prepared in view %d", i, m.engine.view, letterOf(m.engine.locked.Digest), m.engine.locked.View)
		default:
			s.net.logf("%d is in view %d", i, m.engine.view)
		}
	}
	return nil
}

// filter is the packets a command names by from=, to= and phase=.
func (s *script) filter(d *datadriven.TestData) func(packet) bool {
	from, to, phase := numbers(d, "from"), numbers(d, "to"), word(d, "phase", "")
	return func(p packet) bool {
		if d.HasArg("from") && !slices.Contains(from, p.from) || d.HasArg("to") && !slices.Contains(to, p.to) {
			return false
		}
		if phase == "" {
			return true
		}
		return p.frame != nil && slices.ContainsFunc(p.frame.votes, func(v Vote) bool { return v.Phase.String() == phase })
	}
}

func numbers(d *datadriven.TestData, name string) []int {
	var out []int
	for _, a := range d.CmdArgs {
		if a.Key == name {
			for _, v := range a.Vals {
				i, err := strconv.Atoi(v)
				if err != nil {
					panic(err)
				}
				out = append(out, i)
			}
		}
	}
	return out
}

func number(d *datadriven.TestData, name string, fallback int) int {
	if got := numbers(d, name); len(got) > 0 {
		return got[0]
	}
	return fallback
}

func word(d *datadriven.TestData, name, fallback string) string {
	for _, a := range d.CmdArgs {
		if a.Key == name && len(a.Vals) > 0 {
			return a.Vals[0]
		}
	}
	return fallback
}
