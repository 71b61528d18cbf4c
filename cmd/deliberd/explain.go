package main

import (
	"fmt"
	"io"
	"strings"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/semantics"
)

// printExplanation takes a round apart for people. σ, w, ρ and shares are
// exact to 1e-9.
func printExplanation(w io.Writer, e *deliberation.Explanation) {
	positions := map[string]bool{}
	for _, p := range e.Ranking {
		positions[p.Position] = true
	}
	var rows [][]string
	for _, arg := range e.Arguments {
		rows = append(rows, []string{arg.ID, string(arg.Kind), arg.Author, nano(arg.WeightNano), nano(arg.RhoNano), nano(arg.BaseNano), nano(arg.SigmaNano), arg.Status})
		for _, s := range arg.Shares {
			rows = append(rows, []string{"  " + s.From, string(s.Relation) + "s it" + yes(s.CrossReference, " (cross-reference)"), "", "", "", "", signed(s.ShareNano), ""})
		}
	}
	explained(w, rows)
	fmt.Fprintln(w)
	pairs := []string{}
	for i, p := range e.Ranking {
		name := ""
		if i == 0 {
			name = "ranking"
		}
		pairs = append(pairs, name+" ", strings.TrimSpace(fmt.Sprintf("%d. %s  σ %s  %s", i+1, p.Position, nano(p.SigmaNano), p.Author)))
	}
	pairs = append(pairs, "gap", gapText(e), "path", pathText(e), "semantics", e.Method+", "+e.Status)
	if e.Phase != "" {
		pairs = append(pairs, "phase", string(e.Phase)+yes(e.Provisional, ", more may still come"), "moderator", e.Moderator, "waiting for", strings.Join(e.Waiting, ", "))
	}
	facts(w, append(pairs, "to change the winner", flipText(e, e.Flip), "to change the path", flipText(e, e.PathFlip))...)
}

// explained prints the table of strengths; a share's row leaves out what it has not.
func explained(w io.Writer, rows [][]string) {
	width := make([]int, 8)
	head := []string{"ARGUMENT", "KIND", "AUTHOR", "w", "ρ", "w·ρ", "σ", "STATUS"}
	all := append([][]string{head}, rows...)
	for _, row := range all {
		for i, cell := range row {
			width[i] = max(width[i], len([]rune(cell)))
		}
	}
	if len(rows) == 0 {
		fmt.Fprintln(w, "no arguments")
		return
	}
	for _, row := range all {
		var b strings.Builder
		for i, cell := range row {
			b.WriteString(cell)
			b.WriteString(strings.Repeat(" ", width[i]-len([]rune(cell))+2))
		}
		fmt.Fprintln(w, strings.TrimRight(b.String(), " "))
	}
}

func signed(n int64) string {
	if n >= 0 {
		return "+" + nano(n)
	}
	return nano(n)
}

func gapText(e *deliberation.Explanation) string {
	if e.GapNano == nil {
		return "none: fewer than two positions"
	}
	word := "within"
	if *e.GapNano > e.TauNano {
		word = "above"
	}
	return fmt.Sprintf("%s, %s τ %s", nano(*e.GapNano), word, nano(e.TauNano))
}

func pathText(e *deliberation.Explanation) string {
	why := string(e.Why)
	if why == "" {
		why = string(e.Reason)
	}
	if e.Path == "" {
		return why
	}
	return string(e.Path) + ": " + strings.ReplaceAll(why, "_", " ")
}

// flipText is what would turn a result. Where strengths are linear in the
// weights it is solved for, elsewhere searched for.
func flipText(e *deliberation.Explanation, f *deliberation.Flip) string {
	if e.GapNano == nil {
		return ""
	}
	var status semantics.Status
	solved := e.Method == string(semantics.FixedPoint) && status.UnmarshalText([]byte(e.Status)) == nil && status.Stable()
	if f == nil {
		return "no change of one weight was found that does"
	}
	if f.ChangeNano == 0 {
		return fmt.Sprintf("it stands on the edge: the slightest change of w of %s, then %s", f.Argument, f.Then)
	}
	word := "to"
	if solved {
		word = "beyond"
	}
	return fmt.Sprintf("move w of %s from %s %s %s (%s): then %s", f.Argument, nano(f.FromNano), word, nano(f.ToNano), signed(f.ChangeNano), f.Then)
}
