package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"
	"gopkg.in/yaml.v3"

	"github.com/deliberd/deliberd/api/door"
	"github.com/deliberd/deliberd/membership"
	"github.com/deliberd/deliberd/p2p"
)

// settings are all that can be configured. One entry of knobs each says how
// it is called in the file, in the environment and on the command line.
type settings struct {
	Data         string   `yaml:"data"`
	Listen       []string `yaml:"listen"`
	Announce     []string `yaml:"announce"`
	HTTP         string   `yaml:"http"`
	TLSCert      string   `yaml:"tls_cert"`
	TLSKey       string   `yaml:"tls_key"`
	InsecureHTTP bool     `yaml:"insecure_http"`
	LogLevel     string   `yaml:"log_level"`
	LogFormat    string   `yaml:"log_format"`
	Node         []string `yaml:"node"`
	Keys         string   `yaml:"keys"`
	As           string   `yaml:"as"`

	source map[string]string // of each key: default, file, environment, flag
}

func defaults() settings {
	return settings{
		Data: "data", Listen: []string{"/ip4/127.0.0.1/tcp/7701"}, HTTP: "127.0.0.1:7700", LogLevel: "info", LogFormat: "text",
		Node: []string{"http://127.0.0.1:7700"}, Keys: "keys", source: map[string]string{},
	}
}

// knob is one setting.
type knob struct {
	key   string
	about string
	at    func(*settings) any // *string, *[]string or *bool
	path  bool                // relative to the configuration file
}

func (k knob) flag() string { return strings.ReplaceAll(k.key, "_", "-") }
func (k knob) env() string  { return "DELIBERD_" + strings.ToUpper(k.key) }

var knobs = []knob{
	{"data", "data folder of the node: keys, genesis, state, logs", func(s *settings) any { return &s.Data }, true},
	{"listen", "multiaddrs on which other nodes reach this one", func(s *settings) any { return &s.Listen }, false},
	{"announce", "multiaddrs told to other nodes, when they differ from listen", func(s *settings) any { return &s.Announce }, false},
	{"http", "address of the HTTP door, host:port; empty closes it", func(s *settings) any { return &s.HTTP }, false},
	{"tls_cert", "PEM certificate of the HTTP door", func(s *settings) any { return &s.TLSCert }, true},
	{"tls_key", "PEM key of the HTTP door", func(s *settings) any { return &s.TLSKey }, true},
	{"insecure_http", "allow HTTP without TLS on an address that others can reach", func(s *settings) any { return &s.InsecureHTTP }, false},
	{"log_level", "debug, info, warn or error", func(s *settings) any { return &s.LogLevel }, false},
	{"log_format", "text or json", func(s *settings) any { return &s.LogFormat }, false},
	{"node", "nodes to speak to, base URLs", func(s *settings) any { return &s.Node }, false},
	{"keys", "folder of identity files", func(s *settings) any { return &s.Keys }, true},
	{"as", "who acts: an identity file, or its name in the keys folder", func(s *settings) any { return &s.As }, false},
}

var (
	clientKnobs = []string{"node", "keys", "as"}
	nodeKnobs   = []string{"data", "listen", "announce", "http", "tls_cert", "tls_key", "insecure_http", "log_level", "log_format"}
)

func (a *app) clientFlags(f *pflag.FlagSet) { a.addFlags(f, clientKnobs) }
func (a *app) nodeFlags(f *pflag.FlagSet)   { a.addFlags(f, nodeKnobs) }

func (a *app) addFlags(f *pflag.FlagSet, keys []string) {
	for _, k := range knobs {
		for _, key := range keys {
			if k.key != key {
				continue
			}
			switch at := k.at(&a.flags).(type) {
			case *string:
				f.StringVar(at, k.flag(), "", k.about)
			case *[]string:
				f.StringSliceVar(at, k.flag(), nil, k.about)
			case *bool:
				f.BoolVar(at, k.flag(), false, k.about)
			}
		}
	}
}

// load settles the settings: flags over environment over file over defaults.
func (a *app) load(cmd *cobra.Command) error {
	path, required := a.configFile()
	a.cfg = defaults()
	a.cfg.startAt(filepath.Dir(path))
	if err := a.cfg.readFile(path, required); err != nil {
		return err
	}
	if err := a.cfg.readEnv(os.LookupEnv); err != nil {
		return err
	}
	for _, k := range knobs {
		if f := cmd.Flags().Lookup(k.flag()); f != nil && f.Changed {
			k.copy(&a.cfg, &a.flags)
			a.cfg.source[k.key] = "flag --" + k.flag()
		}
	}
	return a.cfg.check()
}

// startAt lets relative paths start at the configuration file's folder.
func (s *settings) startAt(dir string) {
	for _, k := range knobs {
		if at, ok := k.at(s).(*string); ok && k.path && *at != "" && !filepath.IsAbs(*at) {
			*at = filepath.Join(dir, *at)
		}
	}
}

// loadIn is load for a command whose argument at an index may name a folder:
// its configuration is deliberd.yaml in there, which need not exist yet.
func (a *app) loadIn(index int) func(*cobra.Command, []string) error {
	return func(cmd *cobra.Command, given []string) error {
		if len(given) > index {
			a.config, a.configMayLack = filepath.Join(given[index], "deliberd.yaml"), true
		}
		return a.load(cmd)
	}
}

// configFile is where the file is, and whether it must be there.
func (a *app) configFile() (path string, required bool) {
	if a.config != "" {
		return a.config, !a.configMayLack
	}
	if path := os.Getenv("DELIBERD_CONFIG"); path != "" {
		return path, true
	}
	return "deliberd.yaml", false
}

func (s *settings) readFile(path string, required bool) error {
	text, err := os.ReadFile(path)
	switch {
	case errors.Is(err, fs.ErrNotExist) && !required:
		return nil
	case errors.Is(err, fs.ErrNotExist):
		return usage("there is no configuration file %s", path)
	case err != nil:
		return err
	}
	return s.parse(path, text)
}

// parse reads the file's text over what is set. Unknown keys are errors.
func (s *settings) parse(path string, text []byte) error {
	dec := yaml.NewDecoder(bytes.NewReader(text))
	dec.KnownFields(true)
	if err := dec.Decode(s); err != nil && !errors.Is(err, io.EOF) {
		return usage("%s: %s", path, yamlError(err))
	}
	if err := dec.Decode(new(yaml.Node)); !errors.Is(err, io.EOF) {
		return usage("%s: holds more than one document", path)
	}
	var present map[string]any
	if err := yaml.Unmarshal(text, &present); err != nil {
		return usage("%s: %s", path, yamlError(err))
	}
	for _, k := range knobs {
		if _, ok := present[k.key]; !ok {
			continue
		}
		s.source[k.key] = path
		if at, ok := k.at(s).(*string); ok && k.path && *at != "" && !filepath.IsAbs(*at) {
			*at = filepath.Join(filepath.Dir(path), *at)
		}
	}
	return nil
}

// yamlError puts a decoder's complaints on one line, in the file's terms.
func yamlError(err error) string {
	text := strings.TrimPrefix(err.Error(), "yaml: ")
	text = strings.TrimPrefix(text, "unmarshal errors:\n")
	text = strings.ReplaceAll(text, " not found in type main.settings", " is no setting")
	return strings.Join(strings.Fields(text), " ")
}

func (s *settings) readEnv(lookup func(string) (string, bool)) error {
	for _, k := range knobs {
		text, ok := lookup(k.env())
		if !ok {
			continue
		}
		switch at := k.at(s).(type) {
		case *string:
			*at = text
		case *[]string:
			*at = nil
			for _, item := range strings.Split(text, ",") {
				if item = strings.TrimSpace(item); item != "" {
					*at = append(*at, item)
				}
			}
		case *bool:
			b, err := strconv.ParseBool(text)
			if err != nil {
				return usage("%s is %q; use true or false", k.env(), text)
			}
			*at = b
		}
		s.source[k.key] = "environment " + k.env()
	}
	return nil
}

func (k knob) copy(to, from *settings) {
	switch at := k.at(to).(type) {
	case *string:
		*at = *k.at(from).(*string)
	case *[]string:
		*at = *k.at(from).(*[]string)
	case *bool:
		*at = *k.at(from).(*bool)
	}
}

// check finds what no command could use, and says where it was set.
func (s *settings) check() error {
	bad := func(key, format string, args ...any) error {
		where := s.source[key]
		if where == "" {
			where = "the default"
		}
		return usage("%s (%s): %s", key, where, fmt.Sprintf(format, args...))
	}
	for _, text := range s.Listen {
		if err := p2p.CheckListen(text); err != nil {
			return bad("listen", "%s", describe(err).Message)
		}
	}
	for i, text := range s.Announce {
		if err := p2p.CheckDial(text); err != nil {
			return bad("announce", "%s", describe(err).Message)
		}
		if slices.Contains(s.Announce[:i], text) {
			return bad("announce", "%q is there twice", text)
		}
	}
	if len(s.Announce) > membership.MaxAddrs {
		return bad("announce", "%d addresses; a node has at most %d", len(s.Announce), membership.MaxAddrs)
	}
	for _, text := range s.Node {
		if u, err := url.Parse(text); err != nil || u.Scheme != "http" && u.Scheme != "https" || u.Host == "" {
			return bad("node", "%q is no URL such as http://127.0.0.1:7700", text)
		}
	}
	if s.HTTP != "" {
		_, port, err := net.SplitHostPort(s.HTTP)
		if err != nil {
			return bad("http", "%q is not host:port", s.HTTP)
		}
		if _, err := net.LookupPort("tcp", port); err != nil {
			return bad("http", "%q names no port from 0 to 65535", s.HTTP)
		}
	}
	if (s.TLSCert == "") != (s.TLSKey == "") {
		return bad("tls_cert", "tls_cert and tls_key go together")
	}
	if _, ok := logLevels[s.LogLevel]; !ok {
		return bad("log_level", "%q is none of debug, info, warn, error", s.LogLevel)
	}
	if s.LogFormat != "text" && s.LogFormat != "json" {
		return bad("log_format", "%q is neither text nor json", s.LogFormat)
	}
	return nil
}

// checkNode finds what keeps a node from running, on whatever machine. What
// depends on the machine, such as a port that is taken, shows at the start.
func (s *settings) checkNode() error {
	if s.HTTP == "" {
		return nil
	}
	return door.Config{Addr: s.HTTP, CertFile: s.TLSCert, KeyFile: s.TLSKey, Insecure: s.InsecureHTTP}.Check()
}
