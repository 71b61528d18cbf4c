package jepsen

import (
	"bufio"
	"context"
	"crypto/ed25519"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath"
	"github.com/deliberd/deliberd/store"
)

// Setup is what a node process reads from its standard input first.
type Setup struct {
	Index    int
	Seed     []byte // Ed25519 seed of the identity
	Listen   string
	Dir      string
	Peers    map[string]string // peer id to address, itself included
	Clients  int               // who write through this node
	FastPath bool
}

// Applied is one entry a node has applied.
type Applied struct {
	Index, Term uint64
	Hash        string // of the entry's bytes
}

// State is a node's answer to "state".
type State struct {
	Leads bool
	Index uint64
	Acked int
	Fatal string `json:",omitempty"`
}

// Genesis is the hash of every test cluster.
var Genesis = strings.Repeat("0d", 32)

// pauseTiming makes leaders change hands fast.
var pauseTiming = raftpath.Timing{
	Heartbeat: 100 * time.Millisecond, Election: 100 * time.Millisecond, Lease: 50 * time.Millisecond, CommitTimeout: 5 * time.Millisecond,
	RPC: time.Second, DiskStall: 10 * time.Second, CatchUp: 5 * time.Second,
	SnapshotInterval: time.Hour, SnapshotThreshold: 1 << 40, TrailingLogs: 1 << 20,
}

// RunNode is a node process: it reads its Setup and then commands, one a line,
// and answers each with a line of JSON. It ends with its input.
//
//	state       State
//	dump FROM   []Applied from raft index FROM on
//	acked       map of every acknowledged write to its answer
//	get         map of every write in the state to its answer
//	quiet       stops the clients; null
func RunNode(in io.Reader, out io.Writer) error {
	r := bufio.NewReader(in)
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	var setup Setup
	if err := json.Unmarshal(line, &setup); err != nil {
		return err
	}
	n, err := startNode(setup)
	if err != nil {
		return err
	}
	defer n.close()
	for {
		line, err := r.ReadString('\n')
		if errors.Is(err, io.EOF) {
			return nil
		}
		if err != nil {
			return err
		}
		answer, err := n.command(strings.Fields(line))
		if err != nil {
			return err
		}
		text, err := json.Marshal(answer)
		if err != nil {
			return err
		}
		if _, err := out.Write(append(text, '\n')); err != nil {
			return err
		}
	}
}

type nodeProcess struct {
	host  *p2p.Host
	store *store.Store
	path  *raftpath.Path
	stop  context.CancelFunc
	wg    sync.WaitGroup

	mu    sync.Mutex
	log   []Applied
	acked map[string]string
}

func startNode(s Setup) (*nodeProcess, error) {
	n := &nodeProcess{acked: map[string]string{}}
	logger := slog.New(slog.NewTextHandler(os.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	var err error
	n.host, err = p2p.New(p2p.Config{Key: ed25519.NewKeyFromSeed(s.Seed), Listen: []string{s.Listen}, Genesis: Genesis, Logger: logger,
		DialTimeout: 500 * time.Millisecond, CallTimeout: time.Second, Admit: func(id string) bool { return s.Peers[id] != "" }})
	if err != nil {
		return nil, err
	}
	var ids []string
	for id, addr := range s.Peers {
		ids = append(ids, id)
		if id != n.host.ID() {
			err = errors.Join(err, n.host.SetAddrs(id, []string{addr}))
		}
	}
	if n.store, err = store.Open(s.Dir); err != nil {
		return nil, err
	}
	n.path, err = raftpath.New(raftpath.Config{Host: n.host, Store: n.store, Applier: register{}, Encode: encode, Timing: pauseTiming,
		OnApplied: n.applied, Logger: logger, UnsafeFastPath: s.FastPath})
	if err != nil {
		return nil, err
	}
	if err := errors.Join(n.path.Bootstrap(ids), n.path.Start()); err != nil {
		return nil, err
	}
	ctx, stop := context.WithCancel(context.Background())
	n.stop = stop
	for c := range s.Clients {
		n.wg.Go(func() { n.client(ctx, fmt.Sprintf("n%d c%d", s.Index, c)) })
	}
	return n, nil
}

// client writes without end.
func (n *nodeProcess) client(ctx context.Context, name string) {
	for i := 0; ctx.Err() == nil; i++ {
		action := fmt.Sprintf("%s %d", name, i)
		limit, cancel := context.WithTimeout(ctx, time.Second)
		answer, _, err := n.path.Submit(limit, []byte(action))
		cancel()
		if err == nil {
			n.mu.Lock()
			n.acked[action] = string(answer)
			n.mu.Unlock()
		}
	}
}

func (n *nodeProcess) applied(outcomes []raftpath.Outcome) {
	n.mu.Lock()
	defer n.mu.Unlock()
	for _, o := range outcomes {
		n.log = append(n.log, Applied{o.Index, o.Term, o.Events.(string)})
	}
}

func (n *nodeProcess) command(words []string) (any, error) {
	switch {
	case len(words) == 1 && words[0] == "state":
		s := n.path.Status()
		n.mu.Lock()
		defer n.mu.Unlock()
		state := State{Leads: s.Role == raftpath.Leader, Index: s.Index, Acked: len(n.acked)}
		if s.Fatal != nil {
			state.Fatal = s.Fatal.Error()
		}
		return state, nil
	case len(words) == 2 && words[0] == "dump":
		from, err := strconv.ParseUint(words[1], 10, 64)
		if err != nil {
			return nil, err
		}
		n.mu.Lock()
		defer n.mu.Unlock()
		at := len(n.log)
		for at > 0 && n.log[at-1].Index >= from {
			at--
		}
		return n.log[at:], nil
	case len(words) == 1 && words[0] == "quiet":
		n.stop()
		n.wg.Wait()
		return nil, nil
	case len(words) == 1 && words[0] == "acked":
		n.mu.Lock()
		defer n.mu.Unlock()
		return n.acked, nil
	case len(words) == 1 && words[0] == "get":
		return n.get()
	}
	return nil, fmt.Errorf("unknown command %q", words)
}

func (n *nodeProcess) get() (map[string]string, error) {
	all := map[string]string{}
	err := n.store.View(func(tx machine.Tx) error {
		return tx.Range([]byte("a/"), []byte("a0"), func(k, v []byte) (bool, error) {
			all[string(k[2:])] = string(v)
			return true, nil
		})
	})
	return all, err
}

func (n *nodeProcess) close() {
	n.stop()
	n.wg.Wait()
	_ = errors.Join(n.path.Close(), n.host.Close(), n.store.Close())
}

// register is the state machine: the first writer of an action's text fixes
// its answer.
type register struct{}

func encode(generation, epoch uint64, stamp machine.Stamp, actions [][]byte) []byte {
	b := binary.AppendUvarint(nil, uint64(stamp))
	for _, a := range actions {
		b = append(binary.AppendUvarint(b, uint64(len(a))), a...)
	}
	return b
}

func (register) Prepare(_ machine.Tx, entry []byte) any { return entry }

func (r register) Apply(tx machine.Tx, prepared any) (raftpath.Outcome, error) {
	entry := prepared.([]byte)
	sum := sha256.Sum256(entry)
	seq, last, err := r.Head(tx)
	if err != nil {
		return raftpath.Outcome{}, err
	}
	out := raftpath.Outcome{Seq: seq + 1, Stamp: last, Events: hex.EncodeToString(sum[:8])}
	stamp, k := binary.Uvarint(entry)
	if k <= 0 {
		return out, errors.New("undecodable entry")
	}
	out.Stamp = max(last, machine.Stamp(stamp))
	for entry = entry[k:]; len(entry) > 0; {
		size, k := binary.Uvarint(entry)
		if k <= 0 || size > uint64(len(entry)-k) {
			return out, errors.New("undecodable entry")
		}
		key := append([]byte("a/"), entry[k:k+int(size)]...)
		entry = entry[k+int(size):]
		answer, err := tx.Get(key)
		if err != nil {
			return out, err
		}
		if answer == nil {
			answer = strconv.AppendUint(nil, seq+1, 10)
			if err := tx.Put(key, answer); err != nil {
				return out, err
			}
		}
		out.Answers = append(out.Answers, append([]byte(nil), answer...))
	}
	head := binary.BigEndian.AppendUint64(binary.BigEndian.AppendUint64(nil, out.Seq), uint64(out.Stamp))
	return out, tx.Put([]byte("m/head"), head)
}

func (register) Next(machine.Tx) (machine.Stamp, bool, error) { return 0, false, nil }

func (register) Head(tx machine.Tx) (uint64, machine.Stamp, error) {
	b, err := tx.Get([]byte("m/head"))
	if err != nil || len(b) != 16 {
		return 0, 0, err
	}
	return binary.BigEndian.Uint64(b), machine.Stamp(binary.BigEndian.Uint64(b[8:])), nil
}
