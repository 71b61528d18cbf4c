package main

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

// Mutant is the engine with one mistake.
type Mutant struct {
	Name   string
	Breaks string // what the mistake is, in one sentence
	Edits  []Edit // mostly one; more when the mistake has several places
	// Unseen says why no simulated schedule, with at most f liars, shows the
	// mistake. Empty: the simulation must catch it.
	Unseen string
}

// Edit replaces a text that occurs exactly once in a file.
type Edit struct {
	File     string // relative to the module
	From, To string
}

// Files of the engine and its driver.
const (
	certificateGo = "pbft/certificate.go"
	committeeGo   = "pbft/committee.go"
	engineGo      = "pbft/engine.go"
	frameGo       = "pbft/frame.go"
	guiltGo       = "pbft/guilt.go"
	instanceGo    = "pbft/instance.go"
	newviewGo     = "pbft/newview.go"
	quorumGo      = "pbft/quorum/quorum.go"
	tallyGo       = "pbft/tally.go"
	viewsGo       = "pbft/views.go"
	voteGo        = "pbft/vote.go"
	wireGo        = "pbft/wire.go"

	driverGo  = "bftpath/driver.go"
	flushGo   = "bftpath/flush.go"
	journalGo = "bftpath/journal.go"
	loopGo    = "bftpath/loop.go"
	recallGo  = "bftpath/recall.go"
	dockGo    = "bftpath/dock.go"
	receiveGo = "bftpath/receive.go"
	recordGo  = "bftpath/record.go"
)

// theme is mutants of one kind, as the table shows them together.
type theme struct {
	title   string
	mutants []Mutant
}

var themes = []theme{
	{"Quorums", quorums},
	{"Phases", phases},
	{"View changes", viewChanges},
	{"What a signature binds", bindings},
	{"Restarts and storing", persistence},
	{"Buffers", buffers},
	{"Timers and repetition", timers},
	{"Late replicas and certificates", lateness},
	{"Guilt", guilt},
	{"The caller's duties, in the simulation's hosts", hosts},
	{"The caller's duties, in package bftpath", drivers},
}

// Mutants are all mutants, by theme.
func Mutants() (all []Mutant) {
	for _, t := range themes {
		all = append(all, t.mutants...)
	}
	return all
}

// ofDriver reports whether a mutant is of package bftpath, which only its own
// tests run.
func (m *Mutant) ofDriver() bool {
	return slices.ContainsFunc(m.Edits, func(e Edit) bool { return strings.HasPrefix(e.File, "bftpath/") })
}

// apply is the mutated text of each file that the mutant touches.
func (m *Mutant) apply(root string) (map[string]string, error) {
	files := map[string]string{}
	for _, e := range m.Edits {
		text, touched := files[e.File]
		if !touched {
			b, err := os.ReadFile(filepath.Join(root, e.File))
			if err != nil {
				return nil, err
			}
			text = string(b)
		}
		if n := strings.Count(text, e.From); n != 1 {
			return nil, fmt.Errorf("%s: in %s this occurs %d times, not once:\n%s", m.Name, e.File, n, e.From)
		}
		files[e.File] = strings.Replace(text, e.From, e.To, 1)
	}
	return files, nil
}
