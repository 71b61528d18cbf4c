package main

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"strings"
	"time"

	"github.com/multiformats/go-multiaddr"
	manet "github.com/multiformats/go-multiaddr/net"
	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/node"
)

// founder is what one founding node hands to whoever writes the genesis.
type founder struct {
	Operator membership.Operator `json:"operator"`
	Voter    membership.Voter    `json:"voter"`
}

func (a *app) genesisCommand() *cobra.Command {
	return group("genesis", "Found a cluster of several operators",
		`  # every founder, on his own machine
  deliberd agent new ops-a
  deliberd genesis founder --as ops-a --announce /ip4/192.0.2.1/tcp/7701 > a.json
  # one of them, with everybody's file
  deliberd genesis new --name "Four labs" a.json b.json c.json d.json --out genesis.json
  # every operator, then
  deliberd genesis sign genesis.json --as ops-a
  deliberd genesis check genesis.json
  # every founder, to begin, at the address the genesis names
  deliberd init --genesis genesis.json --listen /ip4/192.0.2.1/tcp/7701 && deliberd run`,
		a.genesisFounder(), a.genesisNew(), a.genesisSign(), a.genesisCheck())
}

func (a *app) genesisFounder() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "founder",
		Short: "Print what a founding node tells the others: its operator, keys and addresses",
		Long: `Print what a founding node tells the others: its operator (--as), its public
keys and its addresses. The node's keys are made in the data folder when there
are none.`,
		Example: "  deliberd genesis founder --as ops-a --announce /ip4/192.0.2.1/tcp/7701 > a.json",
		Args:    args(),
		RunE: func(*cobra.Command, []string) error {
			me, err := a.me()
			if err != nil {
				return err
			}
			keys, err := node.EnsureKeys(a.cfg.Data, rand.Reader)
			if err != nil {
				return err
			}
			a.warnAnnounced()
			return a.printJSON(founder{
				Operator: membership.Operator{ID: me.ID, JWK: me.PublicJWK()},
				Voter:    voterOf(keys, me.ID, a.announced()),
			})
		},
	}
	a.nodeFlags(cmd.Flags())
	return cmd
}

func voterOf(keys node.Keys, operator string, addrs []string) membership.Voter {
	return membership.Voter{Node: keys.ID(), Operator: operator, PBFTKey: keys.PBFT.Public().X(), AttestKey: keys.Attest.Public().X(), Addrs: addrs}
}

// announced are the addresses that others can use: announce, or else those of
// listen that name one host and port.
func (a *app) announced() []string {
	if len(a.cfg.Announce) > 0 {
		return a.cfg.Announce
	}
	var out []string
	for _, text := range a.cfg.Listen {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil {
			continue // load has refused it
		}
		port, err := m.ValueForProtocol(multiaddr.P_TCP)
		if err == nil && port != "0" && !strings.HasPrefix(text, "/ip4/0.0.0.0/") && !strings.HasPrefix(text, "/ip6/::/") {
			out = append(out, text)
		}
	}
	return out
}

// warnLoopback warns on standard error when addresses are there and all of
// them lead nowhere from another machine.
func (a *app) warnLoopback(addrs []string, warning string) {
	for _, text := range addrs {
		m, err := multiaddr.NewMultiaddr(text)
		if err != nil || !manet.IsIPLoopback(m) && !strings.HasPrefix(text, "/dns/localhost/") && !strings.HasPrefix(text, "/dns4/localhost/") && !strings.HasPrefix(text, "/dns6/localhost/") {
			return
		}
	}
	if len(addrs) > 0 {
		fmt.Fprintln(a.err, "warning: "+warning)
	}
}

// warnAnnounced is warnLoopback for what a new node tells the others.
func (a *app) warnAnnounced() {
	a.warnLoopback(a.announced(), "other machines cannot reach this node: it is announced at a loopback address; set listen or announce to one of this machine's addresses")
}

// printJSON prints a document that is JSON with and without --json.
func (a *app) printJSON(v any) error {
	enc := json.NewEncoder(a.out)
	enc.SetEscapeHTML(false)
	if !a.json {
		enc.SetIndent("", "  ")
	}
	return enc.Encode(v)
}

func (a *app) genesisNew() *cobra.Command {
	var name, out, created, nonce string
	params := membership.DefaultParameters()
	cmd := &cobra.Command{
		Use:     "new FOUNDER...",
		Short:   "Write a genesis from the founders' files; it still has to be signed",
		Example: `  deliberd genesis new --name "Four labs" a.json b.json c.json d.json --out genesis.json`,
		Args: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return usage("%s needs at least one founder's file", cmd.CommandPath())
			}
			return nil
		},
		RunE: func(_ *cobra.Command, files []string) error {
			g := membership.Genesis{V: membership.GenesisVersion, Name: name, CreatedAt: created, Nonce: nonce, Params: params}
			if g.CreatedAt == "" {
				g.CreatedAt = time.Now().UTC().Format("2006-01-02T15:04:05.000Z")
			}
			if g.Nonce == "" {
				var err error
				if g.Nonce, err = newNonce(); err != nil {
					return err
				}
			}
			for _, file := range files {
				if err := addFounder(&g, file); err != nil {
					return err
				}
			}
			if err := g.Validate(); err != nil {
				return err
			}
			if err := writeNew(out, g.Encode()); err != nil {
				return err
			}
			return a.showGenesis(g, "wrote "+out)
		},
	}
	f := cmd.Flags()
	f.StringVar(&name, "name", "", "name of the cluster, for people")
	f.StringVar(&out, "out", "genesis.json", "file to write")
	f.StringVar(&created, "created-at", "", "time of founding, such as 2026-11-03T09:00:00.000Z (default now)")
	f.StringVar(&nonce, "nonce", "", "16 bytes or more in base64url that tell equal clusters apart (default random)")
	f.Int64Var(&params.IDWindowMS, "id-window-ms", params.IDWindowMS, "how old an action's id may be")
	f.Int64Var(&params.IDFutureMS, "id-future-ms", params.IDFutureMS, "how far ahead an action's id may be")
	f.IntVar(&params.MaxPrincipalsPerOperator, "max-principals", params.MaxPrincipalsPerOperator, "agents and humans of one operator; 0: no limit")
	f.Int64Var(&params.DumpEvery, "dump-every", params.DumpEvery, "entries between hashes of the whole state")
	return cmd
}

func newNonce() (string, error) {
	raw := make([]byte, 32)
	_, err := rand.Read(raw)
	return base64.RawURLEncoding.EncodeToString(raw), err
}

// addFounder adds a founder's file to a genesis; one operator may have several nodes.
func addFounder(g *membership.Genesis, file string) error {
	text, err := os.ReadFile(file)
	if err != nil {
		return usage("%v", err)
	}
	var f founder
	if err := canon.Decode(text, &f); err != nil {
		return machine.Refuse(membership.CodeBadGenesis, "use what `deliberd genesis founder` printed", "%s is no founder's file: %v", file, err)
	}
	g.Voters = append(g.Voters, f.Voter)
	for _, o := range g.Operators {
		if o.ID == f.Operator.ID && o.JWK == f.Operator.JWK {
			return nil
		}
	}
	g.Operators = append(g.Operators, f.Operator) // Validate refuses one id with two keys
	return nil
}

// writeNew writes a file that does not exist yet.
func writeNew(path string, text []byte) error {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if errors.Is(err, fs.ErrExist) {
		return &client.Error{Code: machine.CodeAlreadyExists, Message: fmt.Sprintf("The file %s exists.", path), Fix: "name another with --out, or move it away"}
	}
	if err != nil {
		return err
	}
	_, err = f.Write(append(text, '\n'))
	return errors.Join(err, f.Close())
}

func readGenesis(path string) (membership.Genesis, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return membership.Genesis{}, usage("%v", err)
	}
	return membership.ParseGenesis(text)
}

func (a *app) genesisSign() *cobra.Command {
	return &cobra.Command{
		Use:     "sign FILE",
		Short:   "Sign a genesis as one of its operators, in place",
		Example: "  deliberd genesis sign genesis.json --as ops-a",
		Args:    args("FILE"),
		RunE: func(_ *cobra.Command, given []string) error {
			g, err := readGenesis(given[0])
			if err != nil {
				return err
			}
			me, err := a.me()
			if err != nil {
				return err
			}
			if err := g.SignBy(me.Key()); err != nil {
				return err
			}
			if err := os.WriteFile(given[0], append(g.Encode(), '\n'), 0o644); err != nil {
				return err
			}
			return a.showGenesis(g, "signed by "+me.ID)
		},
	}
}

func (a *app) genesisCheck() *cobra.Command {
	return &cobra.Command{
		Use:     "check FILE",
		Short:   "Check a genesis and show it; fails while a signature is missing or wrong",
		Example: "  deliberd genesis check genesis.json",
		Args:    args("FILE"),
		RunE: func(_ *cobra.Command, given []string) error {
			g, err := readGenesis(given[0])
			if err != nil {
				return err
			}
			if err := g.Check(); err != nil {
				return err
			}
			return a.showGenesis(g, "complete: every operator has signed")
		},
	}
}

// genesisView is a genesis as it is shown.
type genesisView struct {
	ClusterID          string   `json:"cluster_id"`
	Name               string   `json:"name"`
	CreatedAt          string   `json:"created_at"`
	Operators          []string `json:"operators"`
	Voters             []string `json:"voters"`
	ByzantineTolerance int      `json:"byzantine_tolerance"`
	Unsigned           []string `json:"unsigned"`
}

func (a *app) showGenesis(g membership.Genesis, done string) error {
	v := genesisView{ClusterID: g.Hash(), Name: g.Name, CreatedAt: g.CreatedAt, Operators: []string{}, Voters: []string{},
		ByzantineTolerance: membership.Faults(len(g.Voters)), Unsigned: append([]string{}, g.Unsigned()...)}
	for _, o := range g.Operators {
		v.Operators = append(v.Operators, o.ID)
	}
	for _, n := range g.Voters {
		v.Voters = append(v.Voters, n.Node)
	}
	return a.show(v, func(w io.Writer) {
		fmt.Fprintln(w, done)
		facts(w, "cluster", v.ClusterID, "name", v.Name, "created", v.CreatedAt, "operators", strings.Join(v.Operators, ", "),
			"voters", fmt.Sprintf("%d, tolerates %d faulty", len(v.Voters), v.ByzantineTolerance), "unsigned", strings.Join(v.Unsigned, ", "))
	})
}
