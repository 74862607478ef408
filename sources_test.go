package pipeguard_test

import (
	"bytes"
	"errors"
	"io"
	"os"
	"os/exec"
	"strings"
	"testing"
)

// TestNoProgramIsKept holds the repository to sources: a program that was built into it is neither read by reviewers nor reproducible.
func TestNoProgramIsKept(t *testing.T) {
	if _, err := os.Stat(".git"); err != nil {
		t.Skip("not a clone")
	}
	out, err := exec.CommandContext(t.Context(), "git", "-c", "safe.directory=*", "ls-files", "-z").Output()
	if err != nil {
		t.Fatal(err)
	}
	names := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	if len(names) < 1000 {
		t.Fatalf("%d files", len(names))
	}
	for _, name := range names {
		f, err := os.Open(name)
		if errors.Is(err, os.ErrNotExist) {
			continue // deleted and not yet committed
		}
		if err != nil {
			t.Fatal(err)
		}
		start := make([]byte, 4)
		_, err = io.ReadFull(f, start)
		f.Close()
		if err != nil && !errors.Is(err, io.EOF) && !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatal(err)
		}
		if bytes.HasPrefix(start, []byte("\x7fELF")) || bytes.HasPrefix(start, []byte("MZ")) {
			t.Errorf("%s is a program", name)
		}
	}
}
