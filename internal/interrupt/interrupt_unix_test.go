//go:build unix

package interrupt_test

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
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
	defer signal.Reset(syscall.SIGINT, syscall.SIGTERM)
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		signal.Notify(make(chan os.Signal, 1), sig) // the program then does not inherit that it is ignored, as a shell has it for what runs in the background
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
				t.Fatalf("%v: the program said %q, want %s", sig, lines.Text(), want)
			}
			if err := cmd.Process.Signal(sig); err != nil {
				t.Fatal(err)
			}
		}
		_ = cmd.Wait()
		if status, ok := cmd.ProcessState.Sys().(syscall.WaitStatus); !ok || !status.Signaled() || status.Signal() != sig {
			t.Errorf("%v: the program ended with %v", sig, cmd.ProcessState)
		}
	}
}
