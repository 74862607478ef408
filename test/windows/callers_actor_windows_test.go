package windows

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	diskapi "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/test/harness"
)

// TestActor is no test: it is a caller, which does what its standard input says, a line each, until that ends.
func TestActor(*testing.T) {
	if os.Getenv("PIPEGUARD_ACTOR") == "" {
		return
	}
	harness.Obey(os.Stdin, os.Stdout, new(actor).do)
	os.Exit(0)
}

type actor struct {
	pipe   windows.Handle // open and not spoken on yet
	client *grpc.ClientConn
}

func (a *actor) do(verb, rest string) (string, error) {
	switch verb {
	case "open":
		name, err := windows.UTF16PtrFromString(rest)
		if err != nil {
			return "", err
		}
		for deadline := time.Now().Add(callTimeout); ; time.Sleep(time.Millisecond) { // until an instance is free
			a.pipe, err = windows.CreateFile(name, windows.GENERIC_READ|windows.GENERIC_WRITE, 0, nil, windows.OPEN_EXISTING, windows.FILE_FLAG_OVERLAPPED, 0)
			if err == nil || time.Now().After(deadline) {
				a.client = nil
				return "done", err
			}
		}
	case "give": // to a process: a handle is a number there, which is the answer
		pid, err := strconv.ParseUint(rest, 10, 32)
		if err != nil {
			return "", err
		}
		to, err := windows.OpenProcess(windows.PROCESS_DUP_HANDLE, false, uint32(pid))
		if err != nil {
			return "", err
		}
		defer func() { _ = windows.CloseHandle(to) }()
		var given windows.Handle
		err = windows.DuplicateHandle(windows.CurrentProcess(), a.pipe, to, &given, 0, false, windows.DUPLICATE_SAME_ACCESS)
		return strconv.FormatUint(uint64(given), 10), err
	case "take":
		number, err := strconv.ParseUint(rest, 10, 64)
		a.pipe, a.client = windows.Handle(number), nil
		return "done", err
	case "call":
		return a.call(rest)
	}
	return "", fmt.Errorf("no verb %q", verb)
}

// file is a handle as a connection.
type file struct{ io.ReadWriteCloser }

func (file) LocalAddr() net.Addr              { return &net.UnixAddr{} }
func (file) RemoteAddr() net.Addr             { return &net.UnixAddr{} }
func (file) SetDeadline(time.Time) error      { return nil }
func (file) SetReadDeadline(time.Time) error  { return nil }
func (file) SetWriteDeadline(time.Time) error { return nil }

func (a *actor) call(method string) (string, error) {
	if a.client == nil {
		opened, err := winio.NewOpenFile(a.pipe)
		if err != nil {
			return "", err
		}
		isUsed := false
		a.client, err = grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()), grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) {
			if isUsed {
				return nil, errors.New("the one connection was used")
			}
			isUsed = true
			return file{opened}, nil
		}))
		if err != nil {
			return "", err
		}
	}
	ctx, cancel := context.WithTimeout(context.Background(), callTimeout)
	defer cancel()
	disk := diskapi.NewDiskClient(a.client)
	var err error
	switch method {
	case "ListDiskIDs":
		_, err = disk.ListDiskIDs(ctx, &diskapi.ListDiskIDsRequest{})
	case "PartitionDisk":
		_, err = disk.PartitionDisk(ctx, &diskapi.PartitionDiskRequest{DiskNumber: 1})
	default:
		return "", fmt.Errorf("no method %q", method)
	}
	return status.Code(err).String() + " " + status.Convert(err).Message(), nil
}

// caller is an actor as a test sees it.
type caller struct {
	*harness.Conversation
	t *testing.T
}

func newCaller(t *testing.T, job windows.Handle) *caller {
	t.Helper()
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(self, "-test.run=^TestActor$") //nolint:gosec // this binary
	cmd.Env = append(os.Environ(), "PIPEGUARD_ACTOR=caller")
	c := &caller{harness.Converse(t, cmd), t}
	if job != 0 {
		process, err := windows.OpenProcess(windows.PROCESS_SET_QUOTA|windows.PROCESS_TERMINATE, false, uint32(c.PID()))
		if err != nil {
			t.Fatal(err)
		}
		defer func() { _ = windows.CloseHandle(process) }()
		if err := windows.AssignProcessToJobObject(job, process); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func (c *caller) open(pipe string) {
	c.t.Helper()
	if got := c.Ask("open %s", pipe); got != "done" {
		c.t.Fatalf("open: %s", got)
	}
}

// handTo duplicates the handle of the pipe into another process.
func (c *caller) handTo(other *caller) {
	c.t.Helper()
	handle := c.Ask("give %d", other.PID())
	if got := other.Ask("take %s", handle); got != "done" || strings.HasPrefix(handle, "fault") {
		c.t.Fatalf("give: %s; take: %s", handle, got)
	}
}

func (c *caller) expect(method, code string, texts ...string) {
	c.t.Helper()
	got := c.Ask("call %s", method)
	if !strings.HasPrefix(got+" ", code+" ") {
		c.t.Errorf("%s: %q, want %s", method, got, code)
	}
	for _, text := range texts {
		if !strings.Contains(got, text) {
			c.t.Errorf("%s: %q does not say %q", method, got, text)
		}
	}
}
