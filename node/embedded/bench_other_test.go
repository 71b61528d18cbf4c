//go:build !linux

package embedded_test

import (
	"os"
	"time"
)

// cpuTime is not known here.
func cpuTime() time.Duration { return 0 }

// datasync makes what was written durable.
func datasync(f *os.File) error { return f.Sync() }
