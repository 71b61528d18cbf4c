package raftpath

import (
	"fmt"
	"sync"
	"time"

	"github.com/hashicorp/raft"
)

// watchdog bounds disk work in time. raft's main thread waits for its log
// store and cannot step down meanwhile, while other goroutines go on sending
// heartbeats: a leader with a hung disk would lead for ever. When work takes
// longer than limit, late is called; when it returns after all, over.
type watchdog struct {
	limit time.Duration
	late  func(what string, after time.Duration)
	over  func()

	mu    sync.Mutex
	stuck int
}

// begin starts the clock for one piece of work; the result ends it.
func (w *watchdog) begin(what string) (end func()) {
	ended, fired := false, false
	t := time.AfterFunc(w.limit, func() {
		w.mu.Lock()
		defer w.mu.Unlock()
		if ended {
			return
		}
		fired = true
		w.stuck++
		w.late(what, w.limit)
	})
	return func() {
		if t.Stop() {
			return
		}
		w.mu.Lock()
		defer w.mu.Unlock()
		ended = true
		if !fired {
			return
		}
		if w.stuck--; w.stuck == 0 {
			w.over()
		}
	}
}

// logs is what raft keeps on disk.
type logs interface {
	raft.LogStore
	raft.StableStore
}

// watchedLogs bounds every write of a log store in time.
type watchedLogs struct {
	logs
	w *watchdog
}

func (s watchedLogs) StoreLog(l *raft.Log) error { return s.StoreLogs([]*raft.Log{l}) }

func (s watchedLogs) StoreLogs(l []*raft.Log) error {
	defer s.w.begin("write to the raft log")()
	return s.logs.StoreLogs(l)
}

func (s watchedLogs) DeleteRange(from, to uint64) error {
	defer s.w.begin("cut of the raft log")()
	return s.logs.DeleteRange(from, to)
}

func (s watchedLogs) Set(k, v []byte) error {
	defer s.w.begin("write of a vote")()
	return s.logs.Set(k, v)
}

func (s watchedLogs) SetUint64(k []byte, v uint64) error {
	defer s.w.begin("write of a term")()
	return s.logs.SetUint64(k, v)
}

// stall is the error of disk work that takes too long.
func stall(what string, after time.Duration) error {
	return fmt.Errorf("the disk hangs: a %s has taken %v; this node is silent until it returns", what, after)
}
