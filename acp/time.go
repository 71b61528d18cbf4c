package acp

import (
	"encoding/json"
	"regexp"
	"strings"
	"time"

	"github.com/deliberd/deliberd/machine"
)

// Time is a wire timestamp: an instant in UTC (§12.1). The zero value is no time.
type Time struct{ time.Time }

// At is the instant of a replicated stamp.
func At(s machine.Stamp) Time { return Time{time.UnixMilli(int64(s)).UTC()} }

// Stamp is the instant in milliseconds, rounded down. A whole millisecond is
// at or before the instant exactly if it is at or before its Stamp.
func (t Time) Stamp() machine.Stamp { return machine.Stamp(t.UnixMilli()) }

// After reports whether t is later than u.
func (t Time) After(u Time) bool { return t.Time.After(u.Time) }

// Before reports whether t is earlier than u.
func (t Time) Before(u Time) bool { return t.Time.Before(u.Time) }

// rfc3339 is the shape that time.Parse alone does not insist on: it takes one
// digit for an hour and a comma for a point.
var rfc3339 = regexp.MustCompile(`^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)$`)

// ParseTime reads an RFC 3339 timestamp whose offset is Z or +00:00 (§12.1).
// A leap second is read as the second that follows it. It errs with invalid_time.
func ParseTime(text string) (Time, error) {
	refuse := func(why string) (Time, error) {
		return Time{}, machine.Refuse(CodeInvalidTime, "write UTC as in 2025-01-15T10:00:00Z", "%q %s", text, why)
	}
	upper := strings.ToUpper(text)
	if len(text) > 64 || !rfc3339.MatchString(upper) {
		return refuse("is not an RFC 3339 time")
	}
	leap := upper[10:19] == "T23:59:60"
	if leap {
		upper = upper[:17] + "59" + upper[19:]
	}
	t, err := time.Parse(time.RFC3339Nano, upper)
	if err != nil {
		return refuse("is not an RFC 3339 time")
	}
	if !strings.HasSuffix(upper, "Z") && !strings.HasSuffix(upper, "+00:00") {
		return refuse("is not in UTC")
	}
	if leap {
		t = t.Truncate(time.Second).Add(time.Second)
	}
	return Time{t.UTC()}, nil
}

// String is the RFC 3339 form with Z and only as many digits of a second as needed.
func (t Time) String() string { return t.UTC().Format(time.RFC3339Nano) }

// MarshalJSON writes [Time.String].
func (t Time) MarshalJSON() ([]byte, error) { return json.Marshal(t.String()) }

// UnmarshalJSON reads what [ParseTime] reads.
func (t *Time) UnmarshalJSON(raw []byte) error {
	var text string
	if err := json.Unmarshal(raw, &text); err != nil {
		return machine.Refuse(CodeInvalidTime, "write UTC as in 2025-01-15T10:00:00Z", "a timestamp is a string")
	}
	var err error
	*t, err = ParseTime(text)
	return err
}
