package embedded_test

import (
	"crypto/rand"
	"encoding/base64"
	"encoding/json"
	"path/filepath"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/node/embedded"
	"github.com/deliberd/deliberd/raftpath"
)

// progress remembers how catching up went.
type progress struct {
	mu   sync.Mutex
	seen []raftpath.Progress
}

func (p *progress) note(now raftpath.Progress) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.seen = append(p.seen, now)
}

// level reports whether a catch-up has ended.
func (p *progress) level() bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.ContainsFunc(p.seen, func(s raftpath.Progress) bool { return s.Done })
}

// byState waits for a catch-up and checks that the state came as a whole and
// not entry by entry: the node stood nowhere between where it was and where
// the logs begin.
func (l *lab) byState(p *progress, who string, begin uint64) {
	l.Helper()
	l.await(who+" to be level", p.level)
	p.mu.Lock()
	defer p.mu.Unlock()
	was := p.seen[0].Index // the state comes in pieces
	for _, s := range p.seen {
		if s.Bytes == 0 || s.Of == 0 || was >= begin || s.Index != was && s.Index < begin {
			l.Errorf("%s was at %d, the logs begin behind %d: %+v", who, was, begin, s)
			return
		}
	}
}

// invite makes an invitation for one node.
func (l *lab) invite(role membership.Role) membership.Invitation {
	l.Helper()
	key, err := sign.NewKey(rand.Reader)
	l.must(err)
	answer, err := l.as(embedded.OperatorID, l.urls...).Do(l.ctx, membership.KindInvite, membership.Invite{Key: key.Public().X(), Role: role, ExpiresInMS: time.Hour.Milliseconds()})
	l.must(err)
	var view membership.InvitationView
	l.must(json.Unmarshal(answer.Result, &view))
	inv := membership.Invitation{Genesis: l.Operator().Cluster, Seed: base64.RawURLEncoding.EncodeToString(key.Seed()), Role: role, ExpiresMS: view.ExpiresMS}
	for _, n := range l.living() {
		inv.Addrs = append(inv.Addrs, n.Addrs()[0]+"/p2p/"+n.ID())
	}
	return inv
}

// join brings a new node into the cluster, in this process.
func (l *lab) join(role membership.Role, seen *progress) *node.Node {
	l.Helper()
	cfg := node.Config{Dir: filepath.Join(l.TempDir(), "data"), HTTP: freeAddrs(l, 1)[0], Timing: l.cfg.Timing, BFTTick: l.cfg.BFTTick, Logger: l.cfg.Logger, OnProgress: seen.note}
	l.must(node.Join(l.ctx, cfg, l.invite(role)))
	n, err := node.Start(l.ctx, cfg)
	l.must(err)
	l.Cleanup(func() { l.check(n.Close()) })
	return n
}

func TestNodesCatchUpWithAHistoryThatNoLogHolds(t *testing.T) {
	const away = 3
	back := &progress{}
	l := newLab(t, short(), func(i int, c *node.Config) {
		if i == away {
			c.OnProgress = back.note
		}
	})
	l.must(l.Kill(away))
	each := 100
	if testing.Short() {
		each = 40
	}
	ids := l.write(each, l.urls[:away]...).wait()
	for i := range away {
		l.cutLog(i)
	}
	kept := l.status(l.Node(0)).AppliedIndex / 2 // the logs begin far behind the middle

	l.must(l.Revive(l.ctx, away))
	l.agree(l.living()...)
	l.byState(back, "the voter that was away", kept)

	fifth := &progress{}
	voter := l.join(membership.RoleVoter, fifth)
	all := append(l.living(), voter)
	l.await("five voters", func() bool {
		for _, n := range all {
			if len(l.status(n).Voters) != 5 {
				return false
			}
		}
		st := l.status(voter)
		return st.Ready && (st.Role == string(raftpath.Follower) || st.Role == string(raftpath.Leader))
	})
	l.byState(fifth, "the fifth voter", kept)

	watching := &progress{}
	observer := l.join(membership.RoleObserver, watching)
	all = append(all, observer)
	l.await("the observer", func() bool { st := l.status(observer); return st.Ready && st.Role == string(membership.RoleObserver) })
	l.byState(watching, "the observer", kept)

	// Without one founder every certificate of four needs the fifth voter.
	l.must(l.Kill(away))
	all = append(l.living(), voter, observer)
	verdict := l.contest(observer.URL(), voter.URL())
	if c := verdict.Certificate; c == nil || c.Signers != 4 || c.Voters != 5 || c.Epoch != 2 {
		t.Errorf("the certificate: %+v", c)
	}
	for _, n := range all {
		if v := l.verdict(n.URL(), verdict.Round); v.EvidenceRoot != verdict.EvidenceRoot || v.Winner != verdict.Winner {
			t.Errorf("%s says %+v", n.ID(), v)
		}
	}
	// Without two every entry needs it; and the observer still follows.
	l.must(l.Kill(away - 1))
	ids = append(ids, l.write(3, l.urls[0], l.urls[1], voter.URL(), observer.URL()).wait()...)
	if st := l.status(observer); len(st.Voters) != 5 {
		t.Errorf("the observer counts as a voter: %+v", st)
	}
	l.agree(append(l.living(), voter, observer)...)
	l.holds(voter.URL(), ids)
	l.holds(observer.URL(), ids)
}

// contest takes a round that is too close to call to its verdict, through
// some doors.
func (l *lab) contest(urls ...string) *deliberation.Verdict {
	l.Helper()
	return l.verdict(urls[0], l.freeze(urls...))
}

// freeze takes a round that is too close to call to where the voters decide.
func (l *lab) freeze(urls ...string) (round string) {
	l.Helper()
	do := func(n int, who, kind string, body object) string {
		l.Helper()
		a, err := l.as(who, urls[n%len(urls)]).Do(l.ctx, kind, body)
		l.must(err)
		return a.ActionID
	}
	five := []string{"ada", "ben", "cyd", "dee", "eve"}
	round = do(0, "eve", "deliberatic.open", object{"title": "North or south?", "domain": "ops.storage", "participants": five,
		"windows": object{"collect_ms": 300_000, "confirm_ms": 300_000, "evidence_ms": 300_000}})
	do(1, "ada", "deliberatic.position", object{"round": round, "answer": "north", "evidence": evidence(0.85)})
	do(2, "ben", "deliberatic.position", object{"round": round, "answer": "south", "evidence": evidence(0.8)})
	for range 2 { // nothing more to say, and no more evidence
		for i, who := range five {
			do(i, who, "deliberatic.done", object{"round": round})
		}
	}
	return round
}

// verdict waits until a node holds a round's verdict.
func (l *lab) verdict(url, round string) *deliberation.Verdict {
	l.Helper()
	c := l.as("kim", url)
	var view deliberation.View
	l.await("a verdict", func() bool {
		l.must(c.Query(l.ctx, "deliberatic.get", object{"round": round}, &view, client.Stale()))
		return view.Verdict != nil
	})
	return view.Verdict
}
