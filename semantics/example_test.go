package semantics_test

import (
	"fmt"

	"github.com/deliberd/deliberd/semantics"
)

// Two positions; a challenge, itself well supported, decides between them.
func Example() {
	r, err := semantics.Compute(semantics.Graph{
		Arguments: []semantics.Argument{
			{ID: "replace-pump", Weight: 0.9, Rho: 1},
			{ID: "patch-seal", Weight: 0.7, Rho: 1.2},
			{ID: "seal-tests", Weight: 0.6, Rho: 1},
		},
		Attacks:  []semantics.Edge{{From: "seal-tests", To: "replace-pump"}},
		Supports: []semantics.Edge{{From: "seal-tests", To: "patch-seal"}},
	}, semantics.Options{})
	if err != nil {
		panic(err)
	}
	d, err := r.Decide([]semantics.Position{{ID: "replace-pump"}, {ID: "patch-seal"}}, semantics.DefaultTau)
	if err != nil {
		panic(err)
	}
	for _, p := range d.Ranking {
		fmt.Println(p.ID, p.Nano)
	}
	fmt.Println(d.Path, d.Winner, d.Gap)
	turn, err := r.SmallestTurn([]semantics.Position{{ID: "replace-pump"}, {ID: "patch-seal"}}, semantics.DefaultTau)
	if err != nil {
		panic(err)
	}
	fmt.Println(turn.Change.Argument, turn.Change.FromNano, "to", turn.Change.ToNano, "gives", turn.Change.After.Path)
	// Output:
	// patch-seal 1200000000
	// replace-pump 420000000
	// fast patch-seal 780000000
	// seal-tests 600000000 to 150000000 gives conflict
}
