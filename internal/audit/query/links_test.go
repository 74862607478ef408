package query

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

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
	if _, err := Open([]string{dir}, nil); err == nil || !strings.Contains(err.Error(), "not a regular file") {
		t.Errorf("Open: %v", err)
	}
	for _, err := range Follow(t.Context(), dir, 1) {
		if err == nil || !strings.Contains(err.Error(), "not a regular file") {
			t.Errorf("Follow: %v", err)
		}
		break
	}
}
