package main

import (
	"context"
	"fmt"
	"io"
	"runtime"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/node"
)

func (a *app) statusCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "status",
		Short:   "Describe a node and its view of the cluster; needs no identity",
		Example: "  deliberd status\n  deliberd status --node http://127.0.0.1:7710 --json",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial(true)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
			defer cancel()
			st, err := c.Status(ctx)
			if err != nil {
				return err
			}
			return a.show(st, func(w io.Writer) { printStatus(w, st) })
		},
	}
}

func printStatus(w io.Writer, st client.Status) {
	ready := "yes"
	if !st.Ready {
		ready = "no: without leader, or catching up"
	}
	n, f := len(st.Voters), st.ByzantineTolerance
	voters := fmt.Sprintf("%d, tolerates %d faulty", n, f)
	if n < 4 {
		voters = fmt.Sprintf("%d: fewer than 4 tolerate no faulty one", n)
	}
	guilty := ""
	if len(st.Guilty) > 0 {
		guilty = strings.Join(st.Guilty, " ") + "; `deliberd guilt` says of what"
	}
	facts(w,
		"node", st.NodeID, "cluster", st.ClusterID, "role", st.Role, "leader", st.Leader, "ready", ready,
		"voters", voters, "term", number(st.Term), "generation", number(st.Generation), "epoch", number(st.Epoch),
		"guilty", guilty, "applied index", number(st.AppliedIndex), "decision log", fmt.Sprintf("size %d, root %s", st.DecisionLog.Size, st.DecisionLog.Root), "version", st.Version)
}

func (a *app) peersCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "peers",
		Short:   "List the nodes that a node knows",
		Example: "  deliberd peers --as ops",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, c *client.Client) error {
				peers, err := c.Peers(ctx)
				if err != nil {
					return err
				}
				return a.show(peers, func(w io.Writer) { printPeers(w, peers) })
			})
		},
	}
}

func printPeers(w io.Writer, peers []client.Peer) {
	var rows [][]string
	for _, p := range peers {
		link := "none"
		switch {
		case p.Self:
			link = "self"
		case p.Connected:
			link = "up"
		}
		rows = append(rows, []string{p.NodeID, p.Role + yes(p.Leader, ", leader"), p.Operator, link, strings.Join(p.Addresses, " ")})
	}
	table(w, "no nodes", []string{"NODE", "ROLE", "OPERATOR", "LINK", "ADDRESSES"}, rows)
}

func (a *app) guiltCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "guilt",
		Short: "List the voters that a node can prove to have signed two different votes",
		Long: `List the voters against which a node holds proof: two different votes in one slot
(round, view and phase), both signed with the voter's key. An honest voter comes
to that only when an older copy of its data folder was put back, or its key runs
in two places. Ask its operator, and remove the voter. --json prints the proofs;
package pbft verifies them against the voters of the epoch.`,
		Example: "  deliberd guilt\n  deliberd guilt --as ops --json",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, c *client.Client) error {
				proofs, err := c.Guilt(ctx)
				if err != nil {
					return err
				}
				return a.show(proofs, func(w io.Writer) { printGuilt(w, proofs) })
			})
		},
	}
}

func printGuilt(w io.Writer, proofs []client.Guilt) {
	var rows [][]string
	for _, g := range proofs {
		in, v := g.Proof.Instance, g.Proof.A
		rows = append(rows, []string{g.NodeID, number(in.Epoch), in.Purpose, in.ID, number(v.View), v.Phase.String()})
	}
	table(w, "no proof against any voter", []string{"NODE", "EPOCH", "DECISION", "ID", "VIEW", "PHASE"}, rows)
}

func (a *app) versionCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "version",
		Short:   "Print the version",
		Example: "  deliberd version --json",
		Args:    args(),
		RunE: func(*cobra.Command, []string) error {
			v := map[string]string{"version": node.Version, "go": runtime.Version(), "platform": runtime.GOOS + "/" + runtime.GOARCH}
			return a.show(v, func(w io.Writer) { fmt.Fprintf(w, "deliberd %s (%s, %s)\n", v["version"], v["go"], v["platform"]) })
		},
	}
}
