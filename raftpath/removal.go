package raftpath

import "slices"

// A voter that is removed hears of it in its own log, as a rule: raft sends it
// the entry once, and announce the commit. Both may get lost, and a node that
// was down hears nothing. It then learns by asking: members refuse it with
// p2p.CodeRemoved, or tell a later configuration without it (see stray). One
// of them may lie, so it takes enough voters to believe it.

// hearRemoved takes one peer's word that this node has been removed. Words are
// kept for the life of the process: nobody returns under the same id.
func (p *Path) hearRemoved(peer string) {
	whose := p.electorate()
	if !containsString(whose, peer) || peer == p.id {
		return
	}
	need := enoughWords(whose, p.id)
	p.mu.Lock()
	if p.gone || p.told[peer] {
		p.mu.Unlock()
		return
	}
	if p.told == nil {
		p.told = map[string]bool{}
	}
	p.told[peer] = true
	have := 0
	for _, id := range whose {
		if p.told[id] {
			have++
		}
	}
	p.mu.Unlock()
	p.log.Warn("a voter says that this node has been removed", "voter", peer, "say", have, "needed", need)
	if have >= need {
		p.leave("enough voters say so", 0)
	}
}

func (p *Path) removed() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.gone
}

// electorate is the voters this node knows of.
func (p *Path) electorate() []string {
	if config, err := p.Head().configuration(); err == nil && len(config.Servers) > 0 {
		return voters(config)
	}
	return p.cfg.Founders
}

// enoughWords is how many of the voters must say that id has been removed:
// more than the f that may be Byzantine, and never a single one where there
// are two others.
func enoughWords(voters []string, id string) int {
	others := len(voters)
	if slices.Contains(voters, id) {
		others--
	}
	return min(max((len(voters)-1)/3+1, 2), others)
}

// leave remembers that this node has been removed, and tells it once.
func (p *Path) leave(why string, index uint64) {
	p.mu.Lock()
	before := p.gone
	p.gone = true
	p.mu.Unlock()
	if before {
		return
	}
	p.log.Warn("this node is no longer a member", "why", why, "index", index)
	if p.cfg.OnRemoved != nil {
		p.cfg.OnRemoved()
	}
}
