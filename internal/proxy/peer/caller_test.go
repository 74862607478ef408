//go:build linux || windows

package peer

import (
	"errors"
	"fmt"
	"os"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

// TestMain lets this binary stand in for a caller of its own: with PEER_DIAL set it opens
// that pipe or socket, keeps it open until its standard input ends, and leaves.
func TestMain(m *testing.M) {
	if address := os.Getenv("PEER_DIAL"); address != "" {
		if err := callAndWait(address); err != nil {
			fmt.Fprintln(os.Stderr, err)
			os.Exit(1)
		}
		os.Exit(0)
	}
	os.Exit(m.Run())
}

func TestResolveNamesAnotherProcess(t *testing.T) {
	accepted, child := call(t)
	peer, err := NewResolver().Resolve(accepted, Note(accepted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := peer.Identity()
	if int(got.Process.PID) != child.PID() {
		t.Errorf("PID %d, want %d", got.Process.PID, child.PID())
	}
	if !sameProgram(got.Process.Exe, self) {
		t.Errorf("image %q, want %q", got.Process.Exe, self)
	}
	checkUser(t, got.User)
	if age := time.Since(got.Process.Start); age < 0 || age > time.Minute {
		t.Errorf("it started %s ago", age)
	}
	if got.Assurance != caller.AssuranceProcess {
		t.Errorf("assurance %q", got.Assurance)
	}
}

func TestAliveSeesTheCallerEnd(t *testing.T) {
	accepted, child := call(t)
	peer, err := NewResolver().Resolve(accepted, Note(accepted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	if err := peer.Alive(); err != nil {
		t.Fatalf("while it runs: %v", err)
	}
	child.Kill()
	if err := peer.Alive(); !errors.Is(err, errEnded) {
		t.Errorf("after its end: %v", err)
	}
}

func TestResolveRefusesACallerThatHasEnded(t *testing.T) {
	accepted, child := call(t)
	child.Kill()
	if peer, err := NewResolver().Resolve(accepted, Note(accepted)); err == nil {
		t.Errorf("resolved %+v", peer.Identity())
	}
}
