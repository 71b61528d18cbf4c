package node

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"go.uber.org/goleak"

	"github.com/deliberd/deliberd/api/door"
	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/internal/freeport"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath"
	"github.com/deliberd/deliberd/store"
)

// patience bounds every wait in this package's tests.
const patience = 60 * time.Second

func TestMain(m *testing.M) {
	code := m.Run()
	http.DefaultTransport.(*http.Transport).CloseIdleConnections()
	// go-libp2p's identify keeps a goroutine of a global LRU for the life of a process.
	if err := goleak.Find(goleak.IgnoreTopFunction("github.com/libp2p/go-libp2p/p2p/net/swarm.init.func1")); err != nil && code == 0 {
		fmt.Fprintln(os.Stderr, err)
		code = 1
	}
	os.Exit(code)
}

// quickTiming lets a lone node elect itself soon: nobody's heartbeat can be late.
var quickTiming = raftpath.Timing{Heartbeat: 50 * time.Millisecond, Election: 50 * time.Millisecond, Lease: 50 * time.Millisecond}

// quiet drops logs unless DELIBERD_TEST_LOG is set.
func quiet() *slog.Logger {
	if os.Getenv("DELIBERD_TEST_LOG") != "" {
		return slog.New(slog.NewTextHandler(os.Stderr, nil))
	}
	return slog.New(slog.DiscardHandler)
}

// solo is a cluster of one node and its operator.
type solo struct {
	testing.TB
	ctx      context.Context
	cfg      Config
	genesis  membership.Genesis
	operator *client.Identity
	node     *Node // nil while it is stopped
}

// founded makes the data folder of a cluster of one node, which is not started yet.
func founded(t testing.TB) *solo {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	listen := fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", freeport.Find(t))
	s := &solo{TB: t, ctx: ctx, cfg: Config{Dir: t.TempDir(), Listen: []string{listen}, HTTP: "127.0.0.1:0", Timing: quickTiming, Logger: quiet()}}
	t.Cleanup(func() {
		s.stop()
		cancel()
	})
	keys := s.must2(EnsureKeys(s.cfg.Dir, rand.Reader))
	s.operator, s.genesis = newGenesis(t, keys, listen)
	s.must(Found(s.cfg.Dir, s.genesis))
	return s
}

// newGenesis makes a genesis of one node, signed by a new operator "op". It
// names the node's address, which the node therefore need not publish.
func newGenesis(t testing.TB, keys Keys, listen string) (*client.Identity, membership.Genesis) {
	t.Helper()
	operator, err := client.NewIdentity("op")
	if err != nil {
		t.Fatal(err)
	}
	nonce := make([]byte, 24)
	if _, err := rand.Read(nonce); err != nil {
		t.Fatal(err)
	}
	g := membership.Genesis{
		V: membership.GenesisVersion, Name: "solo", CreatedAt: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		Nonce:     base64.RawURLEncoding.EncodeToString(nonce),
		Operators: []membership.Operator{{ID: "op", JWK: operator.PublicJWK()}},
		Voters:    []membership.Voter{{Node: keys.ID(), Operator: "op", Addrs: []string{listen}, PBFTKey: keys.PBFT.Public().X(), AttestKey: keys.Attest.Public().X()}},
		Params:    membership.DefaultParameters(),
	}
	if err := g.SignBy(operator.Key()); err != nil {
		t.Fatal(err)
	}
	operator.Cluster = g.Hash()
	return operator, g
}

func (s *solo) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *solo) must2(k Keys, err error) Keys {
	s.Helper()
	s.must(err)
	return k
}

func (s *solo) start() {
	s.Helper()
	n, err := Start(s.ctx, s.cfg)
	s.must(err)
	s.node = n
	await(s, func() bool {
		st, err := n.Status(s.ctx)
		return err == nil && st.Ready
	})
}

func (s *solo) stop() {
	s.Helper()
	if s.node == nil {
		return
	}
	if err := s.node.Close(); err != nil {
		s.Error(err)
	}
	s.node = nil
}

// await waits for a condition.
func await(s *solo, cond func() bool) {
	s.Helper()
	poll := time.NewTicker(5 * time.Millisecond)
	defer poll.Stop()
	for !cond() {
		select {
		case <-poll.C:
		case <-s.ctx.Done():
			s.Fatal("the condition does not come")
		}
	}
}

// as is a client that acts as somebody at the public door.
func (s *solo) as(who *client.Identity) *client.Client {
	s.Helper()
	c, err := client.New([]string{s.node.URL()}, client.As(who))
	s.must(err)
	return c
}

// machines is the hash of all keys of all machines: the whole state that
// protocols see. The table of ids and the decision log are not in it.
func (s *solo) machines() string {
	s.Helper()
	h := sha256.New()
	err := s.node.store.View(func(tx machine.Tx) error {
		return tx.Range([]byte("m"), []byte("n"), func(k, v []byte) (bool, error) {
			for _, part := range [][]byte{k, v} {
				h.Write(binary.BigEndian.AppendUint64(nil, uint64(len(part))))
				h.Write(part)
			}
			return true, nil
		})
	})
	s.must(err)
	return hex.EncodeToString(h.Sum(nil))
}

// head is where the node's decision log stands.
func (s *solo) head() (h fsm.Head) {
	s.Helper()
	s.must(s.node.store.View(func(tx machine.Tx) (err error) {
		h, err = fsm.ReadHead(tx)
		return err
	}))
	return h
}

// refusedWith checks that an error is a refusal with a code, a sentence and
// something to do.
func refusedWith(t testing.TB, err error, code string) {
	t.Helper()
	r, ok := machine.IsRefusal(err)
	if !ok || r.Code != code {
		t.Errorf("refused with %v, want %s", err, code)
		return
	}
	if len(r.Message) < 10 || r.Fix == "" {
		t.Errorf("%s says too little: %q, %q", code, r.Message, r.Fix)
	}
}

// cannotStart starts a node that must not come up.
func cannotStart(t testing.TB, cfg Config, code string) {
	t.Helper()
	n, err := Start(context.Background(), cfg)
	if err == nil {
		t.Errorf("started, want %s", code)
		_ = n.Close() // what matters has been said
		return
	}
	refusedWith(t, err, code)
}

func TestARunningNodeKeepsItsFolderAndPortsToItself(t *testing.T) {
	s := founded(t)
	s.start()
	before, head := s.machines(), s.head()
	other := founded(t)

	t.Run("a second node on its folder", func(t *testing.T) { cannotStart(t, s.cfg, store.CodeFolderInUse) })
	t.Run("another cluster's node on its HTTP port", func(t *testing.T) {
		cfg := other.cfg
		cfg.HTTP = s.node.door.Addr().String()
		cannotStart(t, cfg, door.CodePortInUse)
	})
	t.Run("another cluster's node on its libp2p port", func(t *testing.T) {
		cfg := other.cfg
		cfg.Listen = s.cfg.Listen
		cannotStart(t, cfg, p2p.CodePortInUse)
	})
	if s.machines() != before || s.head() != head {
		t.Error("the running node's state has changed")
	}
	other.start() // a refused start leaves nothing behind
}

func TestANodeDoesNotStartWhereItDoesNotBelong(t *testing.T) {
	s, other := founded(t), founded(t)
	s.start()
	before, head := s.machines(), s.head()
	s.stop()

	keys, genesis := read(t, s, keysFile), read(t, s, genesisFile)
	for _, c := range []struct {
		name, code string
		files      map[string][]byte // what replaces the folder's
		change     func(*Config)
	}{
		{"with another node's keys", store.CodeWrongNode, map[string][]byte{keysFile: read(t, other, keysFile)}, nil},
		{"with another cluster's genesis", store.CodeWrongGen, map[string][]byte{genesisFile: read(t, other, genesisFile)}, nil},
		{"with a genesis that nobody has signed", membership.CodeGenesisUnsigned, map[string][]byte{genesisFile: unsigned(s.genesis).Encode()}, nil},
		{"with a genesis that was changed after it was signed", machine.CodeBadSignature, map[string][]byte{genesisFile: bytes.Replace(genesis, []byte(`"solo"`), []byte(`"sola"`), 1)}, nil},
		{"with a genesis that is none", membership.CodeBadGenesis, map[string][]byte{genesisFile: []byte(`{"v":1}`)}, nil},
		{"without a genesis", CodeNotFounded, map[string][]byte{genesisFile: nil}, nil},
		{"without keys", CodeNotFounded, map[string][]byte{keysFile: nil}, nil},
		{"with doors open to the world and no TLS", door.CodeInsecureListen, nil, func(c *Config) { c.HTTP = "0.0.0.0:0" }},
		{"with doors open to the world and half of TLS", door.CodeBadTLS, nil, func(c *Config) { c.HTTP, c.TLSCert = "0.0.0.0:0", "cert.pem" }},
		{"with an HTTP address that is none", door.CodeBadAddress, nil, func(c *Config) { c.HTTP = "7700" }},
		{"with a libp2p address that is none", p2p.CodeBadAddress, nil, func(c *Config) { c.Listen = []string{"127.0.0.1:7701"} }},
	} {
		t.Run(c.name, func(t *testing.T) {
			for name, text := range c.files {
				write(t, s, name, text)
			}
			cfg := s.cfg
			if c.change != nil {
				c.change(&cfg)
			}
			cannotStart(t, cfg, c.code)
			write(t, s, keysFile, keys)
			write(t, s, genesisFile, genesis)
		})
	}
	s.start()
	if s.machines() != before || s.head() != head {
		t.Error("a refused start has changed the state")
	}
}

func read(t testing.TB, s *solo, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(s.cfg.Dir, name))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// write replaces a file of the data folder; nil removes it.
func write(t testing.TB, s *solo, name string, text []byte) {
	t.Helper()
	path := filepath.Join(s.cfg.Dir, name)
	if text == nil {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
		return
	}
	if err := os.WriteFile(path, text, 0o600); err != nil {
		t.Fatal(err)
	}
}

func unsigned(g membership.Genesis) membership.Genesis {
	g.Signatures = nil
	return g
}

func TestAFolderIsFoundedOnceAndForTheNodeThatTheGenesisNames(t *testing.T) {
	s, other := founded(t), founded(t)
	if err := Found(s.cfg.Dir, s.genesis); err != nil {
		t.Errorf("founding again with the same genesis: %v", err)
	}
	refusedWith(t, Found(s.cfg.Dir, other.genesis), membership.CodeWrongGenesis)
	_, second := newGenesis(t, s.must2(LoadKeys(s.cfg.Dir)), s.cfg.Listen[0])
	refusedWith(t, Found(s.cfg.Dir, second), CodeFounded)
	refusedWith(t, Found(s.cfg.Dir, unsigned(s.genesis)), membership.CodeGenesisUnsigned)
	if g, err := LoadGenesis(s.cfg.Dir); err != nil || g.Hash() != s.genesis.Hash() {
		t.Errorf("the folder holds %s, %v", g.Hash(), err)
	}
}

func TestANodeThatLostItsJournalSignsNothingAndSaysSo(t *testing.T) {
	s := founded(t)
	s.start()
	if s.node.bft == nil {
		t.Fatal("a new node cannot sign")
	}
	s.stop()
	write(t, s, bftFile, nil)
	s.start()
	if s.node.bft != nil {
		t.Fatal("a node signs with a journal that does not know what it has signed")
	}
}

// invite makes an invitation through the door.
func (s *solo) invite(role membership.Role, life time.Duration) membership.Invitation {
	s.Helper()
	key, err := sign.NewKey(rand.Reader)
	s.must(err)
	answer, err := s.as(s.operator).Do(s.ctx, membership.KindInvite, membership.Invite{Key: key.Public().X(), Role: role, ExpiresInMS: life.Milliseconds()})
	s.must(err)
	var view membership.InvitationView
	s.must(json.Unmarshal(answer.Result, &view))
	inv := membership.Invitation{Genesis: s.node.Cluster(), Seed: base64.RawURLEncoding.EncodeToString(key.Seed()), Role: role, ExpiresMS: view.ExpiresMS}
	for _, addr := range s.node.Addrs() {
		inv.Addrs = append(inv.Addrs, addr+"/p2p/"+s.node.ID())
	}
	return inv
}

// stranger is the configuration of a node that has not joined.
func (s *solo) stranger(t testing.TB) Config {
	return Config{Dir: t.TempDir(), Timing: quickTiming, Logger: quiet()}
}

func TestAnInvitationAdmitsOneNodeOnceInTimeAndToItsCluster(t *testing.T) {
	s := founded(t)
	s.start()
	used, expired, open := s.invite(membership.RoleObserver, time.Hour), s.invite(membership.RoleObserver, time.Millisecond), s.invite(membership.RoleObserver, time.Hour)
	joined := s.stranger(t)
	s.must(Join(s.ctx, joined, used))
	s.must(Join(s.ctx, joined, used)) // finishes what an interrupted Join began
	await(s, func() bool { return s.invited(expired) == membership.Expired })
	s.node.guests.forget() // the farewell of whoever used an invitation is over
	before, head := s.machines(), s.head()

	for _, c := range []struct {
		name, code string
		inv        membership.Invitation
		dir        string // empty: a new folder
	}{
		{"another node with a used invitation", CodeNotWelcome, used, ""},
		{"a node with an expired invitation", CodeNotWelcome, expired, ""},
		{"a node with an invitation to another cluster", p2p.CodeWrongGenesis, elsewhere(open), ""},
		{"a member of this cluster with an invitation to another", membership.CodeWrongGenesis, elsewhere(open), joined.Dir},
		{"a node with an invitation whose role was changed", machine.CodeNotAuthorized, as(open, membership.RoleVoter), ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			cfg := s.stranger(t)
			if c.dir != "" {
				cfg.Dir = c.dir
			}
			refusedWith(t, Join(s.ctx, cfg, c.inv), c.code)
			if _, err := os.Stat(cfg.path(peersFile)); c.dir == "" && err == nil {
				t.Error("the folder looks as if it had joined")
			}
		})
	}
	t.Cleanup(func() { // after the parallel ones, before the node is stopped
		now := s.head()
		if s.machines() != before {
			t.Error("a refused node has changed the state")
		}
		if now.Seq > head.Seq+1 { // the changed role is refused by the state machine
			t.Errorf("%d entries for refused nodes", now.Seq-head.Seq)
		}
		if state := s.invited(open); state != membership.Open {
			t.Errorf("the invitation that nobody used is %s", state)
		}
	})
}

// forget ends every farewell now.
func (g *guests) forget() {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.until = nil
}

func elsewhere(inv membership.Invitation) membership.Invitation {
	inv.Genesis = hex.EncodeToString(make([]byte, 32))
	return inv
}

func as(inv membership.Invitation, role membership.Role) membership.Invitation {
	inv.Role = role
	return inv
}

// invited is where an invitation stands.
func (s *solo) invited(inv membership.Invitation) (state membership.InvitationState) {
	s.Helper()
	key, err := inv.Key()
	s.must(err)
	var out membership.InvitationsAnswer
	s.must(s.as(s.operator).Query(s.ctx, "cluster.invitations", nil, &out))
	for _, i := range out.Invitations {
		if i.Key == key.Public().X() {
			state = i.State
		}
	}
	return state
}
