package main

import "testing"

func generated() string {
	b := newBits()
	b.detmath()
	b.semantics()
	b.network()
	b.weights()
	b.reputation()
	return b.sum()
}

// A change of these bits makes nodes of different versions disagree and old
// logs replay to other heads: it needs a new fsm_version.
func TestTheBitsOfEveryResultAreThoseOfEveryBuild(t *testing.T) {
	const want = "237b3b4b0067bac02c5ce9829063e0e76e86dfdc72086322e9c0a63fd563c8db"
	if got := generated(); got != want {
		t.Fatalf("the results hash to %s, not to %s", got, want)
	}
}

func TestOneBitOfAResultChangesTheHash(t *testing.T) {
	a, b := newBits(), newBits()
	a.floats(0.1, 0.3)
	b.floats(0.1, 0.30000000000000004)
	if a.sum() == b.sum() {
		t.Fatal("the last bit of a double is not hashed")
	}
}

func TestAFileWithoutGraphsIsAnError(t *testing.T) {
	for _, text := range []string{"", "{}", `{"graphs":[]}`, `{"graphs":[{"gamma_plus":"x"}]}`} {
		if newBits().vectors([]byte(text)) == nil {
			t.Errorf("%q is accepted", text)
		}
	}
}
