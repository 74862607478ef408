package pipe

import (
	"context"
	"errors"
	"net"
	"path/filepath"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// fullSocket is a socket on which nobody accepts, and one client waits.
func fullSocket(t *testing.T, name string) (o Options, accept func()) {
	t.Helper()
	o = Options{SocketDir: t.TempDir()}
	fd, err := unix.Socket(unix.AF_UNIX, unix.SOCK_STREAM|unix.SOCK_CLOEXEC, 0)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = unix.Close(fd) })
	if err := errors.Join(unix.Bind(fd, &unix.SockaddrUnix{Name: Address(name, o)}), unix.Listen(fd, 0)); err != nil {
		t.Fatal(err)
	}
	first, err := net.Dial("unix", filepath.Join(o.SocketDir, name+".sock"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = first.Close() })
	return o, func() {
		accepted, _, err := unix.Accept(fd)
		if err != nil {
			t.Error(err)
			return
		}
		_ = unix.Close(accepted)
	}
}

func TestDialWaitsWhileThePipeIsBusy(t *testing.T) {
	o, accept := fullSocket(t, "busy")
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute)
	t.Cleanup(cancel)
	dialled := make(chan error, 1)
	go func() {
		conn, err := Dial(ctx, "busy", o)
		if conn != nil {
			_ = conn.Close()
		}
		dialled <- err
	}()
	accept()
	if err := <-dialled; err != nil {
		t.Errorf("after one was accepted: %v", err)
	}
}

func TestDialWaitsNoLongerThanItIsTold(t *testing.T) {
	o, _ := fullSocket(t, "busy")
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	if conn, err := Dial(ctx, "busy", o); err == nil {
		t.Errorf("a connection to %s", conn.RemoteAddr())
	}
	ctx, cancel = context.WithTimeout(context.Background(), 3*busyInterval)
	t.Cleanup(cancel)
	if conn, err := Dial(ctx, "busy", o); err == nil {
		t.Errorf("a connection to %s", conn.RemoteAddr())
	}
}
