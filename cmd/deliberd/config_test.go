package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

type shown map[string]struct {
	Value  any
	Source string
}

func TestFlagsBeatTheEnvironmentBeatTheFileBeatDefaults(t *testing.T) {
	s := newShell(t)
	s.write("deliberd.yaml", "http: 127.0.0.1:1001\nlog_level: warn\nlisten: [/ip4/127.0.0.1/tcp/9]\n")
	t.Setenv("DELIBERD_HTTP", "127.0.0.1:1002")
	t.Setenv("DELIBERD_LISTEN", "/ip4/127.0.0.1/tcp/8, /ip4/127.0.0.2/tcp/8")
	t.Setenv("DELIBERD_INSECURE_HTTP", "true")
	var got shown
	s.json(&got, "config", "check", "--http", "127.0.0.1:1003")
	for key, want := range map[string]struct {
		value  any
		source string
	}{
		"http":          {"127.0.0.1:1003", "flag --http"},
		"listen":        {[]any{"/ip4/127.0.0.1/tcp/8", "/ip4/127.0.0.2/tcp/8"}, "environment DELIBERD_LISTEN"},
		"insecure_http": {true, "environment DELIBERD_INSECURE_HTTP"},
		"log_level":     {"warn", "deliberd.yaml"},
		"log_format":    {"text", "default"},
		"data":          {"data", "default"},
	} {
		a, b := mustJSON(t, got[key].Value), mustJSON(t, want.value)
		if a != b || got[key].Source != want.source {
			t.Errorf("%s: %s from %s, want %s from %s", key, a, got[key].Source, b, want.source)
		}
	}
}

func mustJSON(t *testing.T, v any) string {
	t.Helper()
	text, err := json.Marshal(v)
	if err != nil {
		t.Fatal(err)
	}
	return string(text)
}

func TestConfigCheckNamesWhatIsWrongAndWhere(t *testing.T) {
	s := newShell(t)
	for text, want := range map[string]string{
		"htpp: 127.0.0.1:1\n":                                      "bad.yaml: line 1: field htpp is no setting",
		"http: 127.0.0.1:1\nhttp: 1\n":                             "already defined",
		"http: [a]\n":                                              "bad.yaml: line 1",
		"http: nonsense\n":                                         `http (bad.yaml): "nonsense" is not host:port`,
		"log_level: loud\n":                                        `log_level (bad.yaml): "loud" is none of`,
		"log_format: xml\n":                                        `log_format (bad.yaml)`,
		"listen: [127.0.0.1:7701]\n":                               `listen (bad.yaml): "127.0.0.1:7701" is no multiaddr`,
		"node: [localhost]\n":                                      `node (bad.yaml)`,
		"listen: [/ip4/127.0.0.1/udp/1/quic-v1]\n":                 "listen (bad.yaml): \"/ip4/127.0.0.1/udp/1/quic-v1\" is not a host and a TCP port",
		"listen: [/ip4/127.0.0.1]\n":                               "listen (bad.yaml)",
		"announce: [/ip4/127.0.0.1/tcp/0]\n":                       "announce (bad.yaml): \"/ip4/127.0.0.1/tcp/0\" has port 0",
		"announce: [/ip4/192.0.2.1/tcp/1, /ip4/192.0.2.1/tcp/1]\n": "is there twice",
		"http: 127.0.0.1:99999\n":                                  `http (bad.yaml): "127.0.0.1:99999" names no port`,
		"http: 127.0.0.1\n":                                        "http (bad.yaml)",
		"tls_cert: x.pem\n":                                        "tls_cert and tls_key go together",
		"http: 127.0.0.1:1\n---\nhttp: x\n":                        "more than one document",
		"insecure_http: perhaps\n":                                 "bad.yaml: line 1",
		"\t: x\n":                                                  "bad.yaml",
	} {
		s.write("bad.yaml", text)
		if got := s.fails(exitUsage, "usage", "config", "check", "bad.yaml"); !strings.Contains(got, want) {
			t.Errorf("%q: %swant %s", text, got, want)
		}
	}
	t.Setenv("DELIBERD_INSECURE_HTTP", "perhaps")
	if got := s.fails(exitUsage, "usage", "config", "check"); !strings.Contains(got, "DELIBERD_INSECURE_HTTP") {
		t.Errorf("%s", got)
	}
}

func TestWhatRunRefusesTheCheckRefuses(t *testing.T) {
	s := newShell(t)
	s.ok("init", "lab")
	for text, code := range map[string]string{
		"http: 0.0.0.0:7700\n":                     "insecure_listen",
		"http: \":7700\"\n":                        "insecure_listen",
		"http: node.example:7700\n":                "insecure_listen",
		"tls_cert: none.pem\ntls_key: none.pem\n":  "bad_tls",
		"listen: [/ip4/127.0.0.1/udp/1]\n":         "usage",
		"announce: [/ip4/127.0.0.1/tcp/7701/ws]\n": "usage",
		"http: 127.0.0.1:nowhere\n":                "usage",
	} {
		s.write("lab/deliberd.yaml", text)
		exit := exitRefused
		if code == "usage" {
			exit = exitUsage
		}
		check, run := s.fails(exit, code, "config", "check", "lab/deliberd.yaml"), s.fails(exit, code, "run", "--config", "lab/deliberd.yaml")
		if check != run {
			t.Errorf("%q: the check says\n%sand run says\n%s", text, check, run)
		}
	}
	s.write("lab/deliberd.yaml", "http: 0.0.0.0:7700\ninsecure_http: true\n")
	s.ok("config", "check", "lab/deliberd.yaml")
	s.write("lab/deliberd.yaml", "http: \"\"\n")
	s.ok("config", "check", "lab/deliberd.yaml")
}

func TestPathsStartAtTheConfigurationFile(t *testing.T) {
	s := newShell(t)
	if err := os.Mkdir("lab", 0o755); err != nil {
		t.Fatal(err)
	}
	abs := filepath.Join(s.dir, "elsewhere")
	s.write("lab/deliberd.yaml", "keys: "+abs+"\n")
	var got shown
	if s.json(&got, "config", "check", "lab/deliberd.yaml"); got["data"].Value != filepath.Join("lab", "data") || got["keys"].Value != abs {
		t.Errorf("%+v", got)
	}
	s.write("lab/deliberd.yaml", "data: state\n")
	if s.json(&got, "config", "check", "lab/deliberd.yaml"); got["data"].Value != filepath.Join("lab", "state") {
		t.Errorf("%+v", got)
	}
	t.Setenv("DELIBERD_CONFIG", "lab/deliberd.yaml")
	if s.json(&got, "config", "check", "--data", "here"); got["data"].Value != "here" {
		t.Errorf("%+v", got)
	}
}

func TestAnEmptyFileIsAConfiguration(t *testing.T) {
	s := newShell(t)
	s.write("deliberd.yaml", "# nothing\n")
	golden(t, "config_check", s.ok("config", "check"))
}

func TestTheFileThatInitWritesReadsBackAsWhatWasMeant(t *testing.T) {
	newShell(t)
	want := defaults()
	want.HTTP, want.As, want.Listen, want.InsecureHTTP = "0.0.0.0:80", `a "b"`, []string{"/ip4/0.0.0.0/tcp/1", "/ip6/::/tcp/1"}, true
	text := configText(want)
	golden(t, "deliberd_yaml", text)
	got := defaults()
	if err := got.parse("deliberd.yaml", []byte(text)); err != nil {
		t.Fatal(err)
	}
	got.source, want.source = nil, nil
	if a, b := mustJSON(t, got), mustJSON(t, want); a != b {
		t.Errorf("%s\nwant %s", a, b)
	}
}

func FuzzParseSettings(f *testing.F) {
	f.Add([]byte("http: 127.0.0.1:1\n"))
	f.Add([]byte(configText(defaults())))
	f.Add([]byte("a: &a [*a]\n"))
	f.Add([]byte("listen: {a: b}"))
	f.Fuzz(func(t *testing.T, text []byte) {
		s := defaults()
		if err := s.parse("x.yaml", text); err == nil {
			_ = s.check() // must not panic on whatever parses
		} else if describe(err).Code != "usage" {
			t.Fatalf("%v", err)
		}
	})
}
