package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/node/embedded"
)

// devSocket is where a running development cluster takes orders, in its folder.
const devSocket = "dev.sock"

// codeNoDevCluster is the refusal when no development cluster runs in a folder.
const codeNoDevCluster = "no_dev_cluster"

// devState is what kill and heal answer: the nodes that run.
type devState struct {
	Running []int `json:"running"`
	Killed  []int `json:"killed"`
}

func (a *app) devKillCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "kill N", Short: "Stop node N of a running development cluster", Example: "  deliberd dev kill 2",
		Args: args("N"),
		RunE: func(cmd *cobra.Command, given []string) error {
			n, err := strconv.Atoi(given[0])
			if err != nil || n < 1 {
				return usage("N is the number of a node, from 1; got %q", given[0])
			}
			return a.devOrder(cmd.Context(), dir, fmt.Sprintf("/kill/%d", n))
		},
	}
	cmd.Flags().StringVar(&dir, "dir", devDir, "the cluster's folder")
	return cmd
}

func (a *app) devHealCommand() *cobra.Command {
	var dir string
	cmd := &cobra.Command{
		Use: "heal", Short: "Start the killed nodes of a development cluster again", Example: "  deliberd dev heal",
		Args: args(),
		RunE: func(cmd *cobra.Command, _ []string) error { return a.devOrder(cmd.Context(), dir, "/heal") },
	}
	cmd.Flags().StringVar(&dir, "dir", devDir, "the cluster's folder")
	return cmd
}

// devOrder sends one order to the process that runs the cluster of a folder.
func (a *app) devOrder(ctx context.Context, dir, path string) error {
	ctx, cancel := context.WithTimeout(ctx, a.timeout)
	defer cancel()
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", filepath.Join(dir, devSocket))
	}}
	defer transport.CloseIdleConnections()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://dev"+path, nil)
	if err != nil {
		return err
	}
	resp, err := (&http.Client{Transport: transport}).Do(req)
	if err != nil {
		return machine.Refuse(codeNoDevCluster, "start one with `deliberd dev`, or name its folder with --dir", "no development cluster runs in %s", dir)
	}
	defer resp.Body.Close()
	var answer struct {
		devState
		Error *machine.Refusal `json:"error"`
	}
	if err := json.NewDecoder(io.LimitReader(resp.Body, 1<<20)).Decode(&answer); err != nil {
		return err
	}
	if answer.Error != nil {
		return answer.Error
	}
	return a.show(answer.devState, func(w io.Writer) {
		facts(w, "running", fmt.Sprint(answer.Running), "killed", fmt.Sprint(answer.Killed))
	})
}

// devListen takes orders until ctx ends.
func devListen(ctx context.Context, dir string, c *embedded.Cluster) error {
	path := filepath.Join(dir, devSocket)
	if err := os.Remove(path); err != nil && !errors.Is(err, os.ErrNotExist) {
		return err // a socket that an earlier process left behind; the nodes' own locks keep out a living one
	}
	l, err := net.Listen("unix", path)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("POST /kill/{n}", func(w http.ResponseWriter, r *http.Request) {
		n, err := strconv.Atoi(r.PathValue("n"))
		if err == nil {
			err = c.Kill(n - 1)
		}
		devAnswer(w, c, err)
	})
	mux.HandleFunc("POST /heal", func(w http.ResponseWriter, r *http.Request) {
		var errs []error
		for i := range c.Len() {
			errs = append(errs, c.Revive(r.Context(), i))
		}
		devAnswer(w, c, errors.Join(append(errs, c.WaitReady(r.Context()))...))
	})
	server := &http.Server{Handler: mux, ReadHeaderTimeout: 5 * time.Second}
	failed := make(chan error, 1)
	go func() { failed <- server.Serve(l) }()
	select {
	case err := <-failed:
		return err
	case <-ctx.Done():
	}
	err = server.Close()
	<-failed
	return err
}

func devAnswer(w http.ResponseWriter, c *embedded.Cluster, err error) {
	state := devState{Running: []int{}, Killed: []int{}}
	for i := range c.Len() {
		if c.Node(i) != nil {
			state.Running = append(state.Running, i+1)
		} else {
			state.Killed = append(state.Killed, i+1)
		}
	}
	answer := map[string]any{"running": state.Running, "killed": state.Killed}
	if err != nil {
		refusal, ok := machine.IsRefusal(err)
		if !ok {
			refusal = machine.Refuse("internal", "see what the cluster's process printed", "%v", err)
		}
		answer["error"] = refusal
	}
	_ = json.NewEncoder(w).Encode(answer) // the asker is gone: nobody to tell
}
