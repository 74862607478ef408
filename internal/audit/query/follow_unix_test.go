//go:build unix

package query

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// A segment that was left and has become something else ends nothing.
func TestALeftSegmentThatIsSomethingElseNowIsNamedAndLeftAlone(t *testing.T) {
	dir := t.TempDir()
	first, second, large := filepath.Join(dir, segmentName(1)), filepath.Join(dir, segmentName(2)), filepath.Join(t.TempDir(), "large")
	write(t, large, strings.Repeat("x", 10_000))
	write(t, first, line(1))
	got := follow(t, dir,
		func() { write(t, second, line(2)) },
		func() {
			if err := errors.Join(os.Remove(first), os.Symlink(large, first)); err != nil {
				t.Fatal(err)
			}
		},
		func() { appendTo(t, second, line(3)+"\n") },
		func() { appendTo(t, second, line(4)+"\n") },
	)
	if diff := cmp.Diff("1 end 2 end bad end 3 end 4", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}

// Whoever takes the file away that is read ends the reading of that file, and of no other.
func TestASegmentThatIsTakenAwayEndsNothing(t *testing.T) {
	dir := t.TempDir()
	first := filepath.Join(dir, segmentName(1))
	write(t, first, line(1), line(2))
	got := follow(t, dir,
		func() {
			if err := os.Remove(first); err != nil {
				t.Error(err)
			}
		},
		func() { write(t, filepath.Join(dir, segmentName(3)), line(3), line(4)) },
		func() { appendTo(t, filepath.Join(dir, segmentName(3)), line(5)+"\n") },
	)
	if diff := cmp.Diff("1 2 end bad end 3 4 end 5", strings.Join(got, " ")); diff != "" {
		t.Error(diff)
	}
}
