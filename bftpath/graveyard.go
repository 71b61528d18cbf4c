package bftpath

import "github.com/deliberd/deliberd/pbft"

// maxForgotten bounds how many forgotten instances are remembered: the newest.
const maxForgotten = 1 << 17

// graveyard is the set of forgotten instances, oldest dropped first.
type graveyard struct {
	set   map[pbft.Digest]struct{}
	order []pbft.Digest
}

func (g *graveyard) holds(key pbft.Digest) bool {
	_, ok := g.set[key]
	return ok
}

// add reports whether the key is new.
func (g *graveyard) add(key pbft.Digest) bool {
	if g.holds(key) {
		return false
	}
	if g.set == nil {
		g.set = map[pbft.Digest]struct{}{}
	}
	g.set[key] = struct{}{}
	g.order = append(g.order, key)
	if len(g.order) > maxForgotten {
		delete(g.set, g.order[0])
		g.order = g.order[1:]
	}
	return true
}
