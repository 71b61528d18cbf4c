package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/membership"
)

// Codes of this package's refusals.
const (
	CodeNotFounded = "not_founded"     // the data folder belongs to no cluster yet
	CodeFounded    = "already_founded" // the data folder belongs to a cluster
	CodeNotWelcome = "not_welcome"     // no member lets the invitation in: nobody there, not approved yet, used, or expired
)

// Found puts a signed genesis into a data folder whose node the genesis
// names. Found again with the same genesis it does nothing.
func Found(dir string, g membership.Genesis) error {
	if err := g.Check(); err != nil {
		return err
	}
	keys, err := LoadKeys(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return machine.Refuse(CodeNotFounded, "name the data folder in which \"deliberd genesis founder\" made the node's keys", "folder %s holds no node", dir)
	}
	if err != nil {
		return fmt.Errorf("keys of the node: %w", err)
	}
	if !names(g, keys.ID()) {
		return machine.Refuse(membership.CodeWrongGenesis, "found the cluster with a genesis that lists this node, or join it by an invitation",
			"the genesis does not name node %s", keys.ID())
	}
	return saveGenesis(dir, g)
}

func names(g membership.Genesis, node string) bool {
	for _, v := range g.Voters {
		if v.Node == node {
			return true
		}
	}
	return false
}

// saveGenesis writes the genesis, or checks that the folder holds the same.
func saveGenesis(dir string, g membership.Genesis) error {
	old, err := LoadGenesis(dir)
	if err == nil {
		if old.Hash() != g.Hash() {
			return machine.Refuse(CodeFounded, "use another data folder", "folder %s belongs to cluster %s, not %s", dir, old.Hash(), g.Hash())
		}
		return nil
	}
	if r, ok := machine.IsRefusal(err); !ok || r.Code != CodeNotFounded {
		return err
	}
	return writeFile(Config{Dir: dir}.path(genesisFile), append(g.Encode(), '\n'))
}

// LoadGenesis reads and checks a data folder's genesis. It refuses with
// not_founded when there is none.
func LoadGenesis(dir string) (membership.Genesis, error) {
	raw, err := os.ReadFile(Config{Dir: dir}.path(genesisFile))
	if errors.Is(err, fs.ErrNotExist) {
		return membership.Genesis{}, machine.Refuse(CodeNotFounded, "run deliberd init, genesis new or join first", "folder %s belongs to no cluster", dir)
	}
	if err != nil {
		return membership.Genesis{}, err
	}
	g, err := membership.ParseGenesis(raw)
	if err != nil {
		return membership.Genesis{}, err
	}
	return g, g.Check()
}

// writeFile replaces a file so that a crash leaves the old or the new one whole.
func writeFile(path string, text []byte) error {
	f, err := os.OpenFile(path+".new", os.O_WRONLY|os.O_CREATE|os.O_TRUNC, 0o600)
	if err != nil {
		return err
	}
	_, err = f.Write(text)
	if err := errors.Join(err, f.Sync(), f.Close()); err != nil {
		return err
	}
	return os.Rename(path+".new", path)
}
