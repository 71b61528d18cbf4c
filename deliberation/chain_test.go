package deliberation_test

import (
	"encoding/json"
	"slices"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/canon"
	"github.com/deliberd/deliberd/merkle"
	"github.com/deliberd/deliberd/pbft"
)

func TestTheEvidenceChainVerifiesOffline(t *testing.T) {
	r := newRig(t)
	round, v := r.fast()
	file := r.export(round)
	root, err := merkle.ParseHash(v.EvidenceRoot)
	if err != nil {
		t.Fatal(err)
	}
	if report, err := merkle.Verify(file, &root); err != nil || !report.Proven {
		t.Fatalf("%+v %v", report, err)
	}
	for i := 0; i < len(file); i += 7 { // a byte flipped anywhere is found
		bad := append([]byte(nil), file...)
		bad[i] ^= 1
		if _, err := merkle.Verify(bad, &root); err == nil {
			t.Fatalf("byte %d flipped, nobody noticed", i)
		}
	}
	chain, err := merkle.Parse(file)
	if err != nil {
		t.Fatal(err)
	}
	var kinds []merkle.Kind
	for _, l := range chain.Leaves() {
		kinds = append(kinds, l.Kind)
	}
	want := []merkle.Kind{merkle.RoundMetadata, merkle.Position, merkle.Position, merkle.Challenge, merkle.Challenge,
		merkle.ConstitutionalCheck, merkle.GradedSemantics, merkle.ConsensusVote, merkle.Verdict, merkle.DissentRecords}
	if !slices.Equal(kinds, want) {
		t.Fatalf("leaves %v", kinds)
	}
	if got := string(chain.Leaves()[5].Data); got != `{"constitution":null,"violations":[]}` {
		t.Fatalf("constitutional check %s", got)
	}
}

func TestTheChainOfAConflictHoldsTheCertificateItself(t *testing.T) {
	r := newRig(t)
	round, _, _ := r.close(nil)
	r.done(round, agents...)
	f := r.frozen(round)
	r.certify(round)
	chain, err := merkle.Parse(r.export(round))
	if err != nil {
		t.Fatal(err)
	}
	var vote struct {
		Freeze      deliberation.Freeze
		Certificate pbft.Certificate
	}
	for _, l := range chain.Leaves() {
		if l.Kind == merkle.ConsensusVote {
			if err := json.Unmarshal(l.Data, &vote); err != nil {
				t.Fatal(err)
			}
		}
	}
	digest := deliberation.CertDigest(vote.Certificate.Instance.Genesis, vote.Freeze.Generation, vote.Freeze.Epoch, round, vote.Freeze.OutcomeHash, r.World.Checkpoints[f.Seq])
	if err := pbft.VerifyCertificate(r.World.Committees[1], vote.Certificate.Instance, digest, vote.Certificate); err != nil {
		t.Fatal(err)
	}
}

func TestTheStrengthsInTheChainFollowFromItsArguments(t *testing.T) {
	r := newRig(t)
	round, _ := r.fast()
	chain, err := merkle.Parse(r.export(round))
	if err != nil {
		t.Fatal(err)
	}
	var meta deliberation.Round
	var args []*deliberation.Argument
	var want []byte
	for _, l := range chain.Leaves() {
		switch l.Kind {
		case merkle.RoundMetadata:
			err = json.Unmarshal(l.Data, &meta)
		case merkle.Position, merkle.Challenge:
			var a deliberation.ArgumentRecord
			err = json.Unmarshal(l.Data, &a)
			args = append(args, &a.Argument)
		case merkle.GradedSemantics:
			want = l.Data
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	graded, _, err := deliberation.Grade(&meta, args)
	if err != nil {
		t.Fatal(err)
	}
	if got := canon.MustMarshal(graded); string(got) != string(want) {
		t.Fatalf("recomputed\n%s\nchain\n%s", got, want)
	}
}

func TestAnOpenRoundHasNoChainYet(t *testing.T) {
	r := newRig(t)
	round := r.open(nil)
	var raw json.RawMessage
	if err := r.Query("deliberatic.export", "ann", obj{"round": round}, &raw); err == nil {
		t.Fatalf("got %s", raw)
	}
}
