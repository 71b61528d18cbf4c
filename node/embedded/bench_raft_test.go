package embedded_test

import (
	"context"
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"testing"
	"time"

	"github.com/hashicorp/go-hclog"
	"github.com/hashicorp/raft"
	raftboltdb "github.com/hashicorp/raft-boltdb/v2"
	libp2p "github.com/libp2p/go-libp2p"
	"github.com/libp2p/go-libp2p/core/host"
	"github.com/libp2p/go-libp2p/core/network"
	"github.com/libp2p/go-libp2p/core/peer"
	"github.com/libp2p/go-libp2p/core/peerstore"
	"github.com/libp2p/go-libp2p/p2p/muxer/yamux"
	"github.com/libp2p/go-libp2p/p2p/net/gostream"
	"github.com/libp2p/go-libp2p/p2p/security/noise"
	"github.com/libp2p/go-libp2p/p2p/transport/tcp"
	"go.etcd.io/bbolt"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/raftpath"
	"github.com/deliberd/deliberd/store"
)

// bareRaft is the floor: what the libraries do as they come, on the same
// stores. Four nodes run hashicorp/raft with its own transport over libp2p
// (TCP, noise, yamux), raft-boltdb with NoFreelistSync behind a log cache, and
// a state machine that puts each entry under its index into a bbolt file: one
// transaction a batch, on disk before it answers. It checks no signature,
// decodes nothing and keeps no history.
type bareRaft struct {
	b      *testing.B
	hosts  []host.Host
	nodes  []*raft.Raft
	leader *raft.Raft
	close  []func() error
}

const bareProtocol = "/bare/raft/1"

func newBareRaft(b *testing.B, n int) *bareRaft {
	f := &bareRaft{b: b}
	dir := b.TempDir()
	f.hosts = newHosts(b, n)
	var config raft.Configuration
	for _, h := range f.hosts {
		config.Servers = append(config.Servers, raft.Server{ID: raft.ServerID(h.ID().String()), Address: raft.ServerAddress(h.ID().String())})
	}
	for i, h := range f.hosts {
		if err := f.start(filepath.Join(dir, fmt.Sprint(i)), h, config); err != nil {
			b.Fatal(err)
		}
	}
	return f
}

func (f *bareRaft) start(dir string, h host.Host, config raft.Configuration) error {
	state, err := store.Open(dir)
	if err != nil {
		return err
	}
	logs, err := raftboltdb.New(raftboltdb.Options{Path: filepath.Join(dir, "raft.db"), BoltOptions: &bbolt.Options{NoFreelistSync: true, FreelistType: bbolt.FreelistMapType}, MsgpackUseNewTimeFormat: true})
	if err != nil {
		return err
	}
	cached, err := raft.NewLogCache(1024, logs)
	if err != nil {
		return err
	}
	listener, err := gostream.Listen(h, bareProtocol)
	if err != nil {
		return err
	}
	silent := hclog.NewNullLogger()
	transport := raft.NewNetworkTransportWithConfig(&raft.NetworkTransportConfig{Stream: streamLayer{listener, h}, MaxPool: 3, Timeout: 10 * time.Second, Logger: silent})
	c, t := raft.DefaultConfig(), raftpath.DefaultTiming
	c.LocalID, c.Logger, c.NoLegacyTelemetry = raft.ServerID(h.ID().String()), silent, true
	c.HeartbeatTimeout, c.ElectionTimeout, c.LeaderLeaseTimeout = t.Heartbeat, t.Election, t.Lease
	c.SnapshotThreshold = 1 << 40
	snapshots := raft.NewDiscardSnapshotStore()
	if err := raft.BootstrapCluster(c, cached, logs, snapshots, transport, config); err != nil {
		return err
	}
	r, err := raft.NewRaft(c, bareState{state}, cached, logs, snapshots, transport)
	if err != nil {
		return err
	}
	f.nodes = append(f.nodes, r)
	f.close = append(f.close, func() error { return r.Shutdown().Error() }, transport.Close, logs.Close, state.Close)
	return nil
}

// elect waits for a leader.
func (f *bareRaft) elect() {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for f.leader == nil {
		<-poll.C
		for _, r := range f.nodes {
			if r.State() == raft.Leader && r.Barrier(5*time.Second).Error() == nil {
				f.leader = r
			}
		}
	}
}

// apply orders one entry and waits until the leader has applied it.
func (f *bareRaft) apply(entry []byte) {
	if err := f.leader.Apply(entry, 10*time.Second).Error(); err != nil {
		f.b.Error("bare Apply: ", err)
	}
}

func (f *bareRaft) stop() {
	for _, c := range f.close {
		if err := c(); err != nil {
			f.b.Error(err)
		}
	}
	for _, h := range f.hosts {
		if err := h.Close(); err != nil {
			f.b.Error(err)
		}
	}
}

// bareState is the floor's state machine.
type bareState struct{ store *store.Store }

func (s bareState) ApplyBatch(logs []*raft.Log) []any {
	err := s.store.Update(func(tx machine.Tx) error {
		for _, l := range logs {
			if err := tx.Put(binary.BigEndian.AppendUint64(nil, l.Index), l.Data); err != nil {
				return err
			}
		}
		return nil
	})
	out := make([]any, len(logs))
	for i := range out {
		out[i] = err
	}
	return out
}

func (s bareState) Apply(l *raft.Log) any               { return s.ApplyBatch([]*raft.Log{l})[0] }
func (s bareState) Snapshot() (raft.FSMSnapshot, error) { return noSnapshot{}, nil }
func (s bareState) Restore(r io.ReadCloser) error       { return r.Close() }

type noSnapshot struct{}

func (noSnapshot) Persist(s raft.SnapshotSink) error { return s.Close() }
func (noSnapshot) Release()                          {}

// streamLayer lets raft's transport dial libp2p streams.
type streamLayer struct {
	net.Listener
	h host.Host
}

func (l streamLayer) Dial(to raft.ServerAddress, timeout time.Duration) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	id, err := peer.Decode(string(to))
	if err != nil {
		return nil, err
	}
	return gostream.Dial(ctx, l.h, id, bareProtocol)
}

func (l streamLayer) Addr() net.Addr { return address(l.h.ID().String()) }

type address string

func (a address) Network() string { return "libp2p" }
func (a address) String() string  { return string(a) }

// newHosts makes hosts that know each other, with the transports that package p2p uses.
func newHosts(b *testing.B, n int) []host.Host {
	var hosts []host.Host
	for range n {
		h, err := libp2p.New(
			libp2p.RandomIdentity, libp2p.ListenAddrStrings("/ip4/127.0.0.1/tcp/0"),
			libp2p.Transport(tcp.NewTCPTransport), libp2p.Security(noise.ID, noise.New), libp2p.Muxer(yamux.ID, yamux.DefaultTransport),
			libp2p.DisableRelay(), libp2p.DisableMetrics(), libp2p.Ping(false), libp2p.ResourceManager(&network.NullResourceManager{}))
		if err != nil {
			b.Fatal(err)
		}
		hosts = append(hosts, h)
	}
	for _, h := range hosts {
		for _, other := range hosts {
			if other != h {
				h.Peerstore().AddAddrs(other.ID(), other.Addrs(), peerstore.PermanentAddrTTL)
			}
		}
	}
	return hosts
}

// sameSize is random bytes as long as the entry that carries an action.
func sameSize(action []byte) []byte {
	entry := make([]byte, len(action)+entryHeader)
	_, _ = rand.Read(entry) // never errs
	return entry
}

// entryHeader is about what an entry adds to its one action.
const entryHeader = 48
