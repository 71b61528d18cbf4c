package p2p

import (
	"context"
	"crypto/ed25519"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	libp2p "github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/connmgr"
	"github.com/libp2p/go-libp2p/p2p/net/swarm"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"github.com/multiformats/go-multiaddr"

	"github.com/deliberd/deliberd/machine"
)

// Codes of this package's errors.
const (
	CodeWrongGenesis    = "wrong_genesis"    // the peer belongs to another cluster
	CodeWrongGeneration = "wrong_generation" // the peer is before or after a reset this node is not
	CodeNotAdmitted     = "not_admitted"     // the peer may not talk to this node
	CodeUnreachable     = "unreachable"      // no connection or stream to the peer
	CodeQueueFull       = "queue_full"       // frames to the peer pile up
	CodeFrameTooLarge   = "frame_too_large"
	CodeBadAddress      = "bad_address" // not a multiaddr, or not a peer id
	CodePortInUse       = "port_in_use" // another process listens there
	CodeInternal        = "internal"    // the peer's handler failed; its log says why
	CodeRemoved         = "removed"     // the peer says that this node has been removed from the cluster
)

// Admission says whether a peer id may connect. It is asked for every
// connection, in both directions, and must be fast and safe for concurrent use.
type Admission func(id string) bool

// Config is what a host needs.
type Config struct {
	Key        ed25519.PrivateKey // identity
	Listen     []string           // multiaddrs; "/ip4/127.0.0.1/tcp/0" picks a port; none: dial only
	Genesis    string             // genesis hash, 64 hex digits
	Generation func() uint64      // this node's raft generation now; nil: always 0
	Admit      Admission
	// Removed is true for peers that Admit refuses because they have been
	// removed. They may connect, and are told so with [CodeRemoved] on every
	// stream they open; nil: such peers are strangers.
	Removed Admission
	Logger  *slog.Logger // nil: slog.Default

	// DialTimeout bounds one attempt to connect; 0: 3 s.
	DialTimeout time.Duration
	// CallTimeout bounds a Call whose context has no earlier deadline; 0: 10 s.
	CallTimeout time.Duration
}

// Host is one node's end of the network. Its methods are safe for concurrent use.
type Host struct {
	cfg     Config
	genesis [32]byte
	log     *slog.Logger
	h       host.Host
	ctx     context.Context
	stop    context.CancelFunc
	wg      sync.WaitGroup // handlers and queues

	mu     sync.Mutex
	closed bool
	cut    map[peer.ID]bool
	idle   map[route][]*Stream // pooled streams for Call
	queues map[route]*queue
	heard  map[peer.ID]time.Time // last frame of each peer
	told   func(id string)       // see HandleRemoved; nil: nobody listens
}

// route is one protocol towards one peer.
type route struct {
	peer  peer.ID
	proto string
}

// New makes a host and begins to listen. A taken port is refused with [CodePortInUse].
func New(cfg Config) (*Host, error) {
	genesis, err := parseGenesis(cfg.Genesis)
	if err != nil {
		return nil, err
	}
	if cfg.Admit == nil {
		return nil, errors.New("p2p: no admission rule")
	}
	if cfg.Generation == nil {
		cfg.Generation = func() uint64 { return 0 }
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	cfg.DialTimeout = orElse(cfg.DialTimeout, 3*time.Second)
	cfg.CallTimeout = orElse(cfg.CallTimeout, 10*time.Second)
	h := &Host{cfg: cfg, genesis: genesis, log: cfg.Logger.With("part", "p2p"),
		cut: map[peer.ID]bool{}, idle: map[route][]*Stream{}, queues: map[route]*queue{}, heard: map[peer.ID]time.Time{}}
	h.ctx, h.stop = context.WithCancel(context.Background())
	if h.h, err = h.listen(); err != nil {
		h.stop()
		return nil, err
	}
	h.h.Network().Notify(&network.NotifyBundle{DisconnectedF: func(_ network.Network, c network.Conn) { h.dropIdle(c.RemotePeer()) }})
	return h, nil
}

func orElse(d, standard time.Duration) time.Duration {
	if d == 0 {
		return standard
	}
	return d
}

func (h *Host) listen() (host.Host, error) {
	key, err := crypto.UnmarshalEd25519PrivateKey(h.cfg.Key)
	if err != nil {
		return nil, fmt.Errorf("p2p identity: %w", err)
	}
	var addrs []multiaddr.Multiaddr
	for _, s := range h.cfg.Listen {
		a, err := listenAddr(s)
		if err != nil {
			return nil, err
		}
		addrs = append(addrs, a)
	}
	limits, err := resources()
	if err != nil {
		return nil, err
	}
	conns, err := connmgr.NewConnManager(256, 512)
	if err != nil {
		return nil, errors.Join(err, limits.Close())
	}
	made, err := libp2p.New(
		libp2p.Identity(key),
		// Without reuse of ports a second process on one is refused.
		libp2p.Transport(tcp.NewTCPTransport, tcp.DisableReuseport(), tcp.WithConnectionTimeout(h.cfg.DialTimeout)),
		libp2p.Security(noise.ID, noise.New),
		libp2p.Muxer(yamux.ID, yamux.DefaultTransport),
		libp2p.ConnectionGater(gater{h}),
		libp2p.ConnectionManager(conns),
		libp2p.ResourceManager(limits),
		libp2p.SwarmOpts(swarm.WithDialTimeout(h.cfg.DialTimeout), swarm.WithDialTimeoutLocal(h.cfg.DialTimeout)),
		libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.Ping(false), libp2p.DisableIdentifyAddressDiscovery(),
		libp2p.UserAgent("deliberd"),
		libp2p.NoListenAddrs,
	)
	if err != nil {
		return nil, errors.Join(err, conns.Close(), limits.Close())
	}
	if len(addrs) > 0 { // not by an option: libp2p.New leaves goroutines behind when it cannot listen
		if err := made.Network().Listen(addrs...); err != nil {
			return nil, errors.Join(listenError(h.cfg.Listen, err), made.Close())
		}
	}
	return made, nil
}

// ID is this host's peer id.
func (h *Host) ID() string { return h.h.ID().String() }

// Addrs are the multiaddrs this host listens on, without its peer id.
func (h *Host) Addrs() []string {
	var out []string
	for _, a := range h.h.Addrs() {
		out = append(out, a.String())
	}
	return out
}

// SetAddrs replaces what the address book says about a peer. Addresses are
// multiaddrs; a /p2p suffix naming the peer is accepted.
func (h *Host) SetAddrs(id string, addrs []string) error {
	p, err := parsePeer(id)
	if err != nil {
		return err
	}
	var out []multiaddr.Multiaddr
	for _, s := range addrs {
		a, err := multiaddr.NewMultiaddr(s)
		if err != nil {
			return machine.Refuse(CodeBadAddress, "write it like /ip4/10.0.0.1/tcp/7701", "not a multiaddr: %q", s)
		}
		bare, named := peer.SplitAddr(a)
		if named != "" && named != p {
			return machine.Refuse(CodeBadAddress, "", "the address %q names another peer than %s", s, id)
		}
		if bare != nil {
			out = append(out, bare)
		}
	}
	book := h.h.Peerstore()
	book.ClearAddrs(p)
	book.AddAddrs(p, out, peerstore.PermanentAddrTTL)
	h.forgive(p)
	return nil
}

// Protect keeps connections to a peer when the host has too many.
func (h *Host) Protect(id string) {
	if p, err := parsePeer(id); err == nil {
		h.h.ConnManager().Protect(p, "member")
	}
}

// farewell is how long a removed peer may stay connected: long enough to be
// told.
const farewell = 5 * time.Second

// Refresh asks Admission again about everybody connected and disconnects
// those it no longer admits; removed peers that have just called stay for a
// moment. Call it when membership has changed, and now and then.
func (h *Host) Refresh() {
	for _, p := range h.h.Network().Peers() {
		if h.admitted(p) {
			continue
		}
		h.h.ConnManager().Unprotect(p, "member")
		if !h.removed(p) || h.connectedFor(p) > farewell {
			h.disconnect(p)
		}
	}
}

// connectedFor is the age of the oldest connection to a peer.
func (h *Host) connectedFor(p peer.ID) (age time.Duration) {
	for _, c := range h.h.Network().ConnsToPeer(p) {
		age = max(age, time.Since(c.Stat().Opened))
	}
	return age
}

// HandleRemoved has f hear, each time, of a peer that refuses this node with
// [CodeRemoved]. That is one peer's word.
func (h *Host) HandleRemoved(f func(peer string)) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.told = f
}

func (h *Host) tellRemoved(id string) {
	h.mu.Lock()
	f := h.told
	h.mu.Unlock()
	if f != nil {
		f(id)
	}
}

// Connected lists the peers this host has a connection to.
func (h *Host) Connected() []string {
	var out []string
	for _, p := range h.h.Network().Peers() {
		out = append(out, p.String())
	}
	return out
}

// Cut makes this host and a peer unable to talk, as a broken network would;
// for tests.
func (h *Host) Cut(id string) { h.setCut(id, true) }

// Heal ends Cut.
func (h *Host) Heal(id string) { h.setCut(id, false) }

func (h *Host) setCut(id string, cut bool) {
	p, err := parsePeer(id)
	if err != nil {
		return
	}
	h.mu.Lock()
	if cut {
		h.cut[p] = true
	} else {
		delete(h.cut, p)
	}
	h.mu.Unlock()
	if cut {
		h.disconnect(p)
	}
	h.forgive(p)
}

func (h *Host) disconnect(p peer.ID) {
	if err := h.h.Network().ClosePeer(p); err != nil {
		h.log.Debug("close connection", "peer", p, "err", err)
	}
	h.dropIdle(p)
}

// forgive forgets failed dials: libp2p's own backoff grows to five minutes.
func (h *Host) forgive(p peer.ID) {
	if s, ok := h.h.Network().(*swarm.Swarm); ok {
		s.Backoff().Clear(p)
	}
}

// Close ends all streams and connections and waits for handlers to return.
func (h *Host) Close() error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil
	}
	h.closed = true
	h.mu.Unlock()
	h.stop()
	err := h.h.Close()
	h.wg.Wait()
	return err
}
