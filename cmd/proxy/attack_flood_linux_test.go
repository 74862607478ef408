package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/test/harness"
)

// silence opens connections of this process, which say nothing.
func silence(t *testing.T, pipe string, n int) []net.Conn {
	t.Helper()
	conns := make([]net.Conn, 0, n)
	t.Cleanup(func() {
		for _, c := range conns {
			_ = c.Close()
		}
	})
	for range n {
		c, err := net.Dial("unix", pipe)
		if err != nil {
			t.Fatal(err)
		}
		conns = append(conns, c)
	}
	return conns
}

// hungUp says whether the other side has closed a connection.
func hungUp(c net.Conn) bool {
	if err := c.SetReadDeadline(time.Now().Add(time.Millisecond)); err != nil {
		return true
	}
	_, err := io.Copy(io.Discard, c)
	return !errors.Is(err, os.ErrDeadlineExceeded)
}

// bounded is a proxy with small bounds, and a log that does not wait for the disk. It allows other, a program, what it allows this one.
func bounded(t *testing.T, other, prefaceTimeout string) (pipe, log string, stop func() int) {
	t.Helper()
	config := configFor(t, "PathExists")
	both := strings.Replace(read(t, config), "}]", fmt.Sprintf("}, {user: \"uid:%d\", exe: %q}]", os.Getuid(), other), 1)
	harness.Replace(t, config, both+"audit: {noSync: true}\nlimits: {connections: 64, connectionsPerCaller: 8, prefaceTimeout: "+prefaceTimeout+"}\n")
	p := startProgram(t, "--config", config)
	return filepath.Join(p.sockets, "csi-proxy-filesystem-v1.sock"), filepath.Join(p.sockets, "audit"), p.stop
}

func TestAThousandConnectionsOfOneCallerLeaveRoomForAnother(t *testing.T) {
	program := otherProgram(t)                    // of the same account
	pipe, log, stop := bounded(t, program, "10m") // none is closed for saying nothing
	began := time.Now()
	flood := silence(t, pipe, 1000)
	other := newCallerOf(t, program, "")
	other.open(pipe)
	expect(t, other.call(under("flooded")), "OK")
	open := func() (left int) {
		for _, c := range flood {
			if !hungUp(c) {
				left++
			}
		}
		return left
	}
	for open() > 8 { // the last of them are still being named
		if time.Since(began) > attackPatience {
			t.Fatalf("%d connections of one caller are open", open())
		}
		time.Sleep(50 * time.Millisecond)
	}
	allowed := 512 + 50*(uint64(time.Since(began).Seconds())+1) // of one caller
	expect(t, other.call(under("after")), "OK")
	stop() // which writes what was counted
	var ended, crowded uint64
	for _, e := range records(t, log, func(e audit.Event) bool { return e.Type == audit.TypeConnection }) {
		ended += e.Count()
		if strings.Contains(e.Outcome.Error, "connects more often than it may") {
			crowded += e.Count()
		}
		// One that gave way before its caller was named is nobody's.
		if e.Who.Assurance != "none" && e.Stage != audit.StageSummary && int(e.Who.Process.PID) != os.Getpid() && int(e.Who.Process.PID) != other.PID() {
			t.Fatalf("one is recorded as %+v", e.Who)
		}
	}
	if ended < 1000 {
		t.Errorf("%d of 1000 connections are recorded", ended)
	}
	if ended-crowded > allowed+2 { // and those of the other
		t.Errorf("%d connections were served, of %d", ended-crowded, ended)
	}
}

// Two strangers open and close connections in a loop. On sockets all clients stand in one line until they are accepted.
func TestAStormOfConnectionsKeepsNoDriverOut(t *testing.T) {
	p := startProgram(t, "--config", configFor(t, "PathExists"))
	for range 2 {
		s := newStranger(t)
		s.Say("storm %s", filepath.Join(p.sockets, "csi-proxy-filesystem-v1.sock"))
		if got := s.Hear(); got != "done" {
			t.Fatal(got)
		}
	}
	const calls = 30
	failed := 0
	for range calls { // each on a connection of its own
		c := p.busyClient(t, "filesystem-v1")
		if _, err := v1.NewFilesystemClient(c).PathExists(t.Context(), &v1.PathExistsRequest{Path: `C:\var\lib\kubelet\plugins\x`}); err != nil {
			if failed++; failed == 1 {
				t.Log(err)
			}
		}
		_ = c.Close()
	}
	if failed > 0 {
		t.Errorf("%d of %d calls of a driver failed", failed, calls)
	}
}

// busyClient waits like the clients of a pipe while the pipe is busy.
func (p *program) busyClient(t *testing.T, gv string) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return pipe.Dial(ctx, "csi-proxy-"+gv, pipe.Options{SocketDir: p.sockets})
		}))
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// A caller who sends the beginning of a connection a byte at a time has no more time for it than one who sends nothing.
func TestAPrefaceThatNeverEndsIsCutOff(t *testing.T) {
	pipe, log, _ := bounded(t, os.Args[0], "1s")
	slow := silence(t, pipe, 4)
	preface := "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n" + "\x00\x00\x00\x04"
	open := len(slow)
	for at := 0; open > 0; at++ { // half a second a byte: had each byte a second of its own, all of them would pass
		if at == len(preface) {
			t.Fatalf("%d are open after %d bytes", open, at)
		}
		open = 0
		for _, c := range slow {
			_, _ = c.Write([]byte{preface[at]}) // a connection that was cut off cannot
			if !hungUp(c) {
				open++
			}
		}
		time.Sleep(500 * time.Millisecond)
	}
	cut := records(t, log, func(e audit.Event) bool {
		return e.Type == audit.TypeConnection && e.Outcome.Result == audit.ResultRejected
	})
	if len(cut) != 4 || !strings.Contains(cut[0].Outcome.Error, "HTTP/2 was begun and not carried through") {
		t.Errorf("%d are recorded as cut off", len(cut))
	}
	other := newCaller(t, "")
	other.open(pipe)
	expect(t, other.call(under("slow")), "OK")
}
