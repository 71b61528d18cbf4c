package membership

import (
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine"
)

func TestOneOperatorGrowsFromOneVoterToFour(t *testing.T) {
	c := newCluster(t, 1, 0)
	for i, name := range []string{"b", "c", "d"} {
		_, v := c.invite("op0", name, RoleVoter)
		if v.State != Open || v.Peer != keyOf(t, "invitation "+name).Public().PeerID() {
			t.Fatalf("%+v", v)
		}
		id := c.own(name)
		c.Must(id, KindJoin, c.joinBody(c.invitation(name, RoleVoter), name))
		if n, ok, err := MemberOf(c.Tx, id); err != nil || !ok || n.Role != RoleJoining || c.epoch() != uint64(i+1) {
			t.Fatalf("after joining: %+v, epoch %d", n, c.epoch())
		}
		var changed VotersChanged
		c.decode(c.Must(id, KindReady, Ready{}), &changed)
		if want := uint64(i + 2); changed.Epoch != want || c.epoch() != want || changed.N != i+2 || len(changed.Voters) != i+2 {
			t.Fatalf("%+v, epoch %d", changed, c.epoch())
		}
	}
	if got := strings.Join(c.events(0)[:3], " "); got != "cluster.invited cluster.joined cluster.voters_changed" {
		t.Fatal(got)
	}
	voters, err := Voters(c.Tx)
	if err != nil || len(voters) != 4 || !slices.IsSorted(voters) {
		t.Fatalf("%v, %v", voters, err)
	}
	for epoch := uint64(1); epoch <= 4; epoch++ {
		com, ok, err := Committee(c.Tx, epoch)
		if err != nil || !ok || com.Epoch != epoch || com.N() != int(epoch) {
			t.Fatalf("committee of epoch %d: %+v, %v, %v", epoch, com, ok, err)
		}
	}
	for _, epoch := range []uint64{0, 5} {
		if _, ok, err := Committee(c.Tx, epoch); ok || err != nil {
			t.Fatalf("epoch %d has a committee (%v)", epoch, err)
		}
	}
	var m MembersAnswer
	if err := c.Query("cluster.members", "op0", struct{}{}, &m); err != nil || m.N != 4 || m.F != 1 || m.Quorum != 3 || len(m.Members) != 4 {
		t.Fatalf("%+v, %v", m, err)
	}
}

func TestTheCommitteeHoldsThePBFTKeysAscendingByNode(t *testing.T) {
	c := newCluster(t, 2, 0, 1, 0, 1)
	com, _, err := Committee(c.Tx, 1)
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]string{}
	for _, name := range []string{"node0", "node1", "node2", "node3"} {
		names[nodeID(t, name)] = name
	}
	for i, m := range com.Members {
		if i > 0 && com.Members[i-1].Node >= m.Node {
			t.Fatal("not ascending")
		}
		if want := keyOf(t, names[m.Node]+" pbft").Public().Bytes(); string(m.Key[:]) != string(want) {
			t.Fatalf("%s has another key", names[m.Node])
		}
	}
}

func TestAVoterIsInvitedByAQuorumOfOperators(t *testing.T) {
	c := newCluster(t, 4, 0, 1, 2, 3) // q = 3
	i, v := c.invite("op0", "x", RoleVoter)
	if v.State != PendingApproval {
		t.Fatalf("open with one approval: %+v", v)
	}
	id := c.own("x")
	c.Refused(CodeInvitationPending, id, KindJoin, c.joinBody(i, "x"))
	c.Refused(CodeAlreadyApproved, "op0", KindApprove, Approve{Change: v.Change})
	var a ApprovedData
	c.decode(c.Must("op1", KindApprove, Approve{Change: v.Change}), &a)
	if a != (ApprovedData{Change: v.Change, Operator: "op1", Weight: 2, Needed: 3}) {
		t.Fatalf("%+v", a)
	}
	c.Refused(CodeInvitationPending, id, KindJoin, c.joinBody(i, "x"))
	c.decode(c.Must("op3", KindApprove, Approve{Change: v.Change}), &a)
	if !a.Done || a.Weight != 3 {
		t.Fatalf("%+v", a)
	}
	c.Refused(machine.CodeNotFound, "op2", KindApprove, Approve{Change: v.Change})
	c.Must(id, KindJoin, c.joinBody(i, "x"))
	c.Must(id, KindReady, Ready{})
	if c.epoch() != 2 {
		t.Fatalf("epoch %d", c.epoch())
	}
}

func TestAnOperatorCountsForTheVotersItAnswersFor(t *testing.T) {
	c := newCluster(t, 3, 0, 0, 0, 1) // op0 has 3 of 4, op2 none; q = 3
	if _, v := c.invite("op0", "x", RoleVoter); v.State != Open {
		t.Fatalf("three voters are a quorum: %+v", v)
	}
	_, v := c.invite("op2", "y", RoleVoter)
	if v.State != PendingApproval {
		t.Fatalf("an operator without voters opened it: %+v", v)
	}
	var a ApprovedData
	c.decode(c.Must("op1", KindApprove, Approve{Change: v.Change}), &a)
	if a.Weight != 1 || a.Done {
		t.Fatalf("%+v", a)
	}
	c.decode(c.Must("op0", KindApprove, Approve{Change: v.Change}), &a)
	if a.Weight != 4 || !a.Done {
		t.Fatalf("%+v", a)
	}
}

func TestApprovingAgainCountsTheVotersThereAreNow(t *testing.T) {
	c := newCluster(t, 3, 0, 0, 1, 2) // n = 4, q = 3; op0 stands for 2
	_, v := c.invite("op0", "x", RoleVoter)
	if v.State != PendingApproval {
		t.Fatalf("%+v", v)
	}
	var r RemoveAnswer
	c.decode(c.Must("op0", KindRemove, Remove{Node: nodeID(t, "node3")}), &r)
	c.Must("op1", KindApprove, Approve{Change: r.Change}) // 3 voters are left: q = 2
	var a ApprovedData
	c.decode(c.Must("op0", KindApprove, Approve{Change: v.Change}), &a)
	if !a.Done || a.Weight != 2 || a.Needed != 2 {
		t.Fatalf("%+v", a)
	}
}

func TestAnInvitationForAnotherOperatorNeedsItsApproval(t *testing.T) {
	c := newCluster(t, 3, 0, 0, 0, 1)
	key := keyOf(t, "invitation x").Public().X()
	c.Refused(machine.CodeNotAuthorized, "op0", KindInvite, Invite{Key: key, Role: RoleObserver, ExpiresInMS: 1000, Operator: "op2"})
	c.Refused(machine.CodeNotAuthorized, "op0", KindInvite, Invite{Key: key, Role: RoleVoter, ExpiresInMS: 1000, Operator: "nobody"})
	var v InvitationView
	c.decode(c.Must("op0", KindInvite, Invite{Key: key, Role: RoleVoter, ExpiresInMS: 1000, Operator: "op2"}), &v)
	if v.State != PendingApproval || v.Operator != "op2" || v.By != "op0" {
		t.Fatalf("%+v", v)
	}
	if asks, err := c.Machine.Asks(c.Tx, c.Ctx(), "op2"); err != nil || len(asks) != 1 || asks[0].Subject != v.Change {
		t.Fatalf("op2 is not asked: %v, %v", asks, err)
	}
	var a ApprovedData
	c.decode(c.Must("op1", KindApprove, Approve{Change: v.Change}), &a)
	if a.Done {
		t.Fatal("done without the one who will answer for the node")
	}
	c.decode(c.Must("op2", KindApprove, Approve{Change: v.Change}), &a)
	if !a.Done {
		t.Fatalf("%+v", a)
	}
}

func TestAnObserverIsItsOperatorsOwnAffair(t *testing.T) {
	c := newCluster(t, 4, 0, 1, 2, 3)
	id := c.join("op2", "watcher", RoleObserver)
	c.Refused(machine.CodeNotAuthorized, id, KindReady, Ready{})
	c.Refused(machine.CodeNotAuthorized, "op0", KindRemove, Remove{Node: id})
	c.Must("op2", KindRemove, Remove{Node: id})
	if c.epoch() != 1 {
		t.Fatalf("an observer moved the epoch to %d", c.epoch())
	}
	if p, ok, err := Lookup(c.Tx, id); err != nil || !ok || p.Active || p.Operator != "op2" || p.Kind != machine.Node {
		t.Fatalf("%+v, %v, %v", p, ok, err)
	}
}

func TestAJoiningNodeIsRemovedByItsOperatorOrByApprovals(t *testing.T) {
	c := newCluster(t, 4, 0, 1, 2, 3)
	own := c.join("op0", "own", RoleVoter)
	var r RemoveAnswer
	c.decode(c.Must("op1", KindRemove, Remove{Node: own}), &r)
	if r.Done || r.Weight != 1 || r.Needed != 3 {
		t.Fatalf("%+v", r)
	}
	c.Must("op0", KindRemove, Remove{Node: own}) // and with it the pending change
	c.Refused(machine.CodeNotFound, "op2", KindApprove, Approve{Change: r.Change})
	if _, ok, err := c.Machine.Next(c.Tx); ok || err != nil {
		t.Fatal("something is scheduled still")
	}
	other := c.join("op0", "other", RoleVoter)
	c.decode(c.Must("op1", KindRemove, Remove{Node: other}), &r)
	c.Must("op2", KindApprove, Approve{Change: r.Change})
	c.Must("op3", KindApprove, Approve{Change: r.Change})
	if n, _, _ := MemberOf(c.Tx, other); n.Role != RoleRemoved || c.epoch() != 1 {
		t.Fatalf("%+v, epoch %d", n, c.epoch())
	}
}

func TestAVoterIsRemovedByAQuorumAndNeverReturns(t *testing.T) {
	c := newCluster(t, 4, 0, 1, 2, 3)
	gone := nodeID(t, "node3")
	var r RemoveAnswer
	c.decode(c.Must("op0", KindRemove, Remove{Node: gone}), &r)
	if r.Done || c.epoch() != 1 {
		t.Fatalf("%+v", r)
	}
	c.Refused(CodeChangePending, "op1", KindRemove, Remove{Node: gone})
	c.Must("op1", KindApprove, Approve{Change: r.Change})
	from := len(c.Events)
	c.Must("op3", KindApprove, Approve{Change: r.Change}) // its own operator may agree
	if got := strings.Join(c.events(from), " "); got != "cluster.approved cluster.removed cluster.voters_changed" {
		t.Fatal(got)
	}
	voters, err := Voters(c.Tx)
	if err != nil || len(voters) != 3 || slices.Contains(voters, gone) || c.epoch() != 2 {
		t.Fatalf("%v, %v, epoch %d", voters, err, c.epoch())
	}
	if com, ok, _ := Committee(c.Tx, 1); !ok || com.N() != 4 {
		t.Fatal("the first committee is forgotten")
	}
	c.Refused(CodeRemoved, "op0", KindRemove, Remove{Node: gone})
	c.Refused(CodeRemoved, gone, KindAddress, Address{Addrs: []string{"/ip4/1.2.3.4"}})
	c.Refused(CodeRemoved, gone, KindReady, Ready{})
	i, v := c.invite("op0", "again", RoleVoter)
	c.Must("op1", KindApprove, Approve{Change: v.Change})
	b, err := i.Join(keyOf(t, "node3").Public(), keyOf(t, "fresh pbft").Public(), keyOf(t, "fresh attest").Public(), nil)
	if err != nil {
		t.Fatal(err)
	}
	c.Refused(CodeRemoved, gone, KindJoin, b)
	if gone, err := Removed(c.Tx); err != nil || len(gone) != 1 || gone[0].Removed == 0 {
		t.Fatalf("%+v, %v", gone, err)
	}
}

func TestTheLastVoterStays(t *testing.T) {
	c := newCluster(t, 1, 0)
	c.Refused(CodeLastVoter, "op0", KindRemove, Remove{Node: nodeID(t, "node0")})
	two := newCluster(t, 2, 0, 1) // q = 2: both operators
	var r0, r1 RemoveAnswer
	two.decode(two.Must("op0", KindRemove, Remove{Node: nodeID(t, "node0")}), &r0)
	two.decode(two.Must("op0", KindRemove, Remove{Node: nodeID(t, "node1")}), &r1)
	two.Must("op1", KindApprove, Approve{Change: r0.Change})
	two.Refused(CodeLastVoter, "op1", KindApprove, Approve{Change: r1.Change})
}

func TestAnInvitationIsUsedOnce(t *testing.T) {
	c := newCluster(t, 1, 0)
	i, _ := c.invite("op0", "x", RoleObserver)
	id := c.own("x")
	c.Must(id, KindJoin, c.joinBody(i, "x"))
	c.Refused(CodeAlreadyMember, id, KindJoin, c.joinBody(i, "x"))
	c.Refused(CodeInvitationUsed, c.own("y"), KindJoin, c.joinBody(i, "y"))
	if open, err := OpenInvitations(c.Tx); err != nil || len(open) != 0 {
		t.Fatalf("%v, %v", open, err)
	}
	var list InvitationsAnswer
	if err := c.Query("cluster.invitations", "op0", map[string]string{"state": "used"}, &list); err != nil || len(list.Invitations) != 1 || list.Invitations[0].Node != id {
		t.Fatalf("%+v, %v", list, err)
	}
}

func TestAnInvitationEndsWithItsLastMillisecond(t *testing.T) {
	c := newCluster(t, 2, 0, 1)
	i, v := c.invite("op0", "x", RoleObserver)
	_, pending := c.invite("op0", "p", RoleVoter)
	if next, ok, err := c.Machine.Next(c.Tx); err != nil || !ok || next != v.ExpiresMS {
		t.Fatalf("next %d, %v, %v", next, ok, err)
	}
	if open, err := OpenInvitations(c.Tx); err != nil || len(open) != 1 || open[0].Key != v.Key {
		t.Fatalf("%v, %v", open, err)
	}
	body := c.joinBody(i, "x")
	c.Advance(60_000)
	if got := strings.Join(c.events(2), " "); got != "cluster.expired cluster.expired" {
		t.Fatal(got)
	}
	c.Refused(CodeInvitationExpired, c.own("x"), KindJoin, body)
	c.Refused(machine.CodeNotFound, "op1", KindApprove, Approve{Change: pending.Change})
	if _, ok, err := c.Machine.Next(c.Tx); ok || err != nil {
		t.Fatal("something is scheduled still")
	}

	last := newCluster(t, 1, 0)
	i, _ = last.invite("op0", "x", RoleObserver)
	last.Advance(59_999)
	last.Must(last.own("x"), KindJoin, last.joinBody(i, "x"))
}

func TestAPendingRemovalExpires(t *testing.T) {
	c := newCluster(t, 2, 0, 1)
	var r RemoveAnswer
	c.decode(c.Must("op0", KindRemove, Remove{Node: nodeID(t, "node1")}), &r)
	c.Advance(MaxExpiryMS - 1)
	c.Refused(CodeAlreadyApproved, "op0", KindApprove, Approve{Change: r.Change})
	c.Advance(1)
	c.Refused(machine.CodeNotFound, "op1", KindApprove, Approve{Change: r.Change})
	c.Must("op0", KindRemove, Remove{Node: nodeID(t, "node1")}) // one may ask again
}

func TestJoiningWantsTheInvitationsKeyAndTheNodesOwn(t *testing.T) {
	c := newCluster(t, 1, 0)
	i, _ := c.invite("op0", "x", RoleVoter)
	id := c.own("x")
	good := c.joinBody(i, "x")
	with := func(change func(*Join)) Join { b := good; change(&b); return b }
	other := keyOf(t, "other").Public()

	c.Refused(CodeInvitationUnknown, id, KindJoin, with(func(b *Join) { b.Invitation = other.X() }))
	c.Refused(machine.CodeNotAuthorized, id, KindJoin, with(func(b *Join) { b.Role = RoleObserver }))
	c.Refused(machine.CodeBadSignature, id, KindJoin, with(func(b *Join) { b.PBFTKey = other.X() }))
	c.Refused(machine.CodeBadSignature, id, KindJoin, with(func(b *Join) { b.AttestKey = other.X() }))
	c.Refused(machine.CodeBadSignature, c.own("thief"), KindJoin, good)
	elsewhere := i
	elsewhere.Genesis = strings.Repeat("0", 64)
	c.Refused(machine.CodeBadSignature, id, KindJoin, c.joinBody(elsewhere, "x"))
	// The action must be signed by the key inside the peer id.
	c.Use(id, keyOf(t, "thief"))
	c.Refused(machine.CodeBadSignature, id, KindJoin, good)
	c.Refused(CodeBadKey, "agent-1", KindJoin, good)
	c.own("x")
	c.Must(id, KindJoin, good)
}

func TestAnActionForAnotherClusterIsRefused(t *testing.T) {
	c := newCluster(t, 1, 0)
	a, err := keyOf(t, "op0").Sign(strings.Repeat("1", 64), "01KE0000000000000000000001", KindRemove, "op0", Remove{Node: nodeID(t, "node0")})
	if err != nil {
		t.Fatal(err)
	}
	text, err := a.Encode()
	if err != nil {
		t.Fatal(err)
	}
	v, err := sign.Verify(text, keyOf(t, "op0").Public())
	if err != nil {
		t.Fatal(err)
	}
	if _, _, err := c.Machine.Apply(c.Tx, c.Ctx(), v); code(err) != CodeWrongGenesis {
		t.Fatal(err)
	}
}

func TestNoKeyIsTakenTwice(t *testing.T) {
	c := newCluster(t, 1, 0)
	i, v := c.invite("op0", "x", RoleVoter)
	c.Refused(CodeKeyInUse, "op0", KindInvite, Invite{Key: v.Key, Role: RoleVoter, ExpiresInMS: 1000})
	c.Refused(CodeKeyInUse, "op0", KindInvite, Invite{Key: keyOf(t, "node0 pbft").Public().X(), Role: RoleVoter, ExpiresInMS: 1000})
	c.Refused(CodeKeyInUse, "op0", KindInvite, Invite{Key: keyOf(t, "op0").Public().X(), Role: RoleVoter, ExpiresInMS: 1000})
	x, fresh := keyOf(t, "x").Public(), keyOf(t, "fresh").Public()
	for name, pair := range map[string][2]sign.PublicKey{
		"another's pbft key":   {keyOf(t, "node0 pbft").Public(), fresh},
		"another's identity":   {fresh, keyOf(t, "node0").Public()},
		"an operator's key":    {keyOf(t, "op0").Public(), fresh},
		"the invitation's key": {fresh, keyOf(t, "invitation x").Public()},
		"one key twice":        {fresh, fresh},
		"its own identity":     {x, fresh},
		// −A is at hand for whoever holds the scalar of A: as a second voter it
		// would make the whole committee unusable.
		"another's key with the other sign": {negated(t, keyOf(t, "node0 pbft").Public()), fresh},
		"its own key with the other sign":   {fresh, negated(t, fresh)},
	} {
		b, err := i.Join(x, pair[0], pair[1], nil)
		if err != nil {
			t.Fatal(err)
		}
		t.Run(name, func(*testing.T) { c.Refused(CodeKeyInUse, c.own("x"), KindJoin, b) })
	}
	small := "AQAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"
	c.Refused(CodeBadKey, "op0", KindInvite, Invite{Key: small, Role: RoleVoter, ExpiresInMS: 1000})
}

// negated is the key of the negated private scalar.
func negated(t *testing.T, k sign.PublicKey) sign.PublicKey {
	raw, err := sign.RawX(k.X())
	if err != nil {
		t.Fatal(err)
	}
	raw[31] ^= 0x80
	out, err := sign.NewPublicKey(raw[:])
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestOnlyOperatorsChangeTheCluster(t *testing.T) {
	c := newCluster(t, 1, 0)
	x := keyOf(t, "x").Public().X()
	node := nodeID(t, "node0")
	c.Refused(machine.CodeNotAuthorized, node, KindInvite, Invite{Key: x, Role: RoleVoter, ExpiresInMS: 1000})
	c.Refused(machine.CodeNotAuthorized, node, KindApprove, Approve{Change: "01KE0000000000000000000001"})
	c.Refused(machine.CodeNotAuthorized, "agent", KindRemove, Remove{Node: node})
	c.Refused(CodeNotMember, c.own("stranger"), KindReady, Ready{})
	c.Refused(CodeNotMember, c.own("stranger"), KindAddress, Address{Addrs: []string{"/ip4/1.2.3.4"}})
	c.Refused(CodeAlreadyMember, node, KindReady, Ready{})
	c.Refused(machine.CodeNotFound, "op0", KindRemove, Remove{Node: nodeID(t, "stranger")})
}

func TestANodeKeepsItsIdentityWhenItsAddressChanges(t *testing.T) {
	c := newCluster(t, 1, 0)
	id := nodeID(t, "node0")
	addrs := []string{"/ip4/10.9.9.9/tcp/7701", "/dns4/node.example/tcp/7701"}
	c.Must(id, KindAddress, Address{Addrs: addrs})
	members, err := Members(c.Tx)
	if err != nil || len(members) != 1 || members[0].Node != id || !slices.Equal(members[0].Addrs, addrs) {
		t.Fatalf("%+v, %v", members, err)
	}
	if c.epoch() != 1 || c.events(0)[0] != "cluster.address_changed" {
		t.Fatal("an address is no change of the voters")
	}
}

func TestOperatorsAreAskedForWhatTheyHaveNotApproved(t *testing.T) {
	c := newCluster(t, 4, 0, 1, 2)
	_, v := c.invite("op0", "x", RoleVoter)
	for principal, want := range map[string]int{"op0": 0, "op1": 1, "op2": 1, "op3": 0, "agent": 0} {
		asks, err := c.Machine.Asks(c.Tx, c.Ctx(), principal)
		if err != nil || len(asks) != want {
			t.Fatalf("%s: %v, %v", principal, asks, err)
		}
		if want == 1 && (asks[0].Ask != "review" || asks[0].Kind != KindApprove || asks[0].Subject != v.Change || asks[0].Deadline != v.ExpiresMS) {
			t.Fatalf("%+v", asks[0])
		}
	}
	var list ChangesAnswer
	if err := c.Query("cluster.changes", "op1", struct{}{}, &list); err != nil || len(list.Changes) != 1 || list.Changes[0].Needed != 2 || list.Changes[0].Weight != 1 {
		t.Fatalf("%+v, %v", list, err)
	}
}

func TestTheGenesisQueryShowsTheFoundingDocument(t *testing.T) {
	c := newCluster(t, 2, 0, 1)
	var g GenesisAnswer
	if err := c.Query("cluster.genesis", "op0", struct{}{}, &g); err != nil || g.Hash != g.Genesis.Hash() || g.Genesis.Check() != nil {
		t.Fatalf("%+v, %v", g, err)
	}
	if err := c.Query("cluster.genesis", "op0", map[string]int{"x": 1}, &g); code(err) != machine.CodeMalformed {
		t.Fatal(err)
	}
}

func TestQuorumsAreThoseOfByzantineVoters(t *testing.T) {
	for n, want := range map[int][2]int{1: {0, 1}, 2: {0, 2}, 3: {0, 2}, 4: {1, 3}, 5: {1, 4}, 6: {1, 4}, 7: {2, 5}, 10: {3, 7}, 100: {33, 67}} {
		f, q := Faults(n), Quorum(n)
		if f != want[0] || q != want[1] {
			t.Errorf("n=%d: f=%d q=%d, want %v", n, f, q, want)
		}
		if 2*q-n < f+1 || q > n-f {
			t.Errorf("n=%d: quorums of %d do not meet in an honest voter, or do not exist without the faulty", n, q)
		}
	}
}
