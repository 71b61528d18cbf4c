package main

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
)

// invited is what invite tells.
type invited struct {
	Invitation string                    `json:"invitation"` // a secret: hand it over safely
	State      membership.InvitationView `json:"state"`

	addrs []string // in it
}

func (a *app) inviteCommand() *cobra.Command {
	var role, operator string
	var expires time.Duration
	var addrs []string
	cmd := &cobra.Command{
		Use:   "invite",
		Short: "Invite a node: prints one line that admits one node once",
		Long: `Invite a node as an operator. The line that is printed holds a secret and admits
one node once; hand it to the node's operator safely. In a cluster of several
operators a voter's invitation opens when enough of them have approved it.`,
		Example: "  deliberd invite --role voter --expires 24h --as ops > invitation.txt",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, c *client.Client) error {
				out, err := invite(ctx, c, membership.Role(role), operator, expires, addrs)
				if err != nil {
					return err
				}
				a.warnLoopback(out.addrs, "the invitation can be used on this machine only: it names loopback addresses; have members announce others, or name them with --addr")
				if out.State.State != membership.Open {
					fmt.Fprintf(a.err, "not open yet: other operators run `deliberd approve %s`\n", out.State.Change)
				}
				return a.show(out, func(w io.Writer) { fmt.Fprintln(w, out.Invitation) })
			})
		},
	}
	f := cmd.Flags()
	f.StringVar(&role, "role", "voter", "voter or observer")
	f.StringVar(&operator, "operator", "", "who will answer for the node (default: the one who invites)")
	f.DurationVar(&expires, "expires", 24*time.Hour, "how long it can be used, 7 days at most")
	f.StringSliceVar(&addrs, "addr", nil, "members' addresses for the invitation, multiaddrs with /p2p/ID (default: those the cluster knows)")
	return cmd
}

func invite(ctx context.Context, c *client.Client, role membership.Role, operator string, expires time.Duration, addrs []string) (invited, error) {
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return invited{}, err
	}
	if len(addrs) == 0 {
		if addrs, err = memberAddrs(ctx, c); err != nil {
			return invited{}, err
		}
	}
	key, err := sign.NewKey(rand.Reader)
	if err != nil {
		return invited{}, err
	}
	answer, err := c.Do(ctx, membership.KindInvite, membership.Invite{Key: key.Public().X(), Role: role, ExpiresInMS: expires.Milliseconds(), Operator: operator})
	if err != nil {
		return invited{}, err
	}
	out := invited{addrs: addrs}
	if err := json.Unmarshal(answer.Result, &out.State); err != nil {
		return invited{}, err
	}
	out.Invitation = membership.Invitation{Genesis: cluster, Seed: base64.RawURLEncoding.EncodeToString(key.Seed()), Role: role, ExpiresMS: out.State.ExpiresMS, Addrs: addrs}.Encode()
	return out, nil
}

// memberAddrs are where a newcomer can knock, as many as an invitation holds.
func memberAddrs(ctx context.Context, c *client.Client) ([]string, error) {
	peers, err := c.Peers(ctx)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, p := range peers {
		for _, addr := range p.Addresses {
			if !strings.Contains(addr, "/p2p/") {
				addr += "/p2p/" + p.NodeID
			}
			out = append(out, addr)
		}
	}
	if len(out) == 0 {
		return nil, machine.Refuse("no_address", "give one with --addr /ip4/…/tcp/…/p2p/ID", "The cluster knows no address of a member.")
	}
	return out[:min(len(out), membership.MaxInvitationAddrs)], nil
}

func (a *app) approveCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "approve [CHANGE]",
		Short: "Approve a change of the voters, or list those that wait for approvals",
		Long: `Approve a change of the voters that another operator has asked for. Without
CHANGE it lists the changes that wait, and what each still needs.`,
		Example: "  deliberd approve --as ops-b\n  deliberd approve 01JD0000000000000000000000 --as ops-b",
		Args:    maybe("CHANGE"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if len(given) == 0 {
				return a.listChanges(cmd)
			}
			return a.act(cmd, membership.KindApprove, membership.Approve{Change: given[0]}, func(raw json.RawMessage) error {
				var d membership.ApprovedData
				if err := json.Unmarshal(raw, &d); err != nil {
					return err
				}
				word := "waits for more"
				if d.Done {
					word = "made"
				}
				fmt.Fprintf(a.out, "approved %s: %d of %d voters' operators, %s\n", d.Change, d.Weight, d.Needed, word)
				return nil
			})
		},
	}
}

func (a *app) listChanges(cmd *cobra.Command) error {
	var list membership.ChangesAnswer
	return a.ask(cmd, "cluster.changes", nil, &list, func() {
		var rows [][]string
		for _, c := range list.Changes {
			rows = append(rows, []string{c.Change, c.What, c.Subject, c.Operator, strings.Join(c.Approvals, ", "), fmt.Sprintf("%d of %d", c.Weight, c.Needed), until(c.ExpiresMS)})
		}
		table(a.out, "nothing waits for approval", []string{"CHANGE", "WHAT", "SUBJECT", "OPERATOR", "APPROVED BY", "VOTERS", "EXPIRES"}, rows)
	})
}

func (a *app) removeCommand() *cobra.Command {
	return &cobra.Command{
		Use:     "remove NODE",
		Short:   "Remove a node for ever; others may have to approve",
		Example: "  deliberd remove 12D3KooWGjMCwkHzAvXwCMUNdF1mLzSWbBrXkFF3ufCNRCyrCAAS --as ops",
		Args:    args("NODE"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.act(cmd, membership.KindRemove, membership.Remove{Node: given[0]}, func(raw json.RawMessage) error {
				var r membership.RemoveAnswer
				if err := json.Unmarshal(raw, &r); err != nil {
					return err
				}
				return a.removed(given[0], r)
			})
		},
	}
}

func (a *app) removed(id string, r membership.RemoveAnswer) error {
	if r.Done {
		fmt.Fprintf(a.out, "removed %s\n", id)
		return nil
	}
	fmt.Fprintf(a.out, "asked to remove %s: %d of %d voters' operators\n", id, r.Weight, r.Needed)
	fmt.Fprintf(a.out, "next, other operators: deliberd approve %s\n", r.Change)
	return nil
}
