package pbft

import (
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// again is a vote in another frame and under another signature: beside a vote
// of another instance, or crafted with torsion as only its signer can.
func (l *lone) again(from int, v Vote, crafted bool) Verified {
	l.t.Helper()
	v.Key = l.config.Instance.Key()
	d := l.config.Instance.Domain()
	f := Sign(d, from, []Vote{{Key: l.otherKey(), Phase: Prepare, Digest: valueOf("B")}, v}, l.keys[from])
	if crafted {
		f = Sign(d, from, []Vote{v}, l.keys[from])
		f.signature = craft(l.keys[from], l.committee.Key(from), signedBytes(d, from, f.hashes), orderEight, "")
	}
	read, err := DecodeFrame(f.Encode())
	if err != nil {
		l.t.Fatal(err)
	}
	verified, err := l.committee.Verify(read)
	if err != nil {
		l.t.Fatal(err)
	}
	return verified
}

func TestOneVoteUnderManySignaturesIsOneVote(t *testing.T) {
	a := valueOf("A")
	for _, phase := range []Phase{Prepare, Commit} {
		l := newLone(t, 4, 3, Config{Validate: anything})
		_ = l.hear(1, Vote{Phase: phase, Digest: a})
		held := l.engine().Held()
		for _, crafted := range []bool{false, true} {
			v := l.again(1, Vote{Phase: phase, Digest: a}, crafted)
			if l.engine().Wants(v.Frame()) {
				t.Errorf("the same %s under another signature is wanted", phase)
			}
			if err := l.engine().Step(v); codeOf(err) != CodeDuplicate {
				t.Errorf("the same %s under another signature: %v", phase, err)
			}
		}
		if _, proofs := l.engine().quorumFor(func(m int) *cast { return l.engine().votes[m].find(slot{0, phase}) }); proofs != nil {
			t.Errorf("one voter's %s is a quorum of %d", phase, len(proofs))
		}
		if l.engine().Held() != held || l.engine().HasReady() || l.engine().Decision() != nil {
			t.Errorf("the same %s under another signature changed something", phase)
		}
	}
}

func TestThreeFramesOfOneVoterPrepareAndDecideNothing(t *testing.T) {
	a := valueOf("A")
	l := newLone(t, 4, 3, Config{Expected: a})
	for _, phase := range []Phase{Prepare, Commit} {
		_ = l.hear(1, Vote{Phase: phase, Digest: a})
		for _, crafted := range []bool{false, true} {
			_ = l.engine().Step(l.again(1, Vote{Phase: phase, Digest: a}, crafted))
		}
		if err := l.settle(3, 0); err != nil {
			t.Fatal(err)
		}
	}
	l.expectSaid("prepare(0, A)")
	if l.engine().Decision() != nil || len(l.members[3].guilt) != 0 {
		t.Errorf("decided %v, guilt %v", l.engine().Decision(), l.members[3].guilt)
	}
}

func TestEquivocationIsKeptAsProofAndTheProtocolGoesOn(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything})
	a, b := valueOf("A"), valueOf("B")
	_ = l.hear(0, Vote{Phase: PrePrepare, Digest: a})
	if err := l.hear(1, Vote{Phase: Prepare, Digest: b}); err != nil {
		t.Fatal(err)
	}
	if err := l.hear(1, Vote{Phase: Prepare, Digest: a}); codeOf(err) != CodeEquivocation {
		t.Errorf("a second, different prepare: %v", err)
	}
	l.expectSaid("prepare(0, A)") // the liar's second vote is not counted
	for from := range 3 {
		_ = l.hear(from, Vote{Phase: Commit, Digest: a}) // its commit is, which is another slot
	}
	if d := l.engine().Decision(); d == nil || fmt.Sprint(d.Signers()) != "[0 1 2]" {
		t.Errorf("decision %v", d)
	}
	if err := l.hear(2, Vote{Phase: Commit, Digest: b}); codeOf(err) != CodeEquivocation {
		t.Errorf("an equivocation after the decision: %v", err)
	}
	guilt := l.members[3].guilt
	if len(guilt) != 2 || guilt[0].Signer() != 1 || guilt[1].Signer() != 2 {
		t.Fatalf("guilt %v", guilt)
	}
	for _, g := range guilt {
		if err := g.Verify(l.committee); err != nil {
			t.Errorf("the proof against %d: %v", g.Signer(), err)
		}
	}
}

func TestAnOwnVoteCountsOnlyOnceItIsStored(t *testing.T) {
	net := newNetwork(4, Config{Expected: valueOf("A")}, nil)
	cfg := net.config
	cfg.Self = 3
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	hear := func(from int, phase Phase) {
		f, err := net.committee.Sign(e.domain, from, []Vote{{Key: e.key, Phase: phase, Digest: valueOf("A")}}, net.keys[from])
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Step(f); err != nil {
			t.Fatal(err)
		}
	}
	store := func(r Ready) {
		f, err := net.committee.Sign(e.domain, 3, r.Votes, net.keys[3])
		if err != nil {
			t.Fatal(err)
		}
		if err := e.Advance(f); err != nil {
			t.Fatal(err)
		}
	}
	r := e.Ready()
	hear(0, PrePrepare)
	hear(1, Prepare)
	if e.locked != nil || e.HasReady() {
		t.Error("a prepare that is not stored completes a quorum")
	}
	store(r)
	r = e.Ready()
	if len(r.Votes) != 1 || r.Votes[0].Phase != Commit || r.Prepared == nil {
		t.Fatalf("after storing: %+v", r)
	}
	hear(0, Commit)
	hear(1, Commit)
	if e.Decision() != nil {
		t.Error("a commit that is not stored decides")
	}
	store(r)
	if e.Decision() == nil {
		t.Error("the stored commit does not decide")
	}
}

func TestVotesThatComeUpBehindAWriteAreHandedOutWithTheirProofAfterIt(t *testing.T) {
	net := newNetwork(4, Config{Expected: valueOf("A")}, nil)
	cfg := net.config
	cfg.Self = 3
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	hear := func(from int, phase Phase, value string) {
		v, err := net.committee.Sign(e.domain, from, []Vote{{Key: e.key, Phase: phase, Digest: valueOf(value)}}, net.keys[from])
		if err != nil {
			t.Fatal(err)
		}
		_ = e.Step(v) // the last is refused
	}
	first := e.Ready()
	hear(0, PrePrepare, "A")
	hear(1, Prepare, "A")
	hear(2, Prepare, "A") // a quorum without this replica's own
	hear(2, Prepare, "B")
	for range 2 {
		if r := e.Ready(); len(r.Votes) != 0 || r.Prepared != nil {
			t.Fatalf("while the first votes are being stored: %+v", r)
		}
	}
	v, err := net.committee.Sign(e.domain, 3, first.Votes, net.keys[3])
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Advance(v); err != nil {
		t.Fatal(err)
	}
	r := e.Ready()
	if len(r.Votes) != 1 || r.Votes[0].Phase != Commit || r.Votes[0].Digest != valueOf("A") {
		t.Errorf("once the first votes are stored: %+v", r)
	}
	if r.Prepared == nil || r.Prepared.verify(e.committee, e.domain, e.key) != nil {
		t.Errorf("the commit's proof is %+v", r.Prepared)
	}
}

func TestARefusedVoteLeavesNoTrace(t *testing.T) {
	l := newLone(t, 7, 6, Config{Validate: anything, Timeout: 1000})
	bad := viewChange(9, l.preparedIn(3, "A"))
	bad.Proof = []byte("noise")
	a := valueOf("A")
	primary := l.committee.Primary(l.config.Instance.Key(), 9)
	nv := &NewView{} // its claims are real view changes, but too few
	for signer := range 4 {
		v := Vote{Key: l.config.Instance.Key(), View: 9, Phase: ViewChange}
		nv.Claims = append(nv.Claims, Claim{Proof: Sign(l.config.Instance.Domain(), signer, []Vote{v}, l.keys[signer]).Proof()})
	}
	for name, lie := range map[string]struct {
		from int
		vote Vote
	}{
		"view changes without proof":     {0, bad},
		"a second one":                   {1, bad},
		"a third: f+1 of them":           {3, bad},
		"a new view of too few":          {primary, Vote{View: 9, Phase: PrePrepare, Digest: a, Proof: nv.Encode()}},
		"a new view of nothing":          {primary, Vote{View: 9, Phase: PrePrepare, Digest: a, Proof: []byte{0, 0, 0}}},
		"a pre-prepare out of turn":      {3, Vote{Phase: PrePrepare, Digest: a}},
		"the primary's prepare":          {0, Vote{Phase: Prepare, Digest: a}},
		"a prepare by a later primary":   {primary, Vote{View: 9, Phase: Prepare, Digest: a}},
		"another's turn in a later view": {4, Vote{View: 8, Phase: PrePrepare, Digest: a, Proof: nv.Encode()}},
	} {
		if err := l.hear(lie.from, lie.vote); err == nil {
			t.Errorf("%s: taken", name)
		}
		if e := l.engine(); e.Held() != 0 || e.View() != 0 || e.reached(1) != 0 || len(l.said()) != 0 {
			t.Errorf("%s: %d votes held, view %d, %d members thought beyond it, said %v", name, e.Held(), e.View(), e.reached(1), l.said())
		}
	}
}

func TestUnfitVotesOfFramesThatWereNotDecodedAreRefused(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything})
	key := l.config.Instance.Key()
	for _, v := range []Vote{
		{Key: key, Phase: 0, Digest: valueOf("A")}, {Key: key, Phase: 9, Digest: valueOf("A")}, {Key: key, Phase: Commit},
		{Key: key, Phase: Prepare, View: MaxView + 1, Digest: valueOf("A")}, {Key: key, Phase: ViewChange, View: 1, Digest: valueOf("A")},
		{Key: key, Phase: ViewChange, View: 1, Prepared: 7, Digest: valueOf("A")}, {Key: key, Phase: PrePrepare, View: 1, Digest: valueOf("A")},
	} {
		f := Sign(l.config.Instance.Domain(), 1, []Vote{v}, l.keys[1])
		_ = l.engine().Wants(f) // must not panic
		verified, err := l.committee.Verify(f)
		if err != nil {
			t.Fatal(err)
		}
		if err := l.engine().Step(verified); codeOf(err) == "" || l.engine().Held() != 0 {
			t.Errorf("%+v: %v, %d votes held", v, err, l.engine().Held())
		}
	}
}

func TestVotersOfAnotherEpochDoNotCount(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything})
	next := testKeys(8)[4:] // epoch 2 has other voters at the same seats
	in := l.config.Instance
	key := in.Key()
	sign := func(signer int, v Vote) Proof {
		v.Key = key
		return Sign(in.Domain(), signer, []Vote{v}, next[signer]).Proof()
	}
	commit := Vote{Phase: Commit, Digest: valueOf("A")}
	cert := &Certificate{Instance: in, Digest: valueOf("A"), Votes: []Proof{sign(0, commit), sign(1, commit), sign(2, commit)}}
	if _, err := l.committee.CheckCertificate(in, cert); codeOf(err) != CodeBadSignature {
		t.Errorf("a certificate signed by the next epoch's voters: %v", err)
	}
	lock := &Prepared{Digest: valueOf("A"), Votes: []Proof{
		sign(0, Vote{Phase: PrePrepare, Digest: valueOf("A")}), sign(1, Vote{Phase: Prepare, Digest: valueOf("A")}), sign(2, Vote{Phase: Prepare, Digest: valueOf("A")}),
	}}
	if err := l.hear(0, viewChange(1, lock)); codeOf(err) != CodeBadSignature {
		t.Errorf("a lock signed by the next epoch's voters: %v", err)
	}
	if _, err := l.committee.Verify(Sign(in.Domain(), 1, []Vote{{Key: key, Phase: Commit, Digest: valueOf("A")}}, next[1])); codeOf(err) != CodeBadSignature {
		t.Errorf("a frame signed by the next epoch's voter: %v", err)
	}
	if l.engine().Held() != 0 {
		t.Errorf("%d votes held", l.engine().Held())
	}
}

// spam draws a vote that a member can sign and that decodes.
func spam(t *rapid.T, l *lone) Vote {
	v := Vote{Phase: Phase(rapid.IntRange(1, 4).Draw(t, "phase")), View: rapid.Uint64Range(0, 60).Draw(t, "view")}
	v.Digest = valueOf(rapid.SampledFrom([]string{"A", "B", "C"}).Draw(t, "value"))
	switch {
	case v.Phase == ViewChange:
		v = viewChange(v.View+1, nil)
		if rapid.Bool().Draw(t, "claims") {
			v = viewChange(v.View, l.preparedIn(rapid.Uint64Range(0, 3).Draw(t, "prepared")%v.View, "A"))
		}
	case v.Phase == PrePrepare && v.View > 0:
		v.Proof = []byte("noise")
	}
	return v
}

func TestAReplicaTakenThroughManyViewsHoldsTheLastOnly(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	l.engine().Propose(valueOf("A"))
	for view := uint64(1); view <= 200; view++ {
		for from := range 2 {
			_ = l.hear(from, viewChange(view, nil))
		}
		if held := l.engine().Held(); held > 16*4+32 || l.engine().View() != view {
			t.Fatalf("view %d: %d votes held", l.engine().View(), held)
		}
	}
	if own := len(l.engine().own); own > 4*(window+1) {
		t.Errorf("%d own votes held", own)
	}
}

func TestAStaleVotePushesOutNoVoteOfALaterView(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	commit := func(from int, view uint64) string {
		return codeOf(l.hear(from, Vote{View: view, Phase: Commit, Digest: valueOf("A")}))
	}
	for _, c := range []struct {
		view uint64
		want string
	}{
		{8, ""}, {6, ""}, {5, ""}, {7, ""}, // the window is full
		{1, CodeOld}, {4, CodeOld},
		{9, ""}, // in the place of the lowest view, not of the first to arrive
		{5, CodeOld},
		{6, CodeDuplicate}, {7, CodeDuplicate}, {8, CodeDuplicate}, {9, CodeDuplicate},
	} {
		if got := commit(2, c.view); got != c.want {
			t.Errorf("the commit of view %d: %q, expected %q", c.view, got, c.want)
		}
	}
	for from := range 2 {
		if got := commit(from, 8); got != "" {
			t.Errorf("member %d's commit of view 8: %q", from, got)
		}
	}
	if d := l.engine().Decision(); d == nil || d.View != 8 || fmt.Sprint(d.Signers()) != "[0 1 2]" {
		t.Errorf("with the commit of view 8 counted a quorum decides; decision %v", d)
	}
}

func TestWhateverMembersSendTheVotesHeldAreBounded(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 5, Resend: 2})
		bound := 16*l.committee.N() + 32
		for range rapid.IntRange(1, 60).Draw(rt, "votes") {
			v := spam(rt, l)
			if v.Phase == Commit {
				v.Digest = valueOf(fmt.Sprint(v.View)) // no decision ends it
			}
			_ = l.hear(rapid.IntRange(0, 2).Draw(rt, "from"), v)
			if rapid.Bool().Draw(rt, "time passes") {
				l.ticks(1)
			}
			if held := l.engine().Held(); held > bound {
				rt.Fatalf("%d votes held, the bound is %d", held, bound)
			}
		}
	})
}
