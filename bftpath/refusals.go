package bftpath

import (
	"time"

	"github.com/deliberd/deliberd/machine"
)

// refusals keeps one peer from filling the log of another: of what a peer sends
// and this node refuses for one reason, the first has a line, and then one a minute.
type refusals struct {
	now    uint64 // ticks
	minute uint64 // in ticks
	of     map[refusal]*refused
}

// refusal is one kind of line. The peer of one that no committee lists is "":
// strangers share an entry, so that there are as many as members can cause.
type refusal struct{ peer, what, code string }

type refused struct {
	line uint64 // when the last one was
	left int    // left out since
}

func (r *refusals) init(tick time.Duration) {
	r.minute = uint64(max(time.Minute/max(tick, 1), 1))
	r.of = map[refusal]*refused{}
}

// due reports whether a line is to be written, and how many were left out before it.
func (r *refusals) due(kind refusal) (left int, ok bool) {
	e := r.of[kind]
	if e == nil {
		r.of[kind] = &refused{line: r.now}
		return 0, true
	}
	if r.now-e.line < r.minute {
		e.left++
		return 0, false
	}
	left = e.left
	*e = refused{line: r.now}
	return left, true
}

// refuse tells of something that a peer sent.
func (l *loop) refuse(what, peer string, err error, more ...any) {
	kind := refusal{peer: peer, what: what}
	if r, ok := machine.IsRefusal(err); ok {
		kind.code = r.Code
	}
	l.d.mu.Lock()
	if !l.d.member(peer) {
		kind.peer = ""
	}
	l.d.mu.Unlock()
	if left, ok := l.refusals.due(kind); ok {
		l.d.log.Warn(what, append([]any{"peer", peer, "err", err, "left_out", left}, more...)...)
	}
}
