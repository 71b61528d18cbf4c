package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// foundFour founds a cluster of four operators with a node each from a signed
// genesis, as four people would, and starts it.
func (l *lab) foundFour() []*proc {
	l.Helper()
	keys := filepath.Join(l.dir, "keys")
	var ps []*proc
	var founders []string
	for _, name := range []string{"a", "b", "c", "d"} {
		p := l.place("node-" + name)
		l.do("agent", "new", "ops-"+name, "--keys", keys)
		file := filepath.Join(l.dir, name+".json")
		text := l.do("genesis", "founder", "--as", "ops-"+name, "--keys", keys, "--data", filepath.Join(p.dir, "data"), "--announce", p.listen)
		if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
			l.Fatal(err)
		}
		ps, founders = append(ps, p), append(founders, file)
	}
	genesis := filepath.Join(l.dir, "genesis.json")
	l.do(append(append([]string{"genesis", "new", "--name", "four labs"}, founders...), "--out", genesis)...)
	for _, name := range []string{"a", "b", "c", "d"} {
		if name == "d" { // one signature is still missing
			if _, err := l.try("genesis", "check", genesis); err == nil {
				l.Fatal("a genesis without all signatures passed the check")
			}
		}
		l.do("genesis", "sign", genesis, "--as", "ops-"+name, "--keys", keys)
	}
	l.do("genesis", "check", genesis)
	for i, p := range ps {
		l.do(append([]string{"init", p.dir, "--genesis", genesis, "--data", filepath.Join(p.dir, "data"), "--keys", keys, "--operator", "ops-" + string(rune('a'+i))}, p.flags()...)...)
		l.start(p)
	}
	l.awaitReady(ps...)
	return ps
}

// inviteFour grows a cluster of one operator from one node to four by invitations.
func (l *lab) inviteFour() []*proc {
	l.Helper()
	first := l.place("node-a")
	l.do(append([]string{"init", first.dir, "--operator", "ops", "--keys", filepath.Join(l.dir, "keys")}, first.flags()...)...)
	l.start(first)
	l.awaitReady(first)
	ps := []*proc{first}
	for _, name := range []string{"b", "c", "d"} {
		ps = append(ps, l.invite("ops", ps[0], "node-"+name, "voter"))
	}
	l.await("four voters", 60*time.Second, func() error {
		st, err := status(first)
		if err == nil && (len(st.Voters) != 4 || st.Tolerance != 1) {
			err = fmt.Errorf("%+v", st)
		}
		return err
	})
	l.awaitReady(ps...)
	return ps
}

// invite brings one more node in and starts it; the same invitation a second
// time is refused.
func (l *lab) invite(operator string, at *proc, name, role string) *proc {
	l.Helper()
	line := strings.TrimSpace(l.do(l.as(operator, at, "invite", "--role", role)...))
	p := l.place(name)
	l.do(append([]string{"join", line, p.dir}, p.flags()...)...)
	other := l.place(name + "-thief")
	if out, err := l.try(append([]string{"join", line, other.dir, "--timeout", "5s"}, other.flags()...)...); err == nil {
		l.Fatalf("an invitation was used twice: %s", out)
	}
	l.start(p)
	l.awaitReady(p)
	return p
}

func TestFourProcessesFromASignedGenesisDecideAndSurviveTheLeader(t *testing.T) {
	l := newLab(t)
	ps := l.foundFour()
	l.agents("ops-a", ps[0], "ada", "ben", "cyd", "dee")
	l.decideUnderFire(ps)
}

func TestFourProcessesByInvitationsDecideAndSurviveTheLeader(t *testing.T) {
	l := newLab(t)
	ps := l.inviteFour()
	l.agents("ops", ps[0], "ada", "ben", "cyd", "dee")
	l.decideUnderFire(ps)
	l.fifthJoins(ps)
}

// decideUnderFire decides one round in peace and one while the leader is
// killed; the killed node comes back to the same log.
func (l *lab) decideUnderFire(ps []*proc) {
	l.Helper()
	peace := l.closeRound(ps)
	l.finish(peace, ps)
	v := l.awaitVerdict(peace, ps...)
	if v.Path != "conflict" || v.Certificate == nil || v.Certificate.Signers < 3 || len(v.EvidenceRoot) != 64 {
		l.Fatalf("verdict %+v", v)
	}
	l.awaitSameLog(ps...)

	fire := l.closeRound(ps)
	leader, err := leaderOf(ps)
	if err != nil {
		l.Fatal(err)
	}
	rest := slices.DeleteFunc(slices.Clone(ps), func(p *proc) bool { return p == leader })
	for i, who := range []string{"ada", "ben", "cyd", "dee"} {
		if i == 2 {
			l.kill(leader)
		}
		l.do(l.as(who, rest[i%len(rest)], "round", "done", fire)...)
	}
	v = l.awaitVerdict(fire, rest...)
	if v.Path != "conflict" || v.Certificate.Signers != 3 {
		l.Fatalf("verdict %+v", v)
	}
	l.start(leader)
	l.awaitReady(leader)
	l.awaitVerdict(fire, ps...)
	l.awaitSameLog(ps...)
	l.exportVerifies(fire, v.EvidenceRoot, ps)
}

func leaderOf(ps []*proc) (*proc, error) {
	for _, p := range ps {
		if st, err := status(p); err == nil && st.Role == "leader" {
			return p, nil
		}
	}
	return nil, errors.New("nobody leads")
}

// exportVerifies exports the round's evidence at every node: the same bytes,
// which verify under the verdict's root, and not with a byte changed.
func (l *lab) exportVerifies(round, root string, ps []*proc) {
	l.Helper()
	var first string
	for i, p := range ps {
		text := l.do(l.as("ada", p, "evidence", "export", round)...)
		if i == 0 {
			first = text
		}
		if text != first {
			l.Fatal("two nodes export different evidence")
		}
	}
	file := filepath.Join(l.dir, "chain.json")
	if err := os.WriteFile(file, []byte(first), 0o600); err != nil {
		l.Fatal(err)
	}
	l.do("evidence", "verify", file, "--root", root)
	forged := strings.Replace(first, "pump A", "pump B", 1)
	if forged == first {
		l.Fatal("the chain does not hold the answer")
	}
	if err := os.WriteFile(file, []byte(forged), 0o600); err != nil {
		l.Fatal(err)
	}
	if out, err := l.try("evidence", "verify", file, "--root", root); err == nil {
		l.Fatalf("a forged chain verified: %s", out)
	}
}

// fifthJoins writes more history than the Raft log keeps, then brings in an
// observer and a voter, which catch up to the same log.
func (l *lab) fifthJoins(ps []*proc) {
	l.Helper()
	observer := l.invite("ops", ps[0], "node-o", "observer")
	voter := l.invite("ops", ps[1], "node-e", "voter")
	l.await("five voters", 60*time.Second, func() error {
		st, err := status(voter)
		if err == nil && len(st.Voters) != 5 {
			err = fmt.Errorf("%+v", st)
		}
		return err
	})
	all := append(slices.Clone(ps), observer, voter)
	l.awaitSameLog(all...)
	round := l.closeRound(all)
	l.finish(round, all)
	v := l.awaitVerdict(round, all...)
	if v.Certificate == nil || v.Certificate.Signers < 4 { // q = 4 of 5
		l.Fatalf("verdict %+v", v)
	}
	gone, err := status(voter)
	if err != nil {
		l.Fatal(err)
	}
	l.do(l.as("ops", ps[0], "remove", gone.NodeID)...)
	l.await("the removed node stops", 60*time.Second, func() error {
		select {
		case <-voter.exited:
			voter.exited = nil
			return nil
		default:
			return errors.New("it runs")
		}
	})
	l.awaitSameLog(append(slices.Clone(ps), observer)...)
}

func TestACP_C1ToC4AndBothAgoraExamplesEndAsTheSeedsSay(t *testing.T) {
	l := newLab(t)
	p := l.place("node")
	l.do(append([]string{"init", p.dir, "--operator", "ops", "--keys", filepath.Join(l.dir, "keys")}, p.flags()...)...)
	l.start(p)
	l.awaitReady(p)
	enrol := func(name, kind string) {
		l.do("agent", "new", name, "--keys", filepath.Join(l.dir, "keys"))
		l.do(l.as("ops", p, "agent", "register", name, "--kind", kind)...)
	}
	grant := func(name, domain, authority, trust string) {
		l.do(l.as("ops", p, "agent", "grant", name, domain, "--authority", authority, "--trust", trust)...)
	}
	enrol("author", "agent")
	enrol("human", "human")
	for _, name := range []string{"a", "b"} {
		enrol(name, "agent")
	}
	for _, c := range []struct {
		name, domain string
		quorum       string
		expires      string
		responses    [][4]string // who: choice, authority, confidence, trust
		want         [4]string   // outcome, trigger, for, against
	}{
		{"C.1", "risk.credit", "2", "5m", [][4]string{{"endorse", "0.9", "0.85", "0.9"}, {"endorse", "0.8", "0.7", "0.85"}}, [4]string{"approved", "quorum", "1.1645", "0"}},
		{"C.2", "ops.deploy", "2", "5m", [][4]string{{"challenge", "0.95", "0.90", "0.95"}, {"endorse", "0.4", "0.6", "0.7"}}, [4]string{"rejected", "quorum", "0.168", "0.81225"}},
		{"C.3", "finance.budget", "3", "2s", [][4]string{{"endorse", "0.8", "0.75", "0.9"}}, [4]string{"approved", "timeout", "0.54", "0"}},
		{"C.4", "strategy.pricing", "2", "5m", [][4]string{{"endorse", "0.9", "0.8", "0.9"}, {"challenge", "0.9", "0.8", "0.9"}}, [4]string{"escalated", "quorum", "0.648", "0.648"}},
	} {
		grant("author", c.domain, "1", "1")
		grant("human", c.domain, "1", "1")
		names := []string{"a", "b"}
		for i, r := range c.responses {
			grant(names[i], c.domain, r[1], r[3])
		}
		id := get[answerView](l, l.as("author", p, "acp", "submit", "--domain", c.domain, "--payload", `{"loan":42}`, "--quorum", c.quorum, "--expires-in", c.expires)...).ActionID
		for i, r := range c.responses {
			l.do(l.as(names[i], p, "acp", "respond", id, r[0], "--confidence", r[2])...)
		}
		l.awaitResolution(c.name, p, id, c.want)
		if c.want[0] == "escalated" {
			l.do(l.as("human", p, "acp", "resolve", id, "approved")...)
			l.awaitResolution(c.name+" by a human", p, id, [4]string{"approved", "manual", "0.648", "0.648"})
		}
	}
	l.agoraExamples(p, enrol)
}

func (l *lab) awaitResolution(name string, p *proc, id string, want [4]string) {
	l.Helper()
	l.await(name, 30*time.Second, func() error {
		out, err := l.try(l.as("author", p, "acp", "get", id, "--json")...)
		if err != nil {
			return err
		}
		var v struct {
			Resolution *struct {
				Outcome, Trigger string
				VotesFor         json.Number `json:"votes_for"`
				VotesAgainst     json.Number `json:"votes_against"`
			}
		}
		if err := json.Unmarshal([]byte(out), &v); err != nil {
			return err
		}
		if v.Resolution == nil {
			return errors.New("pending")
		}
		if got := [4]string{v.Resolution.Outcome, v.Resolution.Trigger, v.Resolution.VotesFor.String(), v.Resolution.VotesAgainst.String()}; got != want {
			return fmt.Errorf("got %v, want %v", got, want)
		}
		return nil
	})
}

func (l *lab) agoraExamples(p *proc, enrol func(name, kind string)) {
	l.Helper()
	for _, name := range []string{"planner-agent", "reviewer-agent", "ops-agent", "cleanup-agent", "safety-agent"} {
		enrol(name, "agent")
	}
	outcome := func(id string) string {
		return get[struct{ Resolution struct{ Outcome string } }](l, l.as("ops-agent", p, "agora", "get", id)...).Resolution.Outcome
	}
	l.do(l.as("planner-agent", p, "agora", "propose", "--id", "deploy-2026-09-15", "--action", `{"type":"deploy","service":"checkout-api","version":"4.2.0"}`,
		"--voters", "planner-agent,reviewer-agent,ops-agent", "--quorum", "2/3")...)
	l.do(l.as("planner-agent", p, "agora", "vote", "deploy-2026-09-15", "yes")...)
	l.do(l.as("reviewer-agent", p, "agora", "vote", "deploy-2026-09-15", "yes")...)
	l.do(l.as("ops-agent", p, "agora", "evaluate", "deploy-2026-09-15")...)
	if got := outcome("deploy-2026-09-15"); got != "approved" {
		l.Fatalf("the first example is %s", got)
	}
	l.do(l.as("cleanup-agent", p, "agora", "propose", "--id", "delete-prod-bucket", "--action", `{"type":"delete","resource":"s3://prod-user-uploads"}`,
		"--voters", "cleanup-agent,ops-agent", "--vetoers", "safety-agent", "--quorum", "2")...)
	l.do(l.as("cleanup-agent", p, "agora", "vote", "delete-prod-bucket", "yes")...)
	l.do(l.as("ops-agent", p, "agora", "vote", "delete-prod-bucket", "yes")...)
	l.do(l.as("safety-agent", p, "agora", "veto", "delete-prod-bucket", "--reason", "no confirmed backup exists for this bucket")...)
	l.do(l.as("ops-agent", p, "agora", "evaluate", "delete-prod-bucket")...)
	if got := outcome("delete-prod-bucket"); got != "vetoed" {
		l.Fatalf("the second example is %s", got)
	}
}
