package api

import "sync"

// Gate counts who holds a long poll or a stream open, in total and for each
// principal, and turns away what is too much.
type Gate struct {
	mu          sync.Mutex
	total, each int
	open        int
	by          map[string]int
}

// NewGate makes a gate for total holders, each principal at most each.
func NewGate(total, each int) *Gate {
	return &Gate{total: total, each: each, by: map[string]int{}}
}

// Enter takes a place; Leave must be called exactly when it returns true.
func (g *Gate) Enter(principal string) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.open >= g.total || g.by[principal] >= g.each {
		return false
	}
	g.open++
	g.by[principal]++
	return true
}

// Leave gives the place back.
func (g *Gate) Leave(principal string) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.open--
	if g.by[principal]--; g.by[principal] == 0 {
		delete(g.by, principal)
	}
}
