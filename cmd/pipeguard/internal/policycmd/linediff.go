package policycmd

import (
	"fmt"
	"strings"
)

// lineDiff is a unified diff of one hunk, from the first line that differs to the last, that patch(1) accepts.
// It is empty if the texts are equal.
func lineDiff(name, before, after string) string {
	if before == after {
		return ""
	}
	a, b := strings.SplitAfter(before, "\n"), strings.SplitAfter(after, "\n")
	a, b = dropEmptyLast(a), dropEmptyLast(b)
	head := 0
	for head < min(len(a), len(b)) && a[head] == b[head] {
		head++
	}
	tail := 0
	for tail < min(len(a), len(b))-head && a[len(a)-1-tail] == b[len(b)-1-tail] {
		tail++
	}
	const context = 3
	from, upTo := max(head-context, 0), max(tail-context, 0)
	var out strings.Builder
	fmt.Fprintf(&out, "--- %s\n+++ %s\n@@ -%s +%s @@\n", name, name+" (formatted)", span(from, len(a)-upTo), span(from, len(b)-upTo))
	lines(&out, " ", a[from:head])
	lines(&out, "-", a[head:len(a)-tail])
	lines(&out, "+", b[head:len(b)-tail])
	lines(&out, " ", a[len(a)-tail:len(a)-upTo])
	return out.String()
}

func dropEmptyLast(lines []string) []string {
	if lines[len(lines)-1] == "" {
		return lines[:len(lines)-1]
	}
	return lines
}

// span counts lines from 1; an empty span is named by the line before it.
func span(from, to int) string {
	if from == to {
		return fmt.Sprintf("%d,0", from)
	}
	return fmt.Sprintf("%d,%d", from+1, to-from)
}

func lines(out *strings.Builder, mark string, lines []string) {
	for _, line := range lines {
		out.WriteString(mark + line)
		if !strings.HasSuffix(line, "\n") {
			out.WriteString("\n\\ No newline at end of file\n")
		}
	}
}
