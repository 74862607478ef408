//go:build !windows

package harness

import (
	"context"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

func TestAProgramThatDoesNotEndInOrderIsNoticed(t *testing.T) {
	for name, c := range map[string]struct {
		script string
		limit  time.Duration
		want   string // empty: no error
	}{
		"it ends with 0 on SIGTERM": {"trap 'exit 0' TERM; echo ready; while :; do sleep 0.05; done", time.Minute, ""},
		"it ends with another code": {"trap 'exit 3' TERM; echo ready; while :; do sleep 0.05; done", time.Minute, "exit status 3"},
		"it dies of the signal":     {"echo ready; exec sleep 60", time.Minute, "signal: terminated"},
		"it does not end":           {"trap '' TERM; echo ready; while :; do sleep 0.05; done", 100 * time.Millisecond, "was killed"},
		"it ended before, with 0":   {"echo ready; exit 0", time.Minute, "had already ended: exit code 0"},
		"it ended before, with a 4": {"echo ready; exit 4", time.Minute, "had already ended: exit status 4"},
	} {
		t.Run(name, func(t *testing.T) {
			p, err := Start("sh", exec.Command("/bin/sh", "-c", c.script))
			if err != nil {
				t.Fatal(err)
			}
			defer p.Kill()
			ready := func(context.Context) error {
				if !strings.Contains(p.Stdout.String(), "ready") {
					return errors.New("not yet")
				}
				return nil
			}
			if strings.Contains(c.want, "already") {
				<-p.Exited()
			} else if err := p.Await(t.Context(), time.Minute, ready); err != nil {
				t.Fatal(err)
			}
			err = p.Stop(c.limit)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("got %v, want %q", err, c.want)
			}
		})
	}
}

func TestAwaitSaysWhyAProgramIsNotReady(t *testing.T) {
	never := func(context.Context) error { return errors.New("not ready yet") }
	ended, err := Start("sh", exec.Command("/bin/sh", "-c", "exit 5"))
	if err != nil {
		t.Fatal(err)
	}
	if err := ended.Await(t.Context(), time.Minute, never); err == nil || !strings.Contains(err.Error(), "exit status 5") {
		t.Errorf("got %v", err)
	}
	slow, err := Start("sh", exec.Command("/bin/sh", "-c", "exec sleep 60"))
	if err != nil {
		t.Fatal(err)
	}
	defer slow.Kill()
	if err := slow.Await(t.Context(), 100*time.Millisecond, never); err == nil || !strings.Contains(err.Error(), "not ready yet") {
		t.Errorf("got %v", err)
	}
	if _, err := Start("nothing", exec.Command(filepath.Join(t.TempDir(), "nothing"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}

func TestRunTellsAnExitCodeFromAProgramThatIsMissing(t *testing.T) {
	stdout, stderr, code, err := Run(exec.Command("/bin/sh", "-c", "echo said; echo complained >&2; exit 3"))
	if stdout != "said\n" || stderr != "complained\n" || code != 3 || err != nil {
		t.Errorf("got %q, %q, %d, %v", stdout, stderr, code, err)
	}
	if _, _, _, err := Run(exec.Command(filepath.Join(t.TempDir(), "nothing"))); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got %v", err)
	}
}
