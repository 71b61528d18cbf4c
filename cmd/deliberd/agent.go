package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/registry"
)

func (a *app) agentCommand() *cobra.Command {
	return group("agent", "Keys, registration, grants and inboxes of agents and humans",
		`  deliberd agent new ada
  deliberd agent register ada --as ops
  deliberd agent grant ada "risk.*" --authority 0.9 --trust 0.8 --as ops
  deliberd agent inbox --as ada --wait 1m`,
		a.agentNew(), a.agentRegister(), a.agentRotate(), a.agentRevoke(), a.agentGrant(), a.agentUngrant(),
		a.agentToken(), a.agentList(), a.agentShow(), a.agentReputation(), a.agentInbox())
}

// madeKey is what agent new tells. The secret stays in the file.
type madeKey struct {
	ID   string   `json:"id"`
	File string   `json:"file"`
	JWK  sign.JWK `json:"jwk"`
}

func (a *app) agentNew() *cobra.Command {
	var out, cluster string
	cmd := &cobra.Command{
		Use:   "new ID",
		Short: "Make a key for an agent, a human or an operator",
		Long: `Make a key for an agent, a human or an operator and write it to an identity
file that only its owner can read. An existing file is never overwritten.`,
		Example: "  deliberd agent new ada\n  deliberd agent new ops --out /secure/ops.json",
		Args:    args("ID"),
		RunE: func(_ *cobra.Command, given []string) error {
			id := given[0]
			if !registry.ValidID(id) {
				return usage("%q is no id: use 1 to 128 characters of A-Z a-z 0-9 . _ : @ / -", id)
			}
			if cluster != "" && len(cluster) != 64 {
				return usage("--cluster is not a genesis hash of 64 hex digits")
			}
			path := out
			if path == "" {
				path = a.identityPath(fileName(id))
			}
			me, err := client.NewIdentity(id)
			if err != nil {
				return err
			}
			me.Cluster = cluster
			if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
				return err
			}
			if err := me.Create(path); err != nil {
				return err
			}
			made := madeKey{ID: id, File: path, JWK: me.PublicJWK()}
			return a.show(made, func(w io.Writer) {
				facts(w, "made", made.ID, "key", made.JWK.KID, "file", made.File)
				fmt.Fprintf(w, "next, an operator: deliberd agent register %s --key %s\n", id, path)
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "identity file to write (default: ID.json in the keys folder)")
	cmd.Flags().StringVar(&cluster, "cluster", "", "genesis hash of the cluster it is for; can be added later by itself")
	return cmd
}

// fileName is an id as the name of a file: "/" and ":" would lead elsewhere.
func fileName(id string) string {
	out := []byte(id)
	for i, b := range out {
		if b == '/' || b == ':' || i == 0 && b == '.' {
			out[i] = '_'
		}
	}
	return string(out)
}

func (a *app) agentRegister() *cobra.Command {
	var kind, name, key string
	cmd := &cobra.Command{
		Use:     "register ID",
		Short:   "Register an agent or a human, as an operator",
		Example: `  deliberd agent register ada --as ops` + "\n" + `  deliberd agent register grace --kind human --name "Grace H." --key grace.json --as ops`,
		Args:    args("ID"),
		RunE: func(cmd *cobra.Command, given []string) error {
			path := key
			if path == "" {
				path = a.identityPath(fileName(given[0]))
			}
			return a.call(cmd, func(ctx context.Context, c *client.Client) error {
				return a.register(ctx, c, path, given[0], machine.PrincipalKind(kind), name)
			})
		},
	}
	cmd.Flags().StringVar(&kind, "kind", "agent", "agent or human")
	cmd.Flags().StringVar(&name, "name", "", "name for people")
	cmd.Flags().StringVar(&key, "key", "", "identity file of the newcomer (default: ID.json in the keys folder)")
	return cmd
}

func (a *app) register(ctx context.Context, c *client.Client, path, id string, kind machine.PrincipalKind, name string) error {
	them, err := client.ReadIdentity(path)
	if err != nil {
		return err
	}
	if them.ID != id {
		return usage("%s is the identity of %s, not of %s", path, them.ID, id)
	}
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	body, err := registry.NewRegister(cluster, c.Me().ID, id, kind, name, them.Key())
	if err != nil {
		return err
	}
	answer, err := c.Do(ctx, registry.KindRegister, body)
	if err != nil {
		return err
	}
	if err := pinIdentity(path, cluster); err != nil {
		return err
	}
	return a.show(answer, func(w io.Writer) { fmt.Fprintf(w, "registered %s as %s\n", id, kind) })
}

func (a *app) agentRotate() *cobra.Command {
	return &cobra.Command{
		Use:   "rotate",
		Short: "Replace one's own key; the old one stops at once",
		Long: `Replace one's own key (--as). The new key is written beside the identity file
first, as FILE.next, and takes the file's place once the cluster has accepted
it. Repeat the command when it was interrupted.`,
		Example: "  deliberd agent rotate --as ada",
		Args:    args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			return a.call(cmd, func(ctx context.Context, c *client.Client) error { return a.rotate(ctx, c) })
		},
	}
}

func (a *app) rotate(ctx context.Context, c *client.Client) error {
	me, path := c.Me(), a.identityPath(a.cfg.As)
	cluster, err := c.Cluster(ctx)
	if err != nil {
		return err
	}
	next, err := client.ReadIdentity(path + ".next")
	if client.CodeOf(err) == client.CodeNoIdentity {
		if next, err = client.NewIdentity(me.ID); err == nil {
			next.Cluster = cluster
			err = next.Create(path + ".next")
		}
	}
	if err != nil {
		return err
	}
	body, err := registry.NewRotate(cluster, me.ID, next.Key())
	if err != nil {
		return err
	}
	answer, err := c.Do(ctx, registry.KindRotate, body)
	// An interrupted run may have been accepted: then the next key is the one that counts.
	if client.CodeOf(err) == machine.CodeRevoked {
		if _, rerr := a.whoami(ctx, next); rerr == nil {
			err = nil
		}
	}
	if err != nil {
		return err
	}
	if err := errors.Join(next.Replace(path), os.Remove(path+".next")); err != nil {
		return err
	}
	return a.show(answer, func(w io.Writer) { facts(w, "rotated", me.ID, "key", next.Key().KID(), "file", path) })
}

// whoami asks the registry about an identity, under its own key.
func (a *app) whoami(ctx context.Context, id *client.Identity) (registry.View, error) {
	c, err := client.New(a.cfg.Node, client.As(id))
	if err != nil {
		return registry.View{}, err
	}
	var v registry.View
	return v, c.Query(ctx, "registry.get", map[string]string{"id": id.ID}, &v)
}

func (a *app) agentRevoke() *cobra.Command {
	var kid, reason string
	cmd := &cobra.Command{
		Use:     "revoke ID",
		Short:   "Revoke a key, or a principal for ever",
		Example: `  deliberd agent revoke ada --reason "key leaked" --as ops`,
		Args:    args("ID"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if reason == "" {
				return usage("%s needs --reason", cmd.CommandPath())
			}
			return a.act(cmd, registry.KindRevoke, registry.Revoke{ID: given[0], KID: kid, Reason: reason}, func(json.RawMessage) error {
				fmt.Fprintf(a.out, "revoked %s%s\n", given[0], yes(kid != "", "'s key "+kid))
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&kid, "kid", "", "only this key (RFC 7638 thumbprint)")
	cmd.Flags().StringVar(&reason, "reason", "", "why")
	return cmd
}

func (a *app) agentGrant() *cobra.Command {
	var authority, trust string
	cmd := &cobra.Command{
		Use:     "grant ID PATTERN",
		Short:   "Grant authority and trust in a domain, as an operator",
		Example: `  deliberd agent grant ada "risk.*" --authority 0.9 --trust 0.85 --as ops`,
		Args:    args("ID", "PATTERN"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if !isDecimal(authority) || !isDecimal(trust) {
				return usage("%s needs --authority and --trust, decimals from 0 to 1", cmd.CommandPath())
			}
			body := map[string]any{"principal": given[0], "pattern": given[1], "authority": json.RawMessage(authority), "trust": json.RawMessage(trust)}
			return a.act(cmd, registry.KindGrant, body, func(json.RawMessage) error {
				fmt.Fprintf(a.out, "granted %s in %s: authority %s, trust %s\n", given[0], given[1], authority, trust)
				return nil
			})
		},
	}
	cmd.Flags().StringVar(&authority, "authority", "", "domain authority, 0 to 1")
	cmd.Flags().StringVar(&trust, "trust", "", "trust score, 0 to 1")
	return cmd
}

func (a *app) agentUngrant() *cobra.Command {
	return &cobra.Command{
		Use:     "ungrant ID PATTERN",
		Short:   "Take a grant back, as an operator",
		Example: `  deliberd agent ungrant ada "risk.*" --as ops`,
		Args:    args("ID", "PATTERN"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.act(cmd, registry.KindUngrant, registry.Ungrant{Principal: given[0], Pattern: given[1]}, func(json.RawMessage) error {
				fmt.Fprintf(a.out, "took back %s from %s\n", given[1], given[0])
				return nil
			})
		},
	}
}

func (a *app) agentToken() *cobra.Command {
	var life time.Duration
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make a bearer token for reading, good for an hour at most",
		Example: `  curl -H "Authorization: Bearer $(deliberd agent token --as ada)" \
    http://127.0.0.1:7700/events?for=me`,
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			c, err := a.dial(false)
			if err != nil {
				return err
			}
			ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
			defer cancel()
			me := *c.Me()
			if me.Cluster, err = c.Cluster(ctx); err != nil {
				return err
			}
			text, err := me.Token(life)
			if err != nil {
				return err
			}
			expires := time.Now().Add(life).UTC().Truncate(time.Second)
			return a.show(map[string]any{"token": text, "sub": me.ID, "cluster": me.Cluster, "expires_at": expires}, func(w io.Writer) { fmt.Fprintln(w, text) })
		},
	}
	cmd.Flags().DurationVar(&life, "for", time.Hour, "how long it is good")
	return cmd
}
