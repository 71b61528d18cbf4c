package client

import (
	"context"

	"github.com/deliberd/deliberd/acp"
	"github.com/deliberd/deliberd/agora"
	"github.com/deliberd/deliberd/deliberation"
)

// act submits a body and decodes what the machine answered.
func act[R any](ctx context.Context, c *Client, kind string, body any) (R, Answer, error) {
	var result R
	answer, err := c.Do(ctx, kind, body)
	if err == nil {
		err = decodeResult(kind, answer.Result, &result)
	}
	return result, answer, err
}

// ACP is the Agent Consensus Protocol: proposals, endorsed or challenged by weight.
type ACP struct{ c *Client }

// ACP speaks ACP as the client's principal.
func (c *Client) ACP() ACP { return ACP{c} }

// Submit posts a proposal, an observation or a hypothesis (§4).
func (p ACP) Submit(ctx context.Context, body acp.SubmitBody) (acp.Result, Answer, error) {
	return act[acp.Result](ctx, p.c, "acp.submit", body)
}

// Respond endorses or challenges a pending proposal, once (§5).
func (p ACP) Respond(ctx context.Context, body acp.RespondBody) (acp.Result, Answer, error) {
	return act[acp.Result](ctx, p.c, "acp.respond", body)
}

// Escalate hands a pending proposal to a human (§10).
func (p ACP) Escalate(ctx context.Context, body acp.EscalateBody) (acp.Result, Answer, error) {
	return act[acp.Result](ctx, p.c, "acp.escalate", body)
}

// Resolve decides an escalated proposal, as a human (§10).
func (p ACP) Resolve(ctx context.Context, body acp.ResolveBody) (acp.Result, Answer, error) {
	return act[acp.Result](ctx, p.c, "acp.resolve", body)
}

// Agora is propose, vote, veto and evaluate.
type Agora struct{ c *Client }

// Agora speaks Agora as the client's principal.
func (c *Client) Agora() Agora { return Agora{c} }

// Propose opens a round on an action.
func (p Agora) Propose(ctx context.Context, body agora.ProposeBody) (agora.Result, Answer, error) {
	return act[agora.Result](ctx, p.c, "agora.propose", body)
}

// Vote votes; the last vote counts.
func (p Agora) Vote(ctx context.Context, body agora.VoteBody) (agora.Result, Answer, error) {
	return act[agora.Result](ctx, p.c, "agora.vote", body)
}

// Veto stops a round, whatever the tally.
func (p Agora) Veto(ctx context.Context, body agora.VetoBody) (agora.Result, Answer, error) {
	return act[agora.Result](ctx, p.c, "agora.veto", body)
}

// Evaluate resolves a round if a veto, its deadline or its quorum applies;
// the result's status is "open" otherwise.
func (p Agora) Evaluate(ctx context.Context, round string) (agora.Result, Answer, error) {
	return act[agora.Result](ctx, p.c, "agora.evaluate", agora.EvaluateBody{RoundID: round})
}

// Get shows a round with its votes, vetoes and resolution.
func (p Agora) Get(ctx context.Context, round string, options ...ReadOption) (agora.View, error) {
	var v agora.View
	return v, p.c.Query(ctx, "agora.get", agora.EvaluateBody{RoundID: round}, &v, options...)
}

// Deliberatic is rounds of positions, challenges and evidence.
type Deliberatic struct{ c *Client }

// Deliberatic speaks Deliberatic as the client's principal.
func (c *Client) Deliberatic() Deliberatic { return Deliberatic{c} }

// Open opens a round; its id is the answer's Round.
func (p Deliberatic) Open(ctx context.Context, body deliberation.OpenBody) (deliberation.Answer, Answer, error) {
	return act[deliberation.Answer](ctx, p.c, "deliberatic.open", body)
}

// Position states a position; its id is the answer's Argument. An answer that
// was given before is refused with same_answer: support that position instead.
func (p Deliberatic) Position(ctx context.Context, body deliberation.PositionBody) (deliberation.Answer, Answer, error) {
	return act[deliberation.Answer](ctx, p.c, "deliberatic.position", body)
}

// Challenge attacks an argument.
func (p Deliberatic) Challenge(ctx context.Context, body deliberation.ArgueBody) (deliberation.Answer, Answer, error) {
	return act[deliberation.Answer](ctx, p.c, "deliberatic.challenge", body)
}

// Support supports an argument.
func (p Deliberatic) Support(ctx context.Context, body deliberation.ArgueBody) (deliberation.Answer, Answer, error) {
	return act[deliberation.Answer](ctx, p.c, "deliberatic.support", body)
}

// Evidence adds evidence to an argument of one's own.
func (p Deliberatic) Evidence(ctx context.Context, body deliberation.EvidenceBody) (deliberation.Answer, Answer, error) {
	return act[deliberation.Answer](ctx, p.c, "deliberatic.evidence", body)
}

// Done says that one has nothing to add in this phase.
func (p Deliberatic) Done(ctx context.Context, round string) (deliberation.Answer, Answer, error) {
	return act[deliberation.Answer](ctx, p.c, "deliberatic.done", deliberation.DoneBody{Round: round})
}

// Confirm confirms or rejects the proposed winner, or leaves a standing confirmation.
func (p Deliberatic) Confirm(ctx context.Context, body deliberation.ConfirmBody) (deliberation.Answer, Answer, error) {
	return act[deliberation.Answer](ctx, p.c, "deliberatic.confirm", body)
}

// Get shows a round, with its verdict once it has one.
func (p Deliberatic) Get(ctx context.Context, round string, options ...ReadOption) (deliberation.View, error) {
	var v deliberation.View
	return v, p.c.Query(ctx, "deliberatic.get", deliberation.RoundParams{Round: round}, &v, options...)
}

// Explain says why a round stands as it does.
func (p Deliberatic) Explain(ctx context.Context, round string, options ...ReadOption) (deliberation.Explanation, error) {
	var e deliberation.Explanation
	return e, p.c.Query(ctx, "deliberatic.explain", deliberation.RoundParams{Round: round}, &e, options...)
}
