package peer

import (
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
)

// TestMain lets this binary stand in for a caller of its own: with PEER_DIAL set it opens that pipe,
// keeps it open until its standard input ends, and leaves.
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
	c, err := winio.DialPipe(address, nil)
	if err != nil {
		return err
	}
	_, _ = os.Stdin.Read(make([]byte, 1)) // its end is what is waited for
	return c.Close()
}

// listen makes a pipe that the next client is sure to reach: where the first instance lets a client in
// (Wine does, Windows does not), a first client is spent on it.
func listen(t *testing.T) (string, net.Listener) {
	t.Helper()
	address := `\\.\pipe\` + strings.ReplaceAll(t.Name(), "/", "-")
	listener, err := winio.ListenPipe(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	wait := 50 * time.Millisecond
	if spent, err := winio.DialPipe(address, &wait); err == nil {
		t.Cleanup(func() { _ = spent.Close() })
	}
	return address, listener
}

// call starts a caller and returns the accepted connection and the caller.
func call(t *testing.T) (net.Conn, *exec.Cmd) {
	t.Helper()
	address, listener := listen(t)
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
	if !strings.EqualFold(got.Process.Exe, self) {
		t.Errorf("image %q, want %q", got.Process.Exe, self)
	}
	if !strings.HasPrefix(got.User.SID, "S-1-5-") || got.User.Name == "" {
		t.Errorf("user %+v", got.User)
	}
	if age := time.Since(got.Process.Start); age < 0 || age > time.Minute {
		t.Errorf("it started %s ago", age)
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

func TestResolveRefusesTheSystemProcess(t *testing.T) {
	r := resolver{kernel: pretend{pid: systemPID}, system: []uint32{systemPID}}
	if peer, err := r.Resolve(conn(t)); err == nil {
		t.Errorf("resolved %+v", peer.Identity())
	}
}

// pretend is the real kernel but for the PID that it reports.
type pretend struct {
	windowsKernel
	pid uint32
}

func (p pretend) ClientPID(net.Conn) (uint32, error) { return p.pid, nil }

func TestResolveRefusesAProcessIDThatNobodyHas(t *testing.T) {
	if peer, err := (resolver{kernel: pretend{pid: 0xfffffff0}}).Resolve(conn(t)); err == nil {
		t.Errorf("resolved %+v", peer.Identity())
	}
}

func TestResolveOfOurselvesIsUs(t *testing.T) {
	peer, err := resolver{kernel: pretend{pid: uint32(os.Getpid())}}.Resolve(conn(t))
	if err != nil {
		t.Fatal(err)
	}
	if got := peer.Identity().Process.PID; int(got) != os.Getpid() {
		t.Errorf("PID %d, want %d", got, os.Getpid())
	}
	if err := peer.Close(); err != nil {
		t.Error(err)
	}
}
