package query

import (
	"strings"
	"time"
)

// ParseTime understands, in UTC:
//
//	now, today, yesterday               this moment, or the beginning of a day
//	90s, 15m, 2h, 3d, 1w, 1h30m         so long ago
//	2026-03-01, 2026-03-01T12:30        the beginning of a day or minute
//	2026-03-01T12:30:00Z, …+02:00       RFC 3339, with a fraction if there is one
//
// An error is a *SyntaxError with the place of the fault.
func ParseTime(text string, now time.Time) (time.Time, error) {
	now = now.UTC()
	day := now.Truncate(24 * time.Hour) // UTC has no other days
	switch strings.ToLower(text) {
	case "":
		return time.Time{}, fault(text, 0, "a time is missing: write 2h, today or 2026-03-01T12:30:00Z")
	case "now":
		return now, nil
	case "today":
		return day, nil
	case "yesterday":
		return day.AddDate(0, 0, -1), nil
	}
	if len(text) >= 5 && text[4] == '-' {
		return date(text)
	}
	if text[0] < '0' || text[0] > '9' {
		return time.Time{}, fault(text, 0, "no time: write now, today, yesterday, 2h or 2026-03-01T12:30:00Z")
	}
	ago, err := span(text)
	if err != nil {
		return time.Time{}, err
	}
	then := now.Add(-ago)
	if then.Year() < 1 {
		return time.Time{}, fault(text, 0, "longer ago than years are counted")
	}
	return then, nil
}

// date reads the forms that begin with a year.
func date(text string) (time.Time, error) {
	upper := strings.ToUpper(text)
	for _, layout := range []string{time.DateOnly, "2006-01-02T15:04", "2006-01-02T15:04:05", time.RFC3339Nano} {
		if t, err := time.Parse(layout, upper); err == nil {
			return t.UTC(), nil
		}
	}
	// The longest beginning of a full time that is well formed ends where the fault is.
	const sample = "2000-01-01T00:00:00Z"
	at := 0
	for at < len(text) && at < len(sample) {
		if _, err := time.Parse(time.RFC3339, upper[:at+1]+sample[at+1:]); err != nil {
			break
		}
		at++
	}
	return time.Time{}, fault(text, at, "no time: write 2026-03-01, 2026-03-01T12:30 or 2026-03-01T12:30:00Z")
}

var units = map[byte]time.Duration{'s': time.Second, 'm': time.Minute, 'h': time.Hour, 'd': 24 * time.Hour, 'w': 7 * 24 * time.Hour}

// maxSpan bounds how far back a span reaches, so that sums stay within a time.Duration.
const maxSpan = 100 * 365 * 24 * time.Hour

// span reads 1h30m; each unit is smaller than the one before, so that 1m2h is no riddle.
func span(text string) (total time.Duration, err error) {
	last := time.Duration(1<<63 - 1)
	for i := 0; i < len(text); i++ {
		begin, n := i, time.Duration(0)
		for ; i < len(text) && text[i] >= '0' && text[i] <= '9'; i++ {
			if n = n*10 + time.Duration(text[i]-'0'); n > maxSpan/time.Second {
				return 0, fault(text, begin, "too long a time")
			}
		}
		if i == begin {
			return 0, fault(text, i, "a number is missing")
		}
		if i == len(text) {
			return 0, fault(text, i, "a unit is missing: s, m, h, d or w")
		}
		unit, ok := units[text[i]]
		switch {
		case !ok:
			return 0, fault(text, i, "no unit of time: write s, m, h, d or w")
		case unit >= last:
			return 0, fault(text, i, "units go from long to short, each once")
		case n > maxSpan/unit || total > maxSpan-n*unit:
			return 0, fault(text, begin, "too long a time")
		}
		total, last = total+n*unit, unit
	}
	return total, nil
}
