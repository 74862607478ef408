package segment_test

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"golang.org/x/sys/unix"
)

// A file that cannot be removed keeps no log from its start.
func TestWhatIsLeftAndCannotBeRemovedIsNamed(t *testing.T) {
	n := newNode(t)
	const name = ".checkpoints-1"
	n.put(t, name, "x")
	f, err := os.Open(filepath.Join(n.dir, name))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	const immutable = unix.STATX_ATTR_IMMUTABLE // FS_IMMUTABLE_FL has the same value
	if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, immutable); err != nil {
		t.Skipf("SKIPPED: no files that cannot be removed here: %v", err)
	}
	defer func() {
		if err := unix.IoctlSetPointerInt(int(f.Fd()), unix.FS_IOC_SETFLAGS, 0); err != nil {
			t.Error(err)
		}
	}()
	if err := n.start(t); err != nil {
		t.Fatal(err)
	}
	if !slices.ContainsFunc(n.faults, func(f string) bool { return strings.Contains(f, name) }) {
		t.Errorf("nobody is told of it: %q", n.faults)
	}
}
