package raftpath

import (
	"context"
	"fmt"
	"io"
	"log/slog"

	"github.com/hashicorp/go-hclog"
)

// hclog is raft's logger, one level quieter than raft means it: a partition
// is an error to raft and everyday life to a cluster.
func (p *Path) hclog() hclog.Logger {
	l := hclog.NewInterceptLogger(&hclog.LoggerOptions{Output: io.Discard, Level: hclog.Debug})
	l.RegisterSink(sink{p.log})
	return l
}

type sink struct{ to *slog.Logger }

// Accept implements hclog.SinkAdapter.
func (s sink) Accept(_ string, level hclog.Level, msg string, args ...any) {
	to := slog.LevelDebug
	switch level {
	case hclog.Error:
		to = slog.LevelWarn
	case hclog.Warn:
		to = slog.LevelInfo
	}
	if !s.to.Enabled(context.Background(), to) {
		return
	}
	for i, a := range args {
		if f, ok := a.(hclog.Format); ok && len(f) > 0 {
			args[i] = fmt.Sprintf(fmt.Sprint(f[0]), f[1:]...)
		}
	}
	s.to.Log(context.Background(), to, "raft: "+msg, args...)
}
