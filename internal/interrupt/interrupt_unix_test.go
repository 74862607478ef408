//go:build unix

package interrupt_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"syscall"
	"testing"

	"github.com/pipeguard/pipeguard/internal/interrupt"
)

// deaf makes this test binary a program that says when it was asked to end, and goes on.
const deaf = "PIPEGUARD_TEST_DEAF"

func TestMain(m *testing.M) {
	if os.Getenv(deaf) == "" {
		os.Exit(m.Run())
	}
	ctx, stop := interrupt.Context(context.Background())
	defer stop()
	fmt.Println("ready")
	<-ctx.Done()
	stop() // as AfterFunc does, but without a race between the two
	fmt.Println("asked")
	select {}
}

func TestASecondSignalEndsAProgramThatDoesNotListen(t *testing.T) {
	for _, signal := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		cmd := exec.CommandContext(t.Context(), os.Args[0])
		cmd.Env = append(os.Environ(), deaf+"=1")
		out, err := cmd.StdoutPipe()
		if err != nil {
			t.Fatal(err)
		}
		if err := cmd.Start(); err != nil {
			t.Fatal(err)
		}
		lines := bufio.NewScanner(out)
		for _, want := range []string{"ready", "asked"} {
			if !lines.Scan() || strings.TrimSpace(lines.Text()) != want {
				t.Fatalf("%v: the program said %q, want %s", signal, lines.Text(), want)
			}
			if err := cmd.Process.Signal(signal); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != signal {
			t.Errorf("%v: the program ended with %v", signal, cmd.ProcessState)
		}
	}
}
