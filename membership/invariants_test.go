package membership

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/deliberd/deliberd/machine"
)

// TestWhateverIsAskedTheVotersChangeByOneAnEpoch drives a cluster with random
// actions, sensible and not, and checks after each what must always hold.
func TestWhateverIsAskedTheVotersChangeByOneAnEpoch(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		operators := rapid.IntRange(1, 4).Draw(rt, "operators")
		voters := rapid.SliceOfN(rapid.IntRange(0, operators-1), 1, 5).Draw(rt, "voters")
		c := newCluster(t, operators, voters...)
		w := &walker{cluster: c, operators: operators}
		for i := range voters {
			w.names = append(w.names, fmt.Sprintf("node%d", i))
		}
		for range rapid.IntRange(1, 40).Draw(rt, "steps") {
			before := w.look()
			w.step(rt)
			w.check(rt, before, w.look())
		}
	})
}

type walker struct {
	cluster
	operators int
	names     []string // of every node there ever was, and some that never will be
	invited   []string
	changes   []string
}

type look struct {
	epoch   uint64
	voters  []string
	removed []string
	history [][]Voter
}

func (w *walker) look() look {
	w.t.Helper()
	l := look{epoch: w.epoch()}
	var err error
	if l.voters, err = Voters(w.Tx); err != nil {
		w.t.Fatal(err)
	}
	gone, err := Removed(w.Tx)
	if err != nil {
		w.t.Fatal(err)
	}
	for _, n := range gone {
		l.removed = append(l.removed, n.Node)
	}
	for e := uint64(1); e <= l.epoch; e++ {
		com, ok, err := VotersOf(w.Tx, e)
		if err != nil || !ok {
			w.t.Fatalf("epoch %d: %v, %v", e, ok, err)
		}
		l.history = append(l.history, com)
	}
	return l
}

func (w *walker) step(rt *rapid.T) {
	op := fmt.Sprintf("op%d", rapid.IntRange(0, w.operators-1).Draw(rt, "operator"))
	pick := func(from []string, what string) string {
		if len(from) == 0 {
			return ""
		}
		return rapid.SampledFrom(from).Draw(rt, what)
	}
	var answer json.RawMessage
	var err error
	switch rapid.SampledFrom([]string{"invite", "join", "join", "ready", "ready", "remove", "approve", "approve", "time"}).Draw(rt, "step") {
	case "invite":
		name := fmt.Sprintf("new%d", len(w.invited))
		role := rapid.SampledFrom([]Role{RoleVoter, RoleObserver}).Draw(rt, "role")
		answer, err = w.Do(op, KindInvite, Invite{Key: keyOf(w.t, "invitation "+name).Public().X(), Role: role, ExpiresInMS: 60_000})
		if err == nil {
			w.invited = append(w.invited, name)
			w.names = append(w.names, name)
		}
	case "join":
		if name := pick(w.invited, "invited"); name != "" {
			role := rapid.SampledFrom([]Role{RoleVoter, RoleVoter, RoleObserver}).Draw(rt, "role")
			_, err = w.Do(w.own(name), KindJoin, w.joinBody(w.invitation(name, role), name))
		}
	case "ready":
		_, err = w.Do(w.own(pick(w.names, "node")), KindReady, Ready{})
	case "remove":
		answer, err = w.Do(op, KindRemove, Remove{Node: w.own(pick(w.names, "node"))})
	case "approve":
		if change := pick(w.changes, "change"); change != "" {
			_, err = w.Do(op, KindApprove, Approve{Change: change})
		}
	case "time":
		w.Advance(rapid.Int64Range(1, 90_000).Draw(rt, "ms"))
	}
	if _, refused := machine.IsRefusal(err); err != nil && !refused {
		rt.Fatal(err)
	}
	var change struct {
		Change string `json:"change"`
	}
	if answer != nil && json.Unmarshal(answer, &change) == nil {
		w.changes = append(w.changes, change.Change)
	}
}

func (w *walker) check(rt *rapid.T, before, after look) {
	if after.epoch != before.epoch && after.epoch != before.epoch+1 {
		rt.Fatalf("epoch went from %d to %d", before.epoch, after.epoch)
	}
	diff := 0
	for _, v := range before.voters {
		if !slices.Contains(after.voters, v) {
			diff++
		}
	}
	for _, v := range after.voters {
		if !slices.Contains(before.voters, v) {
			diff++
		}
	}
	if uint64(diff) != after.epoch-before.epoch {
		rt.Fatalf("%d voters changed from epoch %d to %d", diff, before.epoch, after.epoch)
	}
	if len(after.voters) == 0 {
		rt.Fatal("no voter is left")
	}
	for i, com := range before.history {
		if fmt.Sprint(com) != fmt.Sprint(after.history[i]) {
			rt.Fatalf("the committee of epoch %d changed afterwards", i+1)
		}
	}
	for _, gone := range before.removed {
		if !slices.Contains(after.removed, gone) {
			rt.Fatalf("%s came back", gone)
		}
	}
	w.checkRecords(rt, after)
}

// checkRecords wants roles, keys, pending changes and expiries to tell one story.
func (w *walker) checkRecords(rt *rapid.T, l look) {
	var voters []string
	seen := map[string]bool{}
	scheduled := 0
	all, err := nodes(w.Tx, func(Role) bool { return true })
	if err != nil {
		rt.Fatal(err)
	}
	for _, n := range all {
		if n.Role == RoleVoter {
			voters = append(voters, n.Node)
		}
		for _, x := range []string{n.PBFTKey, n.AttestKey} {
			if seen[x] {
				rt.Fatalf("key %s is used twice", x)
			}
			seen[x] = true
		}
		if n.Removal != "" {
			scheduled++
			if c, err := (state{w.Tx}).change(n.Removal); err != nil || c == nil || c.Subject != n.Node {
				rt.Fatalf("pending removal %s: %+v, %v", n.Removal, c, err)
			}
		}
	}
	if !slices.Equal(voters, l.voters) {
		rt.Fatalf("roles say %v, the epoch %v", voters, l.voters)
	}
	list, err := (state{w.Tx}).invitations(func(i *invitationRecord) bool { return i.State == Open || i.State == PendingApproval })
	if err != nil {
		rt.Fatal(err)
	}
	for _, i := range list {
		if i.ExpiresMS <= w.Now {
			rt.Fatalf("%+v at %d", i, w.Now)
		}
	}
	count := 0
	err = w.Tx.Range([]byte(prefixExpiry), []byte("x0"), func(_, _ []byte) (bool, error) { count++; return true, nil })
	if err != nil || count != scheduled+len(list) {
		rt.Fatalf("%d expiries for %d removals and %d invitations (%v)", count, scheduled, len(list), err)
	}
}
