//go:build unix

package query

import (
	"path/filepath"
	"syscall"
	"testing"
)

func TestANamedPipeIsNotWaitedFor(t *testing.T) {
	dir := t.TempDir()
	pipe := filepath.Join(dir, segmentName(1))
	if err := syscall.Mkfifo(pipe, 0o600); err != nil {
		t.Skip(err)
	}
	notRead(t, dir)
}
