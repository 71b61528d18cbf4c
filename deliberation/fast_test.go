package deliberation_test

import (
	"slices"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"pgregory.net/rapid"
)

func TestAClearRoundIsConfirmedByAMajority(t *testing.T) {
	r := newRig(t)
	round, winner, _ := r.clear(nil)
	r.phase(round, deliberation.PhaseFast)
	for _, id := range []string{"bob", "cid"} {
		if a := r.confirm(id, round, winner, true); a.Verdict != nil {
			t.Fatalf("a verdict after %s, before a majority", id)
		}
	}
	v := r.confirm("dan", round, winner, true).Verdict
	if v == nil || v.Status != deliberation.PhaseVerdict || v.Winner != winner || v.Path != deliberation.PathFast || string(v.Answer) != `"yes"` || v.Author != "ann" {
		t.Fatalf("verdict %+v", v)
	}
	if *v.GapNano != 600_000_000 || v.TauNano != 150_000_000 || v.Why != "gap_above_tau" || v.ClosedBy != "all_final" || v.Certificate != nil {
		t.Fatalf("verdict %+v", v)
	}
	if v.Count.Accepts != 3 || v.Count.Rejects != 0 || v.Count.Participants != 4 {
		t.Fatalf("count %+v", v.Count)
	}
	if len(v.EvidenceRoot) != 64 {
		t.Fatalf("root %q", v.EvidenceRoot)
	}
	want := []string{"opened", "positioned", "positioned", "finished", "finished", "finished", "finished", "evaluated", "confirmed", "confirmed", "confirmed", "decided", "rated"}
	if got := r.events(); !slices.Equal(got, want) {
		t.Fatalf("events %v", got)
	}
	for _, e := range r.Events {
		if !slices.Equal(e.To, agents) || e.Subject != round {
			t.Fatalf("%s concerns %v about %s", e.Type, e.To, e.Subject)
		}
	}
	r.refused("round_closed", "ann", "confirm", obj{"round": round, "winner": winner, "accept": true})
	r.refused("round_closed", "ann", "position", obj{"round": round, "answer": 1})
}

func TestStandingConfirmationsMakeAVerdictInTheApplyThatDecides(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	winner := r.position("ann", round, "yes", 0.9)
	r.position("bob", round, "no", 0.3)
	far := int64(r.Now) + 10_000
	r.do("bob", "confirm", obj{"round": round, "standing": obj{"winners": []string{winner}, "expires_ms": far}})
	r.do("cid", "confirm", obj{"round": round, "standing": obj{"answers": []any{"maybe", "yes"}, "expires_ms": far}})
	r.do("dan", "confirm", obj{"round": round, "standing": obj{"answers": []any{"yes"}, "expires_ms": far}})
	a := r.done(round, agents...)
	if a.Verdict == nil || a.Verdict.Path != deliberation.PathFast || a.Verdict.Count.Accepts != 3 {
		t.Fatalf("answer %+v", a)
	}
	for _, m := range r.view(round).Members {
		if m.Agent != "ann" && (m.Vote == nil || !m.Vote.Standing || m.Vote.Action != m.Standing.Action) {
			t.Fatalf("%s: vote %+v", m.Agent, m.Vote)
		}
	}
}

func TestAStandingConfirmationCountsForItsWinnerUntilItExpires(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	winner := r.position("ann", round, "yes", 0.9)
	loser := r.position("bob", round, "no", 0.3)
	r.do("bob", "confirm", obj{"round": round, "standing": obj{"winners": []string{loser}, "expires_ms": int64(r.Now) + 10_000}})
	r.do("cid", "confirm", obj{"round": round, "standing": obj{"winners": []string{winner}, "expires_ms": int64(r.Now) + 500}})
	r.do("dan", "confirm", obj{"round": round, "standing": obj{"winners": []string{loser}, "expires_ms": int64(r.Now) + 10_000}})
	r.do("dan", "confirm", obj{"round": round, "standing": obj{"winners": []string{winner}, "expires_ms": int64(r.Now) + 10_000}}) // replaces
	r.Advance(500)
	r.done(round, agents...)
	for _, m := range r.view(round).Members {
		if counted := m.Vote != nil; counted != (m.Agent == "dan") {
			t.Errorf("%s: vote %+v", m.Agent, m.Vote)
		}
	}
	r.phase(round, deliberation.PhaseFast)
}

func TestAMajorityThatRejectsIsObeyed(t *testing.T) {
	r := newRig(t)
	round, winner, _ := r.clear(nil)
	r.confirm("bob", round, winner, false)
	r.confirm("cid", round, winner, false)
	v := r.confirm("dan", round, winner, false).Verdict
	if v == nil || v.Status != deliberation.PhaseNoVerdict || v.Reason != "rejected" || v.Winner != "" || v.Answer != nil {
		t.Fatalf("verdict %+v", v)
	}
	if len(r.view(round).State.Outcome.Strengths) != 2 || len(v.EvidenceRoot) != 64 {
		t.Fatal("a rejected round keeps its chain")
	}
	if slices.Contains(r.events(), "rated") {
		t.Fatal("ratings moved without a verdict")
	}
}

func TestRejectionEscalatesToAHumanWhenTheRoundSaysSo(t *testing.T) {
	reject := func(r *rig) (round, winner, other string) {
		r.Grant("hal", "risk", "1", "1")
		round, winner, other = r.clear(obj{"on_rejected": "human", "participants": agents})
		for _, id := range []string{"bob", "cid", "dan"} {
			r.confirm(id, round, winner, false)
		}
		r.phase(round, deliberation.PhaseReview)
		return round, winner, other
	}
	t.Run("and the human may choose any position", func(t *testing.T) {
		r := newRig(t)
		round, _, other := reject(r)
		r.refused("not_reviewer", "zoe", "review", obj{"round": round})
		r.refused("missing_argument", "hal", "review", obj{"round": round, "winner": "nothing"})
		v := r.do("hal", "review", obj{"round": round, "winner": other, "reason": "I know the client"}).Verdict
		if v.Status != deliberation.PhaseVerdict || v.Winner != other || v.Path != deliberation.PathReview || v.Reviewer != "hal" {
			t.Fatalf("verdict %+v", v)
		}
		r.refused("round_closed", "hal", "review", obj{"round": round, "winner": other})
	})
	t.Run("or let the rejection stand, as an operator may", func(t *testing.T) {
		r := newRig(t)
		round, _, _ := reject(r)
		if v := r.do("op", "review", obj{"round": round}).Verdict; v.Reason != "rejected_by_review" || v.Status != deliberation.PhaseNoVerdict {
			t.Fatalf("verdict %+v", v)
		}
	})
	t.Run("and silence ends it", func(t *testing.T) {
		r := newRig(t)
		round, _, _ := reject(r)
		r.Advance(1000)
		if v := r.view(round).Verdict; v == nil || v.Reason != "review_expired" {
			t.Fatalf("verdict %+v", v)
		}
	})
}

func TestSilenceLeadsToTheConflictPathAtTheDeadline(t *testing.T) {
	r := newRig(t)
	round, winner, _ := r.clear(nil)
	r.confirm("bob", round, winner, true)
	r.Advance(999)
	r.phase(round, deliberation.PhaseFast)
	r.Advance(1)
	r.phase(round, deliberation.PhasePrepare)
	if why := r.view(round).State.Why; why != deliberation.WhySilence {
		t.Fatalf("why %s", why)
	}
}

func TestATieOfWordsLeadsToTheConflictPathAtOnce(t *testing.T) {
	r := newRig(t)
	round, winner, _ := r.clear(nil)
	r.confirm("ann", round, winner, true)
	r.confirm("bob", round, winner, false)
	r.confirm("cid", round, winner, true)
	if a := r.confirm("dan", round, winner, false); a.Phase != deliberation.PhasePrepare {
		t.Fatalf("phase %s", a.Phase)
	}
}

func TestAConfirmationIsBoundToTheWinnerAndTheOutcomeThatWasRead(t *testing.T) {
	r := newRig(t)
	round, winner, other := r.clear(nil)
	hash := r.view(round).State.Outcome.Hash
	r.refused("other_winner", "bob", "confirm", obj{"round": round, "winner": other, "accept": true})
	r.refused("other_winner", "bob", "confirm", obj{"round": round, "winner": winner, "accept": true, "outcome_hash": "00" + hash[2:]})
	r.do("bob", "confirm", obj{"round": round, "winner": winner, "accept": true, "outcome_hash": hash})
	r.refused("already_confirmed", "bob", "confirm", obj{"round": round, "winner": winner, "accept": false})
}

func TestTheFastRuleIsWhatItSays(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 256).Draw(t, "n")
		yes := rapid.IntRange(0, n).Draw(t, "accepts")
		no := rapid.IntRange(0, n-yes).Draw(t, "rejects")
		c := deliberation.Count{Participants: n, Accepts: yes, Rejects: no}
		want := deliberation.Waiting
		switch {
		case 2*yes > n:
			want = deliberation.Confirmed
		case 2*no > n:
			want = deliberation.Rejected
		case yes+no == n:
			want = deliberation.Contested
		}
		if got := c.Fast(); got != want {
			t.Fatalf("fast %+v: %s, want %s", c, got, want)
		}
		switch got := c.Ratify(); {
		case (got == deliberation.Confirmed) != (3*yes >= 2*n):
			t.Fatalf("ratify %+v: %s", c, got)
		case got == deliberation.Contested && 3*(n-no) >= 2*n:
			t.Fatalf("ratify %+v gave up while two thirds may still confirm", c)
		case got == deliberation.Waiting && 3*(n-no) < 2*n:
			t.Fatalf("ratify %+v waits for what cannot come", c)
		}
	})
}
