package model

import (
	"testing"

	"github.com/deliberd/deliberd/pbft"
)

// accepts reports whether a fresh engine takes a vote of another member.
func (w *world) accepts(t *testing.T, from int, v pbft.Vote) bool {
	t.Helper()
	r, err := w.start(N-1, pbft.Restored{})
	if err != nil {
		t.Fatal(err)
	}
	return r.engine.StepVote(w.sign(from, v), 0) == nil
}

// TestEngineAcceptsANewViewIffTheSpecificationCallsItJustified tries every set of
// view changes with every certificate and every value. One thing the engine
// does not look at is the value that a claim about the certificate's view names:
// two values cannot be prepared in one view, so another value than the
// certificate's is a lie there, and the liar may as well have told the truth.
func TestEngineAcceptsANewViewIffTheSpecificationCallsItJustified(t *testing.T) {
	w, tried, accepted := newWorld(MaxViews), 0, 0
	for view := 1; view < MaxViews; view++ {
		for set := range power(bitsPerChange[view]+1, N) { // of each member: a claim, or no view change
			for c := range bitsPerChange[view] {
				proof := Claim(c)
				nv, changes := w.newView(view, set, proof)
				for _, x := range AllValues {
					want := len(nv.Claims) == 3 && PBFT(MaxViews).Justified(changes).Has(x) && highest(changes) == proof && (proof == 0 || proof.Value() == x)
					v := pbft.Vote{View: uint64(view), Phase: pbft.PrePrepare, Digest: digest(x), Proof: nv.Encode()}
					got := w.accepts(t, Primary(view), v)
					if got != want {
						t.Fatalf("view %d, %s proposed over claims %v and a certificate that %s: accepted %v", view, x, changes, proof, got)
					}
					tried++
					if got {
						accepted++
					}
				}
			}
		}
	}
	t.Logf("%d new views, %d justified", tried, accepted)
}

// newView is the new view of the set with a number, with a certificate, and
// what the set claims.
func (w *world) newView(view, set int, proof Claim) (*pbft.NewView, *[N]Claims) {
	nv, changes := &pbft.NewView{}, &[N]Claims{}
	if proof != 0 {
		nv.Highest = w.prepared(proof)
	}
	none := bitsPerChange[view]
	for m := range N {
		c := Claim(set % (none + 1))
		set /= none + 1
		if int(c) == none {
			continue
		}
		nv.Claims = append(nv.Claims, w.quote(m, view, c))
		changes[m] = 1 << c
	}
	return nv, changes
}

func power(base, exponent int) int {
	out := 1
	for range exponent {
		out *= base
	}
	return out
}

// highest is the first of the claims about the highest view.
func highest(changes *[N]Claims) Claim {
	best := Claim(0)
	for _, s := range changes {
		for c := Claim(1); c <= ClaimOf(MaxViews-1, B); c++ {
			if s.Has(c) && (best == 0 || c.View() > best.View()) {
				best = c
			}
		}
	}
	return best
}

// TestEngineAcceptsAViewChangeIffItProvesItsClaim tries every claim with every
// set of acceptances as its certificate.
func TestEngineAcceptsAViewChangeIffItProvesItsClaim(t *testing.T) {
	w, tried, accepted := newWorld(MaxViews), 0, 0
	for into := 1; into < MaxViews; into++ {
		for c := Claim(1); int(c) < bitsPerChange[into]; c++ {
			for shown := Claim(1); int(shown) < bitsPerChange[into]; shown++ {
				for set := range power(3, N) { // of each member: nothing, or its acceptance of A or B in that view
					cert, of := w.certificate(shown, set)
					v := w.change(into, c)
					v.Proof = cert.Encode()
					got := w.accepts(t, 0, v)
					if want := shown == c && of == 3 && len(cert.Votes) == 3; got != want {
						t.Fatalf("a view change into %d that claims %s with set %d of acceptances and says they show %s: accepted %v", into, c, set, shown, got)
					}
					tried++
					if got {
						accepted++
					}
				}
			}
		}
	}
	t.Logf("%d view changes, %d proven", tried, accepted)
}

// certificate says that it shows a claim by the acceptances of the set with a
// number; of is how many of them are of the claimed value.
func (w *world) certificate(shown Claim, set int) (cert *pbft.Prepared, of int) {
	cert = &pbft.Prepared{View: uint64(shown.View()), Digest: digest(shown.Value())}
	for m := range N {
		x := Value(set % 3)
		set /= 3
		if x != None {
			vote := w.acceptance(m, shown.View(), x, 0, 0)
			cert.Votes = append(cert.Votes, w.sign(m, vote).Frame().Proof())
		}
		if x == shown.Value() {
			of++
		}
	}
	return cert, of
}

// TestEngineAcceptsANewViewIffItsCertificateHolds tries every set of acceptances
// as the certificate behind a new view that is good otherwise.
func TestEngineAcceptsANewViewIffItsCertificateHolds(t *testing.T) {
	w, tried, accepted := newWorld(MaxViews), 0, 0
	for view := 1; view < MaxViews; view++ {
		for c := Claim(1); int(c) < bitsPerChange[view]; c++ {
			for set := range power(3, N) {
				cert, of := w.certificate(c, set)
				nv := &pbft.NewView{Claims: []pbft.Claim{w.quote(0, view, 0), w.quote(1, view, c), w.quote(3, view, 0)}, Highest: cert}
				v := pbft.Vote{View: uint64(view), Phase: pbft.PrePrepare, Digest: digest(c.Value()), Proof: nv.Encode()}
				got := w.accepts(t, Primary(view), v)
				if want := of == 3 && len(cert.Votes) == 3; got != want {
					t.Fatalf("view %d, over a claim that %s and set %d of acceptances: accepted %v", view, c, set, got)
				}
				tried++
				if got {
					accepted++
				}
			}
		}
	}
	t.Logf("%d new views, %d proven", tried, accepted)
}

// TestEngineRefusesProposalsAndPreparesOfTheWrongMember keeps members to their
// parts: only the primary proposes, and it does not also prepare.
func TestEngineRefusesProposalsAndPreparesOfTheWrongMember(t *testing.T) {
	w := newWorld(MaxViews)
	for view := range MaxViews {
		for from := range N - 1 {
			for _, x := range AllValues {
				v := pbft.Vote{View: uint64(view), Phase: pbft.Prepare, Digest: digest(x)}
				if from != Primary(view) {
					v = w.acceptance(Primary(view), view, x, 0, 0)
				}
				if w.accepts(t, from, v) {
					t.Errorf("%s of member %d is accepted", describe(v), from)
				}
			}
		}
	}
}
