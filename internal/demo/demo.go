package demo

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/node/embedded"
)

// Play plays the demo and tells it on w.
func Play(ctx context.Context, c *embedded.Cluster, members map[string]*client.Identity, w io.Writer) (Report, error) {
	s := &stage{cluster: c, w: w, clients: map[string]*client.Client{}, urls: c.URLs()}
	for i, name := range participants { // each agent comes in through another door
		at := i % len(s.urls)
		cl, err := client.New(append(s.urls[at:len(s.urls):len(s.urls)], s.urls[:at]...), client.As(members[name]))
		if err != nil {
			return Report{}, err
		}
		s.clients[name] = cl
	}
	for i := range c.Len() {
		if n := c.Node(i); n != nil {
			s.report.Nodes = append(s.report.Nodes, NodeReport{n.ID(), n.URL()})
		}
	}
	for _, act := range []func(context.Context) error{s.clear, s.close, s.proposal, s.vote} {
		if err := act(ctx); err != nil {
			return s.report, err
		}
	}
	return s.report, nil
}

// stage is a demo being played.
type stage struct {
	cluster *embedded.Cluster
	w       io.Writer
	clients map[string]*client.Client
	urls    []string
	report  Report
}

func (s *stage) say(format string, args ...any) { fmt.Fprintf(s.w, format+"\n", args...) }

// do sends one action and decodes the machine's answer into out, if any.
func (s *stage) do(ctx context.Context, who, kind string, body, out any) (client.Answer, error) {
	a, err := s.clients[who].Do(ctx, kind, body)
	if err != nil {
		return a, fmt.Errorf("%s by %s: %w", kind, who, err)
	}
	if out != nil {
		err = json.Unmarshal(a.Result, out)
	}
	return a, err
}

type object = map[string]any

func evidence(items ...[2]float64) []object {
	var out []object
	for _, it := range items {
		out = append(out, object{"type": "performance", "value": it[0], "confidence": it[1], "timestamp": "2026-01-15T10:00:00Z"})
	}
	return out
}

// clear plays a round with a clear winner: confirmed by a majority.
func (s *stage) clear(ctx context.Context) error {
	const title = "Where do we keep the audit log?"
	s.say("\nRound 1, clear: %s", title)
	round, err := s.open(ctx, title)
	if err != nil {
		return err
	}
	first, err := s.position(ctx, "ada", round, "append-only store", 0.95, evidence([2]float64{0.95, 0.1}))
	if err != nil {
		return err
	}
	second, err := s.position(ctx, "ben", round, "shared spreadsheet", 0.6, evidence([2]float64{0.5, 0.4}))
	if err != nil {
		return err
	}
	if err := s.argue(ctx, "cyd", "deliberatic.challenge", round, second, "a spreadsheet can be edited without a trace", evidence([2]float64{0.9, 0.2})); err != nil {
		return err
	}
	if err := s.argue(ctx, "dee", "deliberatic.support", round, first, "three outages were explained from it", evidence([2]float64{0.8, 0.2})); err != nil {
		return err
	}
	start, err := s.resolve(ctx, round)
	if err != nil {
		return err
	}
	var confirmed sync.WaitGroup
	errs := make([]error, 3)
	for i, who := range []string{"ada", "cyd", "dee"} {
		confirmed.Go(func() {
			_, errs[i] = s.do(ctx, who, "deliberatic.confirm", object{"round": round, "winner": first, "accept": true}, nil)
		})
	}
	confirmed.Wait()
	for _, err := range errs {
		if err != nil {
			return err
		}
	}
	return s.verdict(ctx, title, round, start)
}

// close plays a round that is too close to call: the voters certify it.
func (s *stage) close(ctx context.Context) error {
	const title = "Which region takes the replica?"
	s.say("\nRound 2, close: %s", title)
	round, err := s.open(ctx, title)
	if err != nil {
		return err
	}
	// ben, who lost the clear round, wins this one: played again and again, the
	// demo leaves the ratings where they were, and this round close.
	if _, err := s.position(ctx, "ada", round, "north", 0.6, evidence([2]float64{0.8, 0.2})); err != nil {
		return err
	}
	better, err := s.position(ctx, "ben", round, "south", 0.7, evidence([2]float64{0.82, 0.2}))
	if err != nil {
		return err
	}
	if err := s.argue(ctx, "cyd", "deliberatic.support", round, better, "the south link has spare capacity", evidence([2]float64{0.1, 0.5})); err != nil {
		return err
	}
	start, err := s.resolve(ctx, round)
	if err != nil {
		return err
	}
	for _, who := range participants { // nothing to add: the evidence window need not run out
		if _, err := s.do(ctx, who, "deliberatic.done", object{"round": round}, nil); err != nil {
			return err
		}
	}
	return s.verdict(ctx, title, round, start)
}

func (s *stage) open(ctx context.Context, title string) (string, error) {
	a, err := s.do(ctx, "eve", "deliberatic.open", object{"title": title, "domain": domain, "participants": participants,
		"windows": object{"collect_ms": 300_000, "confirm_ms": 300_000, "evidence_ms": 300_000}}, nil)
	s.say("  eve opens round %s for %d agents", a.ActionID, len(participants))
	return a.ActionID, err
}

func (s *stage) position(ctx context.Context, who, round, answer string, p float64, items []object) (string, error) {
	a, err := s.do(ctx, who, "deliberatic.position", object{"round": round, "answer": answer, "probability": p, "evidence": items}, nil)
	s.say("  %s holds %q", who, answer)
	return a.ActionID, err
}

func (s *stage) argue(ctx context.Context, who, kind, round, target, text string, items []object) error {
	_, err := s.do(ctx, who, kind, object{"round": round, "target": target, "text": text, "evidence": items}, nil)
	verb := map[string]string{"deliberatic.challenge": "challenges", "deliberatic.support": "supports"}[kind]
	s.say("  %s %s …%s: %s", who, verb, target[20:], text)
	return err
}

// resolve lets the round's moderator end the collecting.
func (s *stage) resolve(ctx context.Context, round string) (time.Time, error) {
	var view deliberation.View
	if err := s.clients["eve"].Query(ctx, "deliberatic.get", object{"round": round}, &view); err != nil {
		return time.Time{}, err
	}
	s.say("  %s moderates: the highest reputation without a position", view.Moderator)
	start := time.Now()
	_, err := s.do(ctx, view.Moderator, "deliberatic.resolve", object{"round": round}, nil)
	return start, err
}

// verdict waits for a round's verdict on every node, tells and reports it.
func (s *stage) verdict(ctx context.Context, title, round string, start time.Time) error {
	v, err := s.awaitVerdict(ctx, s.urls[0], round)
	if err != nil {
		return err
	}
	r := roundReport(title, v)
	r.VerdictMS = float64(time.Since(start).Microseconds()) / 1000
	r.NodesAgree = true
	for _, url := range s.urls[1:] {
		other, err := s.awaitVerdict(ctx, url, round)
		if err != nil {
			return err
		}
		r.NodesAgree = r.NodesAgree && other.EvidenceRoot == v.EvidenceRoot && other.Winner == v.Winner && other.Path == v.Path
	}
	steps, err := s.steps(ctx, round)
	if err != nil {
		return err
	}
	s.tell(v, r)
	s.say("  in the decision log: %s", strings.Join(steps, " → "))
	s.report.Rounds = append(s.report.Rounds, r)
	return nil
}

// steps lists what the decision log says of a round's course, once each, up
// to the verdict.
func (s *stage) steps(ctx context.Context, round string) (steps []string, err error) {
	for rec, err := range s.clients["eve"].Events(ctx, 0, false) {
		if err != nil {
			return nil, err
		}
		step, ours := strings.CutPrefix(rec.Type, deliberation.Name+".")
		if ours && rec.Subject == round && !slices.Contains(steps, step) {
			steps = append(steps, step)
		}
		if ours && rec.Subject == round && step == "decided" {
			return steps, nil
		}
	}
	return steps, ctx.Err()
}

// awaitVerdict reads a round at one node until it has ended.
func (s *stage) awaitVerdict(ctx context.Context, url, round string) (*deliberation.Verdict, error) {
	c, err := client.New([]string{url}, client.As(s.clients["eve"].Me()))
	if err != nil {
		return nil, err
	}
	poll := time.NewTicker(2 * time.Millisecond)
	defer poll.Stop()
	for {
		var view deliberation.View
		if err := c.Query(ctx, "deliberatic.get", object{"round": round}, &view, client.Stale()); err != nil {
			return nil, err
		}
		if view.Verdict != nil {
			return view.Verdict, nil
		}
		select {
		case <-poll.C:
		case <-ctx.Done():
			return nil, fmt.Errorf("round %s has no verdict: %w", round, ctx.Err())
		}
	}
}

func (s *stage) tell(v *deliberation.Verdict, r RoundReport) {
	s.say("    %-22s %-6s %s", "position", "by", "σ")
	for _, p := range r.Strengths {
		s.say("    …%-21s %-6s %+.9f", p.Position[20:], p.Author, p.Sigma)
	}
	relation := ">"
	if r.Path == string(deliberation.PathConflict) {
		relation = "≤"
	}
	s.say("  gap %.9f %s τ %.2f: %s path", r.Gap, relation, nano(v.TauNano), r.Path)
	if r.Certificate != nil {
		s.say("  certificate: view %d, signed by %d voters", r.Certificate.View, r.Certificate.Signers)
	} else if v.Count != nil {
		s.say("  confirmed by %d of %d participants", v.Count.Accepts, v.Count.Participants)
	}
	s.say("  verdict: %s by %s, %.1f ms after resolve", v.Answer, r.Author, r.VerdictMS)
	s.say("  evidence root %s", r.EvidenceRoot)
	s.say("  all nodes agree: %v", r.NodesAgree)
}
