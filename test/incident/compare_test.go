package main

import (
	"regexp"
	"strings"
	"testing"
)

// What each run has of its own is compared by its kind: names stand for names, and figures that were measured for others.
var (
	named = regexp.MustCompile(`\b[A-Z2-7]{26}\b` + `|\b[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}\b` +
		`|[A-Za-z0-9+/]{43}=` + // no \b here: a root may begin with + or /, which are not word characters
		`|\bsha256:[0-9a-f]{12,64}\b`)
	measured = regexp.MustCompile(`\b\d+(\.\d+)?(ns|µs|ms|s)\b|latency_us +\d+|of \d+ bytes|\d+ fit\b|own up to record \d+|Records after \d+`)
	blanks   = regexp.MustCompile(` +`)
)

// reading is one pass through the guide: which names of this run stand for those of the guide.
type reading struct{ names map[string]string }

// isSame compares a line of the guide with one that was printed. A line of the guide that ends in … says how the other begins.
func (r reading) isSame(guide, printed string) bool {
	guide, printed = blanks.ReplaceAllString(strings.TrimRight(guide, " "), " "), blanks.ReplaceAllString(strings.TrimRight(printed, " "), " ")
	ours, theirs := named.FindAllString(guide, -1), named.FindAllString(printed, -1)
	mask := func(s string) string {
		return measured.ReplaceAllString(named.ReplaceAllString(s, "<name>"), "<figure>")
	}
	begin, isCut := strings.CutSuffix(mask(guide), "…")
	switch {
	case isCut && !strings.HasPrefix(mask(printed), begin), !isCut && mask(guide) != mask(printed), len(theirs) < len(ours):
		return false
	}
	for i, name := range ours {
		if known, ok := r.names[name]; ok && known != theirs[i] {
			return false
		}
	}
	for i, name := range ours {
		r.names[name] = theirs[i]
	}
	return true
}

// compare returns the first line of the guide that was not printed. A line … alone stands for any lines.
func (r reading) compare(guide, printed []string) (missing string, isSame bool) {
	skips := false
	for _, line := range guide {
		if strings.TrimSpace(line) == "…" {
			skips = true
			continue
		}
		for skips && len(printed) > 0 && !r.isSame(line, printed[0]) {
			printed = printed[1:]
		}
		if len(printed) == 0 || !r.isSame(line, printed[0]) {
			return line, false
		}
		printed, skips = printed[1:], false
	}
	if len(printed) > 0 && !skips {
		return "the end, and not " + printed[0], false
	}
	return "", true
}

func TestTheComparisonSeesDifferences(t *testing.T) {
	const id, other, third = "4WJUTY2ECPVJVAV33TNZP4FT72", "NDCAA5PYNG4BEQI5E4EOAGDJER", "QNY5FCKNNLWQ7JBFPZU2X62UBU"
	const root, rooted = "1zLhqwMnSZ3dAcM8Nn1Gc1vGp8V6d2Xb0FQYJk5rT9A", "LhqwMnSZ3dAcM8Nn1Gc1vGp8V6d2Xb0FQYJk5rT9A1"
	for name, c := range map[string]struct {
		guide, printed string
		want           bool
	}{
		"a root that begins with a plus":       {"root " + root + "=", "root +" + rooted + "=", true},
		"a root that begins with a slash":      {"record 59, root " + root + "=", "record 59, root /" + rooted + "=", true},
		"a root in quotes":                     {`"` + root + `="`, `"+` + rooted + `="`, true},
		"a root that is too long":              {"root " + root + "=", "root +" + root + "=", false},
		"a root that is too short":             {"root " + root + "=", "root " + rooted + "=", false},
		"the same":                             {"a\nb", "a\nb", true},
		"wider columns":                        {"a  b", "a    b", true},
		"another id":                           {"id " + id, "id " + other, true},
		"two ids where there was one":          {id + "\n" + id, other + "\n" + third, false},
		"other figures":                        {"3 fit, in 2.5ms", "12 fit, in 900µs", true},
		"lines left out":                       {"a\n…\nd", "a\nb\nc\nd", true},
		"an end left out":                      {"a\n…", "a\nb", true},
		"the end of a line left out":           {"deny: no rule…", "deny: no rule names this pipe", true},
		"another word":                         {"deny", "allow", false},
		"another number":                       {"record 59", "record 60", false},
		"a line too many":                      {"a", "a\nb", false},
		"a line too few":                       {"a\nb", "a", false},
		"nothing left of what should be there": {"a\n…\nd", "a\nb\nc", false},
		"another beginning":                    {"deny: no rule…", "deny: a rule", false},
	} {
		t.Run(name, func(t *testing.T) {
			r := reading{map[string]string{}}
			if _, got := r.compare(strings.Split(c.guide, "\n"), strings.Split(c.printed, "\n")); got != c.want {
				t.Errorf("%t", got)
			}
		})
	}
}
