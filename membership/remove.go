package membership

import (
	"slices"
	"strings"

	"github.com/deliberd/deliberd/machine"
)

// RemovedData is the data of cluster.removed and part of the answer of cluster.remove.
type RemovedData struct {
	Node   string `json:"node"`
	Role   Role   `json:"role"` // what it was
	By     string `json:"by"`   // whose action completed the removal
	Change string `json:"change"`
}

// RemoveAnswer is the answer of cluster.remove.
type RemoveAnswer struct {
	Node   string `json:"node"`
	Change string `json:"change"` // what to approve while it is not done
	Weight int    `json:"weight"` // current voters stood for; 0 of 0 where no approval is needed
	Needed int    `json:"needed"`
	Done   bool   `json:"done"`
}

// RemovalProposed is the data of cluster.removal_proposed.
type RemovalProposed struct {
	Node      string        `json:"node"`
	Change    string        `json:"change"`
	By        string        `json:"by"`
	ExpiresMS machine.Stamp `json:"expires_ms"`
}

// ExpiredData is the data of cluster.expired.
type ExpiredData struct {
	What    string `json:"what"`    // invite or remove
	Subject string `json:"subject"` // the invitation's x, or the node
	Change  string `json:"change"`
}

func (s *step) remove() (any, error) {
	b, err := decode[Remove](s.action.Body)
	if err != nil {
		return nil, err
	}
	if err := s.checkOperator(s.action.Actor); err != nil {
		return nil, err
	}
	n, err := s.node(b.Node)
	if err != nil {
		return nil, err
	}
	switch {
	case n == nil:
		return nil, machine.Refuse(machine.CodeNotFound, "cluster.members lists them", "%s is no member", b.Node)
	case n.Role == RoleRemoved:
		return nil, machine.Refuse(CodeRemoved, "nothing is left to do", "%s has been removed", b.Node)
	case n.Role != RoleVoter && n.Operator == s.action.Actor:
		answer := RemoveAnswer{Node: n.Node, Change: s.action.ID, Done: true}
		return answer, s.removeNode(n.Node, s.action.ID)
	case n.Role == RoleObserver:
		return nil, machine.Refuse(machine.CodeNotAuthorized, "have "+n.Operator+" remove it", "an observer is removed by the operator who answers for it")
	}
	return s.proposeRemoval(n)
}

// proposeRemoval removes a voter, or another operator's joining node, if the
// actor alone stands for enough voters; else it opens a change to approve.
func (s *step) proposeRemoval(n *Node) (any, error) {
	if n.Removal != "" {
		return nil, machine.Refuse(CodeChangePending, "approve change "+n.Removal, "the removal of %s waits for approvals", n.Node).With("change", n.Removal)
	}
	if err := s.checkNotLast(n); err != nil {
		return nil, err
	}
	c := &changeRecord{Change: s.action.ID, What: changeRemove, Subject: n.Node, Approvals: []string{s.action.Actor}, Expires: s.ctx.Now + MaxExpiryMS}
	a, err := s.weigh(c)
	if err != nil {
		return nil, err
	}
	answer := RemoveAnswer{Node: n.Node, Change: c.Change, Weight: a.Weight, Needed: a.Needed, Done: a.Done}
	if a.Done {
		return answer, s.removeNode(n.Node, c.Change)
	}
	n.Removal = c.Change
	if err := s.saveNode(n); err != nil {
		return nil, err
	}
	if err := s.schedule(c.Expires, prefixChange, c.Change); err != nil {
		return nil, err
	}
	s.emit("cluster.removal_proposed", n.Node, RemovalProposed{Node: n.Node, Change: c.Change, By: s.action.Actor, ExpiresMS: c.Expires})
	return answer, s.saveChange(c)
}

func (s *step) checkNotLast(n *Node) error {
	if n.Role != RoleVoter {
		return nil
	}
	e, err := s.current()
	if err == nil && len(e.Voters) == 1 {
		err = machine.Refuse(CodeLastVoter, "invite another voter first", "a cluster keeps at least one voter")
	}
	return err
}

// removeNode ends a node for ever; the end of a voter begins an epoch.
func (s *step) removeNode(id, change string) error {
	n, err := s.node(id)
	if err != nil {
		return err
	}
	if n == nil || n.Role == RoleRemoved {
		return missing("member", id)
	}
	if err := s.checkNotLast(n); err != nil {
		return err
	}
	if err := s.dropRemoval(n); err != nil {
		return err
	}
	was := n.Role
	s.emit("cluster.removed", id, RemovedData{Node: id, Role: was, By: s.action.Actor, Change: change})
	n.Role, n.Removed = RoleRemoved, s.ctx.Now
	if err := s.saveNode(n); err != nil || was != RoleVoter {
		return err
	}
	e, err := s.current()
	if err != nil {
		return err
	}
	_, err = s.beginEpoch(e, slices.DeleteFunc(e.Voters, func(v Voter) bool { return v.Node == id }))
	return err
}

// dropRemoval forgets the pending change that would remove a node, if there is one.
func (s *step) dropRemoval(n *Node) error {
	if n.Removal == "" {
		return nil
	}
	c, err := s.change(n.Removal)
	if err != nil {
		return err
	}
	if c == nil {
		return missing("change", n.Removal)
	}
	n.Removal = ""
	if err := s.unschedule(c.Expires, prefixChange, c.Change); err != nil {
		return err
	}
	return s.dropChange(c.Change)
}

// expire ends what is due: invitations and pending removals.
func (s *step) expire() error {
	var due []string
	var keys [][]byte
	err := s.tx.Range([]byte(prefixExpiry), []byte("x0"), func(k, _ []byte) (bool, error) {
		at, what, err := splitExpiry(k)
		if err != nil || at > s.ctx.Now {
			return false, err
		}
		due, keys = append(due, what), append(keys, slices.Clone(k))
		return true, nil
	})
	if err != nil {
		return err
	}
	for n, what := range due {
		if err := s.tx.Delete(keys[n]); err != nil {
			return err
		}
		if x, ok := strings.CutPrefix(what, prefixInvitation); ok {
			err = s.expireInvitation(x)
		} else {
			err = s.expireRemoval(strings.TrimPrefix(what, prefixChange))
		}
		if err != nil {
			return err
		}
	}
	return nil
}

func (s *step) expireInvitation(x string) error {
	i, err := s.invitation(x)
	if err != nil {
		return err
	}
	if i == nil {
		return missing("invitation", x)
	}
	i.State = Expired
	s.emit("cluster.expired", x, ExpiredData{What: string(changeInvite), Subject: x, Change: i.Change})
	if err := s.dropChange(i.Change); err != nil {
		return err
	}
	return s.saveInvitation(i)
}

func (s *step) expireRemoval(change string) error {
	c, err := s.change(change)
	if err != nil {
		return err
	}
	if c == nil {
		return missing("change", change)
	}
	n, err := s.node(c.Subject)
	if err != nil {
		return err
	}
	if n == nil {
		return missing("node", c.Subject)
	}
	n.Removal = ""
	s.emit("cluster.expired", n.Node, ExpiredData{What: string(changeRemove), Subject: n.Node, Change: change})
	if err := s.dropChange(change); err != nil {
		return err
	}
	return s.saveNode(n)
}
