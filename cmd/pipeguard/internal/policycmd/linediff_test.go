package policycmd

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// patched applies a diff of one hunk as patch(1) would, and refuses one that does not fit.
func patched(before, diff string) (string, error) {
	lines := strings.SplitAfter(diff, "\n")
	if len(lines) < 3 {
		return "", fmt.Errorf("only %d lines", len(lines))
	}
	var fromLine, fromCount, toLine, toCount int
	if _, err := fmt.Sscanf(lines[2], "@@ -%d,%d +%d,%d @@", &fromLine, &fromCount, &toLine, &toCount); err != nil {
		return "", err
	}
	source := dropEmptyLast(strings.SplitAfter(before, "\n"))
	start := fromLine - 1
	if fromCount == 0 {
		start = fromLine
	}
	from, to := "", ""
	for i, line := range lines[3:] {
		if line == "" {
			continue
		}
		text := line[1:]
		if i+4 < len(lines) && strings.HasPrefix(lines[i+4], `\`) {
			text = strings.TrimSuffix(text, "\n")
		}
		switch line[0] {
		case ' ':
			from, to = from+text, to+text
		case '-':
			from += text
		case '+':
			to += text
		}
	}
	if got := strings.Join(source[start:start+fromCount], ""); got != from {
		return "", fmt.Errorf("the hunk is about %q, the file has %q there", from, got)
	}
	if got := len(dropEmptyLast(strings.SplitAfter(to, "\n"))); got != toCount {
		return "", fmt.Errorf("the hunk makes %d lines, and says %d", got, toCount)
	}
	return strings.Join(source[:start], "") + to + strings.Join(source[start+fromCount:], ""), nil
}

func TestLineDiffIsAPatch(t *testing.T) {
	long := strings.Repeat("same\n", 10)
	for name, c := range map[string]struct{ before, after string }{
		"a line changed in the middle": {long + "a\n" + long, long + "b\n" + long},
		"lines added at the start":     {long, "a\nb\n" + long},
		"lines removed at the end":     {long + "a\nb\n", long},
		"a missing newline at the end": {long + "a", long + "a\n"},
		"a newline that goes away":     {"a\n", "b"},
		"everything removed":           {"a\nb\n", ""},
		"everything added":             {"", "a\nb\n"},
		"tabs":                         {"\ta\n", "\t\ta\n"},
	} {
		t.Run(name, func(t *testing.T) {
			diff := lineDiff("f", c.before, c.after)
			got, err := patched(c.before, diff)
			if err != nil {
				t.Fatalf("%v\n%s", err, diff)
			}
			if diff := cmp.Diff(c.after, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if lineDiff("f", long, long) != "" {
		t.Error("equal texts differ")
	}
}
