package node

import (
	"log/slog"
	"path/filepath"
	"time"

	"github.com/deliberd/deliberd/raftpath"
)

// Config starts a node.
type Config struct {
	// Dir is the data folder: keys, genesis, state, logs.
	Dir string
	// Listen are libp2p multiaddrs; default /ip4/127.0.0.1/tcp/0.
	Listen []string
	// Announce are the addresses told to the other nodes; default: those
	// listened on.
	Announce []string
	// HTTP is the doors' address, host:port; empty: no doors.
	HTTP string
	// TLSCert and TLSKey are PEM files; a non-loopback HTTP address needs
	// them unless InsecureHTTP.
	TLSCert, TLSKey string
	InsecureHTTP    bool
	// Timing of Raft; zero fields take raftpath's defaults.
	Timing raftpath.Timing
	// BFTTick is PBFT's unit of time; default 100 ms.
	BFTTick time.Duration
	// OnProgress hears how far a catch-up is; may be nil.
	OnProgress func(raftpath.Progress)
	// Logger; nil: slog.Default.
	Logger *slog.Logger
}

func (c Config) withDefaults() Config {
	if len(c.Listen) == 0 {
		c.Listen = []string{"/ip4/127.0.0.1/tcp/0"}
	}
	if c.BFTTick == 0 {
		c.BFTTick = 100 * time.Millisecond
	}
	if c.Logger == nil {
		c.Logger = slog.Default()
	}
	return c
}

func (c Config) path(name string) string { return filepath.Join(c.Dir, name) }

// Files of a data folder besides the keys.
const (
	genesisFile = "genesis.json"
	peersFile   = "peers.json"  // whom a joined node may call before it has the state
	bftFile     = "signed.pbft" // the journal of PBFT votes, apart from the data
)
