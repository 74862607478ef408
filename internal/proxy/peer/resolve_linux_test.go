package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestMain lets this binary stand in for a caller of its own: with PEER_DIAL set it opens
// that socket, keeps it open until its standard input ends, and leaves.
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

func callAndWait(address string) error {
	c, err := net.Dial("unix", address)
	if err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // its end is what is waited for
	return c.Close()
}

// call starts a caller and returns the accepted connection and the caller.
func call(t *testing.T) (net.Conn, *exec.Cmd) {
	t.Helper()
	address := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	caller := exec.Command(os.Args[0])
	caller.Env = append(os.Environ(), "PEER_DIAL="+address)
	caller.Stderr = os.Stderr
	if _, err := caller.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	if err := caller.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _, _ = caller.Process.Kill(), caller.Wait() })
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	return accepted, caller
}

func TestResolveNamesAnotherProcess(t *testing.T) {
	accepted, caller := call(t)
	peer, err := NewResolver().Resolve(accepted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	got := peer.Identity()
	if int(got.Process.PID) != caller.Process.Pid {
		t.Errorf("PID %d, want %d", got.Process.PID, caller.Process.Pid)
	}
	if got.Process.Exe != self {
		t.Errorf("image %q, want %q", got.Process.Exe, self)
	}
	if want := fmt.Sprintf("uid:%d", os.Getuid()); got.User.SID != want {
		t.Errorf("user %q, want %q", got.User.SID, want)
	}
	if age := time.Since(got.Process.Start); age < 0 || age > time.Minute {
		t.Errorf("it started %s ago", age)
	}
	if got.Assurance != AssuranceProcess {
		t.Errorf("assurance %q", got.Assurance)
	}
}

func TestAliveSeesTheCallerEnd(t *testing.T) {
	accepted, caller := call(t)
	peer, err := NewResolver().Resolve(accepted)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	if err := peer.Alive(); err != nil {
		t.Fatalf("while it runs: %v", err)
	}
	if err := caller.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = caller.Wait() // "killed", and that is the point
	if err := peer.Alive(); !errors.Is(err, errEnded) {
		t.Errorf("after its end: %v", err)
	}
}

func TestResolveRefusesACallerThatHasEnded(t *testing.T) {
	accepted, caller := call(t)
	if err := caller.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	_ = caller.Wait() // "killed", and that is the point
	if peer, err := NewResolver().Resolve(accepted); err == nil {
		t.Errorf("resolved %+v", peer.Identity())
	}
}

func TestEndedProcessIsKnownByItsPidfd(t *testing.T) {
	command := exec.Command("/proc/self/exe", "-test.run=^$")
	if err := command.Start(); err != nil {
		t.Fatal(err)
	}
	pid := command.Process.Pid
	fd, err := unix.PidfdOpen(pid, 0)
	if err != nil {
		t.Fatal(err)
	}
	p := &linuxProcess{fd: fd, pid: uint32(pid)}
	t.Cleanup(func() { _ = p.Close() })
	if err := command.Wait(); err != nil {
		t.Fatal(err)
	}
	if got, err := p.PID(); err == nil {
		t.Errorf("an ended process has the id %d", got)
	}
	if err := p.Alive(); !errors.Is(err, errEnded) {
		t.Errorf("Alive: %v", err)
	}
}

func TestUserRefusesAProcessThatBecameAnother(t *testing.T) {
	p := &linuxProcess{pid: uint32(os.Getpid()), uid: uint32(os.Geteuid()) + 1}
	if user, err := p.User(); err == nil {
		t.Errorf("got %+v", user)
	}
}

func TestStartTicksIsNotLedAstrayByTheCommandName(t *testing.T) {
	const tail = " S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2"
	tests := []struct {
		name, stat string
		want       uint64
		fails      bool
	}{
		{"a plain name", "17 (sh)" + tail, 987654, false},
		{"a name with spaces", "17 (a b c)" + tail, 987654, false},
		{"a name that imitates the rest", "17 (x) S 1 1 1 0 -1 1 1 2 3 4 5 6 7 8 20 0 1 0 1 1 2)" + tail, 987654, false},
		{"no name at all", "17 sh" + tail, 0, true},
		{"a line cut short", "17 (sh) S 1 1", 0, true},
		{"a start that is no number", "17 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 x 1 2", 0, true},
		{"nothing", "", 0, true},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			got, err := startTicks([]byte(test.stat))
			if (err != nil) != test.fails || got != test.want {
				t.Errorf("got %d, %v; want %d, failure %t", got, err, test.want, test.fails)
			}
		})
	}
}

func FuzzStartTicks(f *testing.F) {
	f.Add([]byte("17 (sh) S 1 1 1 0 -1 4194560 1 2 3 4 5 6 7 8 20 0 1 0 987654 1 2"))
	f.Add([]byte(")"))
	f.Fuzz(func(t *testing.T, stat []byte) {
		if ticks, err := startTicks(stat); err == nil && ticks>>63 != 0 {
			t.Errorf("%d does not fit a duration", ticks)
		}
	})
}
