//go:build unix || windows

package pipe

import (
	"io"
	"os"
	"os/exec"
	"testing"
)

// squat has another process listen, at what TestMain makes of where, until the test ends.
func squat(t *testing.T, where string) {
	t.Helper()
	squatter := exec.Command(os.Args[0])
	squatter.Env = append(os.Environ(), "PIPE_LISTEN="+where)
	squatter.Stderr = os.Stderr
	up, err := squatter.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := squatter.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := squatter.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = squatter.Process.Kill(), squatter.Wait() })
	if _, err := io.ReadFull(up, make([]byte, 3)); err != nil {
		t.Fatal(err)
	}
}
