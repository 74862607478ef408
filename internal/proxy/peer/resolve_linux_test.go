package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/test/harness"
)

func callAndWait(address string) error {
	c, err := net.Dial("unix", address)
	if err != nil {
		return err
	}
	if n, _ := os.Stdin.Read(make([]byte, 1)); n == 0 { // its end is what is waited for
		return c.Close()
	}
	// A byte asks for another program under the same number, to which the socket stays open.
	socket, err := c.(*net.UnixConn).File()
	if err != nil {
		return err
	}
	if _, err := unix.FcntlInt(socket.Fd(), unix.F_SETFD, 0); err != nil {
		return err
	}
	other := os.Getenv("PEER_EXEC")
	return unix.Exec(other, []string{other, "60"}, os.Environ())
}

// call starts a caller and returns the accepted connection and the caller.
func call(t *testing.T) (net.Conn, *harness.Conversation) {
	t.Helper()
	return callOf(t, os.Args[0])
}

// callOf is call for a caller of another program file.
func callOf(t *testing.T, program string) (net.Conn, *harness.Conversation) {
	t.Helper()
	address := filepath.Join(t.TempDir(), "s")
	listener, err := net.Listen("unix", address)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	command := exec.Command(program)
	command.Env = append(os.Environ(), "PEER_DIAL="+address, "PEER_EXEC="+sleeper(t))
	caller := harness.Converse(t, command)
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	return accepted, caller
}

// sleeper is a program that is not this one.
func sleeper(t *testing.T) string {
	t.Helper()
	path, err := exec.LookPath("sleep")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

func TestAliveRefusesAProcessThatBecameAnotherProgram(t *testing.T) {
	accepted, caller := callOf(t, os.Args[0])
	peer, err := NewResolver().Resolve(accepted, Note(accepted))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = peer.Close() })
	if err := peer.Alive(); err != nil {
		t.Fatalf("before: %v", err)
	}
	exe := fmt.Sprintf("/proc/%d/exe", caller.PID())
	before, err := os.Readlink(exe)
	if err != nil {
		t.Fatal(err)
	}
	caller.Say("")
	for deadline := time.Now().Add(20 * time.Second); ; runtime.Gosched() {
		if now, err := os.Readlink(exe); err == nil && now != before {
			break
		}
		if time.Now().After(deadline) {
			t.Fatal("it did not become another program")
		}
	}
	if err := peer.Alive(); !errors.Is(err, errReplaced) {
		t.Errorf("after execve: %v", err)
	}
}

// A path is a claim about a file of this mount namespace, and a caller can make another one. Here the file is removed
// and replaced while it runs, which is the same claim and needs no privilege.
func TestImageOfAnotherFileAtThePathMatchesNoRule(t *testing.T) {
	for name, replace := range map[string]bool{"removed": false, "replaced": true} {
		t.Run(name, func(t *testing.T) {
			content, err := os.ReadFile(os.Args[0])
			if err != nil {
				t.Fatal(err)
			}
			program := filepath.Join(t.TempDir(), "driver")
			if err := os.WriteFile(program, content, 0o700); err != nil {
				t.Fatal(err)
			}
			accepted, _ := callOf(t, program)
			if err := os.Remove(program); err != nil {
				t.Fatal(err)
			}
			if replace { // the kernel says "driver (deleted)" of the first file
				if err := os.WriteFile(program+" (deleted)", content, 0o700); err != nil {
					t.Fatal(err)
				}
			}
			peer, err := NewResolver().Resolve(accepted, Note(accepted))
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { _ = peer.Close() })
			if exe := peer.Identity().Process.Exe; !strings.HasPrefix(exe, "(unreachable)") {
				t.Errorf("image %q", exe)
			}
		})
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

func sameProgram(a, b string) bool { return a == b }

func checkUser(t *testing.T, got caller.User) {
	t.Helper()
	if want := fmt.Sprintf("uid:%d", os.Getuid()); got.SID != want {
		t.Errorf("user %q, want %q", got.SID, want)
	}
}
