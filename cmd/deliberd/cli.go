package main

import (
	"context"
	"io"
	"strings"
	"time"

	"github.com/spf13/cobra"
)

// Exit codes.
const (
	exitDone    = 0
	exitRefused = 1 // the cluster refused, a check failed, or something broke
	exitUsage   = 2 // the command line or the configuration is wrong
)

// app is one run of the program: its streams and its settings.
type app struct {
	in       io.Reader
	out, err io.Writer
	json     bool
	flags    settings
	cfg      settings // what counts, once loaded
	timeout  time.Duration

	config        string // --config
	configMayLack bool   // it may name a file that does not exist yet
}

// run is the whole program but for the process around it.
func run(ctx context.Context, args []string, in io.Reader, out, errs io.Writer) int {
	a := &app{in: in, out: out, err: errs}
	root := a.root()
	root.SetArgs(args)
	root.SetIn(in)
	root.SetOut(out)
	root.SetErr(errs)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitDone
	}
	if strings.HasPrefix(err.Error(), "unknown command") {
		err = usage("%s; `deliberd help` lists the commands", err)
	}
	a.json = a.json || wantsJSON(args)
	return a.fail(err)
}

// wantsJSON looks for --json where flags could not be read.
func wantsJSON(args []string) bool {
	for _, arg := range args {
		if arg == "--json" || arg == "--json=true" {
			return true
		}
	}
	return false
}

func (a *app) root() *cobra.Command {
	root := &cobra.Command{
		Use:   "deliberd",
		Short: "A cluster in which agents and people propose, argue, vote and decide, and can prove it",
		Long: `deliberd runs a node of a deliberation cluster, and speaks to one.

Settings come from flags, then the environment (DELIBERD_HTTP, …), then
deliberd.yaml. Every command takes --json. Exit codes: 0 done, 1 refused or
failed, 2 wrong usage.`,
		Example:           "  deliberd dev --demo --exit\n  deliberd init && deliberd run\n  deliberd status --json",
		SilenceErrors:     true,
		SilenceUsage:      true,
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
		PersistentPreRunE: func(cmd *cobra.Command, _ []string) error { return a.load(cmd) },
	}
	root.SetFlagErrorFunc(func(_ *cobra.Command, err error) error { return usage("%s", err) })
	f := root.PersistentFlags()
	f.BoolVar(&a.json, "json", false, "print JSON")
	f.StringVar(&a.config, "config", "", "configuration file (default ./deliberd.yaml when there is one)")
	f.DurationVar(&a.timeout, "timeout", 30*time.Second, "how long a call to the cluster may take")
	a.clientFlags(f)
	root.AddGroup(&cobra.Group{ID: "node", Title: "Run nodes:"}, &cobra.Group{ID: "people", Title: "Who may act:"},
		&cobra.Group{ID: "decide", Title: "Decide:"}, &cobra.Group{ID: "check", Title: "Check, offline:"})
	for group, commands := range map[string][]*cobra.Command{
		"node":   {a.devCommand(), a.initCommand(), a.runCommand(), a.inviteCommand(), a.approveCommand(), a.joinCommand(), a.removeCommand(), a.statusCommand(), a.peersCommand(), a.guiltCommand(), a.genesisCommand()},
		"people": {a.agentCommand()},
		"decide": {a.acpCommand(), a.agoraCommand(), a.roundCommand()},
		"check":  {a.semanticsCommand(), a.evidenceCommand(), a.configCommand(), a.simCommand()},
		"":       {a.versionCommand()},
	} {
		for _, c := range commands {
			c.GroupID = group
			root.AddCommand(c)
		}
	}
	return root
}

// group makes a command that only holds others.
func group(use, short, example string, commands ...*cobra.Command) *cobra.Command {
	c := &cobra.Command{Use: use, Short: short, Example: example, RunE: func(cmd *cobra.Command, args []string) error {
		if len(args) > 0 {
			return usage("%s has no command %q; `%s --help` lists them", cmd.CommandPath(), args[0], cmd.CommandPath())
		}
		return cmd.Help()
	}}
	c.AddCommand(commands...)
	return c
}

// args checks the number of arguments and names what is missing.
func args(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		switch {
		case len(given) < len(names):
			return usage("%s needs %s", cmd.CommandPath(), strings.Join(names[len(given):], " and "))
		case len(given) > len(names):
			return usage("%s takes no argument %q", cmd.CommandPath(), given[len(names)])
		}
		return nil
	}
}

// maybe is [args] with a last argument that may be left out.
func maybe(names ...string) cobra.PositionalArgs {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) == len(names)-1 {
			return nil
		}
		return args(names...)(cmd, given)
	}
}
