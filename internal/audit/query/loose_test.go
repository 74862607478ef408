package query

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/pipeguard/pipeguard/internal/audit/evidence"
)

// linked are records 1 to n, each with the hash of the one before.
func linked(n int) []string {
	lines := []string{line(1)}
	for i := 2; i <= n; i++ {
		before := evidence.Leaf([]byte(lines[len(lines)-1])).String()
		lines = append(lines, strings.Replace(line(i), noPrev, before, 1))
	}
	return lines
}

// relinked are lines in which each has the hash of the one before again.
func relinked(lines []string) []string {
	for i := range lines[1:] {
		at := strings.LastIndex(lines[i+1], `"prev":"`) + len(`"prev":"`)
		lines[i+1] = lines[i+1][:at] + evidence.Leaf([]byte(lines[i])).String() + `"}`
	}
	return lines
}

// Lines that are records to a later version are not junk, however many there are.
func TestRecordsThatThisVersionDoesNotReadAreReadOver(t *testing.T) {
	all := linked(300)
	for i := 1; i < 299; i++ {
		all[i] = strings.Replace(all[i], `"id"`, `"later":"`+strings.Repeat("x", 5000)+`","id"`, 1)
	}
	in := newLines("x", strings.NewReader(strings.Join(relinked(all), "\n")+"\n"))
	in.isSegment = true
	var last Record
	bad := 0
	for r, err := range in.all(nil) {
		if err != nil {
			bad++
		} else {
			last = r
		}
	}
	if bad != 298 || last.Seq != 300 {
		t.Errorf("%d lines were no records, and the last record was %d", bad, last.Seq)
	}
}

// A line that is no record must not make a record that was put behind it look like one that follows.
func TestARecordBehindALineThatIsNoneIsHeldAgainstTheRecordBefore(t *testing.T) {
	const junk = "junk"
	forged := func(seq int) string { return strings.Replace(line(seq), `"id":"r`, `"id":"forged`, 1) }
	bare := func(seq int) string {
		return strings.Replace(forged(seq), `,"prev":"`+noPrev+`"`, "", 1)
	}
	for name, c := range map[string]struct {
		change func(lines []string) []string
		loose  []uint64
	}{
		"nothing":                         {func(l []string) []string { return l }, nil},
		"a line is added":                 {func(l []string) []string { return slices.Insert(l, 5, junk) }, nil},
		"a record is made a line":         {func(l []string) []string { l[4] = junk; return l }, []uint64{6}},
		"a record in its place behind it": {func(l []string) []string { return slices.Replace(l, 4, 5, junk, forged(5), junk) }, []uint64{5, 6}},
		"of a number that jumps":          {func(l []string) []string { return append(l, junk, forged(99)) }, []uint64{99}},
		"of a number from before":         {func(l []string) []string { return append(l, junk, forged(3)) }, []uint64{3}},
		"of the next number":              {func(l []string) []string { return append(l, junk, forged(9)) }, []uint64{9}},
		"a record that this version does not read": {func(l []string) []string {
			l[4] = strings.Replace(l[4], `"id"`, `"later":1,"id"`, 1)
			return relinked(l)
		}, nil},
		"such a record that is changed": {func(l []string) []string {
			l[4] = strings.Replace(l[4], `"id"`, `"later":1,"id"`, 1)
			return l
		}, []uint64{6}},
		"without a hash":   {func(l []string) []string { return append(l, junk, bare(9)) }, []uint64{9}},
		"behind two lines": {func(l []string) []string { return append(l, junk, junk, forged(9), junk, forged(10)) }, []uint64{9, 10}},
	} {
		t.Run(name, func(t *testing.T) {
			text := strings.Join(c.change(linked(8)), "\n") + "\n"
			s, err := Open([]string{"-"}, strings.NewReader(text))
			if err != nil {
				t.Fatal(err)
			}
			var loose []uint64
			for r, err := range s.Records() {
				if err != nil && !errors.As(err, new(*BadLine)) {
					t.Fatal(err)
				}
				if err == nil && r.Loose != "" {
					loose = append(loose, r.Seq)
				}
			}
			if fmt.Sprint(loose) != fmt.Sprint(c.loose) {
				t.Errorf("records %v do not follow, want %v", loose, c.loose)
			}
		})
	}
}
