package peer

import (
	"errors"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/pipeguard/pipeguard/internal/core/caller"
)

func conn(t *testing.T) net.Conn {
	t.Helper()
	a, b := net.Pipe()
	t.Cleanup(func() { _, _ = a.Close(), b.Close() })
	return a
}

func TestResolveRefusesWhoeverIsNotProven(t *testing.T) {
	tests := []struct {
		name   string
		change func(*fakeKernel)
		want   string
	}{
		{"the connection names no process", func(k *fakeKernel) { k.pidErrs = []error{errAsked} }, "process id"},
		{"the process id is 0", func(k *fakeKernel) { k.pids = []uint32{0} }, "is 0"},
		{"the process id is the system's", func(k *fakeKernel) { k.pids = []uint32{4} }, "the kernel's own"},
		{"the process id is 0 when asked again", func(k *fakeKernel) { k.pids = []uint32{4711, 0} }, "second question"},
		{"the process id is the system's when asked again", func(k *fakeKernel) { k.pids = []uint32{4711, 4} }, "second question"},
		{"the process id is another when asked again", func(k *fakeKernel) { k.pids = []uint32{4711, 4712} }, "is now 4712"},
		{"the process id is not told a second time", func(k *fakeKernel) { k.pidErrs = []error{nil, errAsked} }, "second question"},
		{"the process cannot be opened", func(k *fakeKernel) { k.openErr = errAsked }, "open process 4711"},
		{"the opened process does not tell its id", func(k *fakeKernel) { k.process.pidErr = errAsked }, "for its id"},
		{"the opened process is another", func(k *fakeKernel) { k.process.pid = 4712 }, "got process 4712"},
		{"the opened process has no id", func(k *fakeKernel) { k.process.pid = 0 }, "got process 0"},
		{"the start is not told", func(k *fakeKernel) { k.process.startedErr = errAsked }, "started"},
		{"the process started after the accept", func(k *fakeKernel) { k.process.started = accept.Add(time.Nanosecond) }, "given away again"},
		{"the process has ended", func(k *fakeKernel) { k.process.alive = []error{errEnded} }, "has ended"},
		{"it is not told whether the process runs", func(k *fakeKernel) { k.process.alive = []error{errAsked} }, "does not say"},
		{"the process ends while it is described", func(k *fakeKernel) { k.process.alive = []error{nil, errEnded} }, "has ended"},
		{"the token cannot be read", func(k *fakeKernel) { k.process.userErr = errAsked }, "read its user"},
		{"the user has no identifier", func(k *fakeKernel) { k.process.user = caller.User{Name: "SYSTEM"} }, "no identifier"},
		{"the image cannot be read", func(k *fakeKernel) { k.process.imageErr = errAsked }, "image"},
		{"the image has no path", func(k *fakeKernel) { k.process.image = "" }, "no path"},
		{"the process is unknown and cannot be let go of", func(k *fakeKernel) { k.process.userErr, k.process.closeErr = errAsked, errors.New("stuck") }, "stuck"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kernel := honest()
			test.change(kernel)
			peer, err := resolver{kernel: kernel, system: []uint32{4}}.Resolve(conn(t), Arrival{Time: accept})
			if err == nil {
				t.Fatalf("resolved %+v", peer.Identity())
			}
			if peer != nil {
				t.Errorf("a refusal came with a peer: %+v", peer)
			}
			if !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %q does not say %q", err, test.want)
			}
			if kernel.process.held != 0 {
				t.Errorf("%d holds are left on a refused process", kernel.process.held)
			}
		})
	}
}

func TestResolveNamesTheCaller(t *testing.T) {
	tests := []struct {
		name   string
		change func(*fakeKernel)
		user   caller.User
	}{
		{"a process that started long ago", func(*fakeKernel) {}, caller.User{SID: "S-1-5-18", Name: `NT AUTHORITY\SYSTEM`}},
		{"a process that started at the very accept", func(k *fakeKernel) { k.process.started = accept }, caller.User{SID: "S-1-5-18", Name: `NT AUTHORITY\SYSTEM`}},
		{"an account that has no name", func(k *fakeKernel) { k.process.user = caller.User{SID: "S-1-5-93-2-1"} }, caller.User{SID: "S-1-5-93-2-1"}},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			kernel := honest()
			test.change(kernel)
			peer, err := resolver{kernel: kernel, system: []uint32{4}}.Resolve(conn(t), Arrival{Time: accept})
			if err != nil {
				t.Fatal(err)
			}
			want := caller.Caller{
				Assurance: caller.AssuranceProcess,
				Process:   caller.Process{PID: 4711, Start: kernel.process.started, Exe: `C:\csi\driver.exe`},
				User:      test.user,
			}
			if diff := cmp.Diff(want, peer.Identity()); diff != "" {
				t.Errorf("identity (-want +got):\n%s", diff)
			}
			if kernel.process.held != 1 {
				t.Errorf("the process is held %d times, want once", kernel.process.held)
			}
			if err := peer.Close(); err != nil || kernel.process.held != 0 {
				t.Errorf("Close: %v, still held %d times", err, kernel.process.held)
			}
		})
	}
}

func TestAliveFollowsTheProcessUntilClose(t *testing.T) {
	kernel := honest()
	kernel.process.alive = []error{nil, nil, nil, errEnded}
	peer, err := resolver{kernel: kernel}.Resolve(conn(t), Arrival{Time: accept})
	if err != nil {
		t.Fatal(err)
	}
	if err := peer.Alive(); err != nil {
		t.Errorf("a running process: %v", err)
	}
	if err := peer.Alive(); !errors.Is(err, errEnded) {
		t.Errorf("an ended process: %v", err)
	}
	if err := errors.Join(peer.Close(), peer.Close()); err != nil {
		t.Errorf("closing twice: %v", err)
	}
	if err := peer.Alive(); !errors.Is(err, errReleased) {
		t.Errorf("after Close: %v", err)
	}
	if kernel.process.held != 0 {
		t.Errorf("closing twice let go %d times", 1-kernel.process.held)
	}
}

// watched is a process that notices a question which comes after its Close.
type watched struct {
	process
	closed, late atomic.Bool
}

func (w *watched) Alive() error {
	if w.closed.Load() {
		w.late.Store(true)
	}
	return nil
}

func (w *watched) Close() error {
	w.closed.Store(true)
	return nil
}

func TestAliveIsNeverAskedOfAReleasedProcess(t *testing.T) {
	process := &watched{}
	peer := &held{process: process}
	var asking sync.WaitGroup
	begun := make(chan struct{}, 8)
	for range cap(begun) {
		asking.Go(func() {
			begun <- struct{}{}
			for peer.Alive() == nil {
			}
		})
	}
	for range cap(begun) {
		<-begun
	}
	if err := peer.Close(); err != nil {
		t.Error(err)
	}
	asking.Wait()
	if process.late.Load() {
		t.Error("a process was asked after it was let go of")
	}
}

func TestResolverRefusesOtherTransports(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	over, err := net.Dial("tcp", listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = over.Close() })
	for _, c := range []net.Conn{over, conn(t)} {
		if peer, err := NewResolver().Resolve(c, Arrival{Time: accept}); err == nil {
			t.Errorf("a %T was taken for %+v", c, peer.Identity())
		}
	}
}

func TestACallerWhoseAcceptWasNotNotedIsRefused(t *testing.T) {
	for name, at := range map[string]Arrival{
		"no time":           {PID: 4711},
		"another client":    {Time: accept, PID: 4712},
		"an earlier accept": {Time: honest().process.started.Add(-time.Nanosecond), PID: 4711},
	} {
		if peer, err := (resolver{kernel: honest()}).Resolve(conn(t), at); err == nil {
			t.Errorf("%s: resolved %+v", name, peer.Identity())
		}
	}
	if _, err := (resolver{kernel: honest()}).Resolve(conn(t), Arrival{Time: accept, PID: 4711}); err != nil {
		t.Errorf("noted in full: %v", err)
	}
}
