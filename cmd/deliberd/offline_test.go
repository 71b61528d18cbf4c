package main

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/client"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/merkle"
)

func TestAgentNewMakesAKeyThatOnlyItsOwnerReads(t *testing.T) {
	s := newShell(t)
	golden(t, "agent_new", s.ok("agent", "new", "ada"))
	me, err := client.ReadIdentity("keys/ada.json")
	if err != nil || me.ID != "ada" || me.Cluster != "" {
		t.Fatalf("%+v %v", me, err)
	}
	if info, err := os.Stat("keys/ada.json"); err != nil || info.Mode().Perm() != 0o600 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	s.fails(exitRefused, "already_exists", "agent", "new", "ada")
	var made madeKey
	s.json(&made, "agent", "new", "team/ada:1", "--cluster", strings.Repeat("a", 64))
	if made.File != filepath.Join("keys", "team_ada_1.json") || made.ID != "team/ada:1" {
		t.Errorf("%+v", made)
	}
	if text, err := os.ReadFile(made.File); err != nil || !strings.Contains(string(text), made.JWK.X) {
		t.Errorf("%s %v", text, err)
	}
	if out := s.ok("agent", "new", "bob", "--out", "secure/bob.json", "--json"); strings.Contains(out, `"d"`) {
		t.Errorf("the secret is printed: %s", out)
	}
	s.fails(exitUsage, "usage", "agent", "new", "bob", "--cluster", "abc")
}

func TestATokenNeedsNoNodeOnceTheClusterIsKnown(t *testing.T) {
	s := newShell(t)
	s.ok("agent", "new", "ada", "--cluster", strings.Repeat("a", 64))
	if out := s.ok("agent", "token", "--as", "ada", "--node", "http://127.0.0.1:1"); strings.Count(out, ".") != 2 {
		t.Errorf("%s", out)
	}
	s.fails(exitRefused, "token_life_too_long", "agent", "token", "--as", "ada", "--for", "2h")
	s.ok("agent", "new", "bob")
	s.fails(exitRefused, "unreachable", "agent", "token", "--as", "bob", "--node", "http://127.0.0.1:1")
}

// founders makes the files of n operators with a node each.
func founders(s *shell, n int) []string {
	var files []string
	for i := range n {
		op := fmt.Sprintf("ops-%c", 'a'+i)
		s.ok("agent", "new", op)
		out := s.ok("genesis", "founder", "--as", op, "--data", op, "--announce", fmt.Sprintf("/ip4/192.0.2.%d/tcp/7701", i+1))
		files = append(files, s.write(op+".json", out))
	}
	return files
}

func TestSeveralOperatorsFoundACluster(t *testing.T) {
	s := newShell(t)
	files := founders(s, 4)
	if a, b := s.ok("genesis", "founder", "--as", "ops-a", "--data", "ops-a"), s.ok("genesis", "founder", "--as", "ops-a", "--data", "ops-a"); a != b {
		t.Error("asked again, a founder has other keys")
	}
	golden(t, "genesis_founder", s.ok("genesis", "founder", "--as", "ops-a", "--data", "ops-a"))
	golden(t, "genesis_new", s.ok(append([]string{"genesis", "new", "--name", "Four labs"}, files...)...))
	if text := s.fails(exitRefused, "genesis_unsigned", "genesis", "check", "genesis.json"); !strings.Contains(text, "ops-a") {
		t.Errorf("%s", text)
	}
	s.fails(exitRefused, "genesis_unsigned", "init", "one", "--genesis", "genesis.json", "--data", "ops-a")
	for _, op := range []string{"ops-a", "ops-b", "ops-c", "ops-d"} {
		s.ok("genesis", "sign", "genesis.json", "--as", op)
	}
	golden(t, "genesis_check", s.ok("genesis", "check", "genesis.json"))
	var view genesisView
	if s.json(&view, "genesis", "check", "genesis.json"); len(view.Voters) != 4 || view.ByzantineTolerance != 1 || len(view.Unsigned) != 0 {
		t.Errorf("%+v", view)
	}
	var out founded
	if s.json(&out, "init", "one", "--genesis", "genesis.json", "--data", "ops-a"); out.ClusterID != view.ClusterID {
		t.Errorf("%+v", out)
	}
	var again founded
	if s.json(&again, "init", "one", "--genesis", "genesis.json", "--data", "ops-a"); again != out {
		t.Errorf("%+v, then %+v", out, again)
	}
	s.fails(exitRefused, "already_exists", append([]string{"genesis", "new", "--name", "x"}, files...)...)
}

func TestAGenesisThatIsNoneIsRefused(t *testing.T) {
	s := newShell(t)
	files := founders(s, 1)
	s.ok("genesis", "new", "--name", "x", files[0])
	s.ok("agent", "new", "stranger")
	s.fails(exitRefused, "not_authorized", "genesis", "sign", "genesis.json", "--as", "stranger")
	s.fails(exitRefused, "bad_genesis", "genesis", "new", "--name", "x", "--out", "g2.json", files[0], files[0])
	s.fails(exitRefused, "bad_genesis", "genesis", "new", "--name", "x", "--out", "g2.json", s.write("junk.json", "{}x"))
	s.fails(exitRefused, "bad_genesis", "genesis", "check", s.write("junk.json", `{"v":1}`))
	s.fails(exitRefused, "bad_genesis", "genesis", "new", "--name", "", "--out", "g2.json", files[0])

	s.ok("genesis", "sign", "genesis.json", "--as", "ops-a")
	text, err := os.ReadFile("genesis.json")
	if err != nil {
		t.Fatal(err)
	}
	s.fails(exitRefused, "bad_signature", "genesis", "check", s.write("forged.json", strings.Replace(string(text), `"name":"x"`, `"name":"y"`, 1)))
}

func TestInitFoundsAClusterOfOneAndKeepsWhatIsThere(t *testing.T) {
	s := newShell(t)
	golden(t, "init", s.ok("init", "lab", "--operator", "ops", "--http", "127.0.0.1:7790"))
	golden(t, "init_yaml", string(readFile(t, "lab/deliberd.yaml")))
	me, err := client.ReadIdentity("lab/keys/ops.json")
	if err != nil || len(me.Cluster) != 64 {
		t.Errorf("%+v %v", me, err)
	}
	if _, err := membership.ParseGenesis(readFile(t, "lab/data/genesis.json")); err != nil {
		t.Error(err)
	}
	s.fails(exitRefused, "already_founded", "init", "lab", "--operator", "ops")
	var got shown
	if s.json(&got, "config", "check", "lab/deliberd.yaml"); got["as"].Value != "ops" || got["http"].Value != "127.0.0.1:7790" || mustJSON(t, got["node"].Value) != `["http://127.0.0.1:7790"]` {
		t.Errorf("%+v", got)
	}
}

func TestALoopbackAddressIsWarnedOf(t *testing.T) {
	s := newShell(t)
	for i, c := range []struct {
		args []string
		warn bool
	}{
		{nil, true},
		{[]string{"--listen", "/ip4/127.0.0.1/tcp/7701,/ip6/::1/tcp/7701"}, true},
		{[]string{"--listen", "/dns4/localhost/tcp/7701"}, true},
		{[]string{"--announce", "/ip4/192.0.2.1/tcp/7701"}, false},
		{[]string{"--listen", "/ip4/127.0.0.1/tcp/7701,/ip4/192.0.2.1/tcp/7701"}, false},
		{[]string{"--listen", "/ip4/0.0.0.0/tcp/7701"}, false},
	} {
		code, _, errs := s.run(append([]string{"init", fmt.Sprint("lab", i)}, c.args...)...)
		if code != exitDone || strings.HasPrefix(errs, "warning: other machines cannot reach this node") != c.warn {
			t.Errorf("%v: exit %d, %q", c.args, code, errs)
		}
	}
}

func readFile(t *testing.T, path string) []byte {
	t.Helper()
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

func TestRunNeedsAFoundedFolder(t *testing.T) {
	s := newShell(t)
	s.fails(exitRefused, "not_founded", "run")
	s.fails(exitRefused, "bad_invitation", "join", "nonsense")
	s.fails(exitRefused, "bad_invitation", "run", "--join", "nonsense")
	s.in = "nonsense\n"
	s.fails(exitRefused, "bad_invitation", "join", "-")
	s.fails(exitUsage, "usage", "join", "@missing.txt")
	s.ok("init", "lab")
	s.fails(exitRefused, "insecure_listen", "run", "--config", "lab/deliberd.yaml", "--http", "0.0.0.0:0")
}

func TestSemanticsExplainsAGraphOffline(t *testing.T) {
	s := newShell(t)
	graph := s.write("graph.json", `{
  "arguments": [
    {"id": "pump-a", "author": "ada", "evidence": [{"value": 0.9, "width": 0.2}], "rho": 1.2},
    {"id": "pump-b", "author": "bob", "weight": 0.72},
    {"id": "leak", "author": "bob", "weight": 0.5},
    {"id": "repair", "weight": 0.9}
  ],
  "attacks": [{"from": "leak", "to": "pump-a"}, {"from": "repair", "to": "leak"}],
  "supports": [{"from": "repair", "to": "pump-b"}],
  "positions": ["pump-a", "pump-b"],
  "tau": 0.15
}`)
	golden(t, "semantics", s.ok("semantics", graph))
	golden(t, "semantics_json", s.ok("semantics", graph, "--json"))
	s.in = `{"arguments":[{"id":"a","weight":1},{"id":"b","weight":1},{"id":"c","weight":1}],
		"attacks":[{"from":"a","to":"b"},{"from":"b","to":"a"},{"from":"a","to":"c"},{"from":"c","to":"a"},{"from":"b","to":"c"},{"from":"c","to":"b"}],
		"positions":["a","b","c"]}`
	golden(t, "semantics_cycle", s.ok("semantics", "-"))
	s.in = `{"arguments":[]}`
	golden(t, "semantics_empty", s.ok("semantics", "-"))
}

func TestAGraphThatIsNoneIsRefused(t *testing.T) {
	s := newShell(t)
	for text, code := range map[string]string{
		`{`: "malformed", `[]`: "malformed", `{"argument":[]}`: "malformed", `{"arguments":[],"arguments":[]}`: "malformed",
		`{"arguments":[{"id":""}]}`:                                       "malformed",
		`{"arguments":[{"id":"a","weight":1,"evidence":[]}]}`:             "malformed",
		`{"arguments":[{"id":"a","weight":1.1}]}`:                         "out_of_range",
		`{"arguments":[{"id":"a","rho":3}]}`:                              "out_of_range",
		`{"arguments":[{"id":"a"},{"id":"a"}]}`:                           "duplicate_argument",
		`{"arguments":[{"id":"a"}],"attacks":[{"from":"a","to":"a"}]}`:    "self_attack",
		`{"arguments":[{"id":"a"}],"supports":[{"from":"a","to":"b"}]}`:   "missing_argument",
		`{"arguments":[{"id":"a"}],"positions":["b"]}`:                    "missing_argument",
		`{"arguments":[{"id":"a"}],"tau":-1}`:                             "out_of_range",
		`{"arguments":[{"id":"a"}],"method":"guess"}`:                     "out_of_range",
		`{"arguments":[{"id":"a","evidence":[{"value":0.5,"width":2}]}]}`: "out_of_range",
		`{"round":1}`: "malformed",
	} {
		s.in = text
		s.fails(exitRefused, code, "semantics", "-")
	}
}

// chain is a small evidence chain and its root.
func chain(t *testing.T) ([]byte, string) {
	t.Helper()
	c, err := merkle.Build(merkle.Record{
		RoundMetadata:       map[string]string{"title": "Which pump?"},
		Positions:           []any{map[string]string{"id": "a", "answer": "pump A"}, map[string]string{"id": "b", "answer": "pump B"}},
		ConstitutionalCheck: map[string]any{}, GradedSemantics: map[string]any{}, ConsensusVote: map[string]any{}, Verdict: map[string]string{"winner": "a"}, DissentRecords: []string{},
	})
	if err != nil {
		t.Fatal(err)
	}
	return c.Encode(), c.Root().String()
}

func TestEvidenceIsVerifiedOffline(t *testing.T) {
	s := newShell(t)
	text, root := chain(t)
	file := s.write("chain.json", string(text))
	golden(t, "evidence_proven", s.ok("evidence", "verify", file, "--root", root))
	golden(t, "evidence_unproven", s.ok("evidence", "verify", file))
	var r merkle.Report
	if s.json(&r, "evidence", "verify", file, "--root", root); !r.Proven || r.Root.String() != root {
		t.Errorf("%+v", r)
	}
	s.in = string(text)
	s.ok("evidence", "verify", "-", "--root", root)
	s.fails(exitRefused, merkle.CodeRoot, "evidence", "verify", file, "--root", strings.Repeat("0", 64))
	for _, bad := range []string{"", "abc", strings.ToUpper(root)} {
		s.fails(exitUsage, "usage", "evidence", "verify", file, "--root", bad)
	}
	s.fails(exitRefused, merkle.CodeNotCanonical, "evidence", "verify", s.write("nl.json", string(text)+"\n"))
	golden(t, "evidence_forged", s.fails(exitRefused, merkle.CodeLeafHash, "evidence", "verify", s.write("forged.json", strings.Replace(string(text), "pump B", "pump C", 1))))
}

func TestAFlippedByteAnywhereInAChainIsFound(t *testing.T) {
	s := newShell(t)
	text, root := chain(t)
	for i := range text {
		forged := append([]byte(nil), text...)
		forged[i] ^= 1
		s.write("forged.json", string(forged))
		if code, out, _ := s.run("evidence", "verify", "forged.json", "--root", root); code == exitDone {
			t.Fatalf("byte %d: %s", i, out)
		}
	}
}

func TestEvidenceFlagsSayWhatTheyWant(t *testing.T) {
	for text, want := range map[string]string{
		"type=performance,value=0.9,width=0.2":                                                         "",
		"type=latency,value=1,width=0,samples=12,at=2026-01-15T00:00:00Z,source=https://x.test/?a=1,2": "",
		"type=performance,value=0.9,confidence=0.2":                                                    "use width for what the protocol calls confidence: it is the width of the confidence interval",
		"type=performance,value=0.9":                                                                   "the width of evidence is \"\"; give the width of the confidence interval, 0 (certain) to 1 (unknown): larger means weaker",
		"type=performance,value=0.9,width=1.1":                                                         "larger means weaker",
		"type=performance,value=0.9,width=NaN":                                                         "larger means weaker",
		"type=performance,width=0.2":                                                                   "the value of evidence",
		"type=performance,value=-0.1,width=0.2":                                                        "normalize it",
		"type=hearsay,value=0.9,width=0.2":                                                             "performance, resource, schema, latency, historical, external",
		"type=performance,value=0.9,width=0.2,width=0.3":                                               "given twice",
		"type=performance,value=0.9,width=0.2,colour=red":                                              "none of type, value, width, samples, source, at",
		"type=performance,value=0.9,width=0.2,samples=0":                                               "whole number from 1",
		"type=performance,value=0.9,width=0.2,at=yesterday":                                            "write it like",
		"performance": "is not name=value",
	} {
		e := evidenceFlags{whole: []string{text}}
		items, err := e.items(true)
		switch {
		case want == "" && (err != nil || len(items) != 1 || items[0].Timestamp == ""):
			t.Errorf("%s: %+v %v", text, items, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%s: %v, want %s", text, err, want)
		}
	}
	e := evidenceFlags{}
	if _, err := e.items(true); err == nil {
		t.Error("no evidence passed for some")
	}
	e = evidenceFlags{typ: "performance", value: "0.9", width: "0.2", whole: []string{"type=latency,value=1,width=0"}}
	if items, err := e.items(false); err != nil || len(items) != 2 {
		t.Errorf("%+v %v", items, err)
	}
}

func TestNanoIsWrittenExactly(t *testing.T) {
	for n, want := range map[int64]string{0: "0", 1: "0.000000001", -1: "-0.000000001", 1_000_000_000: "1", 150_000_000: "0.15", -2_500_000_000: "-2.5", 9_000_000_000_000_000: "9000000"} {
		if got := nano(n); got != want {
			t.Errorf("%d: %s, want %s", n, got, want)
		}
		var back float64
		if err := json.Unmarshal([]byte(want), &back); err != nil {
			t.Error(err)
		}
	}
}
