package main

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/pbft/sim"
)

func TestSimPlaysSchedulesAndReportsThem(t *testing.T) {
	s := newShell(t)
	var r simReport
	s.json(&r, "sim", "--schedules", "300", "--every", "1ms")
	if r.Schedules < 300 || r.PerMinute <= 0 || len(r.Violations) != 0 || len(r.Nodes) != 5 || len(r.Adversary) != len(sim.Kinds()) || r.Faults == 0 {
		t.Errorf("%+v", r)
	}
	if out := s.ok("sim", "--seeds", "40", "--nodes", "4", "--adversary", "none"); !strings.Contains(out, "violations") || strings.Contains(out, "ADVERSARY") {
		t.Error(out)
	}
}

func TestAnInterruptedCampaignReportsAndSaysWhereToGoOn(t *testing.T) {
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var out, errs bytes.Buffer
	code := run(ctx, []string{"sim", "--nodes", "4"}, strings.NewReader(""), &out, &errs)
	if code != exitRefused || !strings.Contains(out.String(), "schedules") || !strings.Contains(errs.String(), "(interrupted)\ntry: go on with --seed 1") {
		t.Errorf("exit %d\n%s%s", code, &out, &errs)
	}
}

func TestSimReplaysASeedToTheByte(t *testing.T) {
	s := newShell(t)
	first := s.ok("sim", "--nodes", "7", "--seed", "4", "--replay")
	if first != s.ok("sim", "--nodes", "7", "--seed", "4", "--replay") || !strings.Contains(first, "decides") {
		t.Error(first)
	}
	golden(t, "sim_replay", s.ok("sim", "--nodes", "4", "--seed", "11", "--adversary", "twins", "--replay"))
}

func TestSimMakesAFailingScheduleSmallAndKeepsIt(t *testing.T) {
	s := newShell(t)
	code, out, errs := s.run("sim", "--nodes", "4", "--adversary", "equivocating,double-voter", "--excess", "1", "--save", "broken.json")
	if code != exitRefused || !strings.Contains(out, "VIOLATION") || !strings.Contains(errs, "(violation)\ntry: play it as it was before it was made small: deliberd sim --nodes 4 --seed ") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	if !strings.Contains(out, "The plan is in broken.json") || !strings.Contains(errs, "This was to be expected: of 4 members 2 lie, more than the 1 that") {
		t.Errorf("%s%s", out, errs)
	}
	text, err := os.ReadFile("broken.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.ParsePlan(text); err != nil {
		t.Fatal(err)
	}
	code, again, errs := s.run("sim", "--plan", "broken.json")
	if code != exitRefused || !strings.Contains(again, "VIOLATION") || !strings.Contains(errs, "to be expected") || !strings.Contains(errs, "(violation)\ntry: read the transcript: the line VIOLATION is") {
		t.Errorf("exit %d\n%s%s", code, again, errs)
	}
}

func TestSimDescribesTheViolationThatItPrints(t *testing.T) {
	s := newShell(t)
	code, out, errs := s.run("sim", "--nodes", "4", "--adversary", "spammer", "--excess", "1", "--seed", "1", "--seeds", "1")
	_, line, found := strings.Cut(out, "VIOLATION of ")
	line, _, _ = strings.Cut(line, "\n")
	if code != exitRefused || !found || !strings.Contains(errs, "error: Seed 1 with 4 nodes, made small, violates "+line+". This was") {
		t.Errorf("exit %d, the transcript says %q, the error %s", code, line, errs)
	}
}

func TestSimRefusesWhatItCannotPlay(t *testing.T) {
	s := newShell(t)
	text, err := json.Marshal(sim.NewPlan(1, sim.Mix{Nodes: 4}))
	if err != nil {
		t.Fatal(err)
	}
	plan := s.write("good.json", string(text))
	for _, args := range [][]string{
		{"--nodes", "0"}, {"--nodes", "99"}, {"--adversary", "friendly"}, {"--excess", "3", "--nodes", "4"}, {"--excess", "1", "--adversary", "none"},
		{"--schedules", "0"}, {"--seed", "9007199254740993"}, {"--replay", "--nodes", "99"}, {"extra"},
		{"--seeds", "0"}, {"--seeds", "-1"}, {"--seeds", "9223372036854775807"}, {"--schedules", "-1"}, {"--schedules", "10", "--seeds", "10"},
		{"--seed", "4503599627370496"}, {"--seed", "-9007199254740992"}, {"--excess", "-1"}, {"--workers", "-1"}, {"--every", "-1s"}, {"--every", "0s"},
		{"--plan", plan, "--seed", "1"}, {"--plan", plan, "--replay"}, {"--plan", plan, "--nodes", "4"}, {"--plan", ""},
		{"--replay", "--seeds", "3"}, {"--replay", "--schedules", "3"}, {"--replay", "--save", "x.json"},
		{"--plan", "missing.json"}, {"--plan", "."}, {"--plan", s.write("text.json", "no JSON")}, {"--plan", s.write("plan.json", `{"nodes": 4, "colour": "red"}`)},
		{"--save", "."}, {"--save", "missing/plan.json"},
	} {
		s.fails(exitUsage, "usage", append([]string{"sim"}, args...)...)
	}
	if errs := s.fails(exitUsage, "usage", "sim", "--adversary", "bogus"); !strings.Contains(errs, "try: name some of silent, ") || !strings.Contains(errs, ", twins; or all, or none") {
		t.Error(errs)
	}
	if errs := s.fails(exitUsage, "usage", "sim", "--seed", "4503599627370496"); !strings.Contains(errs, "--seed is from -9007199254740991 to 4503599627370495") {
		t.Error(errs)
	}
}

func TestSimWritesNothingWhenNothingIsViolated(t *testing.T) {
	s := newShell(t)
	was := s.write("was.json", "as it was")
	for _, name := range []string{"new.json", was} {
		if out := s.ok("sim", "--seeds", "4", "--nodes", "4", "--save", name); strings.Contains(out, "The plan is in") {
			t.Error(out)
		}
	}
	if text, err := os.ReadFile(was); err != nil || string(text) != "as it was" {
		t.Errorf("%q, %v", text, err)
	}
	if _, err := os.Stat("new.json"); !os.IsNotExist(err) {
		t.Errorf("an empty file is left: %v", err)
	}
}
