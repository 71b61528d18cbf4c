package main

import (
	"encoding/json"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/deliberd/deliberd/machine"
)

// show prints a value as JSON with --json, and otherwise lets text print it.
func (a *app) show(v any, text func(w io.Writer)) error {
	if a.json {
		enc := json.NewEncoder(a.out)
		enc.SetEscapeHTML(false)
		return enc.Encode(v)
	}
	text(a.out)
	return nil
}

// table prints aligned columns; an empty table prints the word for it.
func table(w io.Writer, none string, head []string, rows [][]string) {
	if len(rows) == 0 {
		fmt.Fprintln(w, none)
		return
	}
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	fmt.Fprintln(t, strings.Join(head, "\t"))
	for _, row := range rows {
		for i, cell := range row {
			if cell == "" {
				row[i] = "-"
			}
		}
		fmt.Fprintln(t, strings.Join(row, "\t"))
	}
	_ = t.Flush() // errors surface with the stream itself
}

// facts prints name and value pairs, leaving out empty values.
func facts(w io.Writer, pairs ...string) {
	t := tabwriter.NewWriter(w, 0, 8, 2, ' ', 0)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i+1] != "" {
			fmt.Fprintf(t, "%s\t%s\n", pairs[i], pairs[i+1])
		}
	}
	_ = t.Flush() // as in table
}

// nano writes an integer at 1e-9 as a decimal number, as short as it gets.
func nano(n int64) string {
	sign := ""
	if n < 0 {
		sign, n = "-", -n
	}
	whole, rest := n/1_000_000_000, n%1_000_000_000
	if rest == 0 {
		return fmt.Sprintf("%s%d", sign, whole)
	}
	return fmt.Sprintf("%s%d.%s", sign, whole, strings.TrimRight(fmt.Sprintf("%09d", rest), "0"))
}

// stamp writes replicated time; 0 is nothing.
func stamp(ms machine.Stamp) string {
	if ms == 0 {
		return ""
	}
	return time.UnixMilli(int64(ms)).UTC().Format("2006-01-02 15:04:05Z")
}

// until writes how far off a deadline is.
func until(ms machine.Stamp) string {
	if ms == 0 {
		return ""
	}
	left := time.Until(time.UnixMilli(int64(ms))).Round(time.Second)
	if left <= 0 {
		return "now"
	}
	return "in " + left.String()
}

func number[N int | int64 | uint64](n N) string { return strconv.FormatInt(int64(n), 10) }

func yes(b bool, word string) string {
	if b {
		return word
	}
	return ""
}

// line is a text cut to one line of at most n characters.
func line(text string, n int) string {
	text = strings.Join(strings.Fields(text), " ")
	if r := []rune(text); len(r) > n {
		return string(r[:n-1]) + "…"
	}
	return text
}
