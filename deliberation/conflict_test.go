package deliberation_test

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/machine"
	"github.com/deliberd/deliberd/machine/machinetest"
	"github.com/deliberd/deliberd/pbft"
)

func TestACloseRoundEndsByTheVotersCertificate(t *testing.T) {
	r := newRig(t)
	round, first, second := r.close(nil)
	r.phase(round, deliberation.PhasePrepare)
	r.done(round, agents...)
	r.phase(round, deliberation.PhaseFrozen)
	v := r.certify(round).Verdict
	if v == nil || v.Winner != first || v.Path != deliberation.PathConflict || v.Why != "gap_within_tau" || *v.GapNano != 100_000_000 {
		t.Fatalf("verdict %+v", v)
	}
	if c := v.Certificate; c == nil || c.Signers != 3 || c.Voters != 4 || c.Tolerance != 1 || c.Epoch != 1 || c.View != 0 {
		t.Fatalf("certificate %+v", v.Certificate)
	}
	if len(v.Dissents) != 1 || v.Dissents[0].Position != second {
		t.Fatalf("dissents %+v", v.Dissents)
	}
	want := []string{"evaluated", "prepared", "finished", "finished", "finished", "finished", "frozen", "certified", "decided", "rated"}
	if got := r.events(); !slices.Equal(got[len(got)-len(want):], want) {
		t.Fatalf("events %v", got)
	}
	if list, err := deliberation.Frozen(r.Tx); err != nil || len(list) != 0 {
		t.Fatalf("still frozen: %v %v", list, err)
	}
}

func TestASecondCertificateIsAnsweredWithTheVerdictThatStands(t *testing.T) {
	r := newRig(t)
	round, _, _ := r.close(nil)
	r.done(round, agents...)
	f := r.frozen(round)
	first := r.certify(round)
	root := first.Verdict.EvidenceRoot
	before := len(r.Events)
	other := r.certificate(f, r.World.Checkpoints[f.Seq], 1, 2, 3)
	again := r.do("n2", "certify", obj{"round": round, "certificate": other})
	if again.Status != "already_decided" || again.Verdict == nil || again.Verdict.EvidenceRoot != root || len(r.Events) != before {
		t.Fatalf("answer %+v", again)
	}
}

func TestOnlyACertificateOfThisFreezeIsAccepted(t *testing.T) {
	r := newRig(t)
	round, _, _ := r.close(nil)
	r.refused("wrong_phase", "n1", "certify", obj{"round": round, "certificate": obj{}})
	r.done(round, agents...)
	f := r.frozen(round)
	send := func(code string, cert any) {
		t.Helper()
		r.refused(code, "n1", "certify", obj{"round": round, "certificate": cert})
	}
	good := func() pbft.Certificate { return r.certificate(f, r.World.Checkpoints[f.Seq], 0, 1, 2) }
	send("no_checkpoint", good())
	at := r.complete(f.Seq)
	r.refused("not_authorized", "ann", "certify", obj{"round": round, "certificate": good()})
	send("bad_certificate", obj{})
	send("bad_certificate", r.certificate(f, at, 0, 1))       // below the quorum
	send("bad_certificate", r.certificate(f, at, 0, 1, 1))    // one voter twice
	send("bad_certificate", r.certificate(f, at, 0, 1, 2, 3)) // more than a quorum: not the one spelling
	for name, change := range map[string]func(*deliberation.FrozenRound, *machine.Checkpoint){
		"another outcome":    func(f *deliberation.FrozenRound, _ *machine.Checkpoint) { f.OutcomeHash = strings.Repeat("0", 64) },
		"another round":      func(f *deliberation.FrozenRound, _ *machine.Checkpoint) { f.Round = strings.Repeat("0", 26) },
		"another epoch":      func(f *deliberation.FrozenRound, _ *machine.Checkpoint) { f.Epoch = 2 },
		"another generation": func(f *deliberation.FrozenRound, _ *machine.Checkpoint) { f.Generation = 7 },
		"another checkpoint": func(_ *deliberation.FrozenRound, c *machine.Checkpoint) { c.Root[0] ^= 1 },
		"another size":       func(_ *deliberation.FrozenRound, c *machine.Checkpoint) { c.Size++ },
	} {
		other, head := f, at
		change(&other, &head)
		t.Log(name)
		send("bad_certificate", r.certificate(other, head, 0, 1, 2))
	}
	forged := good()
	forged.Votes[1].Signature[5] ^= 1
	send("bad_certificate", forged)
	delete(r.World.Committees, 1)
	send("no_committee", good())
}

func TestTheCertificateDigestDependsOnAllItNames(t *testing.T) {
	at := machine.Checkpoint{Seq: 1, Size: 2}
	base := deliberation.CertDigest("g", 1, 2, "r", "o", at)
	for i, other := range [][32]byte{
		deliberation.CertDigest("h", 1, 2, "r", "o", at),
		deliberation.CertDigest("g", 2, 2, "r", "o", at),
		deliberation.CertDigest("g", 1, 1, "r", "o", at),
		deliberation.CertDigest("g", 1, 2, "s", "o", at),
		deliberation.CertDigest("g", 1, 2, "r", "p", at),
		deliberation.CertDigest("g", 1, 2, "r", "o", machine.Checkpoint{Seq: 2, Size: 2}),
		deliberation.CertDigest("g", 1, 2, "r", "o", machine.Checkpoint{Seq: 1, Size: 3}),
		deliberation.CertDigest("g", 1, 2, "r", "o", machine.Checkpoint{Seq: 1, Size: 2, Root: [32]byte{1}}),
	} {
		if other == base {
			t.Errorf("change %d leaves the digest as it is", i)
		}
	}
	if deliberation.CertDigest("g", 1, 2, "r", "o", at) != base {
		t.Error("not a function")
	}
}

func TestEvidenceInTheWindowRecomputesAndMayTurnTheRound(t *testing.T) {
	r := newRig(t)
	round, first, second := r.close(nil)
	hash := r.view(round).State.Outcome.Hash
	r.confirm("dan", round, first, false)
	r.do("ann", "evidence", obj{"round": round, "argument": first, "evidence": evidence(0.4, 0)})
	st := r.view(round).State
	if st.Outcome.Winner != second || st.Outcome.Hash == hash {
		t.Fatalf("outcome %+v", st.Outcome)
	}
	last := r.Events[len(r.Events)-1]
	if d := last.Data.(deliberation.EvidenceAdded); d.Outcome == nil || d.Outcome.Winner != second {
		t.Fatalf("event %+v", d)
	}
	r.confirm("dan", round, second, true) // the first word was about another winner
	r.Advance(1000)
	r.phase(round, deliberation.PhaseFrozen)
	if v := r.certify(round).Verdict; v.Winner != second {
		t.Fatalf("verdict %+v", v)
	}
}

func TestNothingChangesAfterTheFreeze(t *testing.T) {
	r := newRig(t)
	round, first, second := r.close(nil)
	r.Advance(1000)
	r.phase(round, deliberation.PhaseFrozen)
	hash := r.frozen(round).OutcomeHash
	r.refused("round_frozen", "ann", "evidence", obj{"round": round, "argument": first, "evidence": evidence(1, 0)})
	r.refused("round_frozen", "cid", "position", obj{"round": round, "answer": "maybe"})
	r.refused("round_frozen", "cid", "challenge", obj{"round": round, "target": first})
	r.refused("round_frozen", "cid", "support", obj{"round": round, "target": first})
	r.refused("round_frozen", "bob", "relate", obj{"round": round, "from": second, "to": first, "relation": "attack"})
	r.refused("round_frozen", "cid", "confirm", obj{"round": round, "winner": first, "accept": false})
	r.refused("round_frozen", "cid", "confirm", obj{"round": round, "standing": obj{"winners": []string{first}, "expires_ms": int64(r.Now) + 9}})
	r.refused("round_frozen", "cid", "done", obj{"round": round})
	r.refused("round_frozen", "cid", "resolve", obj{"round": round})
	r.Advance(1 << 40)
	r.phase(round, deliberation.PhaseFrozen)
	if r.frozen(round).OutcomeHash != hash {
		t.Fatal("the frozen outcome changed")
	}
}

func TestAMajorityThatRejectsTheSameWinnerOnTheSameEvidenceIsObeyedBeforeTheFreeze(t *testing.T) {
	words := func(t *testing.T, evidenceAfter bool) *rig {
		r := newRig(t)
		round, winner, other := r.clear(nil)
		r.confirm("bob", round, winner, false)
		r.confirm("cid", round, winner, false)
		r.Advance(1000) // the fast window ends without a majority
		if evidenceAfter {
			r.do("bob", "evidence", obj{"round": round, "argument": other, "evidence": evidence(0.3, 0)})
		}
		r.confirm("dan", round, winner, false)
		r.Advance(1000)
		return r
	}
	t.Run("counted from the fast window on", func(t *testing.T) {
		r := words(t, false)
		if got := r.events(); !slices.Contains(got, "decided") || slices.Contains(got, "frozen") {
			t.Fatalf("events %v", got)
		}
	})
	t.Run("and not after new evidence", func(t *testing.T) {
		r := words(t, true)
		if got := r.events(); slices.Contains(got, "decided") || !slices.Contains(got, "frozen") {
			t.Fatalf("events %v", got)
		}
	})
}

func TestASupermajorityNeedsTheCertificateAndTwoThirds(t *testing.T) {
	start := func(t *testing.T) (*rig, string, string) {
		r := newRig(t)
		round, winner, _ := r.clear(obj{"rule": "supermajority"})
		r.phase(round, deliberation.PhasePrepare)
		if why := r.view(round).State.Why; why != deliberation.WhySupermajority {
			t.Fatalf("why %s", why)
		}
		r.done(round, agents...)
		r.phase(round, deliberation.PhaseFrozen)
		return r, round, winner
	}
	t.Run("confirmed before the certificate", func(t *testing.T) {
		r, round, winner := start(t)
		for _, id := range []string{"ann", "bob", "cid"} {
			if a := r.confirm(id, round, winner, true); a.Verdict != nil {
				t.Fatal("a verdict without a certificate")
			}
		}
		if v := r.certify(round).Verdict; v == nil || v.Path != deliberation.PathConflict || v.Count.Accepts != 3 {
			t.Fatalf("verdict %+v", v)
		}
	})
	t.Run("confirmed after the certificate", func(t *testing.T) {
		r, round, winner := start(t)
		r.confirm("ann", round, winner, true)
		f := r.frozen(round)
		if a := r.certify(round); a.Phase != deliberation.PhaseCertified || a.Verdict != nil {
			t.Fatalf("answer %+v", a)
		}
		if list, err := deliberation.Frozen(r.Tx); err != nil || len(list) != 0 {
			t.Fatalf("a certified round waits for a certificate: %v %v", list, err)
		}
		again := r.do("n2", "certify", obj{"round": round, "certificate": r.certificate(f, r.World.Checkpoints[f.Seq], 0, 1, 2)})
		if again.Status != "already_decided" || again.Phase != deliberation.PhaseCertified {
			t.Fatalf("answer %+v", again)
		}
		r.confirm("bob", round, winner, true)
		if v := r.confirm("cid", round, winner, true).Verdict; v == nil || v.Winner != winner || v.Certificate == nil {
			t.Fatalf("verdict %+v", v)
		}
	})
	t.Run("standing confirmations count", func(t *testing.T) {
		r := newRig(t)
		round := r.open(obj{"rule": "supermajority"})
		r.position("ann", round, "yes", 0.9)
		for _, id := range []string{"bob", "cid", "dan"} {
			r.do(id, "confirm", obj{"round": round, "standing": obj{"answers": []any{"yes"}, "expires_ms": int64(r.Now) + 99}})
		}
		r.done(round, agents...)
		r.done(round, agents...)
		if v := r.certify(round).Verdict; v == nil || v.Count.Accepts != 3 || v.GapNano != nil {
			t.Fatalf("verdict %+v", v)
		}
	})
	t.Run("not confirmed in time", func(t *testing.T) {
		r, round, winner := start(t)
		r.confirm("ann", round, winner, true)
		r.certify(round)
		r.Advance(1000)
		if v := r.view(round).Verdict; v == nil || v.Reason != "no_supermajority" || v.Certificate == nil {
			t.Fatalf("verdict %+v", v)
		}
	})
	t.Run("out of reach", func(t *testing.T) {
		r, round, winner := start(t)
		r.certify(round)
		r.confirm("bob", round, winner, false)
		if v := r.confirm("cid", round, winner, false).Verdict; v == nil || v.Reason != "no_supermajority" {
			t.Fatalf("verdict %+v", v)
		}
	})
	t.Run("rejected by a majority", func(t *testing.T) {
		r, round, winner := start(t)
		for _, id := range []string{"bob", "cid", "dan"} {
			r.confirm(id, round, winner, false)
		}
		if v := r.certify(round).Verdict; v == nil || v.Reason != "rejected" {
			t.Fatalf("verdict %+v", v)
		}
	})
}

func TestANewVoterEpochFreezesTheRoundAgainWithTheSameOutcome(t *testing.T) {
	r := newRig(t)
	round, first, _ := r.close(nil)
	r.done(round, agents...)
	old := r.frozen(round)
	stale := r.certificate(old, r.complete(old.Seq), 0, 1, 2)
	next := r.World.Committees[1]
	next.Epoch = 2
	r.World.Committees[2] = next
	ctx := r.Ctx()
	r.Seq++
	if events, err := r.Machine.React(r.Tx, ctx, machine.Event{Type: "acp.resolved", Subject: "x"}); err != nil || events != nil {
		t.Fatalf("%v %v", events, err)
	}
	events, err := r.Machine.React(r.Tx, ctx, machine.Event{Type: deliberation.EpochEvent, Subject: "2"})
	if err != nil || len(events) != 1 || events[0].Type != "deliberatic.frozen" {
		t.Fatalf("%v %v", events, err)
	}
	now := r.frozen(round)
	if now.Epoch != 2 || now.Seq != ctx.Seq || now.OutcomeHash != old.OutcomeHash {
		t.Fatalf("frozen %+v", now)
	}
	at := r.complete(now.Seq)
	r.refused("bad_certificate", "n1", "certify", obj{"round": round, "certificate": stale})
	if v := r.do("n1", "certify", obj{"round": round, "certificate": r.certificate(now, at, 0, 1, 2)}).Verdict; v == nil || v.Winner != first || v.Certificate.Epoch != 2 {
		t.Fatalf("verdict %+v", v)
	}
}

func TestACertificateSurvivesJSON(t *testing.T) {
	r := newRig(t)
	round, _, _ := r.close(nil)
	r.done(round, agents...)
	f := r.frozen(round)
	cert := r.certificate(f, r.complete(f.Seq), 0, 1, 2)
	text, err := json.Marshal(cert)
	if err != nil {
		t.Fatal(err)
	}
	var back pbft.Certificate
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	digest := deliberation.CertDigest(machinetest.Genesis, f.Generation, f.Epoch, f.Round, f.OutcomeHash, r.World.Checkpoints[f.Seq])
	if err := pbft.VerifyCertificate(r.World.Committees[1], deliberation.Instance(machinetest.Genesis, f), digest, back); err != nil {
		t.Fatal(err)
	}
}

func TestLateEvidenceIsBoundedForEachParticipant(t *testing.T) {
	r := newRig(t)
	round, first, second := r.close(nil)
	share := deliberation.MaxLateEvidence / 4
	for range share {
		r.do("ann", "evidence", obj{"round": round, "argument": first, "evidence": evidence(1, 0)})
	}
	r.refused("too_many", "ann", "evidence", obj{"round": round, "argument": first, "evidence": evidence(1, 0)})
	r.do("bob", "evidence", obj{"round": round, "argument": second, "evidence": evidence(1, 0)})
}
