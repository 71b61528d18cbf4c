package raftpath

import (
	"fmt"
	"slices"

	"github.com/hashicorp/raft"
)

// decodeConfiguration reads an encoded raft configuration. raft panics on one
// that does not decode, now and at every later start.
func decodeConfiguration(b []byte) (c raft.Configuration, err error) {
	defer func() {
		if recover() != nil {
			err = errFrame
		}
	}()
	c = raft.DecodeConfiguration(b)
	seen := map[raft.ServerID]bool{}
	for _, s := range c.Servers {
		if s.Suffrage != raft.Voter || s.ID == "" || string(s.Address) != string(s.ID) || seen[s.ID] {
			return c, fmt.Errorf("%w: a configuration that is not distinct voters under their peer ids", errFrame)
		}
		seen[s.ID] = true
	}
	return c, nil
}

// configurationOf is the raft configuration of voters, in ascending order.
func configurationOf(voters []string) raft.Configuration {
	ids := slices.Sorted(slices.Values(voters))
	var c raft.Configuration
	for _, id := range slices.Compact(ids) {
		c.Servers = append(c.Servers, server(id))
	}
	return c
}

func server(id string) raft.Server {
	return raft.Server{Suffrage: raft.Voter, ID: raft.ServerID(id), Address: raft.ServerAddress(id)}
}

func hasVoter(c raft.Configuration, id string) bool {
	return slices.ContainsFunc(c.Servers, func(s raft.Server) bool { return string(s.ID) == id })
}

// voters lists a configuration's servers, ascending.
func voters(c raft.Configuration) []string {
	out := make([]string, 0, len(c.Servers))
	for _, s := range c.Servers {
		out = append(out, string(s.ID))
	}
	slices.Sort(out)
	return out
}
