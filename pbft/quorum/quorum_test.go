package quorum

import "testing"

// smallestSafe searches the least q for which two quorums share f+1 voters.
func smallestSafe(n, f int) int {
	for q := 1; ; q++ {
		if 2*q-n >= f+1 {
			return q
		}
	}
}

func TestEveryQuorumIsSafeLiveAndMinimal(t *testing.T) {
	for n := 1; n <= 100; n++ {
		f, q := F(n), Q(n)
		if n >= 4 && (3*f+1 > n || 3*(f+1)+1 <= n) {
			t.Errorf("n=%d: f=%d is not the largest with 3f+1 ≤ n", n, f)
		}
		if n < 4 && f != 0 {
			t.Errorf("n=%d: f=%d, but fewer than four voters tolerate no liar", n, f)
		}
		if 2*q-n < f+1 {
			t.Errorf("n=%d: two quorums of %d may share only %d ≤ f=%d", n, q, 2*q-n, f)
		}
		if q > n-f {
			t.Errorf("n=%d: the %d honest voters are no quorum of %d", n, n-f, q)
		}
		if want := smallestSafe(n, f); q != want {
			t.Errorf("n=%d: q=%d, the least safe size is %d", n, q, want)
		}
	}
}

func TestKnownQuorums(t *testing.T) {
	for _, c := range []struct{ n, f, q int }{
		{1, 0, 1}, {2, 0, 2}, {3, 0, 2}, {4, 1, 3}, {5, 1, 4}, {6, 1, 4}, {7, 2, 5}, {10, 3, 7}, {100, 33, 67},
	} {
		if F(c.n) != c.f || Q(c.n) != c.q {
			t.Errorf("n=%d: f=%d q=%d, expected f=%d q=%d", c.n, F(c.n), Q(c.n), c.f, c.q)
		}
	}
}
