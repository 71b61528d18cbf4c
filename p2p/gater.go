package p2p

import (
	"encoding/hex"
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"syscall"
	"time"

	libp2p "github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/control"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/protocol"
	rcmgr "github.com/libp2p/go-libp2p/p2p/host/resource-manager"
	"github.com/libp2p/go-libp2p/x/rate"
	"github.com/multiformats/go-multiaddr"

	"github.com/deliberd/deliberd/machine"
)

// gater lets admitted peers through at the connection and nobody else: the
// Noise handshake has proved the peer id when InterceptSecured is asked.
// Removed peers that call are let through as far as their streams' refusal.
type gater struct{ h *Host }

func (g gater) InterceptPeerDial(p peer.ID) bool                    { return g.h.admitted(p) }
func (g gater) InterceptAddrDial(peer.ID, multiaddr.Multiaddr) bool { return true }
func (g gater) InterceptAccept(network.ConnMultiaddrs) bool         { return true }
func (g gater) InterceptSecured(dir network.Direction, p peer.ID, _ network.ConnMultiaddrs) bool {
	ok := g.h.admitted(p) || dir == network.DirInbound && g.h.removed(p)
	if !ok {
		g.h.log.Info("peer refused at the connection", "peer", p)
	}
	return ok
}
func (g gater) InterceptUpgraded(network.Conn) (bool, control.DisconnectReason) { return true, 0 }

func (h *Host) admitted(p peer.ID) bool {
	h.mu.Lock()
	cut := h.cut[p]
	h.mu.Unlock()
	return !cut && h.cfg.Admit(p.String())
}

// removed reports whether a peer may hear that it has been removed, and no more.
func (h *Host) removed(p peer.ID) bool {
	h.mu.Lock()
	cut := h.cut[p]
	h.mu.Unlock()
	return !cut && h.cfg.Removed != nil && h.cfg.Removed(p.String()) && !h.cfg.Admit(p.String())
}

// Bounds of what peers may make this host hold. Streams are long-lived: raft
// keeps a few per voter, every queue one.
const (
	streamsPerPeer = 256
	connsPerIP     = 64
	dialsPerSecond = 20
	dialsBurst     = 200
)

// resources are libp2p's own limits, scaled to the machine, with room for our
// protocols. libp2p's connection rate (one in five seconds an address) would
// keep a node that lost its network from coming back.
func resources() (network.ResourceManager, error) {
	scaling := rcmgr.DefaultLimits
	libp2p.SetDefaultServiceLimits(&scaling)
	per := rcmgr.ResourceLimits{Streams: 2 * streamsPerPeer, StreamsInbound: streamsPerPeer, StreamsOutbound: streamsPerPeer}
	whole := rcmgr.ResourceLimits{Streams: 32 * streamsPerPeer, StreamsInbound: 16 * streamsPerPeer, StreamsOutbound: 16 * streamsPerPeer}
	partial := rcmgr.PartialLimitConfig{
		PeerDefault:  rcmgr.ResourceLimits{Streams: 8 * streamsPerPeer, StreamsInbound: 4 * streamsPerPeer, StreamsOutbound: 4 * streamsPerPeer},
		Protocol:     map[protocol.ID]rcmgr.ResourceLimits{},
		ProtocolPeer: map[protocol.ID]rcmgr.ResourceLimits{},
	}
	for _, name := range Protocols {
		partial.Protocol[wireID(name)] = whole
		partial.ProtocolPeer[wireID(name)] = per
	}
	prefix := func(s string) netip.Prefix { return netip.MustParsePrefix(s) }
	limit := rate.Limit{RPS: dialsPerSecond, Burst: dialsBurst}
	return rcmgr.NewResourceManager(
		rcmgr.NewFixedLimiter(partial.Build(scaling.AutoScale())),
		rcmgr.WithMetricsDisabled(),
		rcmgr.WithLimitPerSubnet(
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 32, ConnCount: connsPerIP}},
			[]rcmgr.ConnLimitPerSubnet{{PrefixLength: 56, ConnCount: connsPerIP}}),
		rcmgr.WithConnRateLimiters(&rate.Limiter{
			NetworkPrefixLimits: []rate.PrefixLimit{{Prefix: prefix("127.0.0.0/8")}, {Prefix: prefix("::1/128")}},
			SubnetRateLimiter: rate.SubnetLimiter{
				IPv4SubnetLimits: []rate.SubnetLimit{{PrefixLength: 32, Limit: limit}},
				IPv6SubnetLimits: []rate.SubnetLimit{{PrefixLength: 56, Limit: limit}},
				GracePeriod:      time.Minute,
			},
		}),
	)
}

func parseGenesis(s string) (g [32]byte, err error) {
	raw, err := hex.DecodeString(s)
	if err != nil || len(raw) != len(g) || strings.ToLower(s) != s {
		return g, fmt.Errorf("p2p: a genesis hash is 64 lower-case hex digits, got %q", s)
	}
	copy(g[:], raw)
	return g, nil
}

func parsePeer(id string) (peer.ID, error) {
	p, err := peer.Decode(id)
	if err != nil {
		return "", machine.Refuse(CodeBadAddress, "a peer id looks like 12D3KooW…", "not a peer id: %q", id)
	}
	return p, nil
}

func listenError(addrs []string, err error) error {
	// libp2p joins the errors of all addresses into one text.
	if errors.Is(err, syscall.EADDRINUSE) || strings.Contains(err.Error(), "address already in use") {
		return machine.Refuse(CodePortInUse, "stop the other process or listen on another port", "cannot listen on %s: the port is in use", strings.Join(addrs, ", "))
	}
	return fmt.Errorf("p2p: listen: %w", err)
}
