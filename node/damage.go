package node

import (
	"fmt"
	"path/filepath"

	"github.com/deliberd/deliberd/machine"
)

// Codes of damaged data folders.
const (
	CodeCorrupt  = "data_corrupt" // a database of the data folder cannot be read
	CodeRaftLost = "raft_lost"    // Raft's log and votes are gone
)

// recoverCorrupt turns what a damaged database does to its reader (a failed
// assertion, a fault in mapped memory) into a refusal that says what to do.
func recoverCorrupt(err *error, dir string) {
	if why := recover(); why != nil {
		*err = machine.Refuse(CodeCorrupt, "remove this node from the cluster and join again with a new data folder; a copy of the folder from earlier does not know what this node has signed since",
			"a database in %s is damaged: %.200s", dir, fmt.Sprint(why))
	}
}

// checkVotes refuses to run a voter that has lost Raft's folder. It would vote
// again in a term in which it has voted, and for a log that lacks what it has
// acknowledged: a write that a majority has could be undone.
func (n *Node) checkVotes() error {
	ran, err := n.noted(votedRaft)
	if err != nil || !ran || n.hasRaftFolder() {
		return err
	}
	return machine.Refuse(CodeRaftLost, "remove this node from the cluster and join again with a new data folder",
		"the folder with Raft's log and votes is missing from %s", n.cfg.Dir)
}

func (n *Node) hasRaftFolder() bool {
	found, err := filepath.Glob(n.cfg.path("raft-*"))
	return err == nil && len(found) > 0
}

// markRaft notes once that Raft runs here.
func (n *Node) markRaft() error {
	if n.marked || !n.hasRaftFolder() {
		return nil
	}
	err := n.note(votedRaft)
	n.marked = err == nil
	return err
}
