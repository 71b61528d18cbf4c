package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/spf13/cobra"
)

var update = flag.Bool("update", false, "rewrite the golden files")

// shell runs the program in a folder of its own.
type shell struct {
	t   *testing.T
	dir string
	in  string
}

func newShell(t *testing.T) *shell {
	t.Helper()
	s := &shell{t: t, dir: t.TempDir()}
	t.Chdir(s.dir)
	return s
}

// run returns the exit code and both outputs.
func (s *shell) run(args ...string) (int, string, string) {
	var out, errs bytes.Buffer
	code := run(s.t.Context(), args, strings.NewReader(s.in), &out, &errs)
	return code, out.String(), errs.String()
}

// ok runs what must succeed and returns its output.
func (s *shell) ok(args ...string) string {
	s.t.Helper()
	code, out, errs := s.run(args...)
	if code != exitDone {
		s.t.Fatalf("deliberd %s: exit %d\n%s%s", strings.Join(args, " "), code, out, errs)
	}
	return out
}

// json runs what must succeed and decodes its output.
func (s *shell) json(into any, args ...string) {
	s.t.Helper()
	out := s.ok(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), into); err != nil {
		s.t.Fatalf("deliberd %s: %v in %s", strings.Join(args, " "), err, out)
	}
}

// fails runs what must end with an exit code and an error code, and checks
// the error in both of its forms. It returns the text form.
func (s *shell) fails(exit int, code string, args ...string) string {
	s.t.Helper()
	got, out, text := s.run(args...)
	if got != exit || !strings.HasPrefix(text, "error: ") || !strings.Contains(text, "("+code+")\ntry: ") || out != "" {
		s.t.Errorf("deliberd %s: exit %d, want %d with %s\n%s%s", strings.Join(args, " "), got, exit, code, out, text)
	}
	got, out, errs := s.run(append(args, "--json")...)
	var e struct {
		Error struct{ Code, Message, Fix string }
	}
	if err := json.Unmarshal([]byte(errs), &e); err != nil || got != exit || e.Error.Code != code || e.Error.Message == "" || e.Error.Fix == "" || out != "" {
		s.t.Errorf("deliberd %s --json: exit %d, want %d with %s\n%s%s", strings.Join(args, " "), got, exit, code, out, errs)
	}
	return text
}

func (s *shell) write(name, text string) string {
	s.t.Helper()
	if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	return name
}

// what differs from run to run, and what stands for it in golden files.
var unstable = []struct {
	what *regexp.Regexp
	as   string
}{
	{regexp.MustCompile(`12D3KooW[1-9A-HJ-NP-Za-km-z]{44}`), "<node>"},
	{regexp.MustCompile(`\b[0-9a-f]{64}\b`), "<hash>"},
	{regexp.MustCompile(`\b[0-7][0-9A-HJKMNP-TV-Z]{25}\b`), "<ulid>"},
	{regexp.MustCompile(`[A-Za-z0-9_-]{43}\b`), "<key>"},
	{regexp.MustCompile(`20\d\d-\d\d-\d\d[T ][0-9:.]+Z`), "<time>"},
}

// golden compares an output with testdata/NAME.golden. Where it is checked
// against a terminal's columns, trailing blanks do not count.
func golden(t *testing.T, name, got string) {
	t.Helper()
	for _, u := range unstable {
		got = u.what.ReplaceAllString(got, u.as)
	}
	path := filepath.Join(home, "testdata", name+".golden")
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
		return
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if got != string(want) {
		t.Errorf("%s differs:\n%s\nwant:\n%s", name, got, want)
	}
}

// home is the package's folder; tests run elsewhere.
var home = func() string {
	dir, err := os.Getwd()
	if err != nil {
		panic(err)
	}
	return dir
}()

func TestEveryCommandSaysWhatItDoesAndGivesAnExample(t *testing.T) {
	var walk func(c *cobra.Command)
	walk = func(c *cobra.Command) {
		if c.Name() == "help" || c.Name() == "completion" {
			return
		}
		if c.Short == "" || !strings.Contains(c.Example, "deliberd") {
			t.Errorf("%s: short %q, example %q", c.CommandPath(), c.Short, c.Example)
		}
		if c.Runnable() && c.InheritedFlags().Lookup("json") == nil && c.PersistentFlags().Lookup("json") == nil && c.Name() != "deliberd" {
			t.Errorf("%s takes no --json", c.CommandPath())
		}
		for _, sub := range c.Commands() {
			walk(sub)
		}
	}
	walk((&app{}).root())
}

func TestHelpListsTheCommands(t *testing.T) {
	s := newShell(t)
	golden(t, "help", s.ok("help"))
	golden(t, "help_round_position", s.ok("round", "position", "--help"))
	if got, want := s.ok("round"), s.ok("round", "--help"); got != want {
		t.Errorf("a group without a command prints\n%s\nand with --help\n%s", got, want)
	}
}

func TestWrongUsageExitsWithTwo(t *testing.T) {
	s := newShell(t)
	for _, args := range [][]string{
		{"nonsense"},
		{"acp", "nonsense"},
		{"status", "extra"},
		{"status", "--nope"},
		{"round", "position"},
		{"acp", "respond", "01JD0000000000000000000000"},
		{"status", "--config", "missing.yaml"},
		{"status", "--node", "127.0.0.1:7700"},
		{"status", "--timeout", "soon"},
		{"evidence", "verify", "missing.json"},
		{"genesis", "new"},
		{"agent", "new", "white space"},
		{"agoras"},
	} {
		s.fails(exitUsage, "usage", args...)
	}
}

func TestAnUnreachableNodeIsSaidSo(t *testing.T) {
	s := newShell(t)
	s.fails(exitRefused, "unreachable", "status", "--node", "http://127.0.0.1:1")
	s.fails(exitRefused, "no_identity", "peers", "--node", "http://127.0.0.1:1")
	s.fails(exitRefused, "no_identity", "peers", "--as", "nobody")
}

func TestVersion(t *testing.T) {
	s := newShell(t)
	if out := s.ok("version"); !strings.HasPrefix(out, "deliberd ") {
		t.Errorf("%s", out)
	}
	var v map[string]string
	if s.json(&v, "version"); v["version"] == "" || v["go"] == "" || v["platform"] == "" {
		t.Errorf("%v", v)
	}
}

func TestAdviceNamesCommandsAndNotMethods(t *testing.T) {
	// What nodes say among themselves, and what only programs ask for.
	without := []string{"acp.configure", "acp.export", "acp.metrics", "cluster.address", "cluster.genesis", "cluster.invitations", "cluster.ready", "deliberatic.certify"}
	var methods []string
	for _, m := range machines {
		for _, k := range m.Kinds() {
			methods = append(methods, k.Name)
		}
		for _, q := range m.Queries() {
			methods = append(methods, q.Name)
		}
	}
	root := (&app{}).root()
	for _, name := range methods {
		command, ok := commands[name]
		if slices.Contains(without, name) {
			continue
		}
		if !ok {
			t.Errorf("advice to call %s names no command", name)
			continue
		}
		if got := typed("do " + name + ", then read on"); got != "do `deliberd "+command+"`, then read on" {
			t.Errorf("%s: %s", name, got)
		}
	}
	for name, command := range commands {
		words := strings.Fields(command)
		if c, rest, err := root.Find(words); err != nil || len(rest) > 0 || !strings.HasSuffix(c.CommandPath(), command) {
			t.Errorf("%s: there is no command %q", name, command)
		}
	}
	if got := typed("write it like deliberatic.frozen or risk.credit"); got != "write it like deliberatic.frozen or risk.credit" {
		t.Errorf("%s", got)
	}
}

func TestInterruptingEndsACommand(t *testing.T) {
	newShell(t)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	var out, errs bytes.Buffer
	if code := run(ctx, []string{"status", "--node", "http://127.0.0.1:1"}, strings.NewReader(""), &out, &errs); code != exitRefused {
		t.Errorf("exit %d: %s", code, errs.String())
	}
}
