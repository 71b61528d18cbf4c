package main

import (
	"fmt"
	"io"
	"log/slog"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
)

var logLevels = map[string]slog.Level{"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError}

// logger writes to standard error, as configured.
func (a *app) logger() *slog.Logger {
	options := &slog.HandlerOptions{Level: logLevels[a.cfg.LogLevel]}
	if a.cfg.LogFormat == "json" {
		return slog.New(slog.NewJSONHandler(a.err, options))
	}
	return slog.New(slog.NewTextHandler(a.err, options))
}

func (a *app) configCommand() *cobra.Command {
	check := &cobra.Command{
		Use:   "check [FILE]",
		Short: "Check a configuration and show what each setting is and where it comes from",
		Long: `Check a configuration and show what each setting is and where it comes from:
a flag, the environment, the file, or the default. Unknown settings are errors,
and so is what "run" would refuse on any machine: addresses that are none, an
HTTP door that others can reach without TLS, a TLS key that cannot be read.
Whether a port is free, or an address this machine's, only "run" finds.`,
		Example: "  deliberd config check deliberd.yaml",
		Args:    maybe("FILE"),
		// Its own loading: the file may be named as the argument.
		PersistentPreRunE: func(cmd *cobra.Command, given []string) error {
			if len(given) == 1 {
				a.config = given[0]
			}
			if err := a.load(cmd); err != nil {
				return err
			}
			return a.cfg.checkNode()
		},
		RunE: func(*cobra.Command, []string) error { return a.showConfig() },
	}
	a.nodeFlags(check.Flags())
	return group("config", "Check the configuration", "  deliberd config check", check)
}

func (a *app) showConfig() error {
	type line struct {
		Value  any    `json:"value"`
		Source string `json:"source"`
	}
	out := map[string]line{}
	var rows [][]string
	for _, k := range knobs {
		source := a.cfg.source[k.key]
		if source == "" {
			source = "default"
		}
		var value any
		text := ""
		switch at := k.at(&a.cfg).(type) {
		case *string:
			value, text = *at, *at
		case *[]string:
			value, text = append([]string{}, *at...), strings.Join(*at, ", ")
		case *bool:
			value, text = *at, strconv.FormatBool(*at)
		}
		out[k.key] = line{value, source}
		rows = append(rows, []string{k.key, text, source})
	}
	return a.show(out, func(w io.Writer) { table(w, "", []string{"SETTING", "VALUE", "FROM"}, rows) })
}

// writeConfig writes a commented deliberd.yaml; it leaves an existing one alone.
func writeConfig(path string, s settings) (written bool, err error) {
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o644)
	if os.IsExist(err) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	_, err = f.WriteString(configText(s))
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	return true, err
}

// configText writes every setting with what it is about; those that are at
// their default stand as comments.
func configText(s settings) string {
	var b strings.Builder
	b.WriteString("# Settings of deliberd. A flag or the environment (DELIBERD_HTTP, …) overrides the file.\n# Relative paths start at this file. `deliberd config check` checks it.\n")
	standard := defaults()
	for _, k := range knobs {
		value := yamlValue(k.at(&s))
		comment := ""
		if value == yamlValue(k.at(&standard)) {
			comment = "# "
		}
		fmt.Fprintf(&b, "\n# %s\n%s%s: %s\n", k.about, comment, k.key, value)
	}
	return b.String()
}

func yamlValue(at any) string {
	switch at := at.(type) {
	case *string:
		return strconv.Quote(*at)
	case *bool:
		return strconv.FormatBool(*at)
	case *[]string:
		quoted := make([]string, len(*at))
		for i, item := range *at {
			quoted[i] = strconv.Quote(item)
		}
		return "[" + strings.Join(quoted, ", ") + "]"
	}
	return ""
}
