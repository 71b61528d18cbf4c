package door

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"log/slog"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/api/apitest"
	"github.com/deliberd/deliberd/machine"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

var quiet = slog.New(slog.DiscardHandler)

// serve runs a door until the test ends and returns it.
func serve(t *testing.T, cfg Config, b *apitest.Backend) (*Listener, context.CancelFunc, <-chan error) {
	t.Helper()
	cfg.Log = quiet
	l, err := Listen(cfg)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	done := make(chan error, 1)
	go func() {
		done <- Serve(ctx, l, b, apitest.Cluster, Routes{"GET /extra": http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusTeapot) })})
		close(done)
	}()
	t.Cleanup(func() { cancel(); <-done; http.DefaultClient.CloseIdleConnections() })
	return l, cancel, done
}

func get(t *testing.T, client *http.Client, url string) (int, string) {
	t.Helper()
	res, err := client.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	text, err := io.ReadAll(res.Body)
	if err != nil {
		t.Fatal(err)
	}
	return res.StatusCode, string(text)
}

func TestADoorAnswersHealthReadinessAndWhatIsMounted(t *testing.T) {
	b := apitest.New()
	l, _, _ := serve(t, Config{Addr: "127.0.0.1:0"}, b)
	if code, text := get(t, http.DefaultClient, l.URL()+"/healthz"); code != 200 || !strings.Contains(text, `"ok":true`) {
		t.Errorf("healthz: %d %s", code, text)
	}
	if code, text := get(t, http.DefaultClient, l.URL()+"/readyz"); code != 200 || !strings.Contains(text, `"ready":true`) {
		t.Errorf("readyz: %d %s", code, text)
	}
	b.Lock()
	b.State.Ready = false
	b.Unlock()
	if code, text := get(t, http.DefaultClient, l.URL()+"/readyz"); code != 503 || !strings.Contains(text, `"ready":false`) {
		t.Errorf("readyz of a node without leader: %d %s", code, text)
	}
	for path, want := range map[string]int{"/extra": http.StatusTeapot, "/rpc": http.StatusMethodNotAllowed, "/events": http.StatusUnauthorized, "/none": http.StatusNotFound} {
		if code, _ := get(t, http.DefaultClient, l.URL()+path); code != want {
			t.Errorf("%s: %d, want %d", path, code, want)
		}
	}
}

func TestAnAddressOthersCanReachNeedsTLSOrAWord(t *testing.T) {
	for addr, code := range map[string]string{
		"0.0.0.0:0":       CodeInsecureListen,
		":0":              CodeInsecureListen,
		"[::]:0":          CodeInsecureListen,
		"192.0.2.1:0":     CodeInsecureListen,
		"example.test:0":  CodeInsecureListen,
		"127.0.0.1":       CodeBadAddress,
		"nonsense":        CodeBadAddress,
		"127.0.0.1:http/": CodeBadAddress,
	} {
		l, err := Listen(Config{Addr: addr})
		if r, ok := machine.IsRefusal(err); !ok || r.Code != code || r.Fix == "" {
			t.Errorf("%s: %v, want %s", addr, err, code)
		}
		if err == nil {
			l.Close()
		}
	}
	for _, cfg := range []Config{{Addr: "127.0.0.1:0"}, {Addr: "localhost:0"}, {Addr: "0.0.0.0:0", Insecure: true}} {
		l, err := Listen(cfg)
		if err != nil {
			t.Errorf("%s: %v", cfg.Addr, err)
			continue
		}
		l.Close()
	}
}

func TestAPortInUseIsNamed(t *testing.T) {
	taken, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	_, err = Listen(Config{Addr: taken.Addr().String()})
	if r, ok := machine.IsRefusal(err); !ok || r.Code != CodePortInUse || !strings.Contains(r.Message, taken.Addr().String()) {
		t.Errorf("%v", err)
	}
}

func TestTLSServesAndABadPairIsRefused(t *testing.T) {
	cert, key, pool := selfSigned(t)
	l, _, _ := serve(t, Config{Addr: "127.0.0.1:0", CertFile: cert, KeyFile: key}, apitest.New())
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool}}}
	defer client.CloseIdleConnections()
	if code, _ := get(t, client, l.URL()+"/healthz"); code != 200 || !strings.HasPrefix(l.URL(), "https://") {
		t.Errorf("%d at %s", code, l.URL())
	}
	_, err := Listen(Config{Addr: "127.0.0.1:0", CertFile: cert})
	if r, ok := machine.IsRefusal(err); !ok || r.Code != CodeBadTLS {
		t.Errorf("a certificate without key: %v", err)
	}
}

func selfSigned(t *testing.T) (cert, key string, pool *x509.CertPool) {
	t.Helper()
	secret, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	form := &x509.Certificate{SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, IsCA: true, BasicConstraintsValid: true}
	der, err := x509.CreateCertificate(rand.Reader, form, form, secret.Public(), secret)
	if err != nil {
		t.Fatal(err)
	}
	raw, err := x509.MarshalPKCS8PrivateKey(secret)
	if err != nil {
		t.Fatal(err)
	}
	write := func(name, typ string, b []byte) string {
		path := filepath.Join(t.TempDir(), name)
		if err := os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: typ, Bytes: b}), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	parsed, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	pool = x509.NewCertPool()
	pool.AddCert(parsed)
	return write("cert.pem", "CERTIFICATE", der), write("key.pem", "PRIVATE KEY", raw), pool
}

func TestAStoppingDoorEndsStreamsAndPollsAndFreesThePort(t *testing.T) {
	b := apitest.New()
	key := b.AddKey(t, "ada")
	looks := make(chan struct{}, 10)
	b.OnAsks = func(string, bool) ([]machine.Ask, error) { looks <- struct{}{}; return nil, nil }
	l, cancel, done := serve(t, Config{Addr: "127.0.0.1:0", Grace: 30 * time.Second}, b)

	ask := func(method, path, body string) *http.Request {
		req, err := http.NewRequest(method, l.URL()+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", apitest.Bearer(t, key, "ada"))
		req.Header.Set("Content-Type", "application/json")
		return req
	}
	stream, err := http.DefaultClient.Do(ask(http.MethodGet, "/events", ""))
	if err != nil {
		t.Fatal(err)
	}
	defer stream.Body.Close()
	poll := make(chan string, 1)
	go func() {
		res, err := http.DefaultClient.Do(ask(http.MethodPost, "/rpc", `{"jsonrpc":"2.0","id":1,"method":"agent.inbox","params":{"wait_ms":60000}}`))
		if err != nil {
			poll <- err.Error()
			return
		}
		defer res.Body.Close()
		text, _ := io.ReadAll(res.Body)
		poll <- string(text)
	}()
	<-looks
	cancel()
	if text := <-poll; !strings.Contains(text, `"stopping"`) {
		t.Errorf("the poll: %s", text)
	}
	if text, err := io.ReadAll(stream.Body); err != nil || !strings.Contains(string(text), `"stopping"`) {
		t.Errorf("the stream: %s %v", text, err)
	}
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
	again, err := Listen(Config{Addr: l.Addr().String()})
	if err != nil {
		t.Fatalf("the port is not free: %v", err)
	}
	again.Close()
}

func TestACallThatOutlivesTheGracePeriodIsEnded(t *testing.T) {
	b := apitest.New()
	key := b.AddKey(t, "ada")
	entered := make(chan struct{})
	b.OnAsks = func(string, bool) ([]machine.Ask, error) { return nil, nil }
	l, cancel, done := serve(t, Config{Addr: "127.0.0.1:0", Grace: 10 * time.Millisecond}, b)
	release := make(chan struct{})
	b.OnQuery = nil
	b.OnAsks = func(string, bool) ([]machine.Ask, error) { close(entered); <-release; return nil, nil }
	go func() {
		req, _ := http.NewRequest(http.MethodPost, l.URL()+"/rpc", strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"agent.inbox"}`))
		req.Header.Set("Authorization", apitest.Bearer(t, key, "ada"))
		req.Header.Set("Content-Type", "application/json")
		if res, err := http.DefaultClient.Do(req); err == nil {
			res.Body.Close()
		}
	}()
	<-entered
	cancel()
	if err := <-done; err != nil {
		t.Errorf("%v", err)
	}
	close(release)
}
