package door

import (
	"context"
	"crypto/tls"
	"encoding/json"
	"errors"
	"log/slog"
	"net"
	"net/http"
	"net/netip"
	"sync"
	"syscall"
	"time"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/api/events"
	"github.com/deliberd/deliberd/api/rpc"
	"github.com/deliberd/deliberd/internal/token"
	"github.com/deliberd/deliberd/machine"
)

// Codes of the refusals of [Listen].
const (
	CodeInsecureListen = "insecure_listen"
	CodePortInUse      = "port_in_use"
	CodeBadAddress     = "bad_address"
	CodeBadTLS         = "bad_tls"
)

// Config of a door.
type Config struct {
	Addr     string // host:port; port 0 takes a free one
	CertFile string // PEM; with KeyFile turns TLS on
	KeyFile  string
	Insecure bool // allow a non-loopback address without TLS
	Log      *slog.Logger
	Grace    time.Duration // how long running calls may finish once stopping, 5 s when 0
}

// Listener is an open port that does not answer yet.
type Listener struct {
	cfg Config
	net.Listener
	tls bool
}

// Check finds what makes a configuration unusable on any machine. It refuses
// with insecure_listen, bad_address or bad_tls.
func (cfg Config) Check() error {
	_, err := cfg.certificate()
	return err
}

// certificate is the TLS certificate of a configuration that is in order; nil
// without TLS.
func (cfg Config) certificate() (*tls.Certificate, error) {
	host, port, err := net.SplitHostPort(cfg.Addr)
	if err != nil {
		return nil, machine.Refuse(CodeBadAddress, "use host:port, such as 127.0.0.1:7700", "The HTTP address %q is not host:port.", cfg.Addr)
	}
	if _, err := net.LookupPort("tcp", port); err != nil {
		return nil, machine.Refuse(CodeBadAddress, "use a port from 0 to 65535, such as 127.0.0.1:7700", "The HTTP address %q names no port.", cfg.Addr)
	}
	secure := cfg.CertFile != "" || cfg.KeyFile != ""
	if !secure && !cfg.Insecure && !loopback(host) {
		return nil, machine.Refuse(CodeInsecureListen, "give a TLS certificate and key, listen on 127.0.0.1, or allow it with --insecure-http",
			"The HTTP address %s can be reached from other machines and has no TLS.", cfg.Addr)
	}
	if !secure {
		return nil, nil
	}
	pair, err := tls.LoadX509KeyPair(cfg.CertFile, cfg.KeyFile)
	if err != nil {
		return nil, machine.Refuse(CodeBadTLS, "give both a PEM certificate and its PEM key", "The TLS certificate cannot be used: %v.", err)
	}
	return &pair, nil
}

// Listen checks the configuration and takes the port. It refuses with
// insecure_listen, port_in_use, bad_address or bad_tls.
func Listen(cfg Config) (*Listener, error) {
	if cfg.Grace == 0 {
		cfg.Grace = 5 * time.Second
	}
	pair, err := cfg.certificate()
	if err != nil {
		return nil, err
	}
	inner, err := net.Listen("tcp", cfg.Addr)
	switch {
	case errors.Is(err, syscall.EADDRINUSE), errors.Is(err, wsaeAddrInUse):
		return nil, machine.Refuse(CodePortInUse, "stop the other program, or choose another address with --http", "The HTTP address %s is in use.", cfg.Addr)
	case err != nil:
		return nil, machine.Refuse(CodeBadAddress, "choose an address of this machine with --http", "The HTTP address %s cannot be used: %v.", cfg.Addr, err)
	}
	if pair != nil {
		inner = tls.NewListener(inner, &tls.Config{Certificates: []tls.Certificate{*pair}, MinVersion: tls.VersionTLS12, NextProtos: []string{"h2", "http/1.1"}})
	}
	return &Listener{cfg: cfg, Listener: inner, tls: pair != nil}, nil
}

// wsaeAddrInUse is what Windows says when a port is taken.
const wsaeAddrInUse = syscall.Errno(10048)

// URL is where clients reach the door.
func (l *Listener) URL() string {
	if l.tls {
		return "https://" + l.Addr().String()
	}
	return "http://" + l.Addr().String()
}

// loopback reports whether a host can be reached from this machine only.
func loopback(host string) bool {
	if host == "localhost" {
		return true
	}
	ip, err := netip.ParseAddr(host)
	return err == nil && ip.IsLoopback()
}

// Routes are further handlers, by ServeMux pattern.
type Routes map[string]http.Handler

// Serve answers on the listener until ctx ends, then lets running calls
// finish for the grace period and closes the port. It returns nil after an
// orderly stop.
func Serve(ctx context.Context, l *Listener, backend api.Backend, cluster string, more Routes) error {
	stop := make(chan struct{})
	mux, err := routes(l.cfg.Log, backend, cluster, stop, more)
	if err != nil {
		_ = l.Close() // nothing was served; the error below says why
		return err
	}
	// Requests outlive ctx by the grace period: they end with base.
	base, cancel := context.WithCancel(context.WithoutCancel(ctx))
	defer cancel()
	// No ReadTimeout or WriteTimeout: they would end streams and long polls.
	// The doors set deadlines of their own.
	server := &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: 5 * time.Second,
		IdleTimeout:       2 * time.Minute,
		MaxHeaderBytes:    16 << 10,
		BaseContext:       func(net.Listener) context.Context { return base },
		ErrorLog:          slog.NewLogLogger(l.cfg.Log.Handler(), slog.LevelDebug),
	}
	var once sync.Once
	server.RegisterOnShutdown(func() { once.Do(func() { close(stop) }) })
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l.Listener) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	grace, done := context.WithTimeout(base, l.cfg.Grace)
	defer done()
	err = server.Shutdown(grace)
	if errors.Is(err, context.DeadlineExceeded) {
		cancel() // long polls end here
		err = server.Close()
	}
	<-failed
	return err
}

func routes(log *slog.Logger, backend api.Backend, cluster string, stop <-chan struct{}, more Routes) (*http.ServeMux, error) {
	tokens := token.Verifier{Cluster: cluster, Key: backend.Key, Now: time.Now}
	calls, err := rpc.New(rpc.Config{Backend: backend, Tokens: tokens, Log: log, Stop: stop})
	if err != nil {
		return nil, err
	}
	mux := http.NewServeMux()
	mux.Handle("/rpc", calls)
	mux.Handle("/events", events.New(events.Config{Backend: backend, Tokens: tokens, Log: log, Stop: stop}))
	mux.HandleFunc("GET /healthz", func(w http.ResponseWriter, _ *http.Request) { say(w, http.StatusOK, map[string]any{"ok": true}) })
	mux.HandleFunc("GET /readyz", ready(backend))
	for pattern, handler := range more {
		mux.Handle(pattern, handler)
	}
	return mux, nil
}

// ready answers 200 when the node has a leader and is caught up, else 503.
func ready(backend api.Backend) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		st, err := backend.Status(r.Context())
		code := http.StatusOK
		if err != nil || !st.Ready {
			code = http.StatusServiceUnavailable
		}
		say(w, code, map[string]any{"ready": code == http.StatusOK, "role": st.Role, "leader": st.Leader, "applied_index": st.AppliedIndex})
	}
}

func say(w http.ResponseWriter, status int, v any) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Cache-Control", "no-store")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(v) // the client is gone: nobody to tell
}
