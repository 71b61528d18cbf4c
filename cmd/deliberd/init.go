package main

import (
	"crypto/rand"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/node"
)

// founded is what init tells.
type founded struct {
	ClusterID string `json:"cluster_id"`
	NodeID    string `json:"node_id"`
	Operator  string `json:"operator,omitempty"`
	Config    string `json:"config"`
	Data      string `json:"data"`
	Identity  string `json:"identity,omitempty"` // the operator's key file
}

func (a *app) initCommand() *cobra.Command {
	var operator, name, genesis string
	cmd := &cobra.Command{
		Use:   "init [DIR]",
		Short: "Found a cluster of one operator, or put a signed genesis into a data folder",
		Long: `Found a cluster of one node and one operator in DIR (default: here): writes a
commented deliberd.yaml, the operator's key, the node's keys and a signed
genesis. With --genesis it uses a genesis that several operators have signed,
and the node's keys that "genesis founder" made.`,
		Example: "  deliberd init lab --operator ops && cd lab && deliberd run",
		Args:    maybe("DIR"),

		PersistentPreRunE: a.loadIn(0),
		RunE: func(cmd *cobra.Command, _ []string) error {
			if err := os.MkdirAll(filepath.Dir(a.configPath()), 0o755); err != nil {
				return err
			}
			var out founded
			var err error
			if genesis != "" {
				out, err = a.initWith(genesis)
				if cmd.Flags().Changed("operator") {
					out.Operator = operator
				}
			} else {
				out, err = a.initAlone(operator, name)
			}
			if err != nil {
				return err
			}
			return a.finishInit(out, operator)
		},
	}
	cmd.Flags().StringVar(&operator, "operator", "operator", "id of the operator who answers for the node")
	cmd.Flags().StringVar(&name, "name", "deliberd", "name of the cluster, for people")
	cmd.Flags().StringVar(&genesis, "genesis", "", "a genesis signed by all its operators")
	a.nodeFlags(cmd.Flags())
	return cmd
}

func (a *app) configPath() string {
	path, _ := a.configFile()
	return path
}

// initAlone founds a cluster of one node and one operator.
func (a *app) initAlone(operator, name string) (founded, error) {
	if g, err := node.LoadGenesis(a.cfg.Data); err == nil {
		return founded{}, machine.Refuse(node.CodeFounded, "start it with `deliberd run`, or choose another folder", "The data folder %s belongs to cluster %.12s already.", a.cfg.Data, g.Hash())
	}
	keys, err := node.EnsureKeys(a.cfg.Data, rand.Reader)
	if err != nil {
		return founded{}, err
	}
	me, path, err := a.operatorIdentity(operator)
	if err != nil {
		return founded{}, err
	}
	g := membership.Genesis{
		V: membership.GenesisVersion, Name: name, CreatedAt: time.Now().UTC().Format("2006-01-02T15:04:05.000Z"),
		Operators: []membership.Operator{{ID: operator, JWK: me.PublicJWK()}},
		Voters:    []membership.Voter{voterOf(keys, operator, a.announced())},
		Params:    membership.DefaultParameters(),
	}
	if g.Nonce, err = newNonce(); err != nil {
		return founded{}, err
	}
	if err := g.SignBy(me.Key()); err != nil {
		return founded{}, err
	}
	if err := node.Found(a.cfg.Data, g); err != nil {
		return founded{}, err
	}
	me.Cluster = g.Hash()
	return founded{ClusterID: g.Hash(), NodeID: keys.ID(), Operator: operator, Identity: path}, me.Replace(path)
}

// operatorIdentity takes the operator's identity from the keys folder, or makes it.
func (a *app) operatorIdentity(id string) (*client.Identity, string, error) {
	if err := os.MkdirAll(a.cfg.Keys, 0o700); err != nil {
		return nil, "", err
	}
	path := a.identityPath(id)
	me, err := client.ReadIdentity(path)
	if client.CodeOf(err) == client.CodeNoIdentity {
		if me, err = client.NewIdentity(id); err == nil {
			err = me.Create(path)
		}
	}
	return me, path, err
}

// initWith puts a genesis of several operators into the data folder.
func (a *app) initWith(file string) (founded, error) {
	g, err := readGenesis(file)
	if err != nil {
		return founded{}, err
	}
	if err := node.Found(a.cfg.Data, g); err != nil {
		return founded{}, err
	}
	keys, err := node.LoadKeys(a.cfg.Data)
	return founded{ClusterID: g.Hash(), NodeID: keys.ID()}, err
}

func (a *app) finishInit(out founded, operator string) error {
	file := a.cfg
	if out.Operator != "" && file.As == "" {
		file.As = operator
	}
	written, err := a.describeNode(&out, file)
	if err != nil {
		return err
	}
	a.warnAnnounced()
	return a.show(out, func(w io.Writer) {
		facts(w, "cluster", out.ClusterID, "node", out.NodeID, "operator", out.Operator, "operator key", out.Identity, "data", out.Data, "configuration", out.Config)
		if !written {
			fmt.Fprintln(w, "kept the configuration that was there")
		}
		fmt.Fprintf(w, "next: deliberd run --config %s\n", out.Config)
	})
}

// describeNode writes the configuration of a new node's folder, unless there is one.
func (a *app) describeNode(out *founded, file settings) (written bool, err error) {
	out.Config, out.Data = a.configPath(), a.cfg.Data
	dir := filepath.Dir(out.Config)
	file.Data, file.Keys = relativeTo(dir, file.Data), relativeTo(dir, file.Keys)
	if file.source["node"] == "" && file.HTTP != "" {
		scheme := "http://"
		if file.TLSCert != "" {
			scheme = "https://"
		}
		file.Node = []string{scheme + file.HTTP}
	}
	return writeConfig(out.Config, file)
}

// relativeTo writes a path as seen from a folder, when it is below it.
func relativeTo(dir, path string) string {
	if rel, err := filepath.Rel(dir, path); err == nil && filepath.IsLocal(rel) {
		return rel
	}
	if abs, err := filepath.Abs(path); err == nil {
		return abs
	}
	return path
}
