package embedded_test

import (
	"slices"
	"testing"
	"time"
)

// quad is one round of alternation: floor, subject, subject, floor. What
// drifts during it weighs on both alike.
var quad = []bool{true, false, false, true}

// series is what one restart measured of one thing.
type series []time.Duration

// time adds one operation.
func (s *series) time(operation func()) {
	start := time.Now()
	operation()
	*s = append(*s, time.Since(start))
}

func (s series) median() time.Duration {
	sorted := slices.Sorted(slices.Values(s))
	return sorted[len(sorted)/2]
}

// ratios are one number a restart; the benchmark reports their median and
// the lowest and highest.
type ratios map[string][]float64

func (r ratios) add(unit string, v float64) { r[unit] = append(r[unit], v) }

// against adds the ratio of two medians.
func (r ratios) against(unit string, subject, floor series) {
	r.add(unit, float64(subject.median())/float64(floor.median()))
}

func (r ratios) micros(unit string, s series) {
	r.add(unit, float64(s.median())/float64(time.Microsecond))
}

// report prints the medians over the restarts, and beside each ratio (a unit
// with a slash) its range.
func (r ratios) report(b *testing.B) {
	b.ReportMetric(0, "ns/op")
	for unit, values := range r {
		sorted := slices.Sorted(slices.Values(values))
		b.ReportMetric(sorted[len(sorted)/2], unit)
		if slices.Contains([]byte(unit), '/') && len(sorted) > 1 {
			b.ReportMetric(sorted[0], unit+"-low")
			b.ReportMetric(sorted[len(sorted)-1], unit+"-high")
		}
	}
}

// load is what a run of many operations cost.
type load struct {
	rate float64 // operations per second
	cpu  float64 // µs of the process's CPU time per operation, all nodes together
}

// loaded times n operations that run concurrently.
func loaded(n int, run func()) load {
	cpu, start := cpuTime(), time.Now()
	run()
	took, used := time.Since(start), cpuTime()-cpu
	return load{float64(n) / took.Seconds(), float64(used.Microseconds()) / float64(n)}
}

type loads []load

func (l loads) rates() (s []float64) {
	for _, x := range l {
		s = append(s, x.rate)
	}
	return s
}

func (l loads) cpus() (s []float64) {
	for _, x := range l {
		s = append(s, x.cpu)
	}
	return s
}

func middle(v []float64) float64 {
	sorted := slices.Sorted(slices.Values(v))
	return sorted[len(sorted)/2]
}
