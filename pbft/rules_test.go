package pbft

import (
	"bytes"
	"encoding/binary"
	"testing"
)

func TestAValueThatIsNotValidGetsNoVote(t *testing.T) {
	notX := func(d Digest) bool { return d != valueOf("X") }
	l := newLone(t, 4, 3, Config{Validate: notX})
	_ = l.hear(0, Vote{Phase: PrePrepare, Digest: valueOf("X")})
	_ = l.hear(1, Vote{Phase: Prepare, Digest: valueOf("X")})
	_ = l.hear(2, Vote{Phase: Prepare, Digest: valueOf("X")})
	l.expectSaid() // neither a prepare nor, on three acceptances, a commit
	l = newLone(t, 4, 0, Config{Validate: notX})
	l.engine().Propose(valueOf("X"))
	if l.engine().HasReady() {
		t.Error("the primary proposes a value that is not valid")
	}
	l = newLone(t, 4, 3, Config{Validate: notX})
	for from := range 2 { // f+1 liars' worth of proof makes even the primary of view 3 no accomplice
		if err := l.hear(from, viewChange(3, l.preparedIn(0, "X"))); err != nil {
			t.Fatal(err)
		}
	}
	l.expectSaid("view-change(3, nothing prepared)")
}

func TestTheLatestLockIsClaimed(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 5})
	_ = l.hear(0, Vote{Phase: PrePrepare, Digest: valueOf("A")})
	_ = l.hear(1, Vote{Phase: Prepare, Digest: valueOf("A")})
	if err := l.hear(1, l.newViewOf(1, "A")); err != nil {
		t.Fatal(err)
	}
	_ = l.hear(0, Vote{View: 1, Phase: Prepare, Digest: valueOf("A")})
	for from := range 2 {
		_ = l.hear(from, viewChange(2, nil))
	}
	l.expectSaid("prepare(0, A)", "commit(0, A)", "prepare(1, A)", "commit(1, A)", "view-change(2, A prepared in view 1)")
	stored := l.members[3].disk
	older, later := stored.Prepared[0], stored.Prepared[1]
	for _, order := range [][]*Prepared{{older, later}, {later, older}} {
		stored.Prepared = order
		cfg := l.config
		cfg.Self, cfg.Restored = 3, stored
		e, err := New(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if e.locked.View != 1 {
			t.Errorf("locks of views %d and %d are stored, after a restart it is that of view %d", order[0].View, order[1].View, e.locked.View)
		}
	}
}

// newViewOf is the pre-prepare of a view by its primary over one claim of a
// certificate of view 0 for A.
func (l *lone) newViewOf(view uint64, value string) Vote {
	a := l.preparedIn(0, "A")
	nv := &NewView{Highest: a}
	for signer := range 3 {
		v := viewChange(view, nil)
		if signer == 2 {
			v = viewChange(view, a)
		}
		v.Key = l.config.Instance.Key()
		proof := Sign(l.config.Instance.Domain(), signer, []Vote{v}, l.keys[signer]).Proof()
		nv.Claims = append(nv.Claims, Claim{Prepared: v.Prepared, Digest: v.Digest, Proof: proof})
	}
	return Vote{View: view, Phase: PrePrepare, Digest: valueOf(value), Proof: nv.Encode()}
}

func TestAProvenNewViewTakesAReplicaAlongWithoutAViewChange(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 3, Resend: 1000})
	if err := l.hear(1, l.newViewOf(1, "A")); err != nil {
		t.Fatal(err)
	}
	l.expectSaid("prepare(1, A)")
	l.ticks(2 * 3) // those whom the new view quotes have reached it, so its timer runs
	if l.engine().View() != 2 {
		t.Errorf("in view %d after the time of view 1", l.engine().View())
	}
}

func TestTheNewViewOfAValueThatIsNotValidIsEnteredByAViewChangeOnly(t *testing.T) {
	l := newLone(t, 4, 3, Config{Expected: valueOf("C"), Timeout: 1000})
	if err := l.hear(1, l.newViewOf(1, "A")); err != nil {
		t.Fatal(err)
	}
	l.expectSaid("prepare(0, C)", "view-change(1, nothing prepared)") // f+1 have reached it
}

func TestASignatureBindsTheDomainAndTheSigner(t *testing.T) {
	keys := testKeys(4)
	c := testCommittee(keys, 1)
	in := testInstance(c, "round")
	good := Sign(in.Domain(), 1, []Vote{{Key: in.Key(), Phase: Prepare, Digest: valueOf("A")}}, keys[1])
	for name, change := range map[string]func(*Frame){
		"genesis":    func(f *Frame) { f.domain.Genesis = "x" + f.domain.Genesis[1:] },
		"generation": func(f *Frame) { f.domain.Generation++ },
		"signer":     func(f *Frame) { f.signer = 2 },
		"view":       func(f *Frame) { f.votes[0].View++ },
		"phase":      func(f *Frame) { f.votes[0].Phase = Commit },
		"digest":     func(f *Frame) { f.votes[0].Digest = valueOf("B") },
		"instance":   func(f *Frame) { f.votes[0].Key = valueOf("another") },
		"signature":  func(f *Frame) { f.signature[3]++ },
	} {
		f, err := DecodeFrame(good.Encode())
		if err != nil {
			t.Fatal(err)
		}
		change(f)
		f, err = DecodeFrame(f.Encode())
		if err != nil {
			t.Fatal(err)
		}
		if _, err := c.Verify(f); codeOf(err) != CodeBadSignature {
			t.Errorf("another %s: %v", name, err)
		}
	}
}

// TestTheSignedBytesAreFixed spells out what a signature covers, for whoever
// verifies a certificate without this package.
func TestTheSignedBytesAreFixed(t *testing.T) {
	d := Domain{Protocol: Protocol, Genesis: "cluster", Generation: 2, Epoch: 3}
	hashes := []Digest{valueOf("A"), valueOf("B")}
	var want bytes.Buffer
	want.WriteString("\x0fdeliberd/pbft/1\x07cluster")
	_ = binary.Write(&want, binary.BigEndian, []uint64{2, 3})
	want.WriteString("\x05frame")
	_ = binary.Write(&want, binary.BigEndian, []uint16{7, 2})
	want.Write(hashes[0][:])
	want.Write(hashes[1][:])
	if got := signedBytes(d, 7, hashes); !bytes.Equal(got, want.Bytes()) {
		t.Errorf("signed bytes %x, expected %x", got, want.Bytes())
	}
	k, a := valueOf("K"), valueOf("A")
	vote := Vote{Key: k, View: 5, Phase: ViewChange, Digest: a, Prepared: 4}
	preimage := "deliberd/pbft/1 vote\x00" + string(k[:]) + "\x00\x00\x00\x00\x00\x00\x00\x05" + "\x04" + string(a[:]) + "\x00\x00\x00\x00\x00\x00\x00\x04"
	if vote.Hash() != valueOf(preimage) {
		t.Error("a vote's hash covers something else")
	}
	in := Instance{Protocol: Protocol, Genesis: "cluster", Generation: 2, Epoch: 3, Purpose: "deliberatic.verdict", ID: "round"}
	preimage = "deliberd/pbft/1 instance\x00\x0fdeliberd/pbft/1\x07cluster" + "\x00\x00\x00\x00\x00\x00\x00\x02" + "\x00\x00\x00\x00\x00\x00\x00\x03" + "\x13deliberatic.verdict\x05round"
	if in.Key() != valueOf(preimage) {
		t.Error("an instance's key covers something else")
	}
}

func TestOnlyFramesThatCanMatterAreWanted(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything})
	for from := range 2 {
		_ = l.hear(from, viewChange(2, nil))
	}
	_ = l.hear(0, Vote{View: 2, Phase: Commit, Digest: valueOf("A")})
	wants := func(from int, v Vote) bool {
		v.Key = l.config.Instance.Key()
		return l.engine().Wants(Sign(l.config.Instance.Domain(), from, []Vote{v}, l.keys[from]))
	}
	a := valueOf("A")
	for _, c := range []struct {
		name string
		from int
		vote Vote
		want bool
	}{
		{"a commit of any view", 1, Vote{View: 0, Phase: Commit, Digest: a}, true},
		{"a repetition", 0, Vote{View: 2, Phase: Commit, Digest: a}, false},
		{"an equivocation", 0, Vote{View: 2, Phase: Commit, Digest: valueOf("B")}, true},
		{"a prepare of an old view", 1, Vote{View: 1, Phase: Prepare, Digest: a}, false},
		{"a prepare of this view", 1, Vote{View: 2, Phase: Prepare, Digest: a}, true},
		{"a prepare of a later view", 1, Vote{View: 3, Phase: Prepare, Digest: a}, true},
		{"a view change to an old view", 0, viewChange(1, nil), false},
		{"a view change to a later view", 0, viewChange(3, nil), true},
		{"its own frame", 3, Vote{View: 2, Phase: Commit, Digest: a}, false},
	} {
		if got := wants(c.from, c.vote); got != c.want {
			t.Errorf("%s: wanted %v", c.name, got)
		}
	}
	_ = l.hear(1, Vote{View: 2, Phase: Commit, Digest: a})
	_ = l.hear(2, Vote{View: 2, Phase: Commit, Digest: a})
	if l.engine().Decision() == nil || wants(1, viewChange(3, nil)) {
		t.Error("votes still under way at the decision are wanted")
	}
	l.ticks(DefaultResend)
	if !wants(1, viewChange(3, nil)) {
		t.Error("a member who still votes is not heard, and so not answered")
	}
}

func TestVotesThatDoNotFitOneFrameAreNotSigned(t *testing.T) {
	keys := testKeys(4)
	c := testCommittee(keys, 1)
	d := testInstance(c, "round").Domain()
	vote := Vote{Key: Digest{1}, Phase: Prepare, Digest: valueOf("A")}
	many := make([]Vote, MaxVotes+1)
	for i := range many {
		many[i] = vote
	}
	big := Vote{Key: Digest{1}, Phase: ViewChange, View: 1, Prepared: 1, Digest: valueOf("A"), Proof: make([]byte, MaxFrame)}
	for name, votes := range map[string][]Vote{"none": nil, "too many": many, "too long": {big}} {
		if _, err := c.Sign(d, 1, votes, keys[1]); codeOf(err) != CodeMalformed {
			t.Errorf("%s: %v", name, err)
		}
	}
	for count, room := range map[string]int{"exactly": 0, "a byte too long": 1} {
		big.Proof = make([]byte, MaxFrame-frameSize(d, []Vote{{}})+room)
		v, err := c.Sign(d, 1, []Vote{big}, keys[1])
		if (err == nil) != (room == 0) || err == nil && len(v.Frame().Encode()) != MaxFrame {
			t.Errorf("%s: %v", count, err)
		}
	}
	if _, err := c.Sign(d, 1, []Vote{vote}, nil); codeOf(err) != CodeNotMember {
		t.Errorf("without a key: %v", err)
	}
}
