package node

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/p2p"
)

// joinRequest asks a member for the genesis, or hands it the signed join.
type joinRequest struct {
	Action json.RawMessage `json:"action,omitempty"` // cluster.join, signed by the node's identity; none: only tell the genesis
}

// joinResponse tells what a newcomer needs before it has any state.
type joinResponse struct {
	Genesis json.RawMessage `json:"genesis"`
	Peers   []knownPeer     `json:"peers"`
}

// knownPeer is a member and where to find it.
type knownPeer struct {
	ID    string   `json:"id"`
	Addrs []string `json:"addrs"`
}

// Join brings a data folder into the cluster that an invitation names. The
// invitation's key signs the node's keys and never travels. Join again with
// the same invitation it finishes what an interrupted Join began.
func Join(ctx context.Context, cfg Config, inv membership.Invitation) error {
	cfg = cfg.withDefaults()
	keys, err := EnsureKeys(cfg.Dir, rand.Reader)
	if err != nil {
		return err
	}
	if g, err := LoadGenesis(cfg.Dir); err == nil {
		if err := inv.CheckGenesis(g.Hash()); err != nil {
			return err
		}
	}
	key, err := inv.Key()
	if err != nil {
		return err
	}
	if before, err := loadWelcome(cfg); err != nil {
		return err
	} else if before.Invitation == key.Public().X() {
		return nil // joined before
	} else if before.Invitation != "" {
		return machine.Refuse(CodeFounded, "use a new data folder for a new node", "folder %s has joined its cluster by another invitation", cfg.Dir)
	}
	stranger, err := p2p.New(p2p.Config{Key: key.Private(), Genesis: inv.Genesis, Admit: func(string) bool { return true }, Logger: cfg.Logger})
	if err != nil {
		return err
	}
	defer stranger.Close()
	welcome, err := knock(ctx, stranger, inv, joinRequest{})
	if err != nil {
		return err
	}
	g, err := membership.ParseGenesis(welcome.Genesis)
	if err == nil {
		err = errors.Join(g.Check(), inv.CheckGenesis(g.Hash()))
	}
	if err != nil {
		return err
	}
	action, err := joinAction(cfg, keys, inv)
	if err != nil {
		return err
	}
	welcome, err = knock(ctx, stranger, inv, joinRequest{Action: action})
	if r, ok := machine.IsRefusal(err); ok && r.Code == membership.CodeAlreadyMember {
		welcome, err = knock(ctx, stranger, inv, joinRequest{})
	}
	if err != nil {
		return err
	}
	text, err := json.Marshal(welcomed{Invitation: key.Public().X(), Peers: welcome.Peers})
	if err != nil {
		return err
	}
	return errors.Join(saveGenesis(cfg.Dir, g), writeFile(cfg.path(peersFile), append(text, '\n')))
}

func joinAction(cfg Config, keys Keys, inv membership.Invitation) ([]byte, error) {
	body, err := inv.Join(keys.Identity.Public(), keys.PBFT.Public(), keys.Attest.Public(), cfg.Announce)
	if err != nil {
		return nil, err
	}
	a, err := keys.Identity.Sign(inv.Genesis, ulid.Make().String(), "cluster.join", keys.ID(), body)
	if err != nil {
		return nil, err
	}
	return a.Encode()
}

// knockRounds is how often every address is tried before giving up: a member
// that does not know the invitation (any more) closes the connection, which
// looks like a network in trouble.
const knockRounds = 6

// knock asks the invitation's members in turn until one answers. A refusal by
// a member is the answer; only trouble on the way goes on to the next.
func knock(ctx context.Context, h *p2p.Host, inv membership.Invitation, req joinRequest) (joinResponse, error) {
	text, err := json.Marshal(req)
	if err != nil {
		return joinResponse{}, err
	}
	var last error
	for round := 0; round < knockRounds && ctx.Err() == nil; round++ {
		for _, addr := range inv.Addrs {
			at := strings.LastIndex(addr, "/p2p/")
			if at < 0 {
				last = fmt.Errorf("address %s names no peer", addr)
				continue
			}
			id := addr[at+len("/p2p/"):]
			if err := h.SetAddrs(id, []string{addr}); err != nil {
				return joinResponse{}, err
			}
			raw, err := h.Call(ctx, id, p2p.Join, text)
			if err == nil {
				var resp joinResponse
				return resp, canon.Decode(raw, &resp)
			}
			last = err
			if r, ok := machine.IsRefusal(err); ok && r.Code != p2p.CodeUnreachable && !unavailable(err) {
				return joinResponse{}, err
			}
		}
		if err := pause(ctx, 500*time.Millisecond); err != nil {
			break
		}
	}
	return joinResponse{}, machine.Refuse(CodeNotWelcome, "check that a member runs at the invitation's addresses; an invitation also stays shut until enough operators have approved it, and once it was used or has expired",
		"no member lets this invitation in: %v", last)
}

func pause(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-t.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// welcome answers a stranger that holds an open invitation.
func (n *Node) welcome(ctx context.Context, from string, request []byte) ([]byte, error) {
	n.guests.add(from)
	var req joinRequest
	if err := canon.Decode(request, &req); err != nil {
		return nil, machine.Refuse(machine.CodeMalformed, "use a deliberd of the cluster's version", "%v", err)
	}
	if len(req.Action) > 0 {
		if a, err := sign.Decode(req.Action); err != nil || a.Kind != "cluster.join" {
			return nil, machine.Refuse(machine.CodeNotAuthorized, "join first", "a stranger may only send cluster.join")
		}
		if _, err := n.Submit(ctx, req.Action); err != nil {
			return nil, err
		}
	}
	resp := joinResponse{Genesis: n.genesis.Encode()}
	peers, err := n.Peers(ctx)
	if err != nil {
		return nil, err
	}
	for _, p := range peers {
		addrs := p.Addresses
		if p.Self && len(addrs) == 0 {
			addrs = n.announced()
		}
		if p.Role == string(membership.RoleVoter) {
			resp.Peers = append(resp.Peers, knownPeer{p.NodeID, addrs})
		}
	}
	return json.Marshal(resp)
}

// welcomed is what a joined node remembers of its welcome: by which invitation
// it came, and whom it may call before it has the state.
type welcomed struct {
	Invitation string      `json:"invitation"` // x of the invitation's public key
	Peers      []knownPeer `json:"peers"`
}

// loadWelcome reads it; it is empty for a founder and before a join.
func loadWelcome(cfg Config) (w welcomed, err error) {
	raw, err := os.ReadFile(cfg.path(peersFile))
	if errors.Is(err, fs.ErrNotExist) {
		return w, nil
	}
	if err != nil {
		return w, err
	}
	if err := canon.Decode(raw, &w); err != nil {
		return w, fmt.Errorf("%s: %w", peersFile, err)
	}
	return w, nil
}
