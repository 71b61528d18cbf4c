package deliberation_test

import (
	"fmt"
	"maps"
	"testing"

	"github.com/deliberd/deliberd/deliberation"
	"github.com/deliberd/deliberd/internal/sign"
	"github.com/deliberd/deliberd/machine/machinetest"
)

// BenchmarkClearRound is a whole clear round of four participants: open, two
// positions, two standing confirmations, four done and one confirmation, with
// signing and verifying.
func BenchmarkClearRound(b *testing.B) {
	for b.Loop() {
		r := newRig(b)
		round := r.open(nil)
		winner := r.position("ann", round, "yes", 0.9)
		r.position("bob", round, "no", 0.3)
		for _, id := range []string{"ann", "cid"} {
			r.do(id, "confirm", obj{"round": round, "standing": obj{"answers": []any{"yes"}, "expires_ms": int64(r.Now) + 99}})
		}
		r.done(round, agents...)
		if v := r.confirm("dan", round, winner, true).Verdict; v == nil {
			b.Fatal("no verdict")
		}
	}
}

// BenchmarkVerdict is the apply that ends a clear round of four: the last
// confirmation, the evidence chain, the ratings. The store is a map.
func BenchmarkVerdict(b *testing.B) {
	r := newRig(b)
	round, winner, _ := r.clear(nil)
	r.confirm("ann", round, winner, true)
	r.confirm("cid", round, winner, true)
	r.applyAgain(b, "dan", "confirm", obj{"round": round, "winner": winner, "accept": true})
}

// BenchmarkCertify is the apply that ends a contested round of four by a
// certificate of three voters. The store is a map.
func BenchmarkCertify(b *testing.B) {
	r := newRig(b)
	round, _, _ := r.close(nil)
	r.done(round, agents...)
	f := r.frozen(round)
	cert := r.certificate(f, r.complete(f.Seq), 0, 1, 2)
	r.applyAgain(b, "n1", "certify", obj{"round": round, "certificate": cert})
}

// applyAgain measures the apply of one signed action, each time to the same state.
func (r *rig) applyAgain(b *testing.B, actor, kind string, body obj) {
	action, err := r.Key(actor).Sign(machinetest.Genesis, "01ARZ3NDEKTSV4RRFFQ69G5FAV", "deliberatic."+kind, actor, body)
	if err != nil {
		b.Fatal(err)
	}
	text, err := action.Encode()
	if err != nil {
		b.Fatal(err)
	}
	verified, err := sign.Verify(text, r.Key(actor).Public())
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		b.StopTimer()
		tx := maps.Clone(r.Tx)
		b.StartTimer()
		if _, _, err := r.Machine.Apply(tx, r.Ctx(), verified); err != nil {
			b.Fatal(err)
		}
	}
}

// BenchmarkGrade is the semantics of a round as large as one may be: a chain
// of challenges, and the same with cross-references that close cycles in
// which the printed rule has no stable answer, so that the whole budget goes.
func BenchmarkGrade(b *testing.B) {
	for _, cyclic := range []bool{false, true} {
		b.Run(fmt.Sprintf("cyclic=%v", cyclic), func(b *testing.B) {
			r := &deliberation.Round{ID: "r", TauNano: deliberation.DefaultTau, GammaPlus: 0.99, GammaMinus: 0.99, Method: "fixed-point", WeightMethod: "literal"}
			for _, id := range agents {
				r.Participants = append(r.Participants, deliberation.Participant{ID: id, Rho: 1})
			}
			var args []*deliberation.Argument
			for i := range deliberation.MaxArguments {
				a := &deliberation.Argument{ID: fmt.Sprintf("%04d", i), Author: agents[i%4], Kind: deliberation.PositionKind, Evidence: []deliberation.Evidence{{Value: 0.5, Confidence: 0.1}}}
				if i >= 2 {
					a.Kind, a.Target = deliberation.SupportKind, fmt.Sprintf("%04d", i/2)
				}
				if cyclic && i < deliberation.MaxCrossRefs {
					a.Refs = []deliberation.CrossRef{{To: fmt.Sprintf("%04d", 4095-i), Relation: deliberation.Support}}
				}
				args = append(args, a)
			}
			for b.Loop() {
				if _, _, err := deliberation.Grade(r, args); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
