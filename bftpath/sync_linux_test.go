package bftpath

import (
	"errors"
	"os"
	"syscall"
	"testing"
	"time"
)

// On the null device every write goes well and every sync fails.
func TestAFailedSyncEndsSigningAndNothingIsSent(t *testing.T) {
	c := newCluster(t, 4)
	var rec recorder
	ticks := make(chan time.Time)
	c.config = func(_ int, cfg *Config) {
		cfg.Timeout, cfg.Resend = 3, 2
		cfg.Send = func(_ string, m []byte) { rec.add(m) }
		cfg.Ticker = func(time.Duration) (<-chan time.Time, func()) { return ticks, func() {} }
	}
	d := c.start(0, true)
	null, err := os.OpenFile(os.DevNull, os.O_RDWR, 0)
	if err != nil {
		t.Fatal(err)
	}
	j := d.flusher.journal // nothing is written yet
	if err := j.file.Close(); err != nil {
		t.Fatal(err)
	}
	j.file = null
	c.open("round", 0)
	await(t, "the vote is written", func() bool { return d.Err() != nil || d.Stats().Flushes > 0 })
	if err := d.Err(); !errors.Is(err, syscall.EINVAL) {
		t.Errorf("the failed sync is reported as %v", err)
	}
	for range 10 { // timers end, and frames are repeated
		ticks <- time.Time{}
	}
	c.stop(0)
	if n := len(rec.frames(t)); n > 0 {
		t.Errorf("%d frames were sent that are not on the disk", n)
	}
}
