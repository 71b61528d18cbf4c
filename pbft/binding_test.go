package pbft

import (
	"strings"
	"testing"
)

// elsewhere are the contexts that differ from one vote's in a single thing:
// what the frame's domain names, what the instance's key is made of, or the
// vote's own fields.
var elsewhere = []struct {
	name   string
	change func(*Domain, *Instance, *Vote)
}{
	{"protocol of the frame", func(d *Domain, _ *Instance, _ *Vote) { d.Protocol = "deliberd/pbft/2" }},
	{"genesis of the frame", func(d *Domain, _ *Instance, _ *Vote) { d.Genesis = strings.Repeat("1", 64) }},
	{"generation of the frame", func(d *Domain, _ *Instance, _ *Vote) { d.Generation++ }},
	{"epoch of the frame", func(d *Domain, _ *Instance, _ *Vote) { d.Epoch++ }},
	{"protocol of the instance", func(_ *Domain, i *Instance, _ *Vote) { i.Protocol = "deliberd/pbft/2" }},
	{"genesis of the instance", func(_ *Domain, i *Instance, _ *Vote) { i.Genesis = strings.Repeat("1", 64) }},
	{"generation of the instance", func(_ *Domain, i *Instance, _ *Vote) { i.Generation++ }},
	{"epoch of the instance", func(_ *Domain, i *Instance, _ *Vote) { i.Epoch++ }},
	{"purpose", func(_ *Domain, i *Instance, _ *Vote) { i.Purpose += "x" }},
	{"id", func(_ *Domain, i *Instance, _ *Vote) { i.ID += "x" }},
	{"view", func(_ *Domain, _ *Instance, v *Vote) { v.View++ }},
	{"phase", func(_ *Domain, _ *Instance, v *Vote) { v.Phase = v.Phase%ViewChange + 1 }},
	{"digest", func(_ *Domain, _ *Instance, v *Vote) { v.Digest = valueOf("Z") }},
	{"view prepared in", func(_ *Domain, _ *Instance, v *Vote) { v.Prepared++ }},
}

func TestASignatureMadeInAnyOtherContextIsRefusedByEveryVerifier(t *testing.T) {
	keys := testKeys(4)
	c := testCommittee(keys, 1)
	in := testInstance(c, "round")
	for _, place := range verifiers(in, keys) {
		right := Sign(in.Domain(), 1, []Vote{place.vote}, keys[1]).Proof()
		if err := place.check(c, right); err != nil {
			t.Errorf("%s: refused in its own context: %v", place.name, err)
		}
		for _, other := range elsewhere {
			d, i, v := in.Domain(), in, place.vote
			other.change(&d, &i, &v)
			v.Key = i.Key()
			made := Sign(d, 1, []Vote{v}, keys[1]).Proof()
			relabelled := made
			relabelled.Hashes = right.Hashes
			for how, p := range map[string]Proof{"as it was signed": made, "under this context's hash": relabelled} {
				if err := place.check(c, p); codeOf(err) != CodeBadSignature {
					t.Errorf("%s: a signature of another %s, %s: %v", place.name, other.name, how, err)
				}
			}
		}
		for signer, name := range map[int]string{2: "another member", 4: "nobody's seat"} {
			p := right
			p.Signer = signer
			if place.check(c, p) == nil {
				t.Errorf("%s: a signature passed off as that of %s is accepted", place.name, name)
			}
		}
	}
}

func TestAnEngineTakesNothingMadeInAnotherContext(t *testing.T) {
	for _, other := range []struct {
		name   string
		change func(*Instance)
		code   string // of a frame's refusal; "" when its votes are passed over
	}{
		{"genesis", func(i *Instance) { i.Genesis = strings.Repeat("1", 64) }, CodeOtherDomain},
		{"generation", func(i *Instance) { i.Generation++ }, CodeOtherDomain},
		{"epoch", func(i *Instance) { i.Epoch++ }, CodeOtherDomain},
		{"purpose", func(i *Instance) { i.Purpose += "x" }, ""},
		{"id", func(i *Instance) { i.ID += "x" }, ""},
	} {
		l := newLone(t, 4, 3, Config{Validate: anything})
		in := l.config.Instance
		other.change(&in)
		theirs, err := NewCommittee(testMembers(l.keys, in.Epoch))
		if err != nil {
			t.Fatal(err)
		}
		cert := &Certificate{Instance: in, Digest: valueOf("A")}
		for from := range 3 {
			v, err := theirs.Sign(in.Domain(), from, []Vote{{Key: in.Key(), Phase: Commit, Digest: valueOf("A")}}, l.keys[from])
			if err != nil {
				t.Fatal(err)
			}
			cert.Votes = append(cert.Votes, v.Frame().Proof())
			if err := l.engine().Step(v); codeOf(err) != other.code {
				t.Errorf("a frame of another %s: %v", other.name, err)
			}
			if err := l.engine().StepVote(v, 0); err == nil {
				t.Errorf("a vote of another %s counts", other.name)
			}
			if l.engine().Wants(v.Frame()) {
				t.Errorf("a frame of another %s is wanted", other.name)
			}
		}
		if in.Domain() != l.config.Instance.Domain() {
			// A liar may put a vote of this instance into a frame of another
			// domain: counted, it would spoil the certificate it is part of.
			v, err := theirs.Sign(in.Domain(), 1, []Vote{{Key: l.engine().Key(), Phase: Commit, Digest: valueOf("A")}}, l.keys[1])
			if err != nil {
				t.Fatal(err)
			}
			if err := l.engine().StepVote(v, 0); codeOf(err) != CodeOtherDomain {
				t.Errorf("this instance's vote in a frame of another %s: %v", other.name, err)
			}
		}
		checked, err := theirs.CheckCertificate(in, cert)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.engine().StepCertificate(checked); codeOf(err) != CodeOtherInstance || l.engine().Decision() != nil {
			t.Errorf("a certificate of another %s: %v", other.name, err)
		}
		if l.engine().Held() != 0 {
			t.Errorf("another %s: the engine holds %d votes of it", other.name, l.engine().Held())
		}
	}
}

func TestAGuiltProofOfAnotherProtocolProvesNothing(t *testing.T) {
	keys := testKeys(4)
	c := testCommittee(keys, 1)
	in := testInstance(c, "round")
	in.Protocol = "deliberd/pbft/2"
	a, b := Vote{Key: in.Key(), Phase: Commit, Digest: valueOf("A")}, Vote{Key: in.Key(), Phase: Commit, Digest: valueOf("B")}
	g := Guilt{Instance: in, A: a, B: b, ProofA: Sign(in.Domain(), 1, []Vote{a}, keys[1]).Proof(), ProofB: Sign(in.Domain(), 1, []Vote{b}, keys[1]).Proof()}
	if codeOf(g.Verify(c)) != CodeMalformed {
		t.Errorf("it is taken: %v", g.Verify(c))
	}
}
