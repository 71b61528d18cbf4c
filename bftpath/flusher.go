package bftpath

// flusher writes the journal on a goroutine of its own, one write at a time:
// while the disk works the loop goes on verifying and counting.
type flusher struct {
	journal *journal
	work    chan flight
	done    chan error // one result per flight
	idle    chan struct{}
}

// flight is one write: items to append or, when rewrite is set, the whole
// content of a fresh file.
type flight struct {
	items   []item
	rewrite bool
}

func (f *flusher) start(j *journal) {
	f.journal = j
	f.work, f.done, f.idle = make(chan flight, 1), make(chan error, 1), make(chan struct{})
	go func() {
		defer close(f.idle)
		for w := range f.work {
			if w.rewrite {
				f.done <- j.rewrite(w.items)
			} else {
				f.done <- j.append(w.items)
			}
		}
	}()
}

// close waits for the last write and closes the file.
func (f *flusher) close(first bool) error {
	if first {
		close(f.work)
	}
	<-f.idle
	if !first {
		return nil
	}
	return f.journal.close()
}
