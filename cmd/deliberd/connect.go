package main

import (
	"context"
	"encoding/json"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
)

// identityPath is the file of an identity: a path, or a name in the keys folder.
func (a *app) identityPath(name string) string {
	if strings.ContainsAny(name, `/\`) || strings.HasSuffix(name, ".json") {
		return name
	}
	return filepath.Join(a.cfg.Keys, name+".json")
}

// me is who acts.
func (a *app) me() (*client.Identity, error) {
	if a.cfg.As == "" {
		return nil, &client.Error{Code: client.CodeNoIdentity, Message: "It is not said who acts.", Fix: "add --as NAME (or DELIBERD_AS); `deliberd agent new NAME` makes one"}
	}
	return client.ReadIdentity(a.identityPath(a.cfg.As))
}

// dial makes a client; anonymous ones can only ask for the status.
func (a *app) dial(anonymous bool) (*client.Client, error) {
	if anonymous {
		return client.New(a.cfg.Node)
	}
	me, err := a.me()
	if err != nil {
		return nil, err
	}
	return client.New(a.cfg.Node, client.As(me))
}

// call runs f with a client and the time limit of the command line.
func (a *app) call(cmd *cobra.Command, f func(ctx context.Context, c *client.Client) error) error {
	c, err := a.dial(false)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(cmd.Context(), a.timeout)
	defer cancel()
	return f(ctx, c)
}

// act submits an action and prints the answer: as JSON whole, else by text.
func (a *app) act(cmd *cobra.Command, kind string, body any, text func(result json.RawMessage) error) error {
	return a.call(cmd, func(ctx context.Context, c *client.Client) error {
		answer, err := c.Do(ctx, kind, body)
		if err != nil {
			return err
		}
		if a.json {
			return a.show(answer, nil)
		}
		return text(answer.Result)
	})
}

// ask runs a query into out and prints it: as JSON as it came, else by text.
func (a *app) ask(cmd *cobra.Command, query string, params any, out any, text func()) error {
	var options []client.ReadOption
	if stale, err := cmd.Flags().GetBool("stale"); err == nil && stale {
		options = append(options, client.Stale())
	}
	return a.call(cmd, func(ctx context.Context, c *client.Client) error {
		var raw json.RawMessage
		if err := c.Query(ctx, query, params, &raw, options...); err != nil {
			return err
		}
		if a.json {
			return a.show(raw, nil)
		}
		if err := json.Unmarshal(raw, out); err != nil {
			return err
		}
		text()
		return nil
	})
}

// staleFlag lets a read answer from the node's own state.
func staleFlag(cmd *cobra.Command) *cobra.Command {
	cmd.Flags().Bool("stale", false, "read this node's own state, which may be behind, without asking the leader")
	return cmd
}

// fromFile takes a value as it is written, or with @ the content of a file.
// readBounded reads a file of at most limit bytes, and no more of a longer one.
func readBounded(name string, limit int64) ([]byte, error) {
	f, err := os.Open(name)
	if err != nil {
		return nil, usage("%v", err)
	}
	defer f.Close()
	text, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err == nil && int64(len(text)) > limit {
		err = usage("%s is longer than %d bytes", name, limit)
	}
	return text, err
}

func fromFile(value string) (string, error) {
	if name, ok := strings.CutPrefix(value, "@"); ok {
		text, err := readBounded(name, 1<<20)
		return string(text), err
	}
	return value, nil
}

// jsonValue takes JSON as it is written or from a @FILE. With words, what is
// not JSON is a string.
func jsonValue(flag, value string, words bool) (json.RawMessage, error) {
	text, err := fromFile(value)
	if err != nil {
		return nil, err
	}
	if raw := json.RawMessage(strings.TrimSpace(text)); json.Valid(raw) {
		return raw, nil
	}
	if !words {
		return nil, usage("%s is not JSON: %s", flag, line(text, 60))
	}
	return json.Marshal(text)
}
