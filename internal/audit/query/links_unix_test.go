//go:build unix

package query

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestANamedPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, segmentName(2))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	if _, err := Open([]string{dir}, nil); err == nil {
		t.Error("a named pipe is taken for a segment")
	}
}
