package pbft

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"pgregory.net/rapid"
)

// garbage spoils the certificate of a genuine claim in one of many ways.
var garbage = []struct {
	name  string
	spoil func(l *lone, v *Vote)
}{
	{"noise", func(_ *lone, v *Vote) { v.Proof = []byte("noise") }},
	{"a certificate cut short", func(_ *lone, v *Vote) { v.Proof = v.Proof[:len(v.Proof)-1] }},
	{"too few votes", respoil(func(p *Prepared) { p.Votes = p.Votes[:len(p.Votes)-1] })},
	{"one vote twice", respoil(func(p *Prepared) { p.Votes[1] = p.Votes[0] })},
	{"votes out of order", respoil(func(p *Prepared) { p.Votes[0], p.Votes[1] = p.Votes[1], p.Votes[0] })},
	{"a wrong signature", respoil(func(p *Prepared) { p.Votes[1].Signature[7]++ })},
	{"another signer", respoil(func(p *Prepared) { p.Votes[len(p.Votes)-1].Signer++ })},
	{"votes on another value", respoil(func(p *Prepared) { p.Digest = valueOf("Y") })},
	{"votes of another view", respoil(func(p *Prepared) { p.View++ })},
	{"another value claimed", func(_ *lone, v *Vote) { v.Digest = valueOf("Y") }},
	{"another view than claimed", func(_ *lone, v *Vote) {
		p, _ := DecodePrepared(v.Proof)
		p.View++
		v.Proof = p.Encode()
	}},
	{"a certificate of another instance", func(l *lone, v *Vote) { v.Proof = l.preparedFor(l.otherKey(), v.Prepared-1, "Z").Encode() }},
}

// respoil spoils a claim's certificate and makes the claim fit it.
func respoil(change func(*Prepared)) func(*lone, *Vote) {
	return func(_ *lone, v *Vote) {
		p, err := DecodePrepared(v.Proof)
		if err != nil {
			panic(err)
		}
		change(p)
		v.Proof, v.Prepared, v.Digest = p.Encode(), p.View+1, p.Digest
	}
}

func (l *lone) otherKey() Digest {
	in := l.config.Instance
	in.ID += "x"
	return in.Key()
}

// reportsOf draws a view change of each member but the engine's: what is
// prepared in a view is the same for all, as quorums see to.
func reportsOf(t *rapid.T, l *lone, view uint64) map[int]Vote {
	out := map[int]Vote{}
	for m := range l.committee.N() {
		if m == l.self {
			continue
		}
		out[m] = viewChange(view, nil)
		if prepared := rapid.Uint64Range(0, view).Draw(t, fmt.Sprint("prepared of ", m)); prepared > 0 {
			out[m] = viewChange(view, l.preparedIn(prepared-1, string(rune('A'+prepared))))
		}
	}
	return out
}

// choice is what a new view must propose after these claims, in the dumbest
// words; own is the primary's own value.
func choice(claims []Vote, own Digest) Digest {
	for view := uint64(100); view > 0; view-- {
		for _, c := range claims {
			if c.Prepared == view {
				return c.Digest
			}
		}
	}
	return own
}

func TestGarbageAmongTheViewChangesChangesNothing(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		n := rapid.SampledFrom([]int{4, 5, 7}).Draw(rt, "n")
		view := rapid.Uint64Range(1, 4).Draw(rt, "view")
		l := newLone(t, n, int(view)%n, Config{Validate: anything, Timeout: 1000})
		l.engine().Propose(valueOf("OWN"))
		if err := l.settle(l.self, 0); err != nil {
			rt.Fatal(err)
		}
		reports := reportsOf(rt, l, view)
		liars := map[int]bool{}
		for range rapid.IntRange(0, l.committee.F()).Draw(rt, "liars") {
			liars[rapid.SampledFrom(others(l)).Draw(rt, "liar")] = true
		}
		var counted []Vote // what the reference sees: the genuine ones, in the order of arrival
		for _, m := range rapid.Permutation(others(l)).Draw(rt, "order") {
			if liars[m] {
				l.hearGarbage(rt, m, view)
				continue
			}
			if err := l.hear(m, reports[m]); err != nil && len(counted) < l.committee.Q()-1 {
				rt.Fatalf("the genuine view change of %d: %v", m, err)
			}
			counted = append(counted, reports[m])
		}
		opened := l.opened(view)
		want := choice(counted[:l.committee.Q()-1], valueOf("OWN")) // and the primary's own, which claims nothing
		if opened == nil || opened.Digest != want {
			rt.Fatalf("view %d is opened with %v, expected %s", view, opened, letterOf(want))
		}
		if err := refusedIn(l.committee, Sign(l.config.Instance.Domain(), l.self, []Vote{*opened}, l.keys[l.self])); err != nil {
			rt.Fatalf("the others would refuse it: %v", err)
		}
	})
}

func others(l *lone) (out []int) {
	for m := range l.committee.N() {
		if m != l.self {
			out = append(out, m)
		}
	}
	return out
}

func (l *lone) hearGarbage(t *rapid.T, from int, view uint64) {
	kind := rapid.SampledFrom(garbage).Draw(t, "kind of garbage")
	v := viewChange(view, l.preparedIn(rapid.Uint64Range(0, view-1).Draw(t, "pretended"), "Z"))
	kind.spoil(l, &v)
	if v.Prepared > view { // does not even decode
		v.Prepared = view
	}
	before := l.engine().Held()
	if err := l.hear(from, v); err == nil {
		t.Fatalf("%s: taken", kind.name)
	}
	if l.engine().Held() != before {
		t.Fatalf("%s: refused, but held", kind.name)
	}
}

// opened is the pre-prepare by which the engine opened a view, or nil.
func (l *lone) opened(view uint64) *Vote {
	for _, f := range l.members[l.self].disk.Frames {
		for _, v := range f.votes {
			if v.View == view && v.Phase == PrePrepare {
				return &v
			}
		}
	}
	return nil
}

func TestEveryKindOfGarbageIsRefusedAndHidesNoLaterGoodViewChange(t *testing.T) {
	for _, kind := range garbage {
		l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
		for from := range 2 { // even f+1 of it take nobody along
			v := viewChange(3, l.preparedIn(1, "Z"))
			kind.spoil(l, &v)
			if err := l.hear(from, v); err == nil {
				t.Errorf("%s: taken", kind.name)
			}
		}
		if l.engine().View() != 0 || l.engine().Held() != 0 {
			t.Errorf("%s: view %d, %d votes held", kind.name, l.engine().View(), l.engine().Held())
		}
		for from := range 2 {
			if err := l.hear(from, viewChange(3, l.preparedIn(1, "A"))); err != nil {
				t.Errorf("%s hides a good view change: %v", kind.name, err)
			}
		}
		l.expectSaid("view-change(3, nothing prepared)", "pre-prepare(3, A)")
	}
}

func TestAViewIsOpenedWithoutTheClaimsItsPrimaryMayNotVoteFor(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: func(d Digest) bool { return d != valueOf("X") }, Timeout: 1000})
	l.engine().Propose(valueOf("C"))
	for from, p := range []*Prepared{l.preparedIn(1, "X"), l.preparedIn(0, "A"), nil} {
		if err := l.hear(from, viewChange(3, p)); err != nil {
			t.Fatal(err)
		}
	}
	l.expectSaid("view-change(3, nothing prepared)", "pre-prepare(3, A)")
	if err := refusedIn(l.committee, l.members[3].disk.Frames[1]); err != nil {
		t.Errorf("the others would refuse it: %v", err)
	}
}

func TestALockYieldsToAHigherOne(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	_ = l.hear(0, Vote{Phase: PrePrepare, Digest: valueOf("A")})
	_ = l.hear(1, Vote{Phase: Prepare, Digest: valueOf("A")}) // locked on A in view 0
	b := l.preparedIn(1, "B")                                 // which the others have left behind
	nv := &NewView{Highest: b}
	for signer := range 3 {
		v := viewChange(2, nil)
		if signer == 1 {
			v = viewChange(2, b)
		}
		v.Key = l.config.Instance.Key()
		nv.Claims = append(nv.Claims, Claim{v.Prepared, v.Digest, Sign(l.config.Instance.Domain(), signer, []Vote{v}, l.keys[signer]).Proof()})
	}
	if err := l.hear(2, Vote{View: 2, Phase: PrePrepare, Digest: valueOf("B"), Proof: nv.Encode()}); err != nil {
		t.Fatal(err)
	}
	_ = l.hear(0, Vote{View: 2, Phase: Prepare, Digest: valueOf("B")})
	for from := range 2 {
		_ = l.hear(from, viewChange(3, nil))
	}
	l.expectSaid("prepare(0, A)", "commit(0, A)", "prepare(2, B)", "commit(2, B)", "view-change(3, B prepared in view 2)", "pre-prepare(3, B)")
}

func TestViewChangesAreSentAgainAsStoredUntilTheViewOpens(t *testing.T) {
	net := newNetwork(4, Config{Expected: valueOf("A"), Timeout: 5, Resend: 2}, nil)
	for i := 1; i < 4; i++ { // the first primary is down
		if err := net.start(i); err != nil {
			t.Fatal(err)
		}
	}
	ticks := func(n int) {
		for range n {
			for i := range net.members {
				if err := net.tick(i); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
	net.queue = nil // all prepares are lost …
	ticks(5)
	net.queue = nil // … and so is every first view change
	ticks(2)
	stored := map[string]bool{}
	for _, m := range net.members {
		for _, f := range m.disk.Frames {
			stored[string(f.Encode())] = true
		}
	}
	again := 0
	for _, p := range net.queue {
		if p.frame.votes[0].Phase == ViewChange {
			again++
		}
		if !stored[string(p.frame.Encode())] {
			t.Error("what is sent again is not what was stored")
		}
	}
	if again != 9 {
		t.Errorf("%d view changes are sent again, expected 3 from each of 3", again)
	}
	if err := net.run(all); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 4; i++ {
		if d := net.members[i].engine.Decision(); d == nil || d.View != 1 {
			t.Errorf("%d: %v", i, d)
		}
	}
}

func TestTheTimerRunsBeforeAnythingIsStoredOrSent(t *testing.T) {
	net := newNetwork(4, Config{Expected: valueOf("A"), Timeout: 3}, nil)
	cfg := net.config
	cfg.Self = 3
	e, err := New(cfg)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 { // its first vote waits for a slow disk
		e.Tick()
	}
	if e.View() != 1 {
		t.Error("while its vote is being stored, no time passes")
	}
	if votes := e.Ready().Votes; len(votes) != 2 || votes[0].Phase != Prepare || votes[1].Phase != ViewChange {
		t.Errorf("ready: %v", votes)
	}
}

func TestAccomplicesTakeNobodyAway(t *testing.T) {
	net := newNetwork(7, Config{Expected: valueOf("A"), Timeout: 1000, Resend: 1000}, nil)
	for i := range 5 { // 5 and 6 are the liars
		if err := net.start(i); err != nil {
			t.Fatal(err)
		}
	}
	for view := uint64(1); view < 200; view += 7 {
		for liar := 5; liar < 7; liar++ {
			v := viewChange(view+uint64(liar), nil)
			v.Key = net.config.Instance.Key()
			for to := range 5 {
				_ = net.deliver(packet{from: liar, to: to, frame: Sign(net.config.Instance.Domain(), liar, []Vote{v}, net.keys[liar])})
			}
		}
	}
	// One honest replica alone in a later view is no help to them.
	for range 5000 { // view 1 would end after 2000
		if err := net.tick(4); err != nil {
			t.Fatal(err)
		}
	}
	if v := net.members[4].engine.View(); v != 1 {
		t.Errorf("with two accomplices a replica ran to view %d", v)
	}
	for i := range 4 {
		if v := net.members[i].engine.View(); v != 0 {
			t.Errorf("two liars took %d to view %d", i, v)
		}
	}
	if err := net.run(func(p packet) bool { return p.to < 5 }); err != nil {
		t.Fatal(err)
	}
	for range 200 {
		for i := range 5 {
			if err := net.tick(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	for i := range 5 {
		if e := net.members[i].engine; e.View() > 1 {
			t.Errorf("%d is in view %d", i, e.View())
		}
	}
}

func TestInTheLastViewTimeStandsStillAndADecisionIsStillReached(t *testing.T) {
	l := newLone(t, 4, 3, Config{Expected: valueOf("A"), Timeout: 2, Resend: 2})
	for from := range 2 {
		if err := l.hear(from, viewChange(MaxView, nil)); err != nil {
			t.Fatal(err)
		}
	}
	l.ticks(1000)
	if l.engine().View() != MaxView {
		t.Fatalf("view %d", l.engine().View())
	}
	l.expectSaid("prepare(0, A)", "view-change(281474976710655, nothing prepared)", "pre-prepare(281474976710655, A)")
	for from := range 3 {
		_ = l.hear(from, Vote{View: MaxView, Phase: Commit, Digest: valueOf("A")})
	}
	if l.engine().Decision() == nil {
		t.Error("undecided")
	}
}

func TestAPrimaryWhoseValueIsNotValidCostsOneView(t *testing.T) {
	net := newNetwork(4, Config{Validate: func(d Digest) bool { return d != valueOf("X") }, Timeout: 5, Resend: 2}, nil)
	for i := 1; i < 4; i++ {
		if err := net.start(i); err != nil {
			t.Fatal(err)
		}
		net.members[i].engine.Propose(valueOf("A"))
	}
	x := Sign(net.config.Instance.Domain(), 0, []Vote{{Key: net.config.Instance.Key(), Phase: PrePrepare, Digest: valueOf("X")}}, net.keys[0])
	for to := 1; to < 4; to++ {
		if err := net.deliver(packet{from: 0, to: to, frame: x}); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		for i := 1; i < 4; i++ {
			if err := net.tick(i); err != nil {
				t.Fatal(err)
			}
		}
	}
	if err := net.run(all); err != nil {
		t.Fatal(err)
	}
	for i := 1; i < 4; i++ {
		if d := net.members[i].engine.Decision(); d == nil || d.View != 1 || d.Digest != valueOf("A") {
			t.Errorf("%d: %v", i, d)
		}
	}
}

func TestAReplicaRestartedFarBehindIsTakenAlongOrToldTheDecision(t *testing.T) {
	l := newLone(t, 4, 3, Config{Expected: valueOf("A"), Timeout: 1000, Resend: 2})
	for from := range 2 {
		_ = l.hear(from, viewChange(41, nil))
	}
	if l.engine().View() != 41 {
		t.Fatalf("view %d", l.engine().View())
	}
	l.crash(3)
	l.members[3].disk = Restored{Frames: l.members[3].disk.Frames[:1]} // as if it had been down since view 0
	if err := l.start(3); err != nil {
		t.Fatal(err)
	}
	for from := range 2 { // what the others send again is enough
		_ = l.hear(from, viewChange(41, nil))
	}
	if l.engine().View() != 41 {
		t.Errorf("after the restart: view %d", l.engine().View())
	}
	// The members of a decided cluster answer its very first vote.
	decided := newLone(t, 4, 0, Config{Expected: valueOf("A"), Resend: 2})
	for from := 1; from < 4; from++ {
		_ = decided.hear(from, Vote{View: 50, Phase: Commit, Digest: valueOf("A")})
	}
	decided.ticks(2)
	decided.queue = nil
	_ = decided.hear(3, Vote{Phase: Prepare, Digest: valueOf("A")})
	if len(decided.queue) != 1 || decided.queue[0].to != 3 || decided.queue[0].cert == nil {
		t.Fatalf("answers: %v", decided.queue)
	}
	if v, err := l.committee.CheckCertificate(l.config.Instance, decided.queue[0].cert); err != nil || l.engine().StepCertificate(v) != nil {
		t.Errorf("the certificate is refused: %v", err)
	}
	if l.engine().Decision() == nil || l.engine().HasReady() && len(l.engine().Ready().Votes) > 0 {
		t.Error("undecided, or votes on")
	}
}

func TestASecondVoteIsGuiltWhateverItCarries(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	if err := l.hear(1, viewChange(1, nil)); err != nil {
		t.Fatal(err)
	}
	claim := viewChange(1, l.preparedIn(0, "A"))
	claim.Proof = []byte("noise")
	if err := l.hear(1, claim); codeOf(err) != CodeEquivocation {
		t.Errorf("a second view change with a proof of nothing: %v", err)
	}
	if g := l.members[3].guilt; len(g) != 1 || g[0].Signer() != 1 || g[0].Verify(l.committee) != nil {
		t.Errorf("guilt: %v", g)
	}
}

func TestACertificateShowsWhoCommittedToAnotherValue(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	for from, value := range []string{"B", "A"} {
		if err := l.hear(from, Vote{Phase: Commit, Digest: valueOf(value)}); err != nil {
			t.Fatal(err)
		}
	}
	cert := &Certificate{Instance: l.config.Instance, Digest: valueOf("A")}
	for from := range 3 {
		v := Vote{Key: l.config.Instance.Key(), Phase: Commit, Digest: valueOf("A")}
		cert.Votes = append(cert.Votes, Sign(l.config.Instance.Domain(), from, []Vote{v}, l.keys[from]).Proof())
	}
	checked, err := l.committee.CheckCertificate(l.config.Instance, cert)
	if err != nil {
		t.Fatal(err)
	}
	if err := l.engine().StepCertificate(checked); err != nil || l.engine().Decision() == nil {
		t.Errorf("the decision: %v", err)
	}
	if g := l.engine().Ready().Guilt; len(g) != 1 || g[0].Signer() != 0 || g[0].Verify(l.committee) != nil {
		t.Errorf("guilt: %v", g)
	}
}

func TestViewChangesOfTwoClaimsAreGuilt(t *testing.T) {
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	_ = l.hear(1, viewChange(2, nil))
	if err := l.hear(1, viewChange(2, l.preparedIn(0, "A"))); codeOf(err) != CodeEquivocation {
		t.Errorf("two view changes of one voter to one view: %v", err)
	}
	if g := l.members[3].guilt; len(g) != 1 || g[0].Signer() != 1 || g[0].Verify(l.committee) != nil {
		t.Errorf("guilt: %v", g)
	}
	// The first stands: the view opens, and the certificate is not in it.
	_ = l.hear(0, viewChange(3, nil))
	_ = l.hear(1, viewChange(3, nil))
	l.engine().Propose(valueOf("C"))
	if err := l.settle(3, 0); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(fmt.Sprint(l.said()), "pre-prepare(3, C)") {
		t.Errorf("after an equivocation: %v", l.said())
	}
}

func TestAProofThatIsNotSignedDoesNotMakeTwoVotes(t *testing.T) {
	// Any q of the votes prove a claim; two choices of them are one vote.
	l := newLone(t, 4, 3, Config{Validate: anything, Timeout: 1000})
	a := l.preparedIn(0, "A")
	b := l.preparedIn(0, "A")
	extra := Vote{Key: l.config.Instance.Key(), Phase: Prepare, Digest: valueOf("A")}
	b.Votes[2] = Sign(l.config.Instance.Domain(), 3, []Vote{extra}, l.keys[3]).Proof()
	if bytes.Equal(a.Encode(), b.Encode()) {
		t.Fatal("the certificates should differ")
	}
	_ = l.hear(1, viewChange(2, a))
	if err := l.hear(1, viewChange(2, b)); codeOf(err) != CodeDuplicate || len(l.members[3].guilt) > 0 {
		t.Errorf("the same claim with another proof: %v", err)
	}
}
