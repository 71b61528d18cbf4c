// The benchmarks of this package set a whole cluster beside what its libraries
// do as they come (bareRaft) and beside a bare exchange of signed votes
// (exchange): all nodes in one process, on one disk, single operations
// alternated in the order floor, subject, subject, floor. An iteration is one
// restart of everything, and the order of creation is swapped with each; take
// an odd number of them:
//
//	go test ./node/embedded -run '^$' -bench . -benchtime 5x
//
// takes three to four minutes on two cores and prints medians over the
// restarts, and of ratios the lowest and the highest. Times are those of one
// machine at one time; ratios hold. With TMPDIR on a file system in memory the
// disk costs nothing and what remains is the work of all four nodes on the
// cores of one machine.

package embedded_test

import (
	"testing"
	"time"
)

// rigs are the subject and the floor of one restart.
type rigs struct {
	*subject
	floor *bareRaft
}

// restart starts both in this process; floorFirst swaps who comes first.
func restart(b *testing.B, floorFirst bool) rigs {
	var r rigs
	if floorFirst {
		r.floor = newBareRaft(b, 4)
		r.subject = newSubject(b)
	} else {
		r.subject = newSubject(b)
		r.floor = newBareRaft(b, 4)
	}
	r.floor.elect()
	return r
}

// restarts runs a measurement once an iteration, on fresh clusters; a restart
// in which leadership moved counts for nothing.
func restarts(b *testing.B, measure func(rigs, ratios)) {
	all, floorFirst := ratios{}, false
	for b.Loop() {
		for {
			r, one := restart(b, floorFirst), ratios{}
			measure(r, one)
			steady := r.leads()
			r.floor.stop()
			r.subject.stop()
			if b.Failed() {
				b.FailNow()
			}
			if steady {
				for unit, v := range one {
					all[unit] = append(all[unit], v...)
				}
				break
			}
		}
		floorFirst = !floorFirst
	}
	all.report(b)
}

// alternate runs n quads of single operations.
func alternate(n int, floor, subject func()) {
	for range n {
		for _, isFloor := range quad {
			if isFloor {
				floor()
			} else {
				subject()
			}
		}
	}
}

const warmup = 64 // operations before anything is counted

// BenchmarkRespondSerial is one client that submits ACP responses at the
// leader, in process, one after the other, beside bare Apply.
func BenchmarkRespondSerial(b *testing.B) {
	const quads = 300
	restarts(b, func(r rigs, out ratios) {
		r.register(256)
		var actions [][]byte
		for _, id := range r.proposals((warmup+2*quads)/256 + 1) {
			actions = append(actions, r.responses(id)...)
		}
		entry := sameSize(actions[0])
		respond := func() {
			r.submit(actions[0])
			actions = actions[1:]
		}
		for range warmup {
			r.floor.apply(entry)
			respond()
		}
		var floors, subjects series
		alternate(quads, func() { floors.time(func() { r.floor.apply(entry) }) }, func() { subjects.time(respond) })
		out.micros("bare-µs", floors)
		out.micros("respond-µs", subjects)
		out.against("respond/bare", subjects, floors)
	})
}

// BenchmarkRespond256 is 256 clients that submit ACP responses at the leader,
// in process, beside as many that call bare Apply: rates, and the CPU time of
// all four nodes for one operation.
func BenchmarkRespond256(b *testing.B) {
	const clients, each, quads = 256, 8, 2
	restarts(b, func(r rigs, out ratios) {
		r.register(clients)
		var batches [][][]byte // per proposal, one response an agent
		for _, id := range r.proposals(1 + 2*quads*each) {
			batches = append(batches, r.responses(id))
		}
		entry := sameSize(batches[0][0])
		bare := func(each int) load {
			return loaded(clients*each, func() {
				together(clients, func(int) {
					for range each {
						r.floor.apply(entry)
					}
				})
			})
		}
		respond := func(each int) load {
			mine := batches[:each]
			batches = batches[each:]
			return loaded(clients*each, func() {
				together(clients, func(w int) {
					for _, responses := range mine {
						r.submit(responses[w])
					}
				})
			})
		}
		bare(1)
		respond(1)
		var floors, subjects loads
		alternate(quads, func() { floors = append(floors, bare(each)) }, func() { subjects = append(subjects, respond(each)) })
		out.add("bare-ops/s", middle(floors.rates()))
		out.add("respond-ops/s", middle(subjects.rates()))
		out.add("respond/bare", middle(subjects.rates())/middle(floors.rates()))
		out.add("bare-cpu-µs", middle(floors.cpus()))
		out.add("respond-cpu-µs", middle(subjects.cpus()))
	})
}

// BenchmarkFastVerdict is the moderator's resolve of a round whose standing
// confirmations make the verdict in that very apply: until the leader answers,
// and until the subscribers of all four nodes have the verdict.
func BenchmarkFastVerdict(b *testing.B) {
	const quads = 60
	restarts(b, func(r rigs, out ratios) {
		r.register(100)
		rounds := r.clearRounds(warmup/4 + 2*quads)
		entry := sameSize(rounds[0].action)
		verdicts := r.watch()
		var floors, leader, all series
		decide := func() {
			start := time.Now()
			answer := r.submit(rounds[0].action)
			leader = append(leader, time.Since(start))
			if !decided(answer) {
				b.Fatalf("the resolve made no verdict: %s", answer.Result)
			}
			all = append(all, r.everywhere(verdicts, rounds[0].id).Sub(start))
			rounds = rounds[1:]
		}
		for range warmup / 4 {
			r.floor.apply(entry)
			decide()
		}
		leader, all = nil, nil
		alternate(quads, func() { floors.time(func() { r.floor.apply(entry) }) }, decide)
		out.micros("bare-µs", floors)
		out.micros("leader-µs", leader)
		out.micros("all-µs", all)
		out.against("leader/bare", leader, floors)
		out.against("all/bare", all, floors)
	})
}

// BenchmarkConflictVerdict is a contested round from the action that freezes
// it until the subscribers of all four nodes have the certified verdict,
// beside bare Apply and beside the signed exchange of four nodes.
func BenchmarkConflictVerdict(b *testing.B) {
	const quads = 60
	restarts(b, func(r rigs, out ratios) {
		r.register(100)
		rounds := r.closeRounds(warmup/4 + 2*quads)
		entry := sameSize(rounds[0].action)
		ring := newExchange(b, r.floor.hosts)
		defer ring.stop()
		verdicts := r.watch()
		var floors, exchanges, leader, all series
		decide := func() {
			start := time.Now()
			r.submit(rounds[0].action)
			leader = append(leader, time.Since(start))
			all = append(all, r.everywhere(verdicts, rounds[0].id).Sub(start))
			rounds = rounds[1:]
		}
		bare := func() {
			floors.time(func() { r.floor.apply(entry) })
			exchanges.time(ring.decide)
		}
		for range warmup / 4 {
			bare()
			decide()
		}
		floors, exchanges, leader, all = nil, nil, nil, nil
		alternate(quads, bare, decide)
		out.micros("bare-µs", floors)
		out.micros("exchange-µs", exchanges)
		out.micros("freeze-µs", leader)
		out.micros("all-µs", all)
		out.against("all/bare", all, floors)
		out.against("all/exchange", all, exchanges)
		// The path is two entries with an exchange between them.
		out.add("all/(2bare+exchange)", float64(all.median())/float64(2*floors.median()+exchanges.median()))
	})
}
