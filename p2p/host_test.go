package p2p

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var genesis = strings.Repeat("0b", 32)

// rules is a changeable admission list.
type rules struct {
	mu sync.Mutex
	ok map[string]bool
}

func (r *rules) set(id string, ok bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.ok == nil {
		r.ok = map[string]bool{}
	}
	r.ok[id] = ok
}

func (r *rules) admit(id string) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.ok[id]
}

type endpoint struct {
	*Host
	rules *rules
	key   ed25519.PrivateKey
}

func newPeer(t testing.TB, change func(*Config)) *endpoint {
	t.Helper()
	_, key, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	p := &endpoint{rules: &rules{}, key: key}
	cfg := Config{Key: key, Listen: []string{"/ip4/127.0.0.1/tcp/0"}, Genesis: genesis, Admit: p.rules.admit,
		Logger: slog.New(slog.NewTextHandler(io.Discard, nil)), CallTimeout: 3 * time.Second}
	if change != nil {
		change(&cfg)
	}
	if p.Host, err = New(cfg); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := p.Close(); err != nil {
			t.Error(err)
		}
	})
	return p
}

// pair is two hosts that admit and know each other.
func pair(t testing.TB) (a, b *endpoint) {
	t.Helper()
	a, b = newPeer(t, nil), newPeer(t, nil)
	befriend(t, a, b)
	return a, b
}

func befriend(t testing.TB, a, b *endpoint) {
	t.Helper()
	a.rules.set(b.ID(), true)
	b.rules.set(a.ID(), true)
	if err := errors.Join(a.SetAddrs(b.ID(), b.Addrs()), b.SetAddrs(a.ID(), a.Addrs())); err != nil {
		t.Fatal(err)
	}
}

func code(err error) string {
	if r, ok := machine.IsRefusal(err); ok {
		return r.Code
	}
	return fmt.Sprint(err)
}

func echo(_ context.Context, from string, b []byte) ([]byte, error) {
	return append([]byte(from+" "), b...), nil
}

func eventually(t testing.TB, what string, ok func() bool) {
	t.Helper()
	deadline := time.Now().Add(15 * time.Second)
	for !ok() {
		if time.Now().After(deadline) {
			t.Fatalf("waited 15 s for: %s", what)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

func TestACallKnowsItsCallerAndGetsItsAnswer(t *testing.T) {
	a, b := pair(t)
	b.Handle(Forward, echo)
	var wg sync.WaitGroup
	for i := range 50 {
		wg.Go(func() {
			got, err := a.Call(context.Background(), b.ID(), Forward, []byte(fmt.Sprint(i)))
			if want := fmt.Sprint(a.ID(), " ", i); err != nil || string(got) != want {
				t.Errorf("got %q, %v, want %q", got, err, want)
			}
		})
	}
	wg.Wait()
}

func TestARefusalSurvivesTheWireAndOtherErrorsStayAtHome(t *testing.T) {
	a, b := pair(t)
	b.Handle(Forward, func(_ context.Context, _ string, request []byte) ([]byte, error) {
		if string(request) == "refuse" {
			return nil, machine.Refuse("no_such_round", "list the rounds", "there is no round %d", 7).With("round", "7")
		}
		return nil, errors.New("secret path /var/lib")
	})
	_, err := a.Call(context.Background(), b.ID(), Forward, []byte("refuse"))
	r, ok := machine.IsRefusal(err)
	if !ok || r.Code != "no_such_round" || r.Message != "there is no round 7" || r.Fix != "list the rounds" || r.Data["round"] != "7" {
		t.Fatalf("got %#v", err)
	}
	_, err = a.Call(context.Background(), b.ID(), Forward, nil)
	if code(err) != CodeInternal || strings.Contains(err.Error(), "secret") {
		t.Fatalf("got %v", err)
	}
}

func TestAStrangerIsRefusedAtTheConnection(t *testing.T) {
	a, b := newPeer(t, nil), newPeer(t, nil)
	var called atomic.Int64
	b.HandleStream(Join, func(context.Context, *Stream) error { called.Add(1); return nil })
	a.rules.set(b.ID(), true) // a wants to, b does not
	if err := a.SetAddrs(b.ID(), b.Addrs()); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(context.Background(), b.ID(), Join, []byte("hi")); err == nil {
		t.Fatal("a stranger was answered")
	}
	eventually(t, "the stranger's connection to end", func() bool { return len(a.Connected()) == 0 && len(b.Connected()) == 0 })
	if called.Load() != 0 {
		t.Fatal("a stranger reached a handler")
	}
	if _, err := b.Call(context.Background(), a.ID(), Join, nil); code(err) != CodeNotAdmitted {
		t.Fatalf("calling a stranger: %v", err)
	}
	b.rules.set(a.ID(), true)
	b.Handle(Join, echo)
	if _, err := a.Call(context.Background(), b.ID(), Join, []byte("hi")); err != nil {
		t.Fatalf("after it has been admitted: %v", err)
	}
}

// TestAnInvitationIsAnIdentity shows the joiner's way in: it dials with the
// invitation's key as its host's identity, which the other side can admit by
// its peer id alone.
func TestAnInvitationIsAnIdentity(t *testing.T) {
	member := newPeer(t, nil)
	member.Handle(Join, echo)
	joiner := newPeer(t, func(c *Config) { c.Listen = nil })
	member.rules.set(joiner.ID(), true)
	joiner.rules.set(member.ID(), true)
	if err := joiner.SetAddrs(member.ID(), []string{member.Addrs()[0] + "/p2p/" + member.ID()}); err != nil {
		t.Fatal(err)
	}
	got, err := joiner.Call(context.Background(), member.ID(), Join, []byte("me"))
	if err != nil || string(got) != joiner.ID()+" me" {
		t.Fatalf("%q, %v", got, err)
	}
}

func TestRefreshDisconnectsWhoIsNoLongerAdmitted(t *testing.T) {
	a, b := pair(t)
	b.Handle(Forward, echo)
	b.Protect(a.ID())
	if _, err := a.Call(context.Background(), b.ID(), Forward, nil); err != nil {
		t.Fatal(err)
	}
	b.rules.set(a.ID(), false)
	b.Refresh()
	eventually(t, "the connection's end", func() bool { return len(b.Connected()) == 0 })
	if _, err := a.Call(context.Background(), b.ID(), Forward, nil); err == nil {
		t.Fatal("a removed peer was answered")
	}
}

func TestNodesOfTwoClustersExchangeNothing(t *testing.T) {
	a := newPeer(t, nil)
	b := newPeer(t, func(c *Config) { c.Genesis = strings.Repeat("0c", 32) })
	befriend(t, a, b)
	var called atomic.Int64
	b.Handle(Forward, func(context.Context, string, []byte) ([]byte, error) { called.Add(1); return nil, nil })
	b.HandleFrames(BFT, func(string, []byte) error { called.Add(1); return nil })
	if _, err := a.Call(context.Background(), b.ID(), Forward, []byte("x")); code(err) != CodeWrongGenesis {
		t.Fatalf("got %v", err)
	}
	if err := a.Send(b.ID(), BFT, []byte("x")); err != nil {
		t.Fatal(err)
	}
	time.Sleep(50 * time.Millisecond) // nothing must arrive: there is nothing to wait for
	if called.Load() != 0 {
		t.Fatal("a request of another cluster reached a handler")
	}
}

func TestGenerationsMeetOnlyWhereThatMakesSense(t *testing.T) {
	a := newPeer(t, nil)
	b := newPeer(t, func(c *Config) { c.Generation = func() uint64 { return 3 } })
	befriend(t, a, b)
	for _, proto := range Protocols {
		b.Handle(proto, echo)
		_, err := a.Call(context.Background(), b.ID(), proto, nil)
		want := fmt.Sprint(error(nil))
		if sameGeneration[proto] {
			want = CodeWrongGeneration
		}
		if code(err) != want {
			t.Errorf("%s: got %v, want %s", proto, err, want)
		}
	}
	s, err := a.Open(context.Background(), b.ID(), Sync)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	if err := s.Send(nil); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); err != nil || s.Generation() != 3 {
		t.Fatalf("generation %d, %v", s.Generation(), err)
	}
}

func TestFramesArriveInOrderAndGoOnAfterABreak(t *testing.T) {
	a, b := pair(t)
	var mu sync.Mutex
	var got []int
	b.HandleFrames(BFT, func(_ string, frame []byte) error {
		mu.Lock()
		defer mu.Unlock()
		var n int
		_, err := fmt.Sscan(string(frame), &n)
		got = append(got, n)
		return err
	})
	last := func() int {
		mu.Lock()
		defer mu.Unlock()
		if len(got) == 0 {
			return -1
		}
		return got[len(got)-1]
	}
	send := func(from, to int) {
		for i := from; i < to; i++ {
			if err := a.Send(b.ID(), BFT, []byte(fmt.Sprint(i))); err != nil {
				t.Fatal(err)
			}
		}
	}
	send(0, 500)
	eventually(t, "the first frames", func() bool { return last() == 499 })
	if len(got) != 500 {
		t.Fatalf("%d frames of 500 without a break", len(got))
	}
	b.Cut(a.ID())
	eventually(t, "the cut", func() bool { return len(a.Connected()) == 0 })
	send(500, 600)
	b.Heal(a.ID())
	eventually(t, "frames after the break", func() bool {
		send(600, 601)
		return last() == 600
	})
	mu.Lock()
	defer mu.Unlock()
	for i := 1; i < len(got); i++ {
		if got[i] < got[i-1] {
			t.Fatalf("frame %d came after %d", got[i], got[i-1])
		}
	}
}

func TestAFullQueueSaysSoAndLatestReplacesWhatWaits(t *testing.T) {
	a, b := pair(t)
	a.Cut(b.ID())
	var err error
	for i := 0; i <= maxQueued && err == nil; i++ {
		err = a.Send(b.ID(), BFT, nil)
	}
	if code(err) != CodeQueueFull {
		t.Fatalf("got %v", err)
	}
	var mu sync.Mutex
	var got []string
	b.HandleFrames(Notice, func(_ string, frame []byte) error {
		mu.Lock()
		defer mu.Unlock()
		got = append(got, string(frame))
		return nil
	})
	for i := range 100 {
		if err := a.SendLatest(b.ID(), Notice, []byte(fmt.Sprint(i))); err != nil {
			t.Fatal(err)
		}
	}
	a.Heal(b.ID())
	eventually(t, "the latest frame", func() bool {
		mu.Lock()
		defer mu.Unlock()
		return len(got) > 0
	})
	if got[len(got)-1] != "99" || len(got) > 1 {
		t.Fatalf("got %v", got)
	}
}

func TestACutEndsWhatIsUnderWayAndHealingMendsIt(t *testing.T) {
	a, b := pair(t)
	entered := make(chan struct{}, 1)
	b.Handle(Forward, func(ctx context.Context, _ string, request []byte) ([]byte, error) {
		if string(request) == "wait" {
			entered <- struct{}{}
			<-ctx.Done()
		}
		return request, nil
	})
	errs := make(chan error, 1)
	go func() {
		_, err := a.Call(context.Background(), b.ID(), Forward, []byte("wait"))
		errs <- err
	}()
	<-entered
	a.Cut(b.ID())
	if err := <-errs; err == nil {
		t.Fatal("a call outlived the cut")
	}
	if _, err := b.Call(context.Background(), a.ID(), Forward, nil); err == nil {
		t.Fatal("a call crossed the cut")
	}
	a.Heal(b.ID())
	eventually(t, "the first call after healing", func() bool {
		_, err := a.Call(context.Background(), b.ID(), Forward, []byte("x"))
		return err == nil
	})
}

func TestACallEndsWithItsContextAndWithItsBound(t *testing.T) {
	a := newPeer(t, func(c *Config) { c.CallTimeout = 300 * time.Millisecond })
	b := newPeer(t, nil)
	befriend(t, a, b)
	b.Handle(Forward, func(ctx context.Context, _ string, _ []byte) ([]byte, error) {
		select {
		case <-ctx.Done():
		case <-time.After(2 * time.Second):
		}
		return nil, nil
	})
	ctx, cancel := context.WithTimeout(context.Background(), 50*time.Millisecond)
	defer cancel()
	if _, err := a.Call(ctx, b.ID(), Forward, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got %v", err)
	}
	began := time.Now()
	if _, err := a.Call(context.Background(), b.ID(), Forward, nil); err == nil {
		t.Fatal("a call without an answer succeeded")
	}
	if took := time.Since(began); took > 1500*time.Millisecond {
		t.Fatalf("it took %v", took)
	}
}

func TestAPeerThatCannotBeReachedIsNamed(t *testing.T) {
	a, b := pair(t)
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := a.Call(context.Background(), b.ID(), Forward, nil); code(err) != CodeUnreachable {
		t.Fatalf("got %v", err)
	}
}

func TestANodeThatMovesKeepsItsIdentity(t *testing.T) {
	a, b := pair(t)
	b.Handle(Forward, echo)
	if _, err := a.Call(context.Background(), b.ID(), Forward, nil); err != nil {
		t.Fatal(err)
	}
	if err := b.Close(); err != nil {
		t.Fatal(err)
	}
	moved := newPeer(t, func(c *Config) { c.Key = b.key })
	if moved.ID() != b.ID() {
		t.Fatal("another identity")
	}
	moved.rules.set(a.ID(), true)
	moved.Handle(Forward, echo)
	if err := a.SetAddrs(moved.ID(), moved.Addrs()); err != nil {
		t.Fatal(err)
	}
	eventually(t, "a call at the new address", func() bool {
		_, err := a.Call(context.Background(), moved.ID(), Forward, nil)
		return err == nil
	})
}

func TestBadAddressesAndTakenPortsAreRefused(t *testing.T) {
	a, b := pair(t)
	for _, addrs := range [][]string{{"nonsense"}, {"127.0.0.1:80"}, {"/ip4/127.0.0.1/tcp/1/p2p/" + a.ID()}} {
		if err := a.SetAddrs(b.ID(), addrs); code(err) != CodeBadAddress {
			t.Errorf("%v: %v", addrs, err)
		}
	}
	if err := a.SetAddrs("nobody", nil); code(err) != CodeBadAddress {
		t.Errorf("a peer id: %v", err)
	}
	if _, err := a.Call(context.Background(), "nobody", Forward, nil); code(err) != CodeBadAddress {
		t.Errorf("a peer id: %v", err)
	}
	cfg := a.cfg
	cfg.Listen = []string{"nonsense"}
	if _, err := New(cfg); code(err) != CodeBadAddress {
		t.Errorf("listen: %v", err)
	}
	cfg.Listen = a.Addrs()
	if _, err := New(cfg); code(err) != CodePortInUse {
		t.Errorf("a taken port: %v", err)
	}
	cfg.Genesis = "beef"
	if _, err := New(cfg); err == nil {
		t.Error("a short genesis hash was taken")
	}
}

func TestFramesAreBounded(t *testing.T) {
	a, b := pair(t)
	b.Handle(Forward, func(_ context.Context, _ string, request []byte) ([]byte, error) {
		return fmt.Append(nil, len(request)), nil
	})
	if got, err := a.Call(context.Background(), b.ID(), Forward, make([]byte, MaxFrame)); err != nil || string(got) != fmt.Sprint(MaxFrame) {
		t.Fatalf("%q, %v", got, err)
	}
	if _, err := a.Call(context.Background(), b.ID(), Forward, make([]byte, MaxFrame+1)); code(err) != CodeFrameTooLarge {
		t.Fatalf("got %v", err)
	}
	s, err := a.Open(context.Background(), b.ID(), Forward)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Reset()
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.s.Write([]byte{0xff, 0xff, 0xff, 0xff, 0}); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Recv(); code(err) != CodeFrameTooLarge {
		t.Fatalf("a claim of 4 GiB: %v", err)
	}
}

func TestCloseEndsHandlersAndIsFinal(t *testing.T) {
	a, b := pair(t)
	entered := make(chan struct{})
	b.HandleStream(Sync, func(ctx context.Context, s *Stream) error {
		close(entered)
		<-ctx.Done()
		return nil
	})
	s, err := a.Open(context.Background(), b.ID(), Sync)
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Flush(); err != nil {
		t.Fatal(err)
	}
	<-entered
	if err := errors.Join(b.Close(), b.Close()); err != nil {
		t.Fatal(err)
	}
	if err := b.Send(a.ID(), BFT, nil); code(err) != CodeUnreachable {
		t.Fatalf("got %v", err)
	}
}
