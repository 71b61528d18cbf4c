package main

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/merkle"
)

func (a *app) evidenceCommand() *cobra.Command {
	return group("evidence", "Export a round's evidence chain, and verify one offline",
		"  deliberd evidence export ROUND --out chain.json --as ada\n  deliberd evidence verify chain.json --root HEX",
		a.evidenceExport(), a.evidenceVerify())
}

func (a *app) evidenceExport() *cobra.Command {
	var out string
	cmd := &cobra.Command{
		Use:   "export ROUND",
		Short: "Write the evidence chain of a round that has ended",
		Long: `Write the evidence chain of a round that has ended, as the one canonical text
that verifies. Without --out it goes to standard output, without a newline.`,
		Example: "  deliberd evidence export 01JD0000000000000000000000 --out chain.json --as ada",
		Args:    args("ROUND"),
		RunE: func(cmd *cobra.Command, given []string) error {
			return a.call(cmd, func(ctx context.Context, c *client.Client) error {
				var raw json.RawMessage
				if err := c.Query(ctx, evidenceQuery, deliberation.RoundParams{Round: given[0]}, &raw); err != nil {
					return err
				}
				return a.exported(raw, out) // a result is canonical JSON as it is
			})
		},
	}
	cmd.Flags().StringVar(&out, "out", "", "file to write")
	return cmd
}

func (a *app) exported(text []byte, out string) error {
	report, err := merkle.Verify(text, nil)
	if err != nil {
		return err
	}
	if out == "" {
		_, err := a.out.Write(text)
		return err
	}
	if err := os.WriteFile(out, text, 0o644); err != nil {
		return err
	}
	return a.show(map[string]any{"file": out, "root": report.Root, "leaves": report.Leaves}, func(w io.Writer) {
		facts(w, "wrote", out, "leaves", number(report.Leaves), "root", report.Root.String())
	})
}

func (a *app) evidenceVerify() *cobra.Command {
	var root string
	cmd := &cobra.Command{
		Use:   "verify FILE",
		Short: "Check an exported evidence chain, offline",
		Long: `Check an exported evidence chain: the text is canonical, every leaf hashes to
its hash, the leaves are complete and in order, and lead to the root. With the
root of the verdict (--root) that proves it. Without, the file is only
consistent with itself, which anybody can make it. A failing leaf is named.`,
		Example: "  deliberd evidence verify chain.json --root 5f2c…",
		Args:    args("FILE"),
		RunE: func(cmd *cobra.Command, given []string) error {
			text, err := a.readInput(given[0])
			if err != nil {
				return err
			}
			var trusted *merkle.Hash
			if cmd.Flags().Changed("root") {
				h, err := merkle.ParseHash(root)
				if err != nil {
					return usage("--root is %q, not 64 lowercase hex digits", root)
				}
				trusted = &h
			}
			report, err := merkle.Verify(text, trusted)
			if err != nil {
				return err
			}
			return a.show(report, func(w io.Writer) {
				fmt.Fprintln(w, report.Result)
				facts(w, "root", report.Root.String(), "leaves", number(report.Leaves))
				if !report.Proven {
					fmt.Fprintln(w, "compare the root with the verdict's, or give it with --root")
				}
			})
		},
	}
	cmd.Flags().StringVar(&root, "root", "", "the root that the reader trusts, 64 hex digits")
	return cmd
}

// evidenceQuery exports the chain of an ended round.
const evidenceQuery = "deliberatic.export"
