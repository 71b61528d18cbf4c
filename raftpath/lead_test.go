package raftpath

import "testing"

func TestABatchIsBoundedInBytesAndNumberAndTakesAtLeastOne(t *testing.T) {
	sizes := func(batch []*pending) (out []int) {
		for _, p := range batch {
			out = append(out, len(p.action))
		}
		return out
	}
	q := &proposer{}
	for _, size := range []int{2 * MaxBatchBytes, MaxBatchBytes / 2, MaxBatchBytes / 2, 1} {
		q.queue = append(q.queue, &pending{action: make([]byte, size)})
	}
	for range MaxBatch + 1 {
		q.queue = append(q.queue, &pending{action: []byte{1}})
	}
	for i, want := range []int{1, 2, MaxBatch, 2, 0} {
		if got := sizes(q.take()); len(got) != want {
			t.Errorf("batch %d holds %d actions, expected %d", i, len(got), want)
		}
	}
}
