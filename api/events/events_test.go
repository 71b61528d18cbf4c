package events

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/api/apitest"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

type house struct {
	t   *testing.T
	b   *apitest.Backend
	key sign.Key
	url string
}

func newHouse(t *testing.T, change func(*Config)) *house {
	t.Helper()
	b := apitest.New()
	h := &house{t: t, b: b, key: b.AddKey(t, "ada")}
	cfg := Config{Backend: b, Log: slog.New(slog.DiscardHandler), Tokens: token.Verifier{Cluster: apitest.Cluster, Key: b.Key, Now: time.Now}}
	if change != nil {
		change(&cfg)
	}
	server := httptest.NewUnstartedServer(New(cfg))
	server.Config.ConnContext = func(ctx context.Context, c net.Conn) context.Context {
		if err := c.(*net.TCPConn).SetWriteBuffer(16 << 10); err != nil { // a reader that stops is noticed soon
			t.Error(err)
		}
		return ctx
	}
	server.Start()
	t.Cleanup(func() { server.Close(); http.DefaultClient.CloseIdleConnections() })
	h.url = server.URL
	return h
}

// open starts a stream; the reader yields one line at a time.
func (h *house) open(query, lastID string) (*http.Response, *bufio.Scanner) {
	h.t.Helper()
	ctx, cancel := context.WithCancel(context.Background())
	h.t.Cleanup(cancel)
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, h.url+query, nil)
	if err != nil {
		h.t.Fatal(err)
	}
	req.Header.Set("Authorization", apitest.Bearer(h.t, h.key, "ada"))
	if lastID != "" {
		req.Header.Set("Last-Event-ID", lastID)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		h.t.Fatal(err)
	}
	h.t.Cleanup(func() { res.Body.Close() })
	return res, bufio.NewScanner(res.Body)
}

type msg struct{ id, event, data string }

// next reads one message that has data, skipping comments and bare ids.
func next(t *testing.T, lines *bufio.Scanner) msg {
	t.Helper()
	var m msg
	for lines.Scan() {
		name, value, _ := strings.Cut(lines.Text(), ": ")
		switch {
		case lines.Text() == "" && m.data != "":
			return m
		case lines.Text() == "":
			m = msg{}
		case name == "id":
			m.id = value
		case name == "event":
			m.event = value
		case name == "data":
			m.data = value
		}
	}
	t.Fatalf("the stream ended: %v", lines.Err())
	return m
}

func TestAFollowerGetsEveryEventOnceInOrderAndResumes(t *testing.T) {
	h := newHouse(t, nil)
	first := h.b.Emit("acp.submitted", "p1", nil, map[string]string{"text": "a < b\n"})
	second := h.b.Emit("acp.resolved", "p1", []string{"bob"}, 2)
	_, lines := h.open("?since=0", "")
	m := next(t, lines)
	var rec api.Record
	if err := json.Unmarshal([]byte(m.data), &rec); err != nil {
		t.Fatal(err)
	}
	if m.id != strconv.FormatUint(first, 10) || m.event != "acp.submitted" || rec.Index != first || rec.Subject != "p1" || string(rec.Data) != `{"text":"a < b\n"}` {
		t.Errorf("%+v", m)
	}
	if m := next(t, lines); m.id != strconv.FormatUint(second, 10) {
		t.Errorf("%+v", m)
	}
	third := h.b.Emit("acp.submitted", "p2", nil, 3)
	if m := next(t, lines); m.id != strconv.FormatUint(third, 10) {
		t.Errorf("%+v", m)
	}
	// Last-Event-ID wins over since.
	_, again := h.open("?since=0", strconv.FormatUint(second, 10))
	if m := next(t, again); m.id != strconv.FormatUint(third, 10) {
		t.Errorf("resumed at %+v", m)
	}
}

func TestWithoutAPlaceTheStreamStartsAtTheHead(t *testing.T) {
	h := newHouse(t, nil)
	h.b.Emit("acp.submitted", "old", nil, 1)
	_, lines := h.open("", "")
	lines.Scan() // retry: the stream stands
	h.b.Emit("acp.submitted", "new", nil, 2)
	if m := next(t, lines); !strings.Contains(m.data, `"new"`) {
		t.Errorf("%+v", m)
	}
}

func TestForMeLeavesOutWhatIsAddressedToOthersAndTheIDMovesOn(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Heartbeat = 10 * time.Millisecond })
	h.b.Emit("acp.submitted", "theirs", []string{"bob"}, 1)
	h.b.Emit("acp.submitted", "everybodys", nil, 1)
	h.b.Emit("acp.submitted", "mine", []string{"ada", "bob"}, 1)
	last := h.b.Emit("acp.submitted", "theirs", []string{}, 1)
	_, lines := h.open("?since=0&for=me", "")
	for _, want := range []string{"everybodys", "mine"} {
		if m := next(t, lines); !strings.Contains(m.data, want) {
			t.Errorf("%+v, want %s", m, want)
		}
	}
	for lines.Scan() && lines.Text() != "id: "+strconv.FormatUint(last, 10) {
		if strings.HasPrefix(lines.Text(), "data") {
			t.Fatalf("%s", lines.Text())
		}
	}
}

func TestASubjectLeavesOutWhatIsAboutOthers(t *testing.T) {
	h := newHouse(t, nil)
	h.b.Emit("acp.submitted", "one", nil, "first")
	h.b.Emit("acp.submitted", "another", nil, "not this")
	h.b.Emit("acp.resolved", "one", []string{"bob"}, "second")
	_, lines := h.open("?since=0&subject=one", "")
	for _, want := range []string{"first", "second"} {
		if m := next(t, lines); !strings.Contains(m.data, want) {
			t.Errorf("%+v, want %s", m, want)
		}
	}
}

func TestABadRequestOpensNoStream(t *testing.T) {
	h := newHouse(t, nil)
	for query, code := range map[string]string{
		"?since=x":         machine.CodeMalformed,
		"?since=-1":        machine.CodeMalformed,
		"?since=1&since=2": machine.CodeMalformed,
		"?for=you":         machine.CodeMalformed,
		"?from=1":          machine.CodeMalformed,
	} {
		res, _ := h.open(query, "")
		checkRefusal(t, res, http.StatusBadRequest, code)
	}
	res, err := http.Get(h.url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	checkRefusal(t, res, http.StatusUnauthorized, token.CodeMissing)
	if res, err = http.Post(h.url, "", nil); err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	checkRefusal(t, res, http.StatusMethodNotAllowed, "method_not_allowed")
}

func checkRefusal(t *testing.T, res *http.Response, status int, code string) {
	t.Helper()
	var body struct{ Error machine.Refusal }
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &body); err != nil || res.StatusCode != status || body.Error.Code != code || body.Error.Fix == "" {
		t.Errorf("%d %s (%v), want %d %s", res.StatusCode, text, err, status, code)
	}
}

func TestStreamsOfOnePrincipalAreCounted(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.MaxEach = 1 })
	_, lines := h.open("", "")
	lines.Scan()
	res, _ := h.open("", "")
	checkRefusal(t, res, http.StatusServiceUnavailable, api.CodeBusy)
}

func TestAStreamTheNodeEndsSaysWhyAndWhereToResume(t *testing.T) {
	stop := make(chan struct{})
	h := newHouse(t, func(c *Config) { c.Stop = stop })
	at := h.b.Emit("acp.submitted", "p1", nil, 1)
	want := `"resume_after":` + strconv.FormatUint(at, 10)

	_, lines := h.open("?since=0", "")
	next(t, lines)
	close(stop)
	if m := next(t, lines); m.event != "cut" || !strings.Contains(m.data, `"code":"stopping"`) || !strings.Contains(m.data, want) {
		t.Errorf("%+v", m)
	}
	for lines.Scan() {
		if lines.Text() != "" {
			t.Errorf("the stream goes on: %q", lines.Text())
		}
	}
}

func TestAReaderTheBackendGivesUpOnIsToldSo(t *testing.T) {
	h := newHouse(t, nil)
	at := h.b.Emit("acp.submitted", "p1", nil, 1)
	h.b.Slow = machine.Refuse(api.CodeSlowReader, "resume", "Too slow.")
	_, lines := h.open("?since=0", "")
	next(t, lines)
	if m := next(t, lines); m.event != "cut" || !strings.Contains(m.data, `"code":"slow_reader"`) || !strings.Contains(m.data, `"resume_after":`+strconv.FormatUint(at, 10)) {
		t.Errorf("%+v", m)
	}
}

func TestAReaderThatDoesNotReadIsCutOffAndFreesItsPlace(t *testing.T) {
	h := newHouse(t, func(c *Config) { c.Patience, c.MaxEach = 20*time.Millisecond, 1 })
	big := strings.Repeat("x", 128<<10)
	for range 16 { // more than the two buffers hold
		h.b.Emit("acp.submitted", "p", nil, big)
	}
	conn, err := net.Dial("tcp", strings.TrimPrefix(h.url, "http://"))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	if err := conn.(*net.TCPConn).SetReadBuffer(16 << 10); err != nil {
		t.Fatal(err)
	}
	fmt.Fprintf(conn, "GET /?since=0 HTTP/1.1\r\nHost: x\r\nAuthorization: %s\r\n\r\n", apitest.Bearer(t, h.key, "ada"))
	if _, err := conn.Read(make([]byte, 1)); err != nil { // the stream stands; no more of it is read
		t.Fatal(err)
	}
	deadline := time.Now().Add(10 * time.Second)
	for {
		other, lines := h.open("", "")
		if other.StatusCode == http.StatusOK {
			lines.Scan()
			other.Body.Close()
			return
		}
		other.Body.Close()
		if time.Now().After(deadline) {
			t.Fatal("the place is still taken")
		}
	}
}

// slowWriter takes its time for the second write.
type slowWriter struct {
	*httptest.ResponseRecorder
	writes int
}

func (s *slowWriter) Write(p []byte) (int, error) {
	if s.writes++; s.writes == 2 {
		<-time.After(20 * time.Millisecond)
	}
	return s.ResponseRecorder.Write(p)
}

func TestAWriteSlowerThanThePatienceIsFollowedByACut(t *testing.T) {
	b := apitest.New()
	at := b.Emit("acp.submitted", "p1", nil, 1)
	b.Emit("acp.submitted", "p2", nil, 1)
	w := &slowWriter{ResponseRecorder: httptest.NewRecorder()}
	stream, err := b.Subscribe(context.Background(), 0)
	if err != nil {
		t.Fatal(err)
	}
	f := follower{h: New(Config{Patience: 5 * time.Millisecond}), out: http.NewResponseController(w), w: w}
	f.follow(context.Background(), stream, func(api.Record) bool { return true })
	body := w.Body.String()
	if !strings.Contains(body, `"code":"slow_reader"`) || !strings.Contains(body, `"resume_after":`+strconv.FormatUint(at, 10)) || strings.Contains(body, "p2") {
		t.Errorf("%s", body)
	}
}
