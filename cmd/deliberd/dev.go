package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/demo"
	"github.com/deliberd/deliberd/node/embedded"
)

// devDir is where a development cluster lives unless told otherwise.
const devDir = "deliberd-dev"

// devOptions are the flags of deliberd dev.
type devOptions struct {
	nodes      int
	dir, http  string
	demo, exit bool
}

func (a *app) devCommand() *cobra.Command {
	var o devOptions
	cmd := &cobra.Command{
		Use:   "dev",
		Short: "Run a whole cluster in this process, to try things out",
		Long: `Run a whole cluster in this process: real libp2p, real Raft, real disk. Its
folder keeps everything, so that it goes on where it stopped. With --demo
agents play one clear and one close round, an ACP proposal and an Agora round,
and tell what happens. With --exit it stops after that; without, it leaves the
agents' keys and waits for you.`,
		Example: "  deliberd dev --demo --exit\n  deliberd dev --nodes 4 --dir mycluster\n  deliberd dev kill 2 --dir mycluster",
		Args:    args(),
		RunE:    func(cmd *cobra.Command, _ []string) error { return a.dev(cmd.Context(), o) },
	}
	f := cmd.Flags()
	f.IntVar(&o.nodes, "nodes", 4, "number of nodes")
	f.StringVar(&o.dir, "dir", "", "data folder (default "+devDir+", with --exit a temporary one)")
	f.StringVar(&o.http, "http", "127.0.0.1:7700", "HTTP door of the first node; the others take the ports above it, or free ones with port 0")
	f.BoolVar(&o.demo, "demo", false, "let agents deliberate, and tell what happens")
	f.BoolVar(&o.exit, "exit", false, "stop when the demo is over")
	cmd.AddCommand(a.devKillCommand(), a.devHealCommand())
	return cmd
}

// dev runs the cluster until it is told to stop, or the demo is over.
func (a *app) dev(ctx context.Context, o devOptions) (err error) {
	if o.dir == "" && o.exit {
		if o.dir, err = os.MkdirTemp("", "deliberd-dev-"); err != nil {
			return err
		}
		defer os.RemoveAll(o.dir)
	} else if o.dir == "" {
		o.dir = devDir
	}
	log := slog.New(slog.NewTextHandler(a.err, &slog.HandlerOptions{Level: slog.LevelError}))
	starting, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	c, err := embedded.Start(starting, embedded.Config{Nodes: o.nodes, Dir: o.dir, HTTP: o.http, Logger: log})
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	if err := a.devPlay(ctx, c, o); err != nil || o.exit {
		return err
	}
	return a.devServe(ctx, c, o)
}

// devPlay registers the agents and plays the demo if it is wanted.
func (a *app) devPlay(ctx context.Context, c *embedded.Cluster, o devOptions) error {
	told := a.out
	if a.json {
		told = io.Discard
	}
	fmt.Fprintf(told, "%d nodes agree on a leader:\n", c.Len())
	for i := range c.Len() {
		mark := ""
		if i == c.Leader(ctx) {
			mark = " (leads)"
		}
		fmt.Fprintf(told, "  node %d  %s  %s%s\n", i+1, c.Node(i).ID(), c.Node(i).URL(), mark)
	}
	ctx, cancel := context.WithTimeout(ctx, 2*a.timeout)
	defer cancel()
	members, err := devMembers(ctx, c)
	if err != nil || !o.demo {
		return err
	}
	report, err := demo.Play(ctx, c, members, told)
	if err != nil || !a.json {
		return err
	}
	return a.show(report, nil)
}

// devMembers are the demo's agents: from their key files, or registered anew.
func devMembers(ctx context.Context, c *embedded.Cluster) (map[string]*client.Identity, error) {
	members := map[string]*client.Identity{}
	files, err := filepath.Glob(filepath.Join(c.KeysDir(), "*.json"))
	if err != nil {
		return nil, err
	}
	known := map[string]bool{}
	for _, file := range files {
		id, err := client.ReadIdentity(file)
		if err != nil {
			return nil, err
		}
		members[id.ID], known[id.ID] = id, true
	}
	if err := demo.Cast(ctx, c, members); err != nil {
		return nil, err
	}
	for name, id := range members {
		if !known[name] {
			if err := id.Create(filepath.Join(c.KeysDir(), name+".json")); err != nil {
				return nil, err
			}
		}
	}
	return members, nil
}

// devServe leaves a configuration that finds the cluster and the keys, says
// what to try next, and takes kill and heal until ctx ends.
func (a *app) devServe(ctx context.Context, c *embedded.Cluster, o devOptions) error {
	dir, err := filepath.Abs(o.dir)
	if err != nil {
		return err
	}
	config := filepath.Join(dir, "deliberd.yaml")
	text := fmt.Sprintf("# Written by deliberd dev: how to reach this cluster.\nnode: [%s]\nkeys: keys\nas: ada\n", strings.Join(c.URLs(), ", "))
	if err := os.WriteFile(config, []byte(text), 0o600); err != nil {
		return err
	}
	if !a.json {
		fmt.Fprintf(a.out, "\nkeys of the operator and the agents: %s\ntry next:\n  deliberd --config %s round list\n  deliberd dev kill 2 --dir %s\nstop with interrupt\n", c.KeysDir(), config, dir)
	}
	return devListen(ctx, dir, c)
}
