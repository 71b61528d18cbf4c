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
// view changes with every certificate and every value.
func TestEngineAcceptsANewViewIffTheSpecificationCallsItJustified(t *testing.T) {
	w, tried, accepted := newWorld(MaxViews), 0, 0
	for view := 1; view < MaxViews; view++ {
		claims := bitsPerChange[view]
		sets := 1
		for range N {
			sets *= claims + 1 // or no view change at all
		}
		for set := range sets {
			changes, nv := [N]Claims{}, &pbft.NewView{}
			for m, left := 0, set; m < N; m, left = m+1, left/(claims+1) {
				if c := left % (claims + 1); c < claims {
					changes[m] = 1 << c
					nv.Claims = append(nv.Claims, w.quote(m, view, Claim(c)))
				}
			}
			for proof := range claims {
				nv.Highest = nil
				if proof > 0 {
					nv.Highest = w.prepared(Claim(proof))
				}
				for _, x := range AllValues {
					want := len(nv.Claims) == 3 && PBFT(MaxViews).Justified(&changes).Has(x) && Claim(proof) == firstHighest(&changes)
					if proof > 0 {
						want = want && Claim(proof).Value() == x
					}
					v := pbft.Vote{View: uint64(view), Phase: pbft.PrePrepare, Digest: digest(x), Proof: nv.Encode()}
					tried++
					if got := w.accepts(t, Primary(view), v); got != want {
						t.Fatalf("view %d, %s proposed over claims %v and a certificate that %s: accepted %v", view, x, changes, Claim(proof), got)
					} else if got {
						accepted++
					}
				}
			}
		}
	}
	t.Logf("%d new views, %d justified", tried, accepted)
}

// firstHighest is the first of the claims about the highest view. Two claims of
// one view never differ in their value, so which is first means nothing.
func firstHighest(changes *[N]Claims) Claim {
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
			for shown := Claim(0); int(shown) < bitsPerChange[into]; shown++ { // what the certificate says it proves
				for set := range 3 * 3 * 3 * 3 { // of each member: nothing, or its acceptance of A or B in that view
					cert, of := &pbft.Prepared{}, 0
					if shown != 0 {
						cert.View, cert.Digest = uint64(shown.View()), digest(shown.Value())
					}
					for m, left := 0, set; m < N && shown != 0; m, left = m+1, left/3 {
						if x := Value(left % 3); x != None {
							vote := w.acceptance(m, shown.View(), x, 0, 0)
							cert.Votes = append(cert.Votes, w.sign(m, vote).Frame().Proof())
							if x == c.Value() {
								of++
							}
						}
					}
					v := w.change(into, c)
					v.Proof = cert.Encode()
					want := shown == c && of == 3 && len(cert.Votes) == 3
					tried++
					if got := w.accepts(t, 0, v); got != want {
						t.Fatalf("a view change into %d that claims %s with the acceptances %d of %s: accepted %v", into, c, set, shown, got)
					} else if got {
						accepted++
					}
				}
			}
		}
	}
	t.Logf("%d view changes, %d proven", tried, accepted)
}
