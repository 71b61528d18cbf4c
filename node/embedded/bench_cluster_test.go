package embedded_test

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"sync"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"github.com/deliberd/deliberd/api"
	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/node"
	"github.com/deliberd/deliberd/node/embedded"
	"github.com/deliberd/deliberd/registry"
)

// subject is a cluster of four nodes with agents that hold authority. Actions
// are signed ahead: a client's work is not the cluster's.
type subject struct {
	b       *testing.B
	ctx     context.Context
	cancel  context.CancelFunc
	cluster *embedded.Cluster
	leader  *node.Node
	agents  []*client.Identity
	author  *client.Identity // of proposals: nobody responds to his own
}

// benchDomain is where the agents hold authority.
const benchDomain = "bench"

func newSubject(b *testing.B) *subject {
	s := &subject{b: b}
	s.ctx, s.cancel = context.WithTimeout(context.Background(), 5*time.Minute)
	c, err := embedded.Start(s.ctx, embedded.Config{Nodes: 4, Dir: b.TempDir(), Logger: slog.New(slog.DiscardHandler)})
	if err != nil {
		b.Fatal(err)
	}
	s.cluster = c
	at := c.Leader(s.ctx)
	if at < 0 {
		b.Fatal("the cluster has no leader")
	}
	s.leader = c.Node(at)
	return s
}

func (s *subject) stop() {
	s.cancel()
	if err := s.cluster.Close(); err != nil {
		s.b.Error(err)
	}
}

// leads reports whether the node measured has led all the time.
func (s *subject) leads() bool {
	at := s.cluster.Leader(s.ctx)
	return at >= 0 && s.cluster.Node(at) == s.leader
}

// register adds agents with grants, and an author.
func (s *subject) register(n int) {
	operator := s.cluster.Operator()
	var registrations, grants [][]byte
	for i := range n + 1 {
		id, err := client.NewIdentity(fmt.Sprintf("agent-%03d", i))
		if err != nil {
			s.b.Fatal(err)
		}
		id.Cluster = operator.Cluster
		body, err := registry.NewRegister(id.Cluster, embedded.OperatorID, id.ID, machine.Agent, "", id.Key())
		if err != nil {
			s.b.Fatal(err)
		}
		registrations = append(registrations, s.sign(operator, "registry.register", body))
		grants = append(grants, s.sign(operator, "registry.grant", registry.Grant{Principal: id.ID, Pattern: benchDomain, Authority: registry.NewDecimal("0.9"), Trust: registry.NewDecimal("0.9")}))
		s.agents = append(s.agents, id)
	}
	s.agents, s.author = s.agents[:n], s.agents[n]
	s.submitAll(registrations)
	s.submitAll(grants)
}

// sign makes an action's text.
func (s *subject) sign(who *client.Identity, kind string, body any) []byte {
	a, err := who.Key().Sign(s.cluster.Operator().Cluster, ulid.Make().String(), kind, who.ID, body)
	if err != nil {
		s.b.Fatal(err)
	}
	text, err := a.Encode()
	if err != nil {
		s.b.Fatal(err)
	}
	return text
}

// submit orders one action at the leader, in process.
func (s *subject) submit(action []byte) api.Answer {
	answer, err := s.leader.Submit(s.ctx, action)
	if err != nil {
		s.b.Errorf("%.120s…: %v", action, err)
	}
	return answer
}

// submitAll orders independent actions at once.
func (s *subject) submitAll(actions [][]byte) []api.Answer {
	answers := make([]api.Answer, len(actions))
	together(min(len(actions), 256), func(w int) {
		for i := w; i < len(actions); i += 256 {
			answers[i] = s.submit(actions[i])
		}
	})
	if s.b.Failed() {
		s.b.FailNow()
	}
	return answers
}

// together runs n workers and waits for them.
func together(n int, work func(w int)) {
	var wg sync.WaitGroup
	for w := range n {
		wg.Go(func() { work(w) })
	}
	wg.Wait()
}

type object = map[string]any

// proposals opens n ACP proposals that no number of responses settles.
func (s *subject) proposals(n int) []string {
	var actions [][]byte
	for i := range n {
		actions = append(actions, s.sign(s.author, "acp.submit", object{
			"type": "proposal", "domain": benchDomain, "quorum": 1 << 20, "payload": object{"action": "deploy", "service": "storage", "n": i}}))
	}
	var ids []string
	for _, a := range s.submitAll(actions) {
		ids = append(ids, a.ActionID)
	}
	return ids
}

// responses signs one response by every agent to a proposal.
func (s *subject) responses(proposal string) [][]byte {
	actions := make([][]byte, len(s.agents))
	together(2, func(w int) {
		for i := w; i < len(actions); i += 2 {
			actions[i] = s.sign(s.agents[i], "acp.respond", object{
				"proposal_id": proposal, "response_type": "endorse", "confidence": 0.8, "reason": "the rehearsal went through and the rollback is ready"})
		}
	})
	return actions
}

// rounds opens n rounds of five agents each: two positions with evidence, a
// challenge and a support. first and second are the values of the positions' evidence.
func (s *subject) rounds(n int, first, second float64) []round {
	rounds := make([]round, n)
	var open [][]byte
	for i := range rounds {
		for k := range rounds[i].agents {
			rounds[i].agents[k] = s.agents[(5*i+k)%len(s.agents)]
		}
		open = append(open, s.sign(rounds[i].agents[0], "deliberatic.open", object{"title": fmt.Sprintf("Question %d", i), "domain": benchDomain, "participants": rounds[i].names(),
			"windows": object{"collect_ms": 600_000, "confirm_ms": 600_000, "evidence_ms": 600_000}}))
	}
	for i, a := range s.submitAll(open) {
		rounds[i].id = a.ActionID
	}
	for i, id := range s.step(rounds, func(r *round) []byte { return s.position(r, 0, "north", first) }) {
		rounds[i].winner = id
	}
	seconds := s.step(rounds, func(r *round) []byte { return s.position(r, 1, "south", second) })
	for i := range rounds {
		rounds[i].loser = seconds[i]
	}
	s.step(rounds, func(r *round) []byte {
		return s.sign(r.agents[2], "deliberatic.support", object{"round": r.id, "target": r.winner, "text": "the north link has spare capacity", "evidence": evidence(0.1)})
	})
	s.step(rounds, func(r *round) []byte {
		return s.sign(r.agents[3], "deliberatic.challenge", object{"round": r.id, "target": r.loser, "text": "the south link was down twice", "evidence": evidence(0.1)})
	})
	return rounds
}

// round is one prepared round.
type round struct {
	id, winner, loser string
	agents            [5]*client.Identity
	action            []byte // what is measured
}

func (r *round) names() (ids []string) {
	for _, a := range r.agents {
		ids = append(ids, a.ID)
	}
	return ids
}

func (r *round) agent(id string) *client.Identity {
	for _, a := range r.agents {
		if a.ID == id {
			return a
		}
	}
	return nil
}

func evidence(value float64) []object {
	return []object{{"type": "performance", "value": value, "confidence": 0.1, "timestamp": "2026-01-15T10:00:00Z"}}
}

func (s *subject) position(r *round, k int, answer string, value float64) []byte {
	return s.sign(r.agents[k], "deliberatic.position", object{"round": r.id, "answer": answer, "text": "we have measured it", "probability": 0.8, "evidence": evidence(value)})
}

// step submits one action of every round at once and returns their ids.
func (s *subject) step(rounds []round, action func(*round) []byte) []string {
	var actions [][]byte
	for i := range rounds {
		actions = append(actions, action(&rounds[i]))
	}
	var ids []string
	for _, a := range s.submitAll(actions) {
		ids = append(ids, a.ActionID)
	}
	return ids
}

// clearRounds are rounds whose resolve, the action measured, makes the verdict
// in its own apply: three of five have confirmed ahead.
func (s *subject) clearRounds(n int) []round {
	rounds := s.rounds(n, 0.95, 0.3)
	for _, k := range []int{2, 3, 4} {
		s.step(rounds, func(r *round) []byte {
			return s.sign(r.agents[k], "deliberatic.confirm", object{"round": r.id, "standing": object{"winners": []string{r.winner}, "expires_ms": time.Now().Add(time.Hour).UnixMilli()}})
		})
	}
	for i := range rounds {
		r := &rounds[i]
		r.action = s.sign(s.moderator(r), "deliberatic.resolve", object{"round": r.id})
	}
	return rounds
}

// closeRounds are contested rounds in which all but one have nothing to add:
// his word, the action measured, freezes the round.
func (s *subject) closeRounds(n int) []round {
	rounds := s.rounds(n, 0.8, 0.8)
	s.step(rounds, func(r *round) []byte {
		return s.sign(s.moderator(r), "deliberatic.resolve", object{"round": r.id})
	})
	for k := range 4 {
		s.step(rounds, func(r *round) []byte { return s.sign(r.agents[k], "deliberatic.done", object{"round": r.id}) })
	}
	for i := range rounds {
		rounds[i].action = s.sign(rounds[i].agents[4], "deliberatic.done", object{"round": rounds[i].id})
	}
	return rounds
}

func (s *subject) moderator(r *round) *client.Identity {
	params, err := json.Marshal(object{"round": r.id})
	if err != nil {
		s.b.Fatal(err)
	}
	text, err := s.leader.Query(s.ctx, "deliberatic.get", r.agents[0].ID, params, true)
	if err != nil {
		s.b.Fatal(err)
	}
	var view deliberation.View
	if err := json.Unmarshal(text, &view); err != nil {
		s.b.Fatal(err)
	}
	return r.agent(view.Moderator)
}

// decided reports whether an answer brings a verdict.
func decided(a api.Answer) bool {
	var out deliberation.Answer
	return json.Unmarshal(a.Result, &out) == nil && out.Verdict != nil
}

// arrival is a verdict as one node's subscriber sees it.
type arrival struct {
	round string
	at    time.Time
}

// watch subscribes at every node and hands out the verdicts as they arrive.
func (s *subject) watch() <-chan arrival {
	arrivals := make(chan arrival, 1024)
	st, err := s.leader.Status(s.ctx)
	if err != nil {
		s.b.Fatal(err)
	}
	for i := range s.cluster.Len() {
		stream, err := s.cluster.Node(i).Subscribe(s.ctx, st.DecisionLog.Size-1)
		if err != nil {
			s.b.Fatal(err)
		}
		go func() {
			for {
				rec, err := stream.Next(s.ctx)
				if err != nil {
					return // the cluster is stopping
				}
				if rec.Type == "deliberatic.decided" {
					arrivals <- arrival{rec.Subject, time.Now()}
				}
			}
		}()
	}
	return arrivals
}

// everywhere waits until all nodes have a round's verdict, and returns when
// the last had.
func (s *subject) everywhere(arrivals <-chan arrival, round string) (last time.Time) {
	for n := 0; n < s.cluster.Len(); {
		select {
		case a := <-arrivals:
			if a.round == round {
				n++
				last = a.at
			}
		case <-s.ctx.Done():
			s.b.Fatalf("round %s: %d of %d nodes have its verdict: %v", round, n, s.cluster.Len(), s.ctx.Err())
		}
	}
	return last
}
