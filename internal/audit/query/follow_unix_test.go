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
