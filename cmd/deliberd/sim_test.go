package main

import (
	"bytes"
	"context"
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
	if code != exitRefused || !strings.Contains(out, "VIOLATION") || !strings.Contains(errs, "(violation)\ntry: play it again: deliberd sim --nodes 4 --seed ") {
		t.Errorf("exit %d\n%s%s", code, out, errs)
	}
	text, err := os.ReadFile("broken.json")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := sim.ParsePlan(text); err != nil {
		t.Fatal(err)
	}
	code, again, errs := s.run("sim", "--plan", "broken.json")
	if code != exitRefused || !strings.Contains(again, "VIOLATION") || !strings.Contains(errs, "(violation)\ntry: ") {
		t.Errorf("exit %d\n%s%s", code, again, errs)
	}
}

func TestSimRefusesWhatItCannotPlay(t *testing.T) {
	s := newShell(t)
	for _, args := range [][]string{
		{"--nodes", "0"}, {"--nodes", "99"}, {"--adversary", "friendly"}, {"--excess", "3", "--nodes", "4"}, {"--excess", "1", "--adversary", "none"},
		{"--schedules", "0"}, {"--seed", "9007199254740993"}, {"--replay", "--nodes", "99"}, {"extra"},
	} {
		s.fails(exitUsage, "usage", append([]string{"sim"}, args...)...)
	}
	s.fails(exitRefused, "malformed", "sim", "--plan", s.write("plan.json", `{"nodes": 4, "colour": "red"}`))
}
