package main

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/deliberation"
)

// roundWindow is the time for each phase of a round opened from the command
// line: language models think longer than the protocol's 30 s.
const roundWindow = 5 * time.Minute

func (a *app) roundCommand() *cobra.Command {
	return group("round", "Deliberatic: rounds of positions, challenges and evidence, decided by graded semantics",
		`  deliberd round open "Which pump?" --domain hydraulics --participants ada,bob,cyd --as ada
  deliberd round position ROUND --answer '"pump A"' --evidence type=performance,value=0.9,width=0.2 --as ada
  deliberd round explain ROUND --as ada
  deliberd round watch ROUND --as ada`,
		a.roundOpen(), a.roundPosition(), a.roundChallenge(), a.roundSupport(), a.roundRelate(), a.roundEvidence(), a.roundDone(),
		a.roundResolve(), a.roundConfirm(), a.roundReview(), a.roundOutcome(), a.roundShow(), a.roundList(), a.roundWatch(), a.roundExplain())
}

// roundStands prints where a round stands after an action.
func (a *app) roundStands(raw json.RawMessage) error {
	var r deliberation.Answer
	if err := json.Unmarshal(raw, &r); err != nil {
		return err
	}
	facts(a.out, "round", r.Round, "argument", r.Argument, "phase", string(r.Phase), "status", r.Status, "deadline", stamp(r.Deadline))
	if r.Verdict != nil {
		a.printVerdict(r.Verdict)
	}
	return nil
}

// openFlags are the flags of round open that are not plain members of the body.
type openFlags struct {
	task, onRejected, rule                     string
	options                                    []string
	window, collect, confirm, evidence, review time.Duration
	tau, gammaPlus, gammaMinus, emptyWeight    string
	minimum                                    int
}

func (a *app) roundOpen() *cobra.Command {
	var body deliberation.OpenBody
	var f openFlags
	cmd := &cobra.Command{
		Use:   "open TITLE",
		Short: "Open a round: a question, who takes part, and the rules",
		Long: `Open a round. Those who take part are named with --participants, or are all who
hold a grant in --domain; they are frozen now. Every phase has its own window,
5 minutes unless said otherwise, and ends early when all have acted.`,
		Example: `  deliberd round open "Which pump?" --domain hydraulics --as ada
  deliberd round open "Ship it?" --participants ada,bob,cyd --option '"yes"' --option '"no"' --window 30s --as ada`,
		Args: args("TITLE"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body.Title = given[0]
			if err := f.fill(cmd, &body); err != nil {
				return err
			}
			return a.act(cmd, "deliberatic.open", body, a.roundStands)
		},
	}
	fl := cmd.Flags()
	fl.StringVar(&body.Question, "question", "", "the question in full, or @FILE")
	fl.StringVar(&body.Domain, "domain", "", "domain, such as risk.credit")
	fl.StringSliceVar(&body.Participants, "participants", nil, "who takes part (default: who holds a grant in the domain)")
	fl.StringSliceVar(&body.Reviewers, "reviewers", nil, "humans who decide when the winner is rejected (--on-rejected human)")
	fl.StringVar(&f.task, "task", "", "what the constitution may ask of the task: a JSON object, or @FILE")
	fl.StringArrayVar(&f.options, "option", nil, "an allowed answer, JSON or plain text; repeat it")
	fl.StringVar(&f.rule, "rule", "", "majority or supermajority")
	fl.StringVar(&f.onRejected, "on-rejected", "", "what follows a rejected winner: no_verdict or human")
	fl.IntVar(&f.minimum, "minimum", 0, "fewest participants (default 3)")
	fl.StringVar(&f.tau, "tau", "", "gap above which the winner is clear (default 0.15)")
	fl.StringVar(&f.gammaPlus, "gamma-plus", "", "how strongly support carries on (default 0.6)")
	fl.StringVar(&f.gammaMinus, "gamma-minus", "", "how strongly attack carries on (default 0.8)")
	fl.StringVar(&f.emptyWeight, "empty-weight", "", "weight of an argument without evidence (default 0)")
	fl.StringVar(&body.Method, "method", "", "fixed-point, quadratic-energy, rectified or literal-jacobi")
	fl.StringVar(&body.WeightMethod, "weight-method", "", "literal or discounted-gm")
	fl.DurationVar(&f.window, "window", roundWindow, "time for each phase")
	fl.DurationVar(&f.collect, "collect", 0, "time for positions and challenges (default --window)")
	fl.DurationVar(&f.confirm, "confirm", 0, "time for confirmations (default --window)")
	fl.DurationVar(&f.evidence, "evidence-window", 0, "time for evidence on the conflict path (default --window)")
	fl.DurationVar(&f.review, "review", 0, "time for a human's review")
	return cmd
}

func (f openFlags) fill(cmd *cobra.Command, body *deliberation.OpenBody) error {
	var err error
	if body.Question, err = fromFile(body.Question); err != nil {
		return err
	}
	if f.task != "" {
		if body.Task, err = jsonValue("--task", f.task, false); err != nil {
			return err
		}
	}
	for _, text := range f.options {
		option, err := jsonValue("--option", text, true)
		if err != nil {
			return err
		}
		body.Options = append(body.Options, option)
	}
	body.Rule, body.OnRejected = deliberation.Rule(f.rule), f.onRejected
	if cmd.Flags().Changed("minimum") {
		body.Minimum = &f.minimum
	}
	for _, n := range []struct {
		flag, text string
		to         **float64
	}{{"--tau", f.tau, &body.Tau}, {"--gamma-plus", f.gammaPlus, &body.GammaPlus}, {"--gamma-minus", f.gammaMinus, &body.GammaMinus}, {"--empty-weight", f.emptyWeight, &body.EmptyWeight}} {
		if n.text == "" {
			continue
		}
		x, err := unitFlag(n.flag, n.text)
		if err != nil {
			return err
		}
		*n.to = &x
	}
	body.Windows = f.windows()
	return nil
}

func (f openFlags) windows() *deliberation.WindowsBody {
	ms := func(own, fallback time.Duration) *int64 {
		if own == 0 {
			own = fallback
		}
		if own == 0 {
			return nil
		}
		n := own.Milliseconds()
		return &n
	}
	return &deliberation.WindowsBody{Collect: ms(f.collect, f.window), Confirm: ms(f.confirm, f.window), Evidence: ms(f.evidence, f.window), Review: ms(f.review, 0)}
}

func (a *app) roundPosition() *cobra.Command {
	var answer, text, facts, probability string
	var ev evidenceFlags
	var final bool
	cmd := &cobra.Command{
		Use:   "position ROUND",
		Short: "State a position: an answer with reasons, facts and evidence",
		Example: `  deliberd round position 01JD0000000000000000000000 --answer '"pump A"' --text @why.md \
    --evidence type=performance,value=0.9,width=0.2 --probability 0.8 --as ada`,
		Args: args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			if answer == "" {
				return usage("%s needs --answer", cmd.CommandPath())
			}
			body := deliberation.PositionBody{Round: given[0], Final: final}
			var err error
			if body.Answer, err = jsonValue("--answer", answer, true); err != nil {
				return err
			}
			if body.Text, err = fromFile(text); err != nil {
				return err
			}
			if facts != "" {
				if body.Facts, err = jsonValue("--facts", facts, false); err != nil {
					return err
				}
			}
			if body.Evidence, err = ev.items(false); err != nil {
				return err
			}
			if probability != "" {
				p, err := unitFlag("--probability", probability)
				if err != nil {
					return err
				}
				body.Probability = &p
			}
			return a.act(cmd, "deliberatic.position", body, a.roundStands)
		},
	}
	f := cmd.Flags()
	f.StringVar(&answer, "answer", "", "the answer: JSON, plain text, or @FILE")
	f.StringVar(&text, "text", "", "reasons, or @FILE; 64 KiB at most")
	f.StringVar(&facts, "facts", "", "declared facts: a JSON object, or @FILE")
	f.StringVar(&probability, "probability", "", "that the answer is right, 0 to 1; it is scored later")
	f.BoolVar(&final, "final", false, "nothing more to say in this phase")
	ev.register(f)
	return cmd
}

func (a *app) roundChallenge() *cobra.Command {
	return a.roundArgue("challenge", "Attack an argument", "deliberatic.challenge")
}

func (a *app) roundSupport() *cobra.Command {
	return a.roundArgue("support", "Support an argument", "deliberatic.support")
}

func (a *app) roundArgue(verb, short, kind string) *cobra.Command {
	var text string
	var ev evidenceFlags
	var final bool
	cmd := &cobra.Command{
		Use:   verb + " ROUND TARGET",
		Short: short,
		Example: fmt.Sprintf("  deliberd round %s 01JD0000000000000000000000 01JD0000000000000000000001 --text \"because …\" \\\n"+
			"    --evidence type=historical,value=0.8,width=0.1 --as bob", verb),
		Args: args("ROUND", "TARGET"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body := deliberation.ArgueBody{Round: given[0], Target: given[1], Final: final}
			var err error
			if body.Text, err = fromFile(text); err != nil {
				return err
			}
			if body.Evidence, err = ev.items(false); err != nil {
				return err
			}
			return a.act(cmd, kind, body, a.roundStands)
		},
	}
	cmd.Flags().StringVar(&text, "text", "", "reasons, or @FILE; 64 KiB at most")
	cmd.Flags().BoolVar(&final, "final", false, "nothing more to say in this phase")
	ev.register(cmd.Flags())
	return cmd
}

func (a *app) roundRelate() *cobra.Command {
	var final bool
	cmd := &cobra.Command{
		Use:     "relate ROUND FROM attack|support TO",
		Short:   "Let an argument of one's own attack or support a further one",
		Example: "  deliberd round relate 01JD0000000000000000000000 01JD0000000000000000000001 attack 01JD0000000000000000000002 --as ada",
		Args:    args("ROUND", "FROM", "attack|support", "TO"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body := deliberation.RelateBody{Round: given[0], From: given[1], Relation: deliberation.Relation(given[2]), To: given[3], Final: final}
			return a.act(cmd, "deliberatic.relate", body, a.roundStands)
		},
	}
	cmd.Flags().BoolVar(&final, "final", false, "nothing more to say in this phase")
	return cmd
}

func (a *app) roundEvidence() *cobra.Command {
	var ev evidenceFlags
	var final bool
	cmd := &cobra.Command{
		Use:   "evidence ROUND ARGUMENT",
		Short: "Add evidence to an argument of one's own",
		Example: `  deliberd round evidence 01JD0000000000000000000000 01JD0000000000000000000001 \
    --type performance --value 0.9 --width 0.2 --samples 400 --as ada`,
		Args: args("ROUND", "ARGUMENT"),
		RunE: func(cmd *cobra.Command, given []string) error {
			body := deliberation.EvidenceBody{Round: given[0], Argument: given[1], Final: final}
			var err error
			if body.Evidence, err = ev.items(true); err != nil {
				return err
			}
			return a.act(cmd, "deliberatic.evidence", body, a.roundStands)
		},
	}
	cmd.Flags().BoolVar(&final, "final", false, "nothing more to say in this phase")
	ev.register(cmd.Flags())
	return cmd
}
