package client

import (
	"context"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/api/apitest"
	"github.com/deliberd/deliberd/api/door"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/pbft"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// node is a door before a backend in memory.
type node struct {
	*apitest.Backend
	url  string
	stop func()
}

func newNode(t testing.TB, b *apitest.Backend) *node {
	t.Helper()
	if b.Actions == nil { // several nodes may share a backend
		b.Actions = []machine.Kind{{Name: "agora.vote"}}
		b.Reads = []machine.Query{{Name: "agora.get"}}
	}
	l, err := door.Listen(door.Config{Addr: "127.0.0.1:0", Log: slog.New(slog.DiscardHandler)})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() { done <- door.Serve(ctx, l, b, apitest.Cluster, nil) }()
	var once atomic.Bool
	n := &node{Backend: b, url: l.URL(), stop: func() {
		if once.CompareAndSwap(false, true) {
			cancel()
			if err := <-done; err != nil {
				t.Error(err)
			}
		}
	}}
	t.Cleanup(n.stop)
	return n
}

// ada is a client of some endpoints as a registered agent.
func ada(t testing.TB, b *apitest.Backend, endpoints ...string) *Client {
	t.Helper()
	me := IdentityOf("", "ada", b.AddKey(t, "ada"))
	h := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(h.CloseIdleConnections)
	c, err := New(endpoints, As(me), WithHTTP(h), WithPatience(5*time.Second))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// closedPort is the URL of a port nobody listens on.
func closedPort(t *testing.T) string {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return "http://" + l.Addr().String()
}

func TestAClientSignsReadsAndIsAsked(t *testing.T) {
	n := newNode(t, apitest.New())
	c, ctx := ada(t, n.Backend, n.url), context.Background()
	answer, err := c.Do(ctx, "agora.vote", map[string]any{"choice": "yes", "reason": "a < b"})
	if err != nil || string(answer.Result) != `{"choice":"yes","reason":"a < b"}` || answer.Finality != api.Ordered {
		t.Fatalf("%+v %v", answer, err)
	}
	var got struct {
		Principal string
		Stale     bool
		Params    map[string]string
	}
	if err := c.Query(ctx, "agora.get", map[string]string{"id": "r1"}, &got, Stale()); err != nil || got.Principal != "ada" || !got.Stale || got.Params["id"] != "r1" {
		t.Errorf("%+v %v", got, err)
	}
	n.Ask("ada", machine.Ask{Ask: "vote", Subject: "r1"})
	asks, version, err := c.Inbox(ctx, time.Minute, "")
	if err != nil || len(asks) != 1 || version == "" {
		t.Errorf("%+v %v", asks, err)
	}
	if st, err := c.Status(ctx); err != nil || st.ClusterID != apitest.Cluster {
		t.Errorf("%+v %v", st, err)
	}
	if peers, err := c.Peers(ctx); err != nil || len(peers) != 0 {
		t.Errorf("%+v %v", peers, err)
	}
	n.Proofs = []api.Guilt{{NodeID: "x", Proof: pbft.Guilt{A: pbft.Vote{Phase: pbft.Commit}, B: pbft.Vote{Phase: pbft.Commit}}}}
	if guilt, err := c.Guilt(ctx); err != nil || len(guilt) != 1 || guilt[0].NodeID != "x" || guilt[0].Proof.B.Phase != pbft.Commit {
		t.Errorf("%+v %v", guilt, err)
	}
}

func TestARefusalIsATypedError(t *testing.T) {
	n := newNode(t, apitest.New())
	n.OnSubmit = func(machine.Action) (any, error) {
		return nil, machine.Refuse("same_answer", "support it instead", "This answer has been given.").With("position", "p1")
	}
	_, err := ada(t, n.Backend, n.url).Do(context.Background(), "agora.vote", map[string]any{})
	var e *Error
	if !errors.As(err, &e) || e.Code != "same_answer" || e.Fix != "support it instead" || e.Data["position"] != "p1" || e.Error() != "This answer has been given (same_answer)" {
		t.Errorf("%#v", err)
	}
}

func TestAWriteGoesToTheNextNodeWhenOneIsDown(t *testing.T) {
	n := newNode(t, apitest.New())
	c := ada(t, n.Backend, closedPort(t), n.url)
	if _, err := c.Do(context.Background(), "agora.vote", map[string]any{}); err != nil {
		t.Fatal(err)
	}
	if c.endpoint() != n.url {
		t.Error("the client does not keep to the node that answers")
	}
}

func TestAWriteWhoseAnswerWasLostIsRepeatedUnderItsID(t *testing.T) {
	b := apitest.New()
	n := newNode(t, b)
	// The first node carries the write out and dies before it answers.
	var lost atomic.Int32
	dying := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		var req rpcRequest
		if err := json.NewDecoder(r.Body).Decode(&req); err != nil {
			t.Error(err)
		}
		if req.Method == "agora.vote" {
			if _, err := b.Submit(r.Context(), req.Params); err != nil {
				t.Error(err)
			}
			lost.Add(1)
		}
		panic(http.ErrAbortHandler)
	}))
	defer dying.Close()
	runs := 0
	b.OnSubmit = func(machine.Action) (any, error) { runs++; return runs, nil }
	c := ada(t, b, dying.URL, n.url)
	c.me.Cluster = apitest.Cluster
	answer, err := c.Do(context.Background(), "agora.vote", map[string]any{})
	if err != nil || string(answer.Result) != "1" || runs != 1 || lost.Load() != 1 {
		t.Errorf("%s %v after %d runs, %d lost", answer.Result, err, runs, lost.Load())
	}
}

func TestAClientWaitsWhileThereIsNoLeader(t *testing.T) {
	n := newNode(t, apitest.New())
	tries := 0
	n.OnSubmit = func(machine.Action) (any, error) {
		if tries++; tries < 4 {
			return nil, machine.Refuse(api.CodeNoLeader, "wait", "There is no leader.")
		}
		return tries, nil
	}
	answer, err := ada(t, n.Backend, n.url).Do(context.Background(), "agora.vote", map[string]any{})
	if err != nil || string(answer.Result) != "4" {
		t.Errorf("%s %v", answer.Result, err)
	}
}

func TestPatienceEndsAndTheErrorNamesTheAction(t *testing.T) {
	n := newNode(t, apitest.New())
	n.OnSubmit = func(machine.Action) (any, error) {
		return nil, machine.Refuse(api.CodeNoLeader, "wait", "There is no leader.")
	}
	c := ada(t, n.Backend, n.url)
	c.patience = time.Millisecond
	a, err := c.Sign(context.Background(), "agora.vote", map[string]any{})
	if err != nil {
		t.Fatal(err)
	}
	_, err = c.Submit(context.Background(), a)
	var e *Error
	if !errors.As(err, &e) || e.Code != api.CodeNoLeader || e.Data["action_id"] != a.ID {
		t.Errorf("%#v", err)
	}
	n.Lock()
	n.OnSubmit = nil
	n.Unlock()
	if answer, err := c.Submit(context.Background(), a); err != nil || answer.ActionID != a.ID {
		t.Errorf("the same action later: %+v %v", answer, err)
	}
}

func TestWhatCannotBeReachedOrIsNoNodeIsSaidSo(t *testing.T) {
	b := apitest.New()
	_, err := ada(t, b, closedPort(t)).Status(context.Background())
	var e *Error
	if !errors.As(err, &e) || e.Code != CodeUnreachable || !strings.Contains(e.Message, "refused") {
		t.Errorf("%v", err)
	}
	other := httptest.NewServer(http.NotFoundHandler())
	defer other.Close()
	if _, err := ada(t, b, other.URL).Status(context.Background()); CodeOf(err) != CodeBadAnswer {
		t.Errorf("%v", err)
	}
	gateway := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusBadGateway) }))
	defer gateway.Close()
	n := newNode(t, b)
	if _, err := ada(t, b, gateway.URL, n.url).Status(context.Background()); err != nil {
		t.Errorf("behind a gateway whose node is down: %v", err)
	}
}

func TestACallNeedsAnIdentityAndAnEndpoint(t *testing.T) {
	n := newNode(t, apitest.New())
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	c, err := New([]string{n.url + "/"}, WithHTTP(h))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Do(context.Background(), "agora.vote", nil); CodeOf(err) != CodeNoIdentity {
		t.Errorf("%v", err)
	}
	if err := c.Query(context.Background(), "agora.get", nil, nil); CodeOf(err) != CodeNoIdentity {
		t.Errorf("%v", err)
	}
	for _, bad := range [][]string{nil, {"127.0.0.1:7700"}, {"ftp://x"}, {"http://"}, {"http://x/?a=1"}, {"http://x", ":"}} {
		if _, err := New(bad); CodeOf(err) != CodeBadEndpoint {
			t.Errorf("%v: %v", bad, err)
		}
	}
}

func TestAnIdentityFileIsKeptAndNeverOverwritten(t *testing.T) {
	path := filepath.Join(t.TempDir(), "ada.json")
	me, err := NewIdentity("ada")
	if err != nil {
		t.Fatal(err)
	}
	if err := me.Create(path); err != nil {
		t.Fatal(err)
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	got, err := ReadIdentity(path)
	if err != nil || got.ID != "ada" || got.Key().KID() != me.Key().KID() {
		t.Errorf("%+v %v", got, err)
	}
	if err := me.Create(path); CodeOf(err) != machine.CodeAlreadyExists {
		t.Errorf("%v", err)
	}
	me.Cluster = apitest.Cluster
	if err := me.Replace(path); err != nil {
		t.Fatal(err)
	}
	if got, err := ReadIdentity(path); err != nil || got.Cluster != apitest.Cluster {
		t.Errorf("%+v %v", got, err)
	}
	if files, err := os.ReadDir(filepath.Dir(path)); err != nil || len(files) != 1 {
		t.Errorf("%d files, %v", len(files), err)
	}
	if _, err := ReadIdentity(path + ".none"); CodeOf(err) != "no_identity" {
		t.Errorf("%v", err)
	}
}

func FuzzParseIdentity(f *testing.F) {
	me, err := NewIdentity("ada")
	if err != nil {
		f.Fatal(err)
	}
	text, err := me.Encode()
	if err != nil {
		f.Fatal(err)
	}
	f.Add(text)
	f.Add([]byte(`{"id":"a","key":{}}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		id, err := ParseIdentity(text)
		if err != nil {
			if CodeOf(err) != "bad_identity" {
				t.Fatalf("%v", err)
			}
			return
		}
		again, err := id.Encode()
		if err != nil {
			t.Fatal(err)
		}
		if back, err := ParseIdentity(again); err != nil || back.ID != id.ID || back.Cluster != id.Cluster || back.Key().KID() != id.Key().KID() {
			t.Fatalf("%q became %q: %v", text, again, err)
		}
	})
}

func TestEventsAreFollowedAcrossNodesWithoutLossOrRepeat(t *testing.T) {
	b := apitest.New()
	first, second := newNode(t, b), newNode(t, b)
	c := ada(t, b, first.url, second.url)
	ctx, cancel := context.WithCancel(context.Background())
	defer cancel()
	b.Emit("agora.voted", "a", nil, 1)
	b.Emit("agora.voted", "theirs", []string{"bob"}, 1)
	var seen []string
	for rec, err := range c.Events(ctx, 0, true) {
		if err != nil {
			t.Fatal(err)
		}
		seen = append(seen, rec.Subject)
		switch len(seen) {
		case 1:
			first.stop()
			b.Emit("agora.voted", "b", []string{"ada"}, 1)
		case 2:
			b.Emit("agora.voted", "c", nil, 1)
		case 3:
			cancel()
		}
	}
	if got := strings.Join(seen, " "); got != "a b c" {
		t.Errorf("%s", got)
	}
}

func TestASubjectsEventsAreFollowedFromTheFirstOn(t *testing.T) {
	b := apitest.New()
	n := newNode(t, b)
	c := ada(t, b, n.url)
	b.Emit("agora.voted", "a", nil, 1)
	b.Emit("agora.voted", "b?&=", nil, 2)
	b.Emit("agora.voted", "a", nil, 3)
	events := c.EventsOf(context.Background(), "b?&=", 0)
	for range 2 { // a sequence can be used again
		var seen []string
		for rec, err := range events {
			if err != nil {
				t.Fatal(err)
			}
			if seen = append(seen, rec.Subject+string(rec.Data)); len(seen) == 1 {
				b.Emit("agora.voted", "a", nil, 4)
				b.Emit("agora.voted", "b?&=", nil, 5)
			} else {
				break
			}
		}
		if len(seen) != 2 || seen[0] != "b?&=2" || seen[1] != "b?&=5" {
			t.Errorf("%q", seen)
		}
	}
}

func TestFollowingFromTheHeadSkipsThePast(t *testing.T) {
	b := apitest.New()
	n := newNode(t, b)
	b.Emit("agora.voted", "old", nil, 1)
	c := ada(t, b, n.url)
	ready := make(chan struct{})
	go func() {
		<-ready
		b.Emit("agora.voted", "new", nil, 1)
	}()
	// The transport tells when the stream stands.
	c.http.Transport = watch{c.http.Transport, func() { close(ready) }}
	for rec, err := range c.Events(context.Background(), Head, false) {
		if err != nil || rec.Subject != "new" {
			t.Fatalf("%+v %v", rec, err)
		}
		break
	}
}

type watch struct {
	http.RoundTripper
	opened func()
}

func (w watch) RoundTrip(r *http.Request) (*http.Response, error) {
	res, err := w.RoundTripper.RoundTrip(r)
	if strings.HasSuffix(r.URL.Path, "/events") {
		w.opened()
	}
	return res, err
}

func (w watch) CloseIdleConnections() { w.RoundTripper.(*http.Transport).CloseIdleConnections() }

func TestFollowingEndsWithTheErrorNoNodeCanHelp(t *testing.T) {
	b := apitest.New()
	n := newNode(t, b)
	stranger, err := NewIdentity("eve")
	if err != nil {
		t.Fatal(err)
	}
	h := &http.Client{Transport: &http.Transport{}}
	defer h.CloseIdleConnections()
	c, err := New([]string{n.url}, As(stranger), WithHTTP(h))
	if err != nil {
		t.Fatal(err)
	}
	var got error
	for _, err := range c.Events(context.Background(), 0, false) {
		got = err
	}
	if CodeOf(got) != machine.CodeUnknownActor {
		t.Errorf("%v", got)
	}
}

func TestIDsOfOneClientAscend(t *testing.T) {
	c, err := New([]string{"http://x"})
	if err != nil {
		t.Fatal(err)
	}
	last := ""
	for range 2000 {
		id, err := c.NewID()
		if err != nil || id <= last {
			t.Fatalf("%s after %s: %v", id, last, err)
		}
		last = id
	}
}

func TestTheProtocolHelpersSendTheirKindAndReadTheAnswer(t *testing.T) {
	b := apitest.New()
	for _, m := range []machine.Machine{acp.New(), agora.New(), deliberation.New()} {
		b.Actions = append(b.Actions, m.Kinds()...)
		b.Reads = append(b.Reads, m.Queries()...)
	}
	n := newNode(t, b)
	c, ctx := ada(t, b, n.url), context.Background()
	const id = "01JD0000000000000000000001"
	var kind string
	n.OnSubmit = func(a machine.Action) (any, error) {
		kind = a.Kind
		if _, err := deliberation.Decode(a.Kind, a.Body); err != nil && strings.HasPrefix(a.Kind, "deliberatic.") {
			return nil, err
		}
		return map[string]string{"round": id}, nil
	}
	n.OnQuery = func(name, _ string, params json.RawMessage, _ bool) (any, error) {
		kind = name
		return map[string]any{"round": nil}, nil
	}
	yes := true
	d, p, g := c.Deliberatic(), c.ACP(), c.Agora()
	for want, call := range map[string]func() error{
		"acp.submit":     func() error { _, _, err := p.Submit(ctx, acp.SubmitBody{}); return err },
		"acp.respond":    func() error { _, _, err := p.Respond(ctx, acp.RespondBody{}); return err },
		"acp.escalate":   func() error { _, _, err := p.Escalate(ctx, acp.EscalateBody{}); return err },
		"acp.resolve":    func() error { _, _, err := p.Resolve(ctx, acp.ResolveBody{}); return err },
		"agora.propose":  func() error { _, _, err := g.Propose(ctx, agora.ProposeBody{}); return err },
		"agora.vote":     func() error { _, _, err := g.Vote(ctx, agora.VoteBody{}); return err },
		"agora.veto":     func() error { _, _, err := g.Veto(ctx, agora.VetoBody{}); return err },
		"agora.evaluate": func() error { _, _, err := g.Evaluate(ctx, "r"); return err },
		"agora.get":      func() error { _, err := g.Get(ctx, "r", Stale()); return err },
		"deliberatic.open": func() error {
			_, _, err := d.Open(ctx, deliberation.OpenBody{Title: "x", Participants: []string{"a"}})
			return err
		},
		"deliberatic.position": func() error {
			_, _, err := d.Position(ctx, deliberation.PositionBody{Round: id, Answer: []byte("1")})
			return err
		},
		"deliberatic.challenge": func() error { _, _, err := d.Challenge(ctx, deliberation.ArgueBody{Round: id, Target: id}); return err },
		"deliberatic.support":   func() error { _, _, err := d.Support(ctx, deliberation.ArgueBody{Round: id, Target: id}); return err },
		"deliberatic.evidence": func() error {
			x := 0.5
			_, _, err := d.Evidence(ctx, deliberation.EvidenceBody{Round: id, Argument: id, Evidence: []deliberation.EvidenceItem{{Type: "latency", Value: &x, Confidence: &x, Timestamp: "2026-01-15T00:00:00Z"}}})
			return err
		},
		"deliberatic.done": func() error { _, _, err := d.Done(ctx, id); return err },
		"deliberatic.confirm": func() error {
			answer, _, err := d.Confirm(ctx, deliberation.ConfirmBody{Round: id, Winner: id, Accept: &yes})
			if answer.Round != id {
				t.Errorf("the answer is not read: %+v", answer)
			}
			return err
		},
		"deliberatic.get":     func() error { _, err := d.Get(ctx, id); return err },
		"deliberatic.explain": func() error { _, err := d.Explain(ctx, id); return err },
	} {
		if err := call(); err != nil || kind != want {
			t.Errorf("%s: %v, sent %s", want, err, kind)
		}
	}
}
