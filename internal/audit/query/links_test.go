package query

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// notRead wants the first segment of a directory to be a place where no record is, and a second one to be read.
func notRead(t *testing.T, dir string) {
	t.Helper()
	second := filepath.Join(dir, segmentName(2))
	if err := os.WriteFile(second, []byte(line(2)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := Open([]string{dir}, nil)
	if err != nil {
		t.Fatal(err)
	}
	var seen []string
	for r, err := range s.Records() {
		switch {
		case err == nil:
			seen = append(seen, fmt.Sprint(r.Seq))
		case errors.As(err, new(*BadLine)):
			seen = append(seen, err.Error())
		default:
			t.Fatal(err)
		}
	}
	if want := filepath.Join(dir, segmentName(1)) + ": line 1: not a regular file"; !slices.Equal(seen, []string{want, "2"}) {
		t.Errorf("%q", seen)
	}
	if err := os.Remove(second); err != nil {
		t.Fatal(err)
	}
}

func TestADirectoryOfTheNameOfASegmentHidesNothing(t *testing.T) {
	dir := t.TempDir()
	if err := os.Mkdir(filepath.Join(dir, segmentName(1)), 0o700); err != nil {
		t.Fatal(err)
	}
	notRead(t, dir)
}

// A copied directory may hold anything under the name of a segment: a link out of it, or on other systems a pipe that nobody writes.
func TestASegmentThatIsNoFileIsRefused(t *testing.T) {
	dir, other := t.TempDir(), filepath.Join(t.TempDir(), "other")
	if err := os.WriteFile(other, []byte(line(1)+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(other, filepath.Join(dir, segmentName(1))); err != nil {
		t.Skip("no link can be made here:", err)
	}
	if info, err := os.Lstat(filepath.Join(dir, segmentName(1))); err != nil || info.Mode()&os.ModeSymlink == 0 {
		t.Skip("what is made here is no link")
	}
	notRead(t, dir)
	for _, err := range Follow(t.Context(), dir, 1) {
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Follow: %v", err)
		}
		break
	}
}
