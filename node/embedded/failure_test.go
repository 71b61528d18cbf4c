package embedded_test

import (
	"context"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/client"
)

func TestNothingAcknowledgedIsLostWhileEveryNodeInTurnIsKilledAndRevived(t *testing.T) {
	l := newLab(t, short(), nil)
	w := l.write(-1, l.urls...)
	for i := range l.Len() {
		l.must(l.Kill(i))
		was := w.count()
		l.await("writes without it", func() bool { return w.count() >= was+10 })
		l.must(l.Revive(l.ctx, i))
		behind := l.status(l.living()[(i+1)%l.Len()]).AppliedIndex
		l.await("the revived node to be level", func() bool {
			st := l.status(l.Node(i))
			return st.Ready && st.AppliedIndex >= behind
		})
	}
	ids := w.end()
	l.agree(l.living()...)
	for _, url := range l.urls {
		l.holds(url, ids)
	}
	t.Logf("%d writes", len(ids))
}

// cut keeps the nodes of one side and the others apart, or lets them together again.
func (l *lab) cut(side []int, apart bool) {
	for i := range l.Len() {
		for _, j := range side {
			if slices.Contains(side, i) {
				continue
			}
			a, b := l.Node(i), l.Node(j)
			if apart {
				a.Cut(b.ID())
				b.Cut(a.ID())
			} else {
				a.Heal(b.ID())
				b.Heal(a.ID())
			}
		}
	}
}

func TestALeaderWithoutAMajorityAcknowledgesNothing(t *testing.T) {
	l := newLab(t, quick, nil)
	for _, c := range []struct {
		name string
		with int // followers that stay with the leader
	}{{"a leader alone", 0}, {"a leader with one of three followers", 1}} {
		t.Run(c.name, func(t *testing.T) {
			leader := l.Leader(l.ctx)
			if leader < 0 {
				t.Fatal("nobody leads")
			}
			side := []int{leader}
			for i := 1; i <= c.with; i++ {
				side = append(side, (leader+i)%l.Len())
			}
			l.cut(side, true)
			without := side                           // who has no majority
			other := (leader + l.Len() - 1) % l.Len() // on the other side in either case
			if c.with > 0 {
				without = append(slices.Clone(side), other)
			}
			waiting := l.notAcknowledged(t, without...)
			if c.with == 0 {
				if _, err := l.as("ben", l.urls[other]).Do(l.ctx, "acp.submit", observation(0)); err != nil {
					t.Errorf("the majority does not go on: %v", err)
				}
				l.retriesElsewhere(t, leader)
			}
			l.cut(side, false)
			var ids []string
			for _, a := range waiting { // asked again under the same id
				answer, err := l.as("ada", l.urls...).Submit(l.ctx, a)
				if err != nil {
					t.Error(err)
				}
				ids = append(ids, answer.ActionID)
			}
			l.agree(l.living()...)
			for _, url := range l.urls {
				l.holds(url, ids)
			}
		})
	}
}

// notAcknowledged offers an action to each of some nodes that have no majority,
// and returns the actions.
func (l *lab) notAcknowledged(t *testing.T, nodes ...int) []client.Action {
	t.Helper()
	actions := make([]client.Action, len(nodes))
	var wg sync.WaitGroup
	for k, i := range nodes {
		c := l.as("ada", l.urls[i])
		a, err := c.Sign(l.ctx, "acp.submit", observation(i))
		l.must(err)
		actions[k] = a
		wg.Go(func() { l.offer(t, c, a) })
	}
	wg.Wait()
	return actions
}

// offer checks that a node without a majority acknowledges no write, answers
// no read that wants the truth, and tells what it knows to whoever is content
// with that.
func (l *lab) offer(t *testing.T, c *client.Client, a client.Action) {
	t.Helper()
	ctx, cancel := context.WithTimeout(l.ctx, time.Second)
	defer cancel()
	if answer, err := c.Submit(ctx, a); err == nil {
		t.Errorf("a node without a majority acknowledges %+v", answer)
	} else if !api.Unavailable(client.CodeOf(err)) {
		t.Errorf("a node without a majority answers %v", err)
	}
	ctx, cancel = context.WithTimeout(l.ctx, 500*time.Millisecond)
	defer cancel()
	var page any
	if err := c.Query(ctx, "acp.list", nil, &page); err == nil {
		t.Error("a node without a majority answers a linearizable read")
	}
	if err := c.Query(l.ctx, "acp.list", nil, &page, client.Stale()); err != nil {
		t.Errorf("a node does not tell what it knows: %v", err)
	}
}

// retriesElsewhere checks that a client whose first node has lost the others
// finds another one within its patience.
func (l *lab) retriesElsewhere(t *testing.T, lost int) {
	t.Helper()
	urls := append(slices.Clone(l.urls[lost:]), l.urls[:lost]...)
	ctx, cancel := context.WithTimeout(l.ctx, 10*time.Second)
	defer cancel()
	if _, err := l.as("cyd", urls...).Do(ctx, "acp.submit", observation(1)); err != nil {
		t.Errorf("the client does not go elsewhere: %v", err)
	}
}
