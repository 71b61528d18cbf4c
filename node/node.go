package node

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/api/door"
	"github.com/deliberd/deliberd/bftpath"
	"github.com/deliberd/deliberd/fsm"
	"github.com/deliberd/deliberd/fsm/standard"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/p2p"
	"github.com/deliberd/deliberd/raftpath"
	"github.com/deliberd/deliberd/store"
)

// Version is the version of this build.
const Version = "0.1.0"

// Node is a running node. Its methods are safe for concurrent use.
type Node struct {
	cfg      Config
	log      *slog.Logger
	keys     Keys
	uses     uses // of the keys, as noted since
	genesis  membership.Genesis
	cluster  string
	store    *store.Store
	fsm      *fsm.FSM
	verifier *verifier
	feed     *feed
	host     *p2p.Host
	path     *raftpath.Path
	bft      *bftpath.Driver
	door     *door.Listener
	circle   circlePointer
	guests   guests
	warned   time.Time   // of the clock; onApplied only
	marked   bool        // duties only: the store says that Raft has run here
	level    atomic.Bool // the last catch-up has ended
	duty     chan struct{}

	ctx    context.Context
	cancel context.CancelFunc
	wg     sync.WaitGroup
	failed chan error // why the node stops by itself
	close  sync.Once
	closed error

	idMu sync.Mutex
	ids  *ulid.MonotonicEntropy
}

// Start runs the node of a founded data folder. Errors are refusals where the
// caller can do something: folder_in_use, port_in_use, wrong_node,
// wrong_genesis, not_founded, insecure_listen.
func Start(ctx context.Context, cfg Config) (_ *Node, err error) {
	defer recoverCorrupt(&err, cfg.Dir)
	cfg = cfg.withDefaults()
	n := &Node{cfg: cfg, duty: make(chan struct{}, 1), failed: make(chan error, 1), ids: ulid.Monotonic(rand.Reader, 0)}
	n.ctx, n.cancel = context.WithCancel(context.WithoutCancel(ctx))
	if err := n.start(); err != nil {
		return nil, errors.Join(err, n.Close())
	}
	return n, nil
}

func (n *Node) start() (err error) {
	if n.genesis, err = LoadGenesis(n.cfg.Dir); err != nil {
		return err
	}
	n.cluster = n.genesis.Hash()
	if n.keys, err = LoadKeys(n.cfg.Dir); err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			return machine.Refuse(CodeNotFounded, "run deliberd init, genesis new or join first", "folder %s holds no node", n.cfg.Dir)
		}
		return err
	}
	n.uses = n.keys.uses
	n.log = n.cfg.Logger.With("node", short(n.keys.ID()))
	if n.verifier, err = newVerifier(); err != nil {
		return err
	}
	if n.fsm, err = standard.New(n.verifier.verify); err != nil {
		return err
	}
	standard.UseParams(n.fsm, n.genesis)
	if err := n.openStore(); err != nil {
		return err
	}
	n.feed = newFeed(n.store)
	if n.cfg.HTTP != "" { // the port first: everything after it is slower to undo
		n.door, err = door.Listen(door.Config{Addr: n.cfg.HTTP, CertFile: n.cfg.TLSCert, KeyFile: n.cfg.TLSKey, Insecure: n.cfg.InsecureHTTP, Log: n.log})
		if err != nil {
			return err
		}
	}
	if err := n.connect(); err != nil {
		return err
	}
	return n.serve()
}

// openStore opens the state, claims the folder for this node, and writes the
// genesis of a founder.
func (n *Node) openStore() (err error) {
	if n.store, err = store.Open(n.cfg.Dir); err != nil {
		return err
	}
	if err := n.store.Claim(n.keys.ID(), n.cluster); err != nil {
		return err
	}
	return n.store.Update(func(tx machine.Tx) error {
		_, err := fsm.ReadHead(tx)
		if errors.Is(err, fsm.ErrNoGenesis) && names(n.genesis, n.keys.ID()) {
			return standard.Init(n.fsm, tx, n.genesis)
		}
		if errors.Is(err, fsm.ErrNoGenesis) {
			return nil // a joiner: the state comes over the sync stream
		}
		return err
	})
}

// connect opens the network and the two paths over it.
func (n *Node) connect() (err error) {
	n.host, err = p2p.New(p2p.Config{Key: n.keys.Identity.Private(), Listen: n.cfg.Listen, Genesis: n.cluster, Admit: n.admitted, Removed: n.dismissed, Logger: n.log})
	if err != nil {
		return err
	}
	before, err := loadWelcome(n.cfg)
	if err != nil {
		return err
	}
	var c *circle
	err = n.store.View(func(tx machine.Tx) (err error) {
		c, err = n.readCircle(tx)
		return err
	})
	if errors.Is(err, fsm.ErrNoGenesis) {
		c, err = n.firstCircle(before.Peers), nil
	}
	if err != nil {
		return err
	}
	if c.epoch > 0 && c.self == "" {
		return removedRefusal()
	}
	n.useCircle(c)
	if err := n.openBFT(); err != nil {
		return err
	}
	return n.openPath(c)
}

func (n *Node) openPath(c *circle) (err error) {
	encode, err := encoder(n.cluster)
	if err != nil {
		return err
	}
	n.path, err = raftpath.New(raftpath.Config{
		Host: n.host, Store: n.store, Applier: applier{n.fsm}, Encode: encode,
		Epoch:      func() uint64 { return n.circle.Load().epoch },
		Members:    n.peersToAsk,
		Founders:   n.firstCircle(nil).voters,
		OnApplied:  n.onApplied,
		OnProgress: n.onProgress,
		OnFatal:    n.fail,
		OnRemoved:  func() { n.fail(removedRefusal()) },
		Timing:     n.cfg.Timing,
		Logger:     n.log,
	})
	if err != nil {
		return err
	}
	if err := n.checkVotes(); err != nil {
		return err
	}
	if err := n.bootstrap(); err != nil {
		return err
	}
	if c.epoch > 0 {
		n.path.Reconcile(c.voters)
	}
	if err := n.path.Start(); err != nil {
		return err
	}
	return n.contestAll()
}

// bootstrap gives a founder's Raft its first configuration, once: before the
// first entry is applied, and only where Raft has no folder.
func (n *Node) bootstrap() error {
	if !names(n.genesis, n.keys.ID()) || n.path.Head().Index > 0 {
		return nil
	}
	founders := make([]string, 0, len(n.genesis.Voters))
	for _, v := range n.genesis.Voters {
		founders = append(founders, v.Node)
	}
	err := n.path.Bootstrap(founders)
	if r, ok := machine.IsRefusal(err); ok && r.Code == raftpath.CodeBootstrap {
		return nil
	}
	return err
}

// openBFT opens the journal of what this node has signed. A node whose
// journal is lost stays mute: it follows and serves, and signs nothing.
func (n *Node) openBFT() error {
	used, err := n.noted(signedPBFT)
	if err != nil {
		return err
	}
	n.bft, err = bftpath.New(bftpath.Config{
		Self: n.keys.ID(), Key: n.keys.PBFT.Private(), Journal: n.cfg.path(bftFile), Create: !used, Tick: n.cfg.BFTTick, Log: n.log,
		Send: func(peer string, message []byte) {
			if err := n.host.Send(peer, p2p.BFT, message); err != nil {
				n.log.Debug("a frame was dropped", "to", peer, "err", err) // pbft sends again
			}
		},
		OnCertificate: n.certified,
		OnFailure:     func(err error) { n.log.Error("this node signs nothing any more", "err", err) },
	})
	if errors.Is(err, bftpath.ErrNoJournal) {
		n.log.Error("the signing journal is lost: this node takes no part in contested rounds until it joins again with new keys", "err", err)
		return nil
	}
	if err != nil {
		return err
	}
	n.host.HandleFrames(p2p.BFT, func(from string, frame []byte) error {
		n.bft.Deliver(from, frame)
		return nil
	})
	return n.note(signedPBFT)
}

// serve opens the doors and begins the node's own duties.
func (n *Node) serve() error {
	n.host.Handle(p2p.Join, n.welcome)
	n.wg.Go(func() { n.duties(n.ctx) })
	if n.door == nil {
		return nil
	}
	n.wg.Go(func() {
		if err := door.Serve(n.ctx, n.door, n, n.cluster, nil); err != nil {
			n.fail(fmt.Errorf("doors: %w", err))
		}
	})
	return nil
}

// onApplied hears each committed batch after its transaction.
func (n *Node) onApplied(outcomes []raftpath.Outcome) {
	members := false
	n.watchClock(outcomes)
	for _, o := range outcomes {
		out, ok := o.Events.(fsm.Outcome)
		if !ok {
			continue
		}
		for _, r := range out.Records {
			members = members || changesMembers(r)
			n.heard(r)
		}
	}
	n.feed.grew()
	if members {
		n.refreshCircle()
	}
}

// clockBound is how far ahead of this node's clock a stamp passes unremarked.
const clockBound = 5 * time.Second

// watchClock warns, once a minute, of stamps from a clock ahead of this one.
func (n *Node) watchClock(outcomes []raftpath.Outcome) {
	if len(outcomes) == 0 || time.Since(n.warned) < time.Minute {
		return
	}
	ahead := time.Until(time.UnixMilli(int64(outcomes[len(outcomes)-1].Stamp)))
	if ahead > clockBound {
		n.warned = time.Now()
		n.log.Warn("the cluster's time is ahead of this node's clock: compare the clocks of the nodes", "ahead", ahead.Round(time.Second))
	}
}

// onProgress hears how a catch-up goes; afterwards the state may be another.
func (n *Node) onProgress(p raftpath.Progress) {
	if p.Done && n.level.Swap(true) {
		return // it was level before: an observer hears this again and again
	}
	if n.cfg.OnProgress != nil {
		n.cfg.OnProgress(p)
	}
	if !p.Done {
		n.level.Store(false)
		return
	}
	n.feed.grew()
	n.refreshCircle()
	if err := n.contestAll(); err != nil {
		n.log.Error("taking part in contested rounds failed", "err", err)
	}
}

// fail makes Wait return.
func (n *Node) fail(err error) {
	n.log.Error("this node stops", "err", err)
	select {
	case n.failed <- err:
	default:
	}
}

// Wait blocks until the node stops by itself, and says why, or until ctx
// ends. The caller closes the node in either case.
func (n *Node) Wait(ctx context.Context) error {
	select {
	case err := <-n.failed:
		return err
	case <-ctx.Done():
		return nil
	}
}

// Close stops the node: doors, duties, PBFT, Raft, network, store. It is safe
// to call twice.
func (n *Node) Close() error {
	n.close.Do(func() {
		if n.feed != nil {
			n.feed.stop()
		}
		n.cancel()
		var errs []error
		if n.path != nil {
			errs = append(errs, n.path.Close())
		}
		if n.bft != nil { // which hands in certificates until then
			errs = append(errs, n.bft.Close())
		}
		n.wg.Wait()
		if n.host != nil {
			errs = append(errs, n.host.Close())
		}
		if n.store != nil {
			errs = append(errs, n.store.Close())
		}
		n.closed = errors.Join(errs...)
	})
	return n.closed
}

// ID is the node's peer id.
func (n *Node) ID() string { return n.keys.ID() }

// Cluster is the cluster's id: its genesis hash.
func (n *Node) Cluster() string { return n.cluster }

// Addrs are the multiaddrs this node listens on.
func (n *Node) Addrs() []string { return n.host.Addrs() }

// URL is the doors' base URL; empty without doors.
func (n *Node) URL() string {
	if n.door == nil {
		return ""
	}
	return n.door.URL()
}

// Cut and Heal keep this node from one peer and let it back: for tests and
// for deliberd dev.
func (n *Node) Cut(peer string) { n.host.Cut(peer) }

// Heal ends a Cut.
func (n *Node) Heal(peer string) { n.host.Heal(peer) }

func (n *Node) newID() string {
	n.idMu.Lock()
	defer n.idMu.Unlock()
	return ulid.MustNew(ulid.Timestamp(time.Now()), n.ids).String()
}

// short is the end of a peer id, which tells nodes apart in logs.
func short(id string) string {
	if len(id) > 8 {
		return id[len(id)-8:]
	}
	return id
}
