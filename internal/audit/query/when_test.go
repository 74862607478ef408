package query

import (
	"errors"
	"testing"
	"time"
)

var noon = time.Date(2026, 3, 1, 12, 30, 15, 0, time.FixedZone("", 3600)) // 11:30:15 UTC, a Sunday

func TestTimesAreUnderstood(t *testing.T) {
	for text, want := range map[string]string{
		"now":                       "2026-03-01T11:30:15Z",
		"today":                     "2026-03-01T00:00:00Z",
		"Yesterday":                 "2026-02-28T00:00:00Z",
		"2h":                        "2026-03-01T09:30:15Z",
		"90m":                       "2026-03-01T10:00:15Z",
		"1h30m15s":                  "2026-03-01T10:00:00Z",
		"3d":                        "2026-02-26T11:30:15Z",
		"1w1d":                      "2026-02-21T11:30:15Z",
		"0s":                        "2026-03-01T11:30:15Z",
		"2026-01-31":                "2026-01-31T00:00:00Z",
		"2026-01-31T08:09":          "2026-01-31T08:09:00Z",
		"2026-01-31T08:09:10":       "2026-01-31T08:09:10Z",
		"2026-01-31T08:09:10Z":      "2026-01-31T08:09:10Z",
		"2026-01-31t08:09:10z":      "2026-01-31T08:09:10Z",
		"2026-01-31T08:09:10+02:00": "2026-01-31T06:09:10Z",
		"2024-02-29":                "2024-02-29T00:00:00Z",
	} {
		got, err := ParseTime(text, noon)
		if err != nil || got.Format(time.RFC3339) != want || got.Location() != time.UTC {
			t.Errorf("ParseTime(%q) = %s, %v; want %s", text, got, err, want)
		}
	}
}

func TestTimesThatAreNoneAreRefusedWithTheirPlace(t *testing.T) {
	for text, column := range map[string]int{
		"":                      1,
		"soon":                  1,
		"tomorrow":              1,
		"-2h":                   1,
		" 2h":                   1,
		"2":                     2,
		"2x":                    2,
		"2H":                    2,
		"1h30":                  5,
		"1m2h":                  4,
		"1h2h":                  4,
		"1hm":                   3,
		"99999999999999999999s": 1,
		"5300w":                 1,
		"5200w999999h":          6,
		"2026-13-01":            7,
		"2026-02-30":            9,
		"2026-01-31 08:09":      11,
		"2026-01-31T25:00":      13,
		"2026-01-31T08:61":      15,
		"2026-01-31T08:09:10X":  20,
		"２h":                    1,
	} {
		_, err := ParseTime(text, noon)
		var s *SyntaxError
		if !errors.As(err, &s) || s.Column != column {
			t.Errorf("ParseTime(%q): %v, want a fault in column %d", text, err, column)
		}
	}
}

func FuzzParseTime(f *testing.F) {
	for _, s := range []string{"now", "2h30m", "1w", "2026-03-01T12:30:00Z", "2026-02-30", "99999999999w", "9999999999999999999"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		got, err := ParseTime(text, noon)
		var s *SyntaxError
		switch {
		case err == nil && (got.Location() != time.UTC || got.Year() < 0 || got.Year() > 9999):
			t.Errorf("ParseTime(%q) = %s", text, got)
		case err != nil && (!errors.As(err, &s) || s.Column < 1 || s.Column > len([]rune(text))+1):
			t.Errorf("ParseTime(%q): %v", text, err)
		}
	})
}
