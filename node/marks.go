package node

import (
	"encoding/json"

	"github.com/deliberd/deliberd/machine"
)

// uses are what a node's keys have been used for. From then on the node needs
// the file that remembers it. A use is noted in the key file and in the node's
// own part of the store, so that a node restored from either alone does not
// begin afresh and contradict what it has said.
type uses struct {
	SignedPBFT bool `json:"signed_pbft,omitempty"` // the PBFT key may have signed: it signs only with its journal
	VotedRaft  bool `json:"voted_raft,omitempty"`  // this node may have voted in Raft: it is a voter only with Raft's folder
}

// A use is one of them, and where the store notes it.
type use struct {
	store []byte
	flag  func(*uses) *bool
}

var (
	signedPBFT = use{[]byte("pbft-key-used"), func(u *uses) *bool { return &u.SignedPBFT }}
	votedRaft  = use{[]byte("raft-ran"), func(u *uses) *bool { return &u.VotedRaft }}
)

// noted reports whether a use has been noted, in either place.
func (n *Node) noted(u use) (bool, error) {
	noted := *u.flag(&n.uses)
	err := n.store.Local(func(tx machine.Tx) error {
		mark, err := tx.Get(u.store)
		noted = noted || mark != nil
		return err
	})
	return noted, err
}

// note remembers a use in both places.
func (n *Node) note(u use) error {
	if flag := u.flag(&n.uses); !*flag {
		*flag = true
		keys := n.keys
		keys.uses = n.uses
		if err := keys.replace(n.cfg.Dir); err != nil {
			n.log.Warn("the key file cannot be written: when this node's state is lost, do not start it with these keys again", "err", err)
		}
	}
	return n.store.UpdateLocal(func(tx machine.Tx) error { return tx.Put(u.store, []byte{1}) })
}

// replace writes the key file afresh.
func (k Keys) replace(dir string) error {
	text, err := json.MarshalIndent(k, "", "  ")
	if err != nil {
		return err
	}
	return writeFile(Config{Dir: dir}.path(keysFile), append(text, '\n'))
}
