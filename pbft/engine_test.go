package pbft

import (
	"bytes"
	"fmt"
	"testing"

	"pgregory.net/rapid"
)

// lone is one engine under test; the test speaks for all other members.
type lone struct {
	*network
	t    testing.TB
	self int
}

func newLone(t testing.TB, n, self int, cfg Config) *lone {
	t.Helper()
	l := &lone{newNetwork(n, cfg, nil), t, self}
	if err := l.start(self); err != nil {
		t.Fatal(err)
	}
	return l
}

func anything(Digest) bool { return true }

func (l *lone) engine() *Engine { return l.members[l.self].engine }

// hear steps votes of one member in one frame and settles.
func (l *lone) hear(from int, votes ...Vote) error {
	l.t.Helper()
	for i := range votes {
		votes[i].Key = l.config.Instance.Key()
	}
	frame, err := DecodeFrame(Sign(l.config.Instance.Domain(), from, votes, l.keys[from]).Encode())
	if err != nil {
		l.t.Fatal(err)
	}
	v, err := l.committee.Verify(frame)
	if err != nil {
		l.t.Fatal(err)
	}
	refused := l.engine().Step(v)
	if err := l.settle(l.self, 0); err != nil {
		l.t.Fatal(err)
	}
	return refused
}

func (l *lone) ticks(n int) {
	l.t.Helper()
	for range n {
		if err := l.tick(l.self); err != nil {
			l.t.Fatal(err)
		}
	}
}

// said is everything the engine has signed, in order.
func (l *lone) said() (out []string) {
	for _, f := range l.members[l.self].disk.Frames {
		for _, v := range f.votes {
			out = append(out, describe(v))
		}
	}
	return out
}

func (l *lone) expectSaid(want ...string) {
	l.t.Helper()
	if got := l.said(); fmt.Sprint(got) != fmt.Sprint(want) {
		l.t.Errorf("said %v, expected %v", got, want)
	}
}

// preparedIn is a certificate that a quorum prepared a value in a view.
func (l *lone) preparedIn(view uint64, value string) *Prepared {
	return l.preparedFor(l.config.Instance.Key(), view, value)
}

func (l *lone) preparedFor(key Digest, view uint64, value string) *Prepared {
	p := &Prepared{View: view, Digest: valueOf(value)}
	for i := range l.committee.Q() {
		phase := Prepare
		if l.committee.Primary(key, view) == i {
			phase = PrePrepare
		}
		v := Vote{Key: key, View: view, Phase: phase, Digest: valueOf(value)}
		p.Votes = append(p.Votes, Sign(l.config.Instance.Domain(), i, []Vote{v}, l.keys[i]).Proof())
	}
	return p
}

func viewChange(view uint64, p *Prepared) Vote {
	v := Vote{View: view, Phase: ViewChange}
	if p != nil {
		v.Prepared, v.Digest, v.Proof = p.View+1, p.Digest, p.Encode()
	}
	return v
}

func TestTheHighestPreparedValueIsReproposed(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 10})
	l.engine().Propose(valueOf("C"))
	// Views 1 and 2 prepared A and B; member 3 opens view 3 and must choose B.
	if err := l.hear(0, viewChange(3, l.preparedIn(2, "B"))); err != nil {
		t.Fatal(err)
	}
	if err := l.hear(1, viewChange(3, l.preparedIn(1, "A"))); err != nil {
		t.Fatal(err)
	}
	l.expectSaid("view-change(3, nothing prepared)", "pre-prepare(3, B)")
}

// reference is the choice as the protocol states it, in the dumbest words.
func reference(claims []Claim) (Digest, bool) {
	for view := uint64(MaxView); ; view-- {
		if view > 20 {
			view = 20
		}
		for _, c := range claims {
			if c.Prepared == view && view > 0 {
				return c.Digest, true
			}
		}
		if view == 0 {
			return Digest{}, false
		}
	}
}

func TestHighestEqualsItsReference(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		var claims []Claim
		for range rapid.IntRange(0, 8).Draw(t, "claims") {
			view := rapid.Uint64Range(0, 20).Draw(t, "prepared")
			claims = append(claims, Claim{Prepared: view, Digest: valueOf(fmt.Sprint(view))})
		}
		want, claimed := reference(claims)
		at, ok := Highest(claims)
		if ok != claimed || ok && claims[at].Digest != want {
			t.Fatalf("chose %d, %v of %v", at, ok, claims)
		}
	})
}

func TestABadCertificateHidesNeitherOtherVotesNorALaterGoodOne(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 10})
	bad := viewChange(3, l.preparedIn(1, "A"))
	bad.Proof = []byte("noise")
	if err := l.hear(0, bad, Vote{Phase: PrePrepare, Digest: valueOf("A")}); err == nil {
		t.Error("the bad certificate was accepted")
	}
	l.expectSaid("prepare(0, A)") // the frame's other vote counted
	if err := l.hear(0, viewChange(3, l.preparedIn(1, "A"))); err != nil {
		t.Errorf("the good certificate is refused after the bad one: %v", err)
	}
}

func TestANewViewMustQuoteAQuorumAndProposeWhatIsHighest(t *testing.T) {
	l := newLone(t, 4, 2, Config{Validate: anything, Timeout: 10})
	key, domain := l.config.Instance.Key(), l.config.Instance.Domain()
	claim := func(signer int, p *Prepared) Claim {
		v := viewChange(1, p)
		v.Key = key
		return Claim{Prepared: v.Prepared, Digest: v.Digest, Proof: Sign(domain, signer, []Vote{v}, l.keys[signer]).Proof()}
	}
	a := l.preparedIn(0, "A")
	short := l.preparedIn(0, "B") // one vote of it is of another value
	short.Votes[2] = a.Votes[2]
	ahead := l.preparedIn(1, "A") // which the new view would only open
	claimsShort := []Claim{claim(0, nil), claim(1, short), claim(3, nil)}
	unsigned := claim(3, nil)
	unsigned.Proof.Signature = claim(0, nil).Proof.Signature
	withdrawn := claim(1, a) // signed with a claim, quoted without
	withdrawn.Prepared, withdrawn.Digest = 0, Digest{}
	for name, c := range map[string]struct {
		value string
		nv    NewView
		ok    bool
	}{
		"free choice":                 {"B", NewView{Claims: []Claim{claim(0, nil), claim(1, nil), claim(3, nil)}}, true},
		"the highest":                 {"A", NewView{Claims: []Claim{claim(0, nil), claim(1, a), claim(3, nil)}, Highest: a}, true},
		"another value":               {"B", NewView{Claims: []Claim{claim(0, nil), claim(1, a), claim(3, nil)}, Highest: a}, false},
		"the certificate left out":    {"A", NewView{Claims: []Claim{claim(0, nil), claim(1, a), claim(3, nil)}}, false},
		"a certificate nobody claims": {"A", NewView{Claims: []Claim{claim(0, nil), claim(1, nil), claim(3, nil)}, Highest: a}, false},
		"two view changes":            {"B", NewView{Claims: []Claim{claim(0, nil), claim(1, nil)}}, false},
		"one view change twice":       {"B", NewView{Claims: []Claim{claim(0, nil), claim(1, nil), claim(1, nil)}}, false},
		"an unsigned view change":     {"B", NewView{Claims: []Claim{claim(0, nil), claim(1, nil), unsigned}}, false},
		"a claim withdrawn":           {"B", NewView{Claims: []Claim{claim(0, nil), withdrawn, claim(3, nil)}}, false},
		"a certificate unproven":      {"B", NewView{Claims: claimsShort, Highest: short}, false},
		"a claim of the very view":    {"A", NewView{Claims: []Claim{claim(0, nil), claim(1, ahead), claim(3, nil)}, Highest: ahead}, false},
		"four view changes":           {"B", NewView{Claims: []Claim{claim(0, nil), claim(1, nil), claim(2, nil), claim(3, nil)}}, false},
	} {
		t.Run(name, func(t *testing.T) {
			l := newLone(t, 4, 2, Config{Validate: anything, Timeout: 10})
			err := l.hear(1, Vote{Phase: PrePrepare, View: 1, Digest: valueOf(c.value), Proof: c.nv.Encode()})
			if c.ok != (err == nil) || c.ok != (l.engine().View() == 1) {
				t.Fatalf("refused with %v, view %d", err, l.engine().View())
			}
			if c.ok {
				l.expectSaid("prepare(1, " + c.value + ")")
			}
		})
	}
}

func TestTimersWaitForAQuorumAndDouble(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 4, Doubling: 2})
	l.ticks(3)
	l.expectSaid()
	l.ticks(1)
	l.expectSaid("view-change(1, nothing prepared)")
	l.ticks(1000)
	if l.engine().View() != 1 {
		t.Fatalf("alone it ran on to view %d", l.engine().View())
	}
	for view, length := range map[uint64]int{1: 8, 2: 16, 3: 16} {
		l := newLone(t, 4, 3, Config{Validate: func(Digest) bool { return false }, Timeout: 4, Doubling: 2})
		for from := range 2 {
			if err := l.hear(from, viewChange(view, nil)); err != nil {
				t.Fatal(err)
			}
		}
		l.ticks(length - 1)
		if l.engine().View() != view {
			t.Errorf("view %d ended before %d ticks", view, length)
		}
		l.ticks(1)
		if l.engine().View() != view+1 {
			t.Errorf("view %d did not end after %d ticks", view, length)
		}
	}
}

func TestFPlusOneVotersTakeAReplicaAlongAndFDoNot(t *testing.T) {
	l := newLone(t, 7, 6, Config{Validate: anything}) // f = 2
	for from, view := range []uint64{9, 5} {
		if err := l.hear(from, viewChange(view, nil)); err != nil {
			t.Fatal(err)
		}
	}
	l.expectSaid()
	if err := l.hear(2, viewChange(3, nil)); err != nil {
		t.Fatal(err)
	}
	l.expectSaid("view-change(3, nothing prepared)") // the highest that f+1 have reached
}

func TestADecidedReplicaChangesViewsNoMore(t *testing.T) {
	l := newLone(t, 4, 3, Config{Expected: valueOf("A"), Timeout: 3, Resend: 2})
	for from := range 3 {
		if err := l.hear(from, Vote{Phase: Commit, Digest: valueOf("A")}); err != nil {
			t.Fatal(err)
		}
	}
	if l.engine().Decision() == nil {
		t.Fatal("three commits did not decide")
	}
	before := l.said()
	l.ticks(100)
	for from := range 3 {
		_ = l.hear(from, viewChange(1, nil))
	}
	l.expectSaid(before...)
}

func TestADecidedReplicaCastsNothingOnceItsOwnVoteIsStored(t *testing.T) {
	net := newNetwork(4, Config{Validate: anything}, nil)
	cfg := net.config
	cfg.Self = 3
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	sign := func(from int, v Vote) Verified {
		v.Key, v.Digest = e.key, valueOf("A")
		f, err := net.committee.Sign(e.domain, from, []Vote{v}, net.keys[from])
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	primary := net.committee.Primary(e.key, 0)
	for _, v := range []Verified{sign(primary, Vote{Phase: PrePrepare}), sign((primary+1)%3, Vote{Phase: Prepare})} {
		if err := e.Step(v); err != nil {
			t.Fatal(err)
		}
	}
	flying := e.Ready().Votes // its prepare, which completes the quorum
	if len(flying) != 1 || flying[0].Phase != Prepare {
		t.Fatalf("it casts %v", flying)
	}
	for from := range 3 {
		_ = e.Step(sign(from, Vote{Phase: Commit}))
	}
	if e.Decision() == nil {
		t.Fatal("three commits did not decide")
	}
	e.Ready()
	if err := e.Advance(sign(3, Vote{Phase: Prepare})); err != nil {
		t.Fatal(err)
	}
	if r := e.Ready(); len(r.Votes) > 0 {
		t.Errorf("decided, it casts %s", describe(r.Votes[0]))
	}
}

func TestWhatOneSenderCanMakeAReplicaHoldIsBounded(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	for view := range uint64(500) {
		for _, v := range []Vote{{View: view, Phase: Prepare, Digest: valueOf("A")}, {View: view, Phase: Commit, Digest: valueOf("A")}, viewChange(view+1, nil)} {
			_ = l.hear(2, v)
		}
	}
	for phase, list := range l.engine().votes[2].of {
		if len(list) > window {
			t.Errorf("%d votes of phase %s are held", len(list), Phase(phase))
		}
	}
	if g := l.members[3].guilt; len(g) != 0 {
		t.Errorf("guilt without two votes in a slot: %v", g)
	}
	// And repeated equivocation leaves one proof.
	for k := range 50 {
		_ = l.hear(1, Vote{Phase: Commit, Digest: valueOf(fmt.Sprint(k))})
	}
	if g := l.members[3].guilt; len(g) != 1 || g[0].Verify(l.committee) != nil {
		t.Errorf("%d guilt proofs, expected one that verifies", len(g))
	}
}

func TestACertifiedValueThatCannotBeRightIsReportedNotTaken(t *testing.T) {
	l := newLone(t, 4, 3, Config{Expected: valueOf("A")})
	for from := range 3 {
		err := l.hear(from, Vote{Phase: Commit, Digest: valueOf("B")})
		if want := map[bool]string{true: CodeUnexpected}[from == 2]; codeOf(err) != want {
			t.Errorf("commit %d: %v", from, err)
		}
	}
	_, in, cert := certified(t, 4, 0, 1, 2)
	l2 := newLone(t, 4, 3, Config{Instance: in, Expected: valueOf("B")})
	v, err := l2.committee.CheckCertificate(in, &cert)
	if err != nil {
		t.Fatal(err)
	}
	if codeOf(l2.engine().StepCertificate(v)) != CodeUnexpected || l.engine().Decision() != nil || l2.engine().Decision() != nil {
		t.Error("a value that is not the expected one was taken")
	}
}

func TestAfterARestartAReplicaNeverVotesDifferently(t *testing.T) {
	l := newLone(t, 4, 3, Config{Expected: valueOf("A")})
	l.expectSaid("prepare(0, A)")
	l.crash(3)
	l.config.Expected = valueOf("B") // its state came back different
	if err := l.start(3); err != nil {
		t.Fatal(err)
	}
	if err := l.hear(0, Vote{Phase: PrePrepare, Digest: valueOf("B")}); err != nil {
		t.Fatal(err)
	}
	l.expectSaid("prepare(0, A)")
	again := l.queue[len(l.queue)-1].frame
	if !bytes.Equal(again.Encode(), l.members[3].disk.Frames[0].Encode()) {
		t.Error("what is sent again is not the stored frame")
	}
}

func TestARestoredLockIsClaimedInTheNextViewChange(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 5})
	_ = l.hear(0, Vote{Phase: PrePrepare, Digest: valueOf("A")})
	_ = l.hear(1, Vote{Phase: Prepare, Digest: valueOf("A")})
	l.expectSaid("prepare(0, A)", "commit(0, A)")
	l.crash(3)
	if err := l.start(3); err != nil {
		t.Fatal(err)
	}
	l.ticks(5)
	l.expectSaid("prepare(0, A)", "commit(0, A)", "view-change(1, A prepared in view 0)")
}

func TestStoredStateThatContradictsItselfIsCorrupt(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything})
	_ = l.hear(0, Vote{Phase: PrePrepare, Digest: valueOf("A")})
	_ = l.hear(1, Vote{Phase: Prepare, Digest: valueOf("A")})
	good := l.members[3].disk
	in := l.config.Instance
	sign := func(signer int, key int, v Vote) *Frame {
		v.Key = in.Key()
		return Sign(in.Domain(), signer, []Vote{v}, l.keys[key])
	}
	bad := *good.Prepared[0]
	bad.Digest = valueOf("B")
	for name, r := range map[string]Restored{
		"a commit without its proof": {Frames: good.Frames},
		"two votes in one slot":      {Frames: append(good.Frames[:1:1], sign(3, 3, Vote{Phase: Prepare, Digest: valueOf("B")}))},
		"another member's frame":     {Frames: []*Frame{sign(2, 2, Vote{Phase: Prepare, Digest: valueOf("A")})}},
		"a frame with a bad seal":    {Frames: []*Frame{sign(3, 2, Vote{Phase: Prepare, Digest: valueOf("A")})}},
		"a bad certificate":          {Frames: good.Frames, Prepared: []*Prepared{&bad}},
		"a bad decision":             {Certificate: &Certificate{Instance: in, Digest: valueOf("A")}},
	} {
		cfg := l.config
		cfg.Self, cfg.Restored = 3, r
		if _, err := New(cfg); codeOf(err) != CodeCorrupt {
			t.Errorf("%s: %v", name, err)
		}
	}
}

func TestAdvanceDemandsThatEveryVoteWasStored(t *testing.T) {
	net := newNetwork(4, Config{Expected: valueOf("A")}, nil)
	cfg := net.config
	cfg.Self = 3
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if r := e.Ready(); len(r.Votes) != 1 {
		t.Fatalf("ready: %+v", r)
	}
	if codeOf(e.Advance()) != CodeCorrupt {
		t.Error("advanced without the stored frame")
	}
}

func TestVotesWaitForTheStoredOnesButTheRestDoesNot(t *testing.T) {
	net := newNetwork(4, Config{Expected: valueOf("A"), Timeout: 3}, nil)
	cfg := net.config
	cfg.Self = 3
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	first := e.Ready()
	for range 3 {
		e.Tick()
	}
	if e.HasReady() {
		t.Error("more votes are handed out before the first are stored")
	}
	v, err := net.committee.Sign(e.domain, 3, first.Votes, net.keys[3])
	if err != nil {
		t.Fatal(err)
	}
	if err := e.Advance(v); err != nil {
		t.Fatal(err)
	}
	if second := e.Ready(); len(second.Votes) != 1 || second.Votes[0].Phase != ViewChange {
		t.Errorf("after storing: %+v", second)
	}
	if _, err := net.committee.Sign(e.domain, 2, first.Votes, net.keys[3]); codeOf(err) != CodeNotMember {
		t.Errorf("signing for another member: %v", err)
	}
}

func TestTheSameStepsGiveTheSameBytes(t *testing.T) {
	run := func() (out []byte) {
		frames, certificate, prepared := samples(t)
		for _, f := range frames {
			out = append(out, f...)
		}
		return append(append(out, certificate...), prepared...)
	}
	if !bytes.Equal(run(), run()) {
		t.Error("two equal runs differ")
	}
}

func BenchmarkDecision(b *testing.B) {
	for _, n := range []int{4, 7, 31} {
		b.Run(fmt.Sprint("n=", n), func(b *testing.B) {
			b.ReportAllocs()
			keys := testKeys(n)
			c := testCommittee(keys, 1)
			in := testInstance(c, "round")
			var frames []Verified // all members' votes on A, verified beforehand
			for _, phase := range []Phase{Prepare, Commit} {
				for i := range n - 1 {
					v := Vote{Key: in.Key(), Phase: phase, Digest: valueOf("A")}
					if phase == Prepare && i == 0 {
						v.Phase = PrePrepare
					}
					f, err := c.Sign(in.Domain(), i, []Vote{v}, keys[i])
					if err != nil {
						b.Fatal(err)
					}
					frames = append(frames, f)
				}
			}
			own := map[Phase]Verified{} // this member's votes, signed once
			store := func(e *Engine) {
				for e.HasReady() {
					r := e.Ready()
					if len(r.Votes) == 0 {
						continue
					}
					v, ok := own[r.Votes[0].Phase]
					if !ok {
						v, _ = c.Sign(in.Domain(), n-1, r.Votes, keys[n-1])
						own[r.Votes[0].Phase] = v
					}
					if err := e.Advance(v); err != nil {
						b.Fatal(err)
					}
				}
			}
			for b.Loop() {
				e, err := New(Config{Instance: in, Committee: c, Self: n - 1, Expected: valueOf("A")})
				if err != nil {
					b.Fatal(err)
				}
				store(e)
				for _, f := range frames {
					_ = e.Step(f)
					store(e)
				}
				if e.Decision() == nil || len(own) != 2 {
					b.Fatal("undecided")
				}
			}
		})
	}
}
