package peer

import (
	"net"
	"os"
	"os/exec"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"

	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/test/harness"
)

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
func call(t *testing.T) (net.Conn, *harness.Conversation) {
	t.Helper()
	address, listener := listen(t)
	command := exec.Command(os.Args[0])
	command.Env = append(os.Environ(), "PEER_DIAL="+address)
	caller := harness.Converse(t, command)
	accepted, err := listener.Accept()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = accepted.Close() })
	return accepted, caller
}

func TestResolveRefusesTheSystemProcess(t *testing.T) {
	r := resolver{kernel: pretend{pid: systemPID}, system: []uint32{systemPID}}
	if peer, err := r.Resolve(conn(t), Arrival{Time: now()}); err == nil {
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
	if peer, err := (resolver{kernel: pretend{pid: 0xfffffff0}}).Resolve(conn(t), Arrival{Time: now()}); err == nil {
		t.Errorf("resolved %+v", peer.Identity())
	}
}

func TestResolveOfOurselvesIsUs(t *testing.T) {
	peer, err := resolver{kernel: pretend{pid: uint32(os.Getpid())}}.Resolve(conn(t), Arrival{Time: now()})
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

func sameProgram(a, b string) bool { return strings.EqualFold(a, b) }

func checkUser(t *testing.T, got caller.User) {
	t.Helper()
	if !strings.HasPrefix(got.SID, "S-1-5-") || got.Name == "" {
		t.Errorf("user %+v", got)
	}
}
