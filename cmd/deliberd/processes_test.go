package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/deliberd/deliberd/internal/freeport"
)

// Tests in this file run the program as its users do: separate processes on
// loopback, the command line, kill -9.

var buildOnce = sync.OnceValues(func() (string, error) {
	dir, err := os.MkdirTemp("", "deliberd-bin-")
	if err != nil {
		return "", err
	}
	bin := filepath.Join(dir, "deliberd")
	out, err := exec.Command("go", "build", "-o", bin, ".").CombinedOutput()
	if err != nil {
		return "", fmt.Errorf("%w: %s", err, out)
	}
	return bin, nil
})

// lab is a folder in which processes run.
type lab struct {
	*testing.T
	bin, dir string
}

func newLab(t *testing.T) *lab {
	if testing.Short() {
		t.Skip("starts processes")
	}
	bin, err := buildOnce()
	if err != nil {
		t.Fatal(err)
	}
	return &lab{t, bin, t.TempDir()}
}

// proc is one running node.
type proc struct {
	dir, url string
	listen   string
	cmd      *exec.Cmd
	log      *bytes.Buffer
	exited   chan error
}

// try runs one command and returns its standard output.
func (l *lab) try(args ...string) (string, error) {
	ctx, cancel := context.WithTimeout(context.Background(), 90*time.Second)
	defer cancel()
	cmd := exec.CommandContext(ctx, l.bin, args...)
	cmd.Dir = l.dir
	var out, errs bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &errs
	if err := cmd.Run(); err != nil {
		return out.String(), fmt.Errorf("deliberd %s: %w: %s", strings.Join(args, " "), err, errs.String())
	}
	return out.String(), nil
}

func (l *lab) do(args ...string) string {
	l.Helper()
	out, err := l.try(args...)
	if err != nil {
		l.Fatal(err)
	}
	return out
}

// get runs a command with --json and decodes what it prints.
func get[T any](l *lab, args ...string) T {
	l.Helper()
	var v T
	out := l.do(append(args, "--json")...)
	if err := json.Unmarshal([]byte(out), &v); err != nil {
		l.Fatalf("%v printed %q: %v", args, out, err)
	}
	return v
}

// place chooses a folder and addresses for a node.
func (l *lab) place(name string) *proc {
	return &proc{dir: filepath.Join(l.dir, name), url: fmt.Sprintf("http://127.0.0.1:%d", freeport.Find(l.T)), listen: fmt.Sprintf("/ip4/127.0.0.1/tcp/%d", freeport.Find(l.T))}
}

func (p *proc) flags() []string {
	return []string{"--http", strings.TrimPrefix(p.url, "http://"), "--listen", p.listen}
}

// start runs the node of a folder.
func (l *lab) start(p *proc) {
	l.Helper()
	p.cmd = exec.Command(l.bin, "run", "--config", filepath.Join(p.dir, "deliberd.yaml"))
	p.log = &bytes.Buffer{}
	p.cmd.Stdout, p.cmd.Stderr = p.log, p.log
	if err := p.cmd.Start(); err != nil {
		l.Fatal(err)
	}
	p.exited = make(chan error, 1)
	go func() { p.exited <- p.cmd.Wait() }()
	l.Cleanup(func() {
		l.kill(p)
		if l.Failed() {
			l.Logf("%s:\n%s", filepath.Base(p.dir), p.log)
		}
	})
}

// kill ends a node without letting it say goodbye.
func (l *lab) kill(p *proc) {
	if p.exited == nil {
		return
	}
	_ = p.cmd.Process.Kill() // it may have ended by itself
	<-p.exited
	p.exited = nil
}

type statusView struct {
	NodeID       string `json:"node_id"`
	Role, Leader string
	Epoch        uint64
	AppliedIndex uint64 `json:"applied_index"`
	Voters       []string
	Ready        bool
	Tolerance    int `json:"byzantine_tolerance"`
	DecisionLog  struct {
		Size uint64
		Root string
	} `json:"decision_log"`
}

func status(p *proc) (statusView, error) {
	body := strings.NewReader(`{"jsonrpc":"2.0","id":1,"method":"cluster.status","params":{}}`)
	resp, err := http.Post(p.url+"/rpc", "application/json", body)
	if err != nil {
		return statusView{}, err
	}
	defer resp.Body.Close()
	var answer struct{ Result statusView }
	return answer.Result, json.NewDecoder(resp.Body).Decode(&answer)
}

// await waits for a condition and says what was wrong if it does not come.
func (l *lab) await(what string, limit time.Duration, cond func() error) {
	l.Helper()
	deadline := time.Now().Add(limit)
	for {
		err := cond()
		if err == nil {
			return
		}
		if time.Now().After(deadline) {
			l.Fatalf("%s: %v", what, err)
		}
		time.Sleep(20 * time.Millisecond)
	}
}

func (l *lab) awaitReady(ps ...*proc) {
	l.Helper()
	for _, p := range ps {
		l.await(filepath.Base(p.dir)+" is ready", 60*time.Second, func() error {
			st, err := status(p)
			if err == nil && !st.Ready {
				err = fmt.Errorf("%+v", st)
			}
			return err
		})
	}
}

// awaitSameLog waits until all nodes have the same decision log.
func (l *lab) awaitSameLog(ps ...*proc) statusView {
	l.Helper()
	var first statusView
	l.await("the decision logs are the same", 60*time.Second, func() (err error) {
		if first, err = status(ps[0]); err != nil {
			return err
		}
		for _, p := range ps[1:] {
			st, err := status(p)
			if err != nil {
				return err
			}
			if st.DecisionLog != first.DecisionLog {
				return fmt.Errorf("%s has %+v, %s has %+v", filepath.Base(p.dir), st.DecisionLog, filepath.Base(ps[0].dir), first.DecisionLog)
			}
		}
		return nil
	})
	return first
}

// as completes a command with who acts and where.
func (l *lab) as(who string, p *proc, args ...string) []string {
	return append(args, "--as", who, "--node", p.url, "--keys", filepath.Join(l.dir, "keys"))
}

// agents registers agents under an operator with authority in a domain.
func (l *lab) agents(operator string, p *proc, names ...string) {
	l.Helper()
	for _, name := range names {
		l.do("agent", "new", name, "--keys", filepath.Join(l.dir, "keys"))
		l.do(l.as(operator, p, "agent", "register", name)...)
		l.do(l.as(operator, p, "agent", "grant", name, "hydraulics", "--authority", "0.9", "--trust", "0.9")...)
	}
}

type answerView struct {
	ActionID string `json:"action_id"`
	Result   struct {
		Round   string `json:"round"`
		Verdict *verdictView
	}
}

type verdictView struct {
	Status       string
	Path         string
	Winner       string
	EvidenceRoot string `json:"evidence_root"`
	Certificate  *struct{ Signers int }
}

type roundView struct {
	State   struct{ Phase string }
	Verdict *verdictView
}

// closeRound opens a round at one node and feeds it through the others: two
// positions too close to call. It returns the round once it is contested.
func (l *lab) closeRound(ps []*proc) string {
	l.Helper()
	round := get[answerView](l, l.as("ada", ps[0], "round", "open", "Which pump?", "--participants", "ada,ben,cyd,dee")...).ActionID
	l.do(l.as("ada", ps[1], "round", "position", round, "--answer", "pump A", "--evidence", "type=performance,value=0.8,width=0.2")...)
	l.do(l.as("ben", ps[2], "round", "position", round, "--answer", "pump B", "--evidence", "type=performance,value=0.78,width=0.2")...)
	l.do(l.as("cyd", ps[3%len(ps)], "round", "resolve", round)...)
	return round
}

// finish lets everybody say that they have nothing to add, so that the round freezes.
func (l *lab) finish(round string, ps []*proc) {
	l.Helper()
	for i, who := range []string{"ada", "ben", "cyd", "dee"} {
		l.do(l.as(who, ps[i%len(ps)], "round", "done", round)...)
	}
}

// awaitVerdict waits for the round's verdict at every node and checks that it is one.
func (l *lab) awaitVerdict(round string, ps ...*proc) verdictView {
	l.Helper()
	var first verdictView
	for i, p := range ps {
		l.await("a verdict at "+filepath.Base(p.dir), 60*time.Second, func() error {
			out, err := l.try(l.as("ada", p, "round", "show", round, "--json")...)
			if err != nil {
				return err
			}
			var v roundView
			if err := json.Unmarshal([]byte(out), &v); err != nil {
				return err
			}
			if v.Verdict == nil {
				return errors.New("phase " + v.State.Phase)
			}
			if i == 0 {
				first = *v.Verdict
			}
			if v.Verdict.EvidenceRoot != first.EvidenceRoot || v.Verdict.Winner != first.Winner || v.Verdict.Path != first.Path {
				l.Fatalf("%s says %+v, %s says %+v", filepath.Base(p.dir), v.Verdict, filepath.Base(ps[0].dir), first)
			}
			return nil
		})
	}
	return first
}
