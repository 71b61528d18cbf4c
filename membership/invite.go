package membership

import (
	"slices"

	"github.com/deliberd/deliberd/machine"
)

// InvitationView is an invitation as answers, events and queries show it.
type InvitationView struct {
	Key       string          `json:"key"`  // x of its public key
	Peer      string          `json:"peer"` // the peer id of that key
	Role      Role            `json:"role"`
	Operator  string          `json:"operator"` // will answer for the node
	By        string          `json:"by"`
	State     InvitationState `json:"state"`
	ExpiresMS machine.Stamp   `json:"expires_ms"`     // usable before this stamp
	Change    string          `json:"change"`         // what to approve while it is pending_approval
	Node      string          `json:"node,omitempty"` // who used it
}

// ApprovedData is the answer of cluster.approve and the data of cluster.approved.
type ApprovedData struct {
	Change   string `json:"change"`
	Operator string `json:"operator"` // who approved
	Weight   int    `json:"weight"`   // current voters that the approving operators answer for
	Needed   int    `json:"needed"`
	Done     bool   `json:"done"` // the change has been made
}

func (i *invitationRecord) view() (InvitationView, error) {
	key, err := goodKey("key", i.Key)
	return InvitationView{Key: i.Key, Peer: EncodePeerID(key), Role: i.Role, Operator: i.Operator, By: i.By,
		State: i.State, ExpiresMS: i.Expires, Change: i.Change, Node: i.Node}, err
}

func (s *step) invite() (any, error) {
	b, err := decode[Invite](s.action.Body)
	if err != nil {
		return nil, err
	}
	if err := s.checkOperator(s.action.Actor); err != nil {
		return nil, err
	}
	operator := b.Operator
	if operator == "" {
		operator = s.action.Actor
	}
	if operator != s.action.Actor {
		if b.Role == RoleObserver {
			return nil, machine.Refuse(machine.CodeNotAuthorized, "have "+operator+" invite it", "an observer is invited by the operator who answers for it")
		}
		if err := s.checkOperator(operator); err != nil {
			return nil, err
		}
	}
	key, err := goodKey("key", b.Key)
	if err != nil {
		return nil, err
	}
	if taken, err := s.keyTaken(key); err != nil || taken {
		return nil, orInUse(err, b.Key)
	}
	i := &invitationRecord{Key: b.Key, Role: b.Role, Operator: operator, By: s.action.Actor, State: Open,
		Expires: s.ctx.Now + machine.Stamp(b.ExpiresInMS), Change: s.action.ID}
	if b.Role == RoleVoter {
		c := &changeRecord{Change: s.action.ID, What: changeInvite, Subject: b.Key, Operator: operator,
			Approvals: []string{s.action.Actor}, Expires: i.Expires}
		a, err := s.weigh(c)
		if err != nil {
			return nil, err
		}
		if !a.Done {
			i.State = PendingApproval
			if err := s.saveChange(c); err != nil {
				return nil, err
			}
		}
	}
	if err := s.takeKey(key); err != nil {
		return nil, err
	}
	if err := s.schedule(i.Expires, prefixInvitation, i.Key); err != nil {
		return nil, err
	}
	if err := s.saveInvitation(i); err != nil {
		return nil, err
	}
	v, err := i.view()
	s.emit("cluster.invited", i.Key, v)
	return v, err
}

// weigh counts the voters that a change's approvers stand for.
func (s state) weigh(c *changeRecord) (ApprovedData, error) {
	e, err := s.current()
	if err != nil {
		return ApprovedData{}, err
	}
	a := ApprovedData{Change: c.Change, Needed: Quorum(len(e.Voters))}
	for _, v := range e.Voters {
		if slices.Contains(c.Approvals, v.Operator) {
			a.Weight++
		}
	}
	a.Done = a.Weight >= a.Needed && (c.Operator == "" || slices.Contains(c.Approvals, c.Operator))
	return a, nil
}

func (s *step) approve() (any, error) {
	b, err := decode[Approve](s.action.Body)
	if err != nil {
		return nil, err
	}
	if err := s.checkOperator(s.action.Actor); err != nil {
		return nil, err
	}
	c, err := s.change(b.Change)
	if err != nil {
		return nil, err
	}
	if c == nil {
		return nil, machine.Refuse(machine.CodeNotFound, "cluster.changes lists what waits for approval", "no change %s waits for approval", b.Change)
	}
	again := slices.Contains(c.Approvals, s.action.Actor)
	if !again {
		c.Approvals = append(c.Approvals, s.action.Actor)
		slices.Sort(c.Approvals)
	}
	a, err := s.weigh(c)
	if err != nil {
		return nil, err
	}
	// Approving twice counts once, but the voters may have changed meanwhile.
	if again && !a.Done {
		return nil, machine.Refuse(CodeAlreadyApproved, "wait for other operators", "%s has approved %s; %d of %d voters are stood for", s.action.Actor, c.Change, a.Weight, a.Needed)
	}
	a.Operator = s.action.Actor
	if !a.Done {
		s.emit("cluster.approved", c.Change, a)
		return a, s.saveChange(c)
	}
	s.emit("cluster.approved", c.Change, a)
	if c.What == changeRemove {
		return a, s.removeNode(c.Subject, c.Change)
	}
	if err := s.dropChange(c.Change); err != nil {
		return nil, err
	}
	return a, s.open(c.Subject)
}

// open makes an approved invitation usable.
func (s *step) open(x string) error {
	i, err := s.invitation(x)
	if err != nil {
		return err
	}
	if i == nil {
		return missing("invitation", x)
	}
	i.State = Open
	return s.saveInvitation(i)
}

// checkOperator refuses anybody but a founding operator.
func (s *step) checkOperator(id string) error {
	raw, err := s.tx.Get([]byte(prefixOperator + id))
	if err != nil {
		return err
	}
	if raw == nil {
		return machine.Refuse(machine.CodeNotAuthorized, "name an operator of the genesis", "%s is no operator", id)
	}
	return nil
}
