//go:build unix

package winsvc

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"os/signal"
	"syscall"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/test/harness"
)

// TestMain lets this binary be a program under Run that never ends by itself. It says so on its standard
// output once a signal would reach it, and again once its context has ended.
func TestMain(m *testing.M) {
	if os.Getenv("WINSVC_HANG") == "" {
		os.Exit(m.Run())
	}
	err := Run(context.Background(), Options{}, func(ctx context.Context, _ func()) error {
		_, _ = os.Stdout.WriteString("1")
		<-ctx.Done()
		_, _ = os.Stdout.WriteString("2")
		select {}
	})
	_ = err // never reached
}

func TestASignalEndsTheContext(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGINT, syscall.SIGTERM} {
		err := Run(context.Background(), Options{}, func(ctx context.Context, _ func()) error {
			if err := syscall.Kill(os.Getpid(), sig); err != nil {
				return err
			}
			<-ctx.Done()
			return errRun
		})
		if !errors.Is(err, errRun) {
			t.Errorf("%s: %v", sig, err)
		}
	}
	// Run has handed the signals back; nobody else in this process may be left with none.
	signal.Reset(os.Interrupt, syscall.SIGTERM)
}

func TestASecondSignalEndsAFunctionThatHangs(t *testing.T) {
	program := exec.Command(os.Args[0])
	program.Env = append(os.Environ(), "WINSVC_HANG=1")
	p, err := harness.Start("a function that hangs", program)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(p.Kill)
	for _, step := range []string{"1", "2"} {
		p.Stdout.Await(t, 1, step)
		// The second is sent after the context has ended; AfterFunc may still be about to run, so a
		// signal that comes too early is swallowed and the next one is not.
		if err := p.Signal(syscall.SIGTERM); err != nil {
			t.Fatal(err)
		}
	}
	// With pauses: a process that dies of a signal, and is sent more of them while it does, may die of something else.
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		select {
		case <-p.Exited():
			err := p.Wait()
			var exit *exec.ExitError
			if !errors.As(err, &exit) || exit.Sys().(syscall.WaitStatus).Signal() != syscall.SIGTERM {
				t.Errorf("it ended with %v", err)
			}
			return
		case <-again.C:
			_ = p.Signal(syscall.SIGTERM)
		}
	}
}

func TestAHangupAsksForAReload(t *testing.T) {
	reloaded := make(chan struct{}, 1)
	err := Run(context.Background(), Options{Reload: func() { reloaded <- struct{}{} }}, func(context.Context, func()) error {
		for range 2 {
			if err := syscall.Kill(os.Getpid(), syscall.SIGHUP); err != nil {
				return err
			}
			<-reloaded
		}
		return errRun
	})
	if !errors.Is(err, errRun) {
		t.Error(err)
	}
}
