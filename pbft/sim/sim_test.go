package sim

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/deliberd/deliberd/pbft"
	"github.com/deliberd/deliberd/pbft/quorum"
)

func play(p Plan, transcript bool) Result {
	return NewPlayer(NewWorld(p.Nodes, p.Genuine)).Play(p, transcript)
}

func TestEqualPlansPlayAlikeToTheByte(t *testing.T) {
	for seed := range int64(200) {
		p := NewPlan(seed, Mix{Nodes: Sizes()[seed%5], Kinds: Kinds()})
		text, err := json.Marshal(p)
		if err != nil {
			t.Fatal(err)
		}
		var again Plan
		if err := json.Unmarshal(text, &again); err != nil {
			t.Fatal(err)
		}
		a, b := play(p, true), play(again, true)
		if a.Transcript != b.Transcript || a.Fingerprint != b.Fingerprint {
			t.Fatalf("seed %d: two transcripts", seed)
		}
		if silent := play(p, false); silent.Fingerprint != a.Fingerprint {
			t.Fatalf("seed %d: writing the transcript changes the schedule", seed)
		}
	}
}

func TestAPlayerForgetsTheLastPlan(t *testing.T) {
	pl := NewPlayer(NewWorld(4, false))
	for seed := range int64(300) {
		p := NewPlan(seed, Mix{Nodes: 4, Kinds: Kinds()})
		if a, b := pl.Play(p, false), play(p, false); a.Fingerprint != b.Fingerprint {
			t.Fatalf("seed %d plays differently after others", seed)
		}
	}
}

func TestSimulatedAndGenuineSignaturesGiveTheSameSchedules(t *testing.T) {
	genuine := NewPlayer(NewWorld(4, true))
	for seed := range int64(60) {
		p := NewPlan(seed, Mix{Nodes: 4, Kinds: slices.DeleteFunc(Kinds(), func(k Kind) bool { return k == Forger || k == Garbage })})
		a := play(p, false)
		p.Genuine = true
		b := genuine.Play(p, false)
		if a.Violation != nil || b.Violation != nil {
			t.Fatalf("seed %d: %v, %v", seed, a.Violation, b.Violation)
		}
		if a.Decided != b.Decided || a.Messages != b.Messages {
			t.Errorf("seed %d: %c after %d messages, genuine %c after %d", seed, a.Decided, a.Messages, b.Decided, b.Messages)
		}
	}
}

func TestEveryKindLiesAndEveryFaultHappens(t *testing.T) {
	for _, k := range Kinds() {
		lies := 0
		for seed := range int64(100) {
			p := NewPlan(seed, Mix{Nodes: 4, Kinds: []Kind{k}})
			r := play(p, true)
			if r.Violation != nil {
				t.Fatalf("%s, seed %d: %v", k, seed, r.Violation)
			}
			if k == Silent || k == Twins || k == Delaying || k == Withholding {
				lies += r.Faults
			} else {
				lies += strings.Count(r.Transcript, "  liar ")
			}
		}
		if lies < 20 {
			t.Errorf("%s told %d lies in 100 schedules", k, lies)
		}
	}
	all := ""
	for seed := range int64(300) {
		all += play(NewPlan(seed, Mix{Nodes: 4, Kinds: Kinds()}), true).Transcript
	}
	for _, mark := range []string{": lost", "crashes before", "crashes once", "crashes having sent", "starts again", "holds proof against", "certificate(", "prepared in view", "observer", "not_justified"} {
		if !strings.Contains(all, mark) {
			t.Errorf("no transcript has %q", mark)
		}
	}
}

func TestAPlayerLetsGoOfTheMessagesOfPastSchedules(t *testing.T) {
	pl := NewPlayer(NewWorld(4, false))
	for seed := range int64(20) {
		pl.Play(NewPlan(seed, Mix{Nodes: 4}), false)
	}
	for at, events := range pl.queue {
		for _, e := range events[:cap(events)] {
			if e.message != nil {
				t.Fatalf("what was sent for time %d is still held: %v", at, e.message)
			}
		}
	}
}

func TestTwinsScenariosAreCountedThroughOnce(t *testing.T) {
	seen := map[string]bool{}
	for i := range uint64(5000) {
		p := TwinsPlan(1, i, Mix{Nodes: 4, Kinds: []Kind{Twins}})
		key := strings.Join(append(p.Partitions, p.Proposals, string(rune('0'+p.Liars[0].Seat))), " ")
		if seen[key] {
			t.Fatalf("scenario %d is a repetition", i)
		}
		seen[key] = true
	}
	if TwinsScenarios(4) != 4*4*16*16*16*16 {
		t.Errorf("%d scenarios of four nodes", TwinsScenarios(4))
	}
}

func TestAFailingPlanShrinksAndStillFails(t *testing.T) {
	pl := NewPlayer(NewWorld(4, false))
	for seed := range int64(2000) {
		p := NewPlan(seed, Mix{Nodes: 4, Kinds: Kinds(), Excess: 1})
		r := pl.Play(p, true)
		if r.Violation == nil || r.Violation.Oracle != "agreement" || r.Faults < 30 {
			continue
		}
		small := pl.Shrink(p)
		s := pl.Play(small, true)
		if s.Violation == nil || s.Violation.Oracle != "agreement" {
			t.Fatalf("the smaller plan shows %v", s.Violation)
		}
		if s.Faults >= r.Faults || strings.Count(s.Transcript, "\n") >= strings.Count(r.Transcript, "\n") {
			t.Errorf("%d faults and %d lines, were %d and %d", s.Faults, strings.Count(s.Transcript, "\n"), r.Faults, strings.Count(r.Transcript, "\n"))
		}
		t.Logf("%d faults of %d are left:\n%s", s.Faults, r.Faults, s.Transcript)
		return
	}
	t.Fatal("two liars of four never break agreement")
}

// TestLiarsWhoNameViewsFarAwayDoNotMakeAScheduleLong plays schedules in which
// too many liars pull honest members into views near 2^48.
func TestLiarsWhoNameViewsFarAwayDoNotMakeAScheduleLong(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		if r := play(NewPlan(30, Mix{Nodes: 3, Kinds: Kinds(), Excess: 1}), false); r.Violation == nil || r.Views < pbft.MaxView/2 {
			t.Errorf("%v in view %d", r.Violation, r.Views)
		}
		r := &run{World: NewWorld(4, false), said: make([][]pbft.Vote, 4), liar: make([]bool, 4), liars: []*liar{newLiar(Liar{Seat: 0, Kinds: []Kind{Garbage, Lying}}, 1)}}
		r.result.Views = pbft.MaxView
		for _, view := range []uint64{3, 70, pbft.MaxView, 70} {
			r.pool.votes[pbft.ViewChange] = append(r.pool.votes[pbft.ViewChange], overheard{seat: 1, vote: pbft.Vote{View: view, Phase: pbft.ViewChange}})
		}
		near := slices.Collect(r.near())
		if len(near) != allViews+2 || near[allViews-1] != allViews-1 || near[allViews] != 70 || near[allViews+1] != pbft.MaxView {
			t.Errorf("the adversary may open %v", near)
		}
		r.openViews(r.liars[0])
		r.garbageNewViews(r.liars[0])
		if p := r.anyPrepared(pbft.MaxView); p != nil {
			t.Errorf("prepared of nothing: %+v", p)
		}
	}()
	select {
	case <-done:
	case <-time.After(time.Minute):
		t.Fatal("a schedule does not end")
	}
}

func TestVotesOfAnotherInstanceAreMarkedInTranscripts(t *testing.T) {
	p := NewPlan(11, Mix{Nodes: 4})
	p.Batched = true
	transcript := play(p, true).Transcript
	if !strings.Contains(transcript, "prepare(0, B) of another instance") || strings.Contains(transcript, "pre-prepare(0, A) of another") {
		t.Error(transcript)
	}
}

func FuzzPlan(f *testing.F) {
	for seed := range int64(12) {
		text, err := json.Marshal(NewPlan(seed, Mix{Nodes: 4, Kinds: Kinds()}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Add([]byte(`{"nodes":4,"suppressed":["0"]}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		p, err := ParsePlan(text)
		if err != nil {
			return
		}
		if r := play(p, false); r.Violation != nil && len(p.Liars) <= quorum.F(p.Nodes) && len(p.Suppressed)+len(p.Undelivered) == 0 {
			t.Fatalf("a plan within bounds: %v", r.Violation)
		}
	})
}

func TestMixesThatCannotBeAreRefused(t *testing.T) {
	for _, m := range []Mix{{Nodes: 0}, {Nodes: 32}, {Nodes: 4, Kinds: []Kind{"friendly"}}, {Nodes: 4, Excess: 3}, {Nodes: 4, Excess: -1}} {
		if m.Check() == nil {
			t.Errorf("%+v is taken", m)
		}
	}
}
