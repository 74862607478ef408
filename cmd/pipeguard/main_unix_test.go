//go:build unix

package main

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
)

// asMain makes this test binary the program, with os.Args as they are.
const asMain = "PIPEGUARD_TEST_MAIN"

func TestMain(m *testing.M) {
	if os.Getenv(asMain) == "" {
		os.Exit(m.Run())
	}
	main()
}

// What a command waits for may never come, and nothing interrupts the reading of a file.
func TestOneSignalEndsACommandThatWaitsForItsFile(t *testing.T) {
	fifo := filepath.Join(t.TempDir(), "fifo.yaml")
	if err := syscall.Mkfifo(fifo, 0o600); err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "review", "-f", fifo)
	cmd.Env = append(os.Environ(), asMain+"=1")
	var said strings.Builder
	cmd.Stderr = &said
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	silent, err := os.OpenFile(fifo, os.O_WRONLY, 0) // returns when the command has opened it, which is when it hears signals
	if err != nil {
		t.Fatal(err)
	}
	defer silent.Close() //nolint:errcheck // nothing was written
	if err := cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != cli.ExitInterrupted || !strings.Contains(said.String(), "interrupted, and not done") {
		t.Errorf("exit code %d, %q", code, said.String())
	}
}
