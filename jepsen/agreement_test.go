package jepsen

import (
	"errors"
	"testing"
)

func TestAgreementFindsTheIndexWhereTwoNodesDiffer(t *testing.T) {
	a := NewAgreement(3)
	same := []Applied{{2, 1, "x"}, {3, 1, "y"}}
	if err := errors.Join(a.Show(0, same), a.Show(1, same)); err != nil {
		t.Fatal(err)
	}
	if len(a.seen) != 2 {
		t.Fatal("what node 2 has not shown was forgotten")
	}
	err := a.Show(2, []Applied{{2, 1, "x"}, {3, 2, "y"}})
	var d *Divergence
	if !errors.As(err, &d) || d.First.Index != 3 || d.A != 0 || d.B != 2 {
		t.Fatalf("got %v", err)
	}
}

func TestAgreementForgetsWhatAllHaveShownAndRefusesRepeats(t *testing.T) {
	a := NewAgreement(2)
	if err := errors.Join(a.Show(0, []Applied{{1, 1, "x"}}), a.Show(1, []Applied{{1, 1, "x"}})); err != nil {
		t.Fatal(err)
	}
	if len(a.seen) != 0 || a.Next(0) != 2 {
		t.Fatalf("%v, next %d", a.seen, a.Next(0))
	}
	if err := a.Show(0, []Applied{{1, 1, "x"}}); err == nil {
		t.Fatal("an entry applied twice went unnoticed")
	}
}
