package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/raftpath"
)

func (a *app) runCommand() *cobra.Command {
	var invitation string
	cmd := &cobra.Command{
		Use:   "run",
		Short: "Run the node of a data folder until it is told to stop",
		Long: `Run the node of a data folder until it is told to stop (interrupt or
terminate). With --join the node first joins by an invitation, unless it has
done so before: the same command line serves for every start.`,
		Example: "  deliberd run\n  deliberd run --data /var/lib/deliberd --join @invitation.txt",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := a.cfg.checkNode(); err != nil {
				return err
			}
			if invitation != "" {
				if err := a.join(cmd.Context(), invitation); err != nil {
					return err
				}
			}
			return a.runNode(cmd.Context())
		},
	}
	cmd.Flags().StringVar(&invitation, "join", "", "invitation line, @FILE, or - to read it from standard input")
	a.nodeFlags(cmd.Flags())
	return cmd
}

// nodeConfig is what the settings mean to package node.
func (a *app) nodeConfig() node.Config {
	log := a.logger()
	return node.Config{
		Dir: a.cfg.Data, Listen: a.cfg.Listen, Announce: a.cfg.Announce, HTTP: a.cfg.HTTP,
		TLSCert: a.cfg.TLSCert, TLSKey: a.cfg.TLSKey, InsecureHTTP: a.cfg.InsecureHTTP, Logger: log,
		OnProgress: func(p raftpath.Progress) { logProgress(log, p) },
	}
}

func (a *app) runNode(ctx context.Context) error {
	n, err := node.Start(ctx, a.nodeConfig())
	if err != nil {
		return err
	}
	started := map[string]any{"node_id": n.ID(), "cluster_id": n.Cluster(), "http": n.URL(), "addrs": n.Addrs()}
	err = a.show(started, func(w io.Writer) {
		facts(w, "node", n.ID(), "cluster", n.Cluster(), "http", n.URL(), "listening", strings.Join(n.Addrs(), ", "))
	})
	if err == nil {
		err = n.Wait(ctx)
	}
	return errors.Join(err, n.Close())
}

func (a *app) joinCommand() *cobra.Command {
	cmd := &cobra.Command{
		Use:   "join INVITATION [DIR]",
		Short: "Join a cluster by an invitation: a line, @FILE, or - for standard input",
		Long: `Join a cluster by an invitation. It makes the node's keys in DIR (default: here),
proves to a member that the invitation is held, and writes a deliberd.yaml when
there is none. The invitation's secret never leaves this machine. Repeating it
does no harm.`,
		Example: "  deliberd join @invitation.txt node5 && deliberd run --config node5/deliberd.yaml",
		Args:    maybe("INVITATION", "DIR"),

		PersistentPreRunE: a.loadIn(1),
		RunE: func(cmd *cobra.Command, given []string) error {
			if err := a.join(cmd.Context(), given[0]); err != nil {
				return err
			}
			return a.joined()
		},
	}
	a.nodeFlags(cmd.Flags())
	return cmd
}

func (a *app) join(ctx context.Context, text string) error {
	text, err := a.textOf(text)
	if err != nil {
		return err
	}
	inv, err := membership.ParseInvitation(text)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	cfg := a.nodeConfig()
	cfg.Announce = a.announced()
	return node.Join(ctx, cfg, inv)
}

// textOf is a value as written, from a @FILE, or from standard input for -.
func (a *app) textOf(value string) (string, error) {
	if value != "-" {
		return fromFile(value)
	}
	text, err := io.ReadAll(io.LimitReader(a.in, 1<<20))
	return string(text), err
}

func (a *app) joined() error {
	g, err := node.LoadGenesis(a.cfg.Data)
	if err != nil {
		return err
	}
	keys, err := node.LoadKeys(a.cfg.Data)
	if err != nil {
		return err
	}
	out := founded{ClusterID: g.Hash(), NodeID: keys.ID()}
	if _, err := a.describeNode(&out, a.cfg); err != nil {
		return err
	}
	a.warnAnnounced()
	return a.show(out, func(w io.Writer) {
		facts(w, "joined", out.ClusterID, "node", out.NodeID, "data", out.Data)
		fmt.Fprintf(w, "next: deliberd run --config %s\n", out.Config)
	})
}

// pinIdentity remembers the cluster in an identity file that does not name one yet.
func pinIdentity(path, cluster string) error {
	id, err := client.ReadIdentity(path)
	if err != nil || id.Cluster != "" {
		return err
	}
	id.Cluster = cluster
	return id.Replace(path)
}

func logProgress(log *slog.Logger, p raftpath.Progress) {
	if p.Done {
		log.Info("caught up", "from", p.From, "index", p.Index, "took", p.Elapsed)
		return
	}
	log.Info("catching up", "from", p.From, "bytes", p.Bytes, "of", p.Of, "index", p.Index, "target", p.Target)
}
