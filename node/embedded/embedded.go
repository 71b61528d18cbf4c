// Package embedded runs a whole cluster in one process: real libp2p, real
// Raft, real bbolt, separate data folders. It serves `deliberd dev`, tests
// and benchmarks; a cluster that must survive the loss of a machine runs one
// process a node instead.
package embedded

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"strconv"
	"sync"
	"time"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/raftpath"
)

// OperatorID is the one operator of an embedded cluster.
const OperatorID = "operator"

// MaxNodes bounds an embedded cluster.
const MaxNodes = 16

// Config starts an embedded cluster.
type Config struct {
	Nodes int    // 1 to MaxNodes; 0: 4
	Dir   string // data folder; founded if empty, continued if not
	// HTTP is the first node's doors, host:port; the others take the ports
	// above. Port 0 lets every node take a free one.
	HTTP    string
	Timing  raftpath.Timing
	BFTTick time.Duration
	Logger  *slog.Logger
	// Tune changes one node's configuration before it starts; may be nil.
	Tune func(i int, c *node.Config)
}

// Cluster is a running embedded cluster.
type Cluster struct {
	cfg      Config
	plan     plan
	operator *client.Identity

	mu    sync.Mutex
	nodes []*node.Node // nil: killed
}

// plan is what a folder remembers: where each node listens.
type plan struct {
	Nodes []planned `json:"nodes"`
}

type planned struct {
	Listen string `json:"listen"`
	HTTP   string `json:"http"`
}

const (
	planFile     = "cluster.json"
	keysFolder   = "keys" // identity files: who may act
	operatorFile = keysFolder + "/operator.json"
)

// Start founds the cluster of an empty folder, or continues the one that is
// there, and waits until every node is ready.
func Start(ctx context.Context, cfg Config) (*Cluster, error) {
	if cfg.Nodes == 0 {
		cfg.Nodes = 4
	}
	if cfg.Nodes < 1 || cfg.Nodes > MaxNodes {
		return nil, machine.Refuse(machine.CodeOutOfRange, fmt.Sprintf("choose 1 to %d nodes", MaxNodes), "a cluster of %d nodes", cfg.Nodes)
	}
	if cfg.Logger == nil {
		cfg.Logger = slog.Default()
	}
	c := &Cluster{cfg: cfg}
	if err := c.load(); err != nil {
		return nil, err
	}
	c.nodes = make([]*node.Node, len(c.plan.Nodes))
	for i := range c.nodes {
		if err := c.Revive(ctx, i); err != nil {
			return nil, errors.Join(err, c.Close())
		}
	}
	if err := c.WaitReady(ctx); err != nil {
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

// load reads the folder's plan and operator, or founds a cluster in it.
func (c *Cluster) load() error {
	raw, err := os.ReadFile(filepath.Join(c.cfg.Dir, planFile))
	if errors.Is(err, fs.ErrNotExist) {
		return c.found()
	}
	if err != nil {
		return err
	}
	if err := json.Unmarshal(raw, &c.plan); err != nil {
		return fmt.Errorf("%s: %w", planFile, err)
	}
	c.operator, err = client.ReadIdentity(filepath.Join(c.cfg.Dir, operatorFile))
	return err
}

// found makes keys, a genesis signed by the one operator, and the plan, which
// is written last: a folder without it is founded again from scratch.
func (c *Cluster) found() error {
	if err := os.MkdirAll(c.KeysDir(), 0o700); err != nil {
		return err
	}
	operator, err := client.NewIdentity(OperatorID)
	if err != nil {
		return err
	}
	g, err := c.genesis(operator)
	if err != nil {
		return err
	}
	for i := range c.plan.Nodes {
		if err := node.Found(c.nodeDir(i), g); err != nil {
			return err
		}
	}
	c.operator = client.IdentityOf(g.Hash(), OperatorID, operator.Key())
	if err := c.operator.Replace(filepath.Join(c.cfg.Dir, operatorFile)); err != nil {
		return err
	}
	text, err := json.MarshalIndent(c.plan, "", "  ")
	if err != nil {
		return err
	}
	return os.WriteFile(filepath.Join(c.cfg.Dir, planFile), append(text, '\n'), 0o600)
}

func (c *Cluster) genesis(operator *client.Identity) (membership.Genesis, error) {
	var nonce [24]byte
	if _, err := rand.Read(nonce[:]); err != nil {
		return membership.Genesis{}, err
	}
	g := membership.Genesis{
		V: membership.GenesisVersion, Name: "embedded cluster", CreatedAt: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		Nonce:     base64.RawURLEncoding.EncodeToString(nonce[:]),
		Operators: []membership.Operator{{ID: OperatorID, JWK: operator.PublicJWK()}},
		Params:    membership.DefaultParameters(),
	}
	ports, err := freePorts(c.cfg.Nodes)
	if err != nil {
		return g, err
	}
	for i := range c.cfg.Nodes {
		keys, err := node.EnsureKeys(c.nodeDir(i), rand.Reader)
		if err != nil {
			return g, err
		}
		http, err := c.httpOf(i)
		if err != nil {
			return g, err
		}
		listen := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", ports[i])
		c.plan.Nodes = append(c.plan.Nodes, planned{Listen: listen, HTTP: http})
		g.Voters = append(g.Voters, membership.Voter{Node: keys.ID(), Operator: OperatorID, Addrs: []string{listen},
			PBFTKey: keys.PBFT.Public().X(), AttestKey: keys.Attest.Public().X()})
	}
	return g, g.SignBy(operator.Key())
}

// httpOf is the doors' address of node i.
func (c *Cluster) httpOf(i int) (string, error) {
	if c.cfg.HTTP == "" {
		return "", nil
	}
	host, port, err := net.SplitHostPort(c.cfg.HTTP)
	if err != nil {
		return "", machine.Refuse(machine.CodeMalformed, "write it like 127.0.0.1:7700", "no host:port: %q", c.cfg.HTTP)
	}
	first, err := strconv.Atoi(port)
	if err != nil || first < 0 || first+i > 65535 {
		return "", machine.Refuse(machine.CodeOutOfRange, "choose a port up to 65535", "port %q", port)
	}
	if first > 0 {
		first += i
	}
	return net.JoinHostPort(host, strconv.Itoa(first)), nil
}

// Nodes listen below the ports from which systems serve outgoing connections:
// theirs stay free while they are down.
const (
	firstPort = 20000
	portRange = 12000
)

// freePorts finds ports that nobody listens on now.
func freePorts(n int) ([]int, error) {
	var ports []int
	var last error
	for tries := 0; len(ports) < n; tries++ {
		if tries == 1000 {
			return nil, fmt.Errorf("no free ports between %d and %d: %w", firstPort, firstPort+portRange-1, last)
		}
		k, err := rand.Int(rand.Reader, big.NewInt(portRange))
		if err != nil {
			return nil, err
		}
		port := firstPort + int(k.Int64())
		l, err := net.Listen("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err != nil {
			last = err
			continue
		}
		defer l.Close() // all at once at the end, so that no port is found twice
		ports = append(ports, port)
	}
	return ports, nil
}

func (c *Cluster) nodeDir(i int) string { return filepath.Join(c.cfg.Dir, fmt.Sprintf("node%d", i+1)) }

// KeysDir is the folder of identity files: the operator's, and whom the caller adds.
func (c *Cluster) KeysDir() string { return filepath.Join(c.cfg.Dir, keysFolder) }

// Operator is the cluster's one operator.
func (c *Cluster) Operator() *client.Identity { return c.operator }

// Len is the number of nodes, killed ones too.
func (c *Cluster) Len() int { return len(c.nodes) }

// Node is node i, nil while it is killed.
func (c *Cluster) Node(i int) *node.Node {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.nodes[i]
}

// URLs are the doors of the living nodes.
func (c *Cluster) URLs() []string {
	c.mu.Lock()
	defer c.mu.Unlock()
	var urls []string
	for _, n := range c.nodes {
		if n != nil && n.URL() != "" {
			urls = append(urls, n.URL())
		}
	}
	return urls
}

// Client speaks to all living nodes as one principal.
func (c *Cluster) Client(me *client.Identity) (*client.Client, error) {
	return client.New(c.URLs(), client.As(me))
}

// Kill stops node i; its folder stays.
func (c *Cluster) Kill(i int) error {
	n, err := c.at(i)
	if err != nil || n == nil {
		return err
	}
	c.mu.Lock()
	c.nodes[i] = nil
	c.mu.Unlock()
	return n.Close()
}

// Revive starts node i if it is not running.
func (c *Cluster) Revive(ctx context.Context, i int) error {
	running, err := c.at(i)
	if err != nil || running != nil {
		return err
	}
	p := c.plan.Nodes[i]
	cfg := node.Config{Dir: c.nodeDir(i), Listen: []string{p.Listen}, HTTP: p.HTTP, Timing: c.cfg.Timing, BFTTick: c.cfg.BFTTick, Logger: c.cfg.Logger}
	if c.cfg.Tune != nil {
		c.cfg.Tune(i, &cfg)
	}
	n, err := node.Start(ctx, cfg)
	if err != nil {
		return fmt.Errorf("node %d: %w", i+1, err)
	}
	c.mu.Lock()
	c.nodes[i] = n
	c.mu.Unlock()
	return nil
}

func (c *Cluster) at(i int) (*node.Node, error) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if i < 0 || i >= len(c.nodes) {
		return nil, machine.Refuse(machine.CodeNotFound, fmt.Sprintf("choose 1 to %d", len(c.nodes)), "there is no node %d", i+1)
	}
	return c.nodes[i], nil
}

// WaitReady waits until every living node has a leader and is caught up.
func (c *Cluster) WaitReady(ctx context.Context) error {
	for i := range c.nodes {
		if err := c.waitReady(ctx, i); err != nil {
			return err
		}
	}
	return nil
}

func (c *Cluster) waitReady(ctx context.Context, i int) error {
	poll := time.NewTicker(10 * time.Millisecond)
	defer poll.Stop()
	for {
		n := c.Node(i)
		if n == nil {
			return nil
		}
		if st, err := n.Status(ctx); err == nil && st.Ready {
			return nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return fmt.Errorf("node %d is not ready: %w", i+1, ctx.Err())
		}
	}
}

// Leader is the index of the node that leads, or -1.
func (c *Cluster) Leader(ctx context.Context) int {
	for i := range c.nodes {
		if n := c.Node(i); n != nil {
			if st, err := n.Status(ctx); err == nil && st.Role == string(raftpath.Leader) {
				return i
			}
		}
	}
	return -1
}

// Agree waits until all living nodes have the same decision log, and returns
// its head.
func (c *Cluster) Agree(ctx context.Context) (size uint64, root string, err error) {
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for {
		if size, root, ok := c.sameHead(ctx); ok {
			return size, root, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return 0, "", fmt.Errorf("the nodes do not agree: %w", ctx.Err())
		}
	}
}

func (c *Cluster) sameHead(ctx context.Context) (size uint64, root string, ok bool) {
	for i := range c.nodes {
		n := c.Node(i)
		if n == nil {
			continue
		}
		st, err := n.Status(ctx)
		if err != nil || root != "" && root != st.DecisionLog.Root {
			return 0, "", false
		}
		size, root = st.DecisionLog.Size, st.DecisionLog.Root
	}
	return size, root, root != ""
}

// Close stops all nodes.
func (c *Cluster) Close() error {
	var errs []error
	for i := range c.nodes {
		errs = append(errs, c.Kill(i))
	}
	return errors.Join(errs...)
}
