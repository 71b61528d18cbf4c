package pbft

import (
	"crypto/ed25519"
	"encoding/json"
	"reflect"
	"testing"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
)

// certified makes a certificate by the given signers over valueOf("A").
func certified(t testing.TB, n int, signers ...int) (machine.Committee, Instance, Certificate) {
	t.Helper()
	keys := testKeys(n)
	members := testMembers(keys, 1)
	in := testInstance(testCommittee(keys, 1), "round")
	cert := Certificate{Instance: in, Digest: valueOf("A")}
	for _, i := range signers {
		cert.Votes = append(cert.Votes, commitProof(in, i, 0, "A"))
	}
	return members, in, cert
}

func commitProof(in Instance, signer int, view uint64, value string) Proof {
	f := Sign(in.Domain(), signer, []Vote{{Key: in.Key(), View: view, Phase: Commit, Digest: valueOf(value)}}, testKeys(signer + 1)[signer])
	return f.Proof()
}

func TestACertificateNeedsAQuorumOfDistinctVotersOfItsEpoch(t *testing.T) {
	members, in, good := certified(t, 5, 0, 1, 2, 4)
	if err := VerifyCertificate(members, in, valueOf("A"), good); err != nil {
		t.Fatal(err)
	}
	other := func(change func(*Instance)) Instance { i := in; change(&i); return i }
	later := members
	later.Epoch = 2
	twin := testMembers(testKeys(5), 1)
	twin.Members[1].Key = twin.Members[0].Key
	for _, c := range []struct {
		name      string
		code      string
		committee machine.Committee
		instance  Instance
		value     string
		change    func(*Certificate)
	}{
		{"2f+1 of five", CodeBadCertificate, members, in, "A", func(c *Certificate) { c.Votes = c.Votes[:3] }},
		{"one signer twice", CodeBadCertificate, members, in, "A", func(c *Certificate) { c.Votes[1] = c.Votes[0] }},
		{"signers out of order", CodeBadCertificate, members, in, "A", func(c *Certificate) { c.Votes[0], c.Votes[1] = c.Votes[1], c.Votes[0] }},
		{"more than a quorum", CodeBadCertificate, members, in, "A", func(c *Certificate) { c.Votes = append(c.Votes, commitProof(in, 4, 0, "A")) }},
		{"no votes", CodeBadCertificate, members, in, "A", func(c *Certificate) { c.Votes = nil }},
		{"a signer without seat", CodeNotMember, members, in, "A", func(c *Certificate) { c.Votes[3].Signer = 5 }},
		{"a negative signer", CodeBadCertificate, members, in, "A", func(c *Certificate) { c.Votes[0].Signer = -1 }},
		{"a vote on another value", CodeBadSignature, members, in, "A", func(c *Certificate) { c.Votes[2] = commitProof(in, 2, 0, "B") }},
		{"a vote of another view", CodeBadSignature, members, in, "A", func(c *Certificate) { c.Votes[2] = commitProof(in, 2, 1, "A") }},
		{"a vote of another instance", CodeBadSignature, members, in, "A", func(c *Certificate) {
			c.Votes[2] = commitProof(other(func(i *Instance) { i.ID = "x" }), 2, 0, "A")
		}},
		{"a vote of another purpose", CodeBadSignature, members, in, "A", func(c *Certificate) {
			c.Votes[2] = commitProof(other(func(i *Instance) { i.Purpose = "x" }), 2, 0, "A")
		}},
		{"a changed hash list", CodeBadSignature, members, in, "A", func(c *Certificate) {
			c.Votes[2].Hashes = append(c.Votes[2].Hashes[:1:1], valueOf("x"))
		}},
		{"a prepare instead of a commit", CodeBadSignature, members, in, "A", func(c *Certificate) {
			f := Sign(in.Domain(), 2, []Vote{{Key: in.Key(), Phase: Prepare, Digest: valueOf("A")}}, testKeys(3)[2])
			c.Votes[2] = f.Proof()
		}},
		{"a foreign key", CodeBadSignature, members, in, "A", func(c *Certificate) {
			f := Sign(in.Domain(), 2, []Vote{{Key: in.Key(), Phase: Commit, Digest: valueOf("A")}}, testKeys(9)[8])
			c.Votes[2] = f.Proof()
		}},
		{"another view", CodeBadSignature, members, in, "A", func(c *Certificate) { c.View = 1 }},
		{"another digest inside", CodeBadSignature, members, in, "B", func(c *Certificate) { c.Digest = valueOf("B") }},
		{"another digest wanted", CodeWrongDigest, members, in, "B", func(*Certificate) {}},
		{"no digest", CodeMalformed, members, in, "A", func(c *Certificate) { c.Digest = Digest{} }},
		{"another instance wanted", CodeOtherInstance, members, other(func(i *Instance) { i.ID = "x" }), "A", func(*Certificate) {}},
		{"another genesis wanted", CodeOtherDomain, members, other(func(i *Instance) { i.Genesis = "x" }), "A", func(*Certificate) {}},
		{"another generation wanted", CodeOtherDomain, members, other(func(i *Instance) { i.Generation++ }), "A", func(*Certificate) {}},
		{"another epoch wanted", CodeOtherDomain, members, other(func(i *Instance) { i.Epoch++ }), "A", func(*Certificate) {}},
		{"the next epoch's committee", CodeOtherDomain, later, in, "A", func(*Certificate) {}},
		{"a committee with one key twice", CodeBadCommittee, twin, in, "A", func(*Certificate) {}},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, _, cert := certified(t, 5, 0, 1, 2, 4)
			c.change(&cert)
			if got := codeOf(VerifyCertificate(c.committee, c.instance, valueOf(c.value), cert)); got != c.code {
				t.Errorf("refused with %q, expected %q", got, c.code)
			}
		})
	}
}

func TestAVoteFromABatchedFrameIsProvableAlone(t *testing.T) {
	members, in, cert := certified(t, 4, 0, 1, 2)
	votes := []Vote{}
	for i := range MaxVotes {
		v := Vote{Key: valueOf("another instance"), View: uint64(i), Phase: Prepare, Digest: valueOf("B")}
		if i == 40 {
			v = Vote{Key: in.Key(), Phase: Commit, Digest: valueOf("A")}
		}
		votes = append(votes, v)
	}
	cert.Votes[1] = Sign(in.Domain(), 1, votes, testKeys(2)[1]).Proof()
	if err := VerifyCertificate(members, in, valueOf("A"), cert); err != nil {
		t.Fatal(err)
	}
}

func TestCommitteesRefuseDuplicateSmallOrderAndUnorderedKeys(t *testing.T) {
	good := func() machine.Committee { return testMembers(testKeys(4), 1) }
	for name, change := range map[string]func(*machine.Committee){
		"nobody":          func(c *machine.Committee) { c.Members = nil },
		"too many":        func(c *machine.Committee) { *c = testMembers(testKeys(MaxMembers+1), 1) },
		"one key twice":   func(c *machine.Committee) { c.Members[3].Key = c.Members[1].Key },
		"one node twice":  func(c *machine.Committee) { c.Members[1].Node = c.Members[0].Node },
		"out of order":    func(c *machine.Committee) { c.Members[0], c.Members[1] = c.Members[1], c.Members[0] },
		"identity as key": func(c *machine.Committee) { c.Members[2].Key = [32]byte{1} },
		"no point":        func(c *machine.Committee) { c.Members[2].Key = [32]byte{2} },
	} {
		c := good()
		change(&c)
		if _, err := NewCommittee(c); codeOf(err) != CodeBadCommittee {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := NewCommittee(good()); err != nil {
		t.Error(err)
	}
}

// guiltSamples are proofs that member 2 made two claims in a view change, and
// that it committed to two values.
func guiltSamples(in Instance, key ed25519.PrivateKey) (claim, commit Guilt) {
	proven := func(a, b Vote) Guilt {
		a.Key, b.Key = in.Key(), in.Key()
		proof := func(v Vote) Proof {
			return Sign(in.Domain(), 2, []Vote{{Key: in.Key(), Phase: Prepare, Digest: valueOf("A")}, v}, key).Proof()
		}
		return Guilt{Instance: in, A: a, B: b, ProofA: proof(a), ProofB: proof(b)}
	}
	return proven(Vote{View: 3, Phase: ViewChange}, Vote{View: 3, Phase: ViewChange, Prepared: 2, Digest: valueOf("A")}),
		proven(Vote{Phase: Commit, Digest: valueOf("A")}, Vote{Phase: Commit, Digest: valueOf("B")})
}

func TestAProofOfGuiltReadsBackFromBytesAndJSON(t *testing.T) {
	keys := testKeys(4)
	c := testCommittee(keys, 1)
	claim, commit := guiltSamples(testInstance(c, "round"), keys[2])
	for _, g := range []Guilt{claim, commit} {
		if err := g.Verify(c); err != nil {
			t.Fatal(err)
		}
		back, err := DecodeGuilt(g.Encode())
		if err != nil || !reflect.DeepEqual(*back, g) {
			t.Errorf("read back %+v, %v", back, err)
		}
		for cut := range g.Encode() {
			if _, err := DecodeGuilt(g.Encode()[:cut]); codeOf(err) != CodeMalformed {
				t.Fatalf("%d bytes of a proof: %v", cut, err)
			}
		}
		var again Guilt
		if err := canon.Decode(canon.MustMarshal(g), &again); err != nil || !reflect.DeepEqual(again, g) {
			t.Errorf("through JSON %+v, %v", again, err)
		}
	}
	if _, err := json.Marshal(Vote{Phase: 9}); err == nil {
		t.Error("a phase without a name is written")
	}
}

func TestGuiltNamesOneSignerAndTwoVotesOfOneSlot(t *testing.T) {
	keys := testKeys(4)
	c := testCommittee(keys, 1)
	in := testInstance(c, "round")
	vote := func(view uint64, phase Phase, value string) Vote {
		return Vote{Key: in.Key(), View: view, Phase: phase, Digest: valueOf(value)}
	}
	guilt := func(a, b Vote, signerA, signerB int) Guilt {
		return Guilt{Instance: in, A: a, B: b,
			ProofA: Sign(in.Domain(), signerA, []Vote{a}, keys[signerA]).Proof(),
			ProofB: Sign(in.Domain(), signerB, []Vote{b}, keys[signerB]).Proof()}
	}
	if err := guilt(vote(0, Commit, "A"), vote(0, Commit, "B"), 2, 2).Verify(c); err != nil {
		t.Error(err)
	}
	for name, g := range map[string]Guilt{
		"two signers": guilt(vote(0, Commit, "A"), vote(0, Commit, "B"), 1, 2),
		"two views":   guilt(vote(0, Commit, "A"), vote(1, Commit, "B"), 2, 2),
		"two phases":  guilt(vote(0, Commit, "A"), vote(0, Prepare, "B"), 2, 2),
		"another instance than its votes": func() Guilt {
			g := guilt(vote(0, Commit, "A"), vote(0, Commit, "B"), 2, 2)
			g.Instance.ID = "another"
			return g
		}(),
		"one vote": guilt(vote(0, Commit, "A"), vote(0, Commit, "A"), 2, 2),
	} {
		if codeOf(g.Verify(c)) != CodeMalformed {
			t.Errorf("%s: proves guilt", name)
		}
	}
	forged := guilt(vote(0, Commit, "A"), vote(0, Commit, "B"), 2, 2)
	forged.B = vote(0, Commit, "C")
	if codeOf(forged.Verify(c)) != CodeBadSignature {
		t.Error("an unsigned vote proves guilt")
	}
}
