//go:build unix

package jepsen

import (
	"bufio"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"time"

	"github.com/libp2p/go-libp2p/core/crypto"
	"github.com/libp2p/go-libp2p/core/peer"
)

// nodeEnv makes the test binary a node process.
const nodeEnv = "DELIBERD_JEPSEN_NODE"

// Process is a running node.
type Process struct {
	Index int
	cmd   *exec.Cmd
	in    io.WriteCloser
	lines chan []byte // answers; closed when the process ends
	owed  int         // answers to questions that were given up
}

// Cluster is a set of node processes on loopback.
type Cluster struct{ Nodes []*Process }

// ErrSilent is a node that does not answer in time, as while it is stopped.
var ErrSilent = errors.New("the node does not answer")

// StartCluster starts nodes that form one cluster, with their data under dir.
// The program run is this one, with nodeEnv set: its main must call RunNode.
func StartCluster(dir string, nodes, clients int, fastPath bool) (*Cluster, error) {
	setups, err := plan(dir, nodes, clients, fastPath)
	if err != nil {
		return nil, err
	}
	c := &Cluster{}
	for _, s := range setups {
		p, err := start(s)
		if err != nil {
			c.Kill()
			return nil, err
		}
		c.Nodes = append(c.Nodes, p)
	}
	return c, nil
}

// plan gives every node a key and a port.
func plan(dir string, nodes, clients int, fastPath bool) ([]Setup, error) {
	peers := map[string]string{}
	setups := make([]Setup, nodes)
	for i := range setups {
		seed := make([]byte, ed25519.SeedSize)
		if _, err := rand.Read(seed); err != nil {
			return nil, err
		}
		key, err := crypto.UnmarshalEd25519PrivateKey(ed25519.NewKeyFromSeed(seed))
		if err != nil {
			return nil, err
		}
		id, err := peer.IDFromPrivateKey(key)
		if err != nil {
			return nil, err
		}
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return nil, err
		}
		defer l.Close() //nolint:errcheck // held until every port is chosen
		addr := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", l.Addr().(*net.TCPAddr).Port)
		peers[id.String()] = addr
		setups[i] = Setup{Index: i, Seed: seed, Listen: addr, Dir: filepath.Join(dir, fmt.Sprint(i)), Peers: peers, Clients: clients, FastPath: fastPath}
	}
	return setups, nil
}

func start(s Setup) (*Process, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	cmd := exec.Command(self)
	cmd.Env = append(os.Environ(), nodeEnv+"=1")
	cmd.Stderr = os.Stderr
	in, err := cmd.StdinPipe()
	if err != nil {
		return nil, err
	}
	out, err := cmd.StdoutPipe()
	if err != nil {
		return nil, err
	}
	if err := cmd.Start(); err != nil {
		return nil, err
	}
	p := &Process{Index: s.Index, cmd: cmd, in: in, lines: make(chan []byte)}
	go func() {
		defer close(p.lines)
		r := bufio.NewReader(out)
		for {
			line, err := r.ReadBytes('\n')
			if err != nil {
				return
			}
			p.lines <- line
		}
	}()
	return p, json.NewEncoder(in).Encode(s)
}

// Ask sends a command and decodes the answer into v. [ErrSilent] when none
// comes in time.
func (p *Process) Ask(command string, v any, limit time.Duration) error {
	deadline := time.After(limit)
	for ; p.owed > 0; p.owed-- { // late answers to earlier questions come first
		if _, err := p.line(deadline); err != nil {
			return err
		}
	}
	if _, err := fmt.Fprintln(p.in, command); err != nil {
		return err
	}
	line, err := p.line(deadline)
	if err != nil {
		if errors.Is(err, ErrSilent) {
			p.owed++
		}
		return err
	}
	return json.Unmarshal(line, v)
}

func (p *Process) line(deadline <-chan time.Time) ([]byte, error) {
	select {
	case line, ok := <-p.lines:
		if !ok {
			return nil, fmt.Errorf("node %d has ended", p.Index)
		}
		return line, nil
	case <-deadline:
		return nil, fmt.Errorf("node %d: %w", p.Index, ErrSilent)
	}
}

// Pause stops the process as a machine that stalls does.
func (p *Process) Pause() error { return p.cmd.Process.Signal(syscall.SIGSTOP) }

// Resume lets it go on.
func (p *Process) Resume() error { return p.cmd.Process.Signal(syscall.SIGCONT) }

// Leader is a node that says it leads; nil when none does.
func (c *Cluster) Leader() *Process {
	for _, p := range c.Nodes {
		var s State
		if p.Ask("state", &s, time.Second) == nil && s.Leads {
			return p
		}
	}
	return nil
}

// Kill ends all processes.
func (c *Cluster) Kill() {
	for _, p := range c.Nodes {
		_ = p.cmd.Process.Kill()
		for range p.lines { // until its output ends
		}
		_ = p.cmd.Wait()
	}
}
