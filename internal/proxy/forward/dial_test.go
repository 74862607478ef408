package forward

import (
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
	"github.com/pipeguard/pipeguard/test/harness"
)

// TestMain lets this binary be another process that serves: with FORWARD_SERVE set it answers on that pipe until its
// standard input ends.
func TestMain(m *testing.M) {
	name := os.Getenv("FORWARD_SERVE")
	if name == "" {
		os.Exit(m.Run())
	}
	listener, err := listen(name, pipe.Options{SocketDir: os.Getenv("FORWARD_DIR")})
	if err != nil {
		panic(err)
	}
	server := grpc.NewServer(grpc.ForceServerCodecV2(raw.Codec{}), grpc.UnknownServiceHandler(kinds))
	go func() { _ = server.Serve(listener) }()
	_, _ = os.Stdout.WriteString("up\n")
	_, _ = io.Copy(io.Discard, os.Stdin) // its end is what is waited for
	server.Stop()
}

// child runs a server in another process, and returns the path of its program.
func child(t *testing.T, name string, o pipe.Options) string {
	t.Helper()
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(exe)
	cmd.Env = append(os.Environ(), "FORWARD_SERVE="+name, "FORWARD_DIR="+o.SocketDir)
	server := harness.Converse(t, cmd)
	t.Cleanup(server.End)
	if up := server.Hear(); up != "up" {
		t.Fatalf("the other process says %q", up)
	}
	return exe
}

func link(t *testing.T, target Target, o Options) *Link {
	t.Helper()
	l, err := NewLink(target, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = l.Close() })
	return l
}

func TestKernelSaysWhoServes(t *testing.T) {
	prefix, o := pipes(t)
	exe := child(t, prefix+"back", o)
	for name, test := range map[string]struct{ exe, want string }{
		"the right program":        {exe, ""},
		"whoever it is":            {"", ""},
		"another program":          {filepath.Join(filepath.Dir(exe), "other.exe"), "and not"},
		"one beneath the program":  {filepath.Join(exe, "x"), "and not"},
		"the directory it lies in": {filepath.Dir(exe), "and not"},
	} {
		t.Run(name, func(t *testing.T) {
			l := link(t, Target{Pipe: prefix + "back", Exe: test.exe}, Options{SocketDir: o.SocketDir})
			err := l.Ready(within(t))
			_, callErr := unary(within(t), l.client, "/a.B/C", raw.Message("x"))
			if test.want == "" {
				if err != nil || callErr != nil {
					t.Errorf("ready %v, call %v", err, callErr)
				}
				return
			}
			for _, err := range []error{err, callErr} {
				if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), test.want) {
					t.Errorf("got %v", err)
				}
			}
		})
	}
}

func TestOwnPipeIsNotDialled(t *testing.T) {
	prefix, o := pipes(t)
	e := serveEcho(t, prefix+"back", o)
	l := link(t, Target{Pipe: prefix + "back"}, Options{SocketDir: o.SocketDir})
	_, err := unary(within(t), l.client, "/a.B/C", nil)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "in a circle") {
		t.Errorf("got %v", err)
	}
	if err := l.Ready(within(t)); err == nil {
		t.Error("it is ready")
	}
	if e.calls.Load() != 0 {
		t.Errorf("%d calls", e.calls.Load())
	}
}

func TestNothingIsSaidToAServerThatIsRefused(t *testing.T) {
	for name, change := range map[string]func(*named){
		"another program":            func(n *named) { n.identity.Process.Exe = `C:\server\other.exe` },
		"a program on a device path": func(n *named) { n.identity.Process.Exe = `\Device\HarddiskVolume1\server\server.exe` },
		"a directory that only looks alike": func(n *named) {
			n.identity.Process.Exe = "C:\\\u017ferver\\server.exe"
		},
		"no program":                func(n *named) { n.identity.Process.Exe = "" },
		"this process":              func(n *named) { n.identity.Process.PID = uint32(os.Getpid()) },
		"a process that has ended":  func(n *named) { n.err = errors.New("the process has ended") },
		"a process that is unknown": func(n *named) { n.err = errors.New("access is denied") },
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuard(t)
			e := serveEcho(t, g.back, g.pipes)
			g.servers.set(change)
			_, err := unary(within(t), g.client(), "/test.v1.Echo/Unary", raw.Message("x"))
			if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), g.back) {
				t.Errorf("got %v", err)
			}
			end := g.log.terminals(t, 1)[0]
			if end.Outcome.Result != audit.ResultError || end.Outcome.Code != "Unavailable" || end.Outcome.Error == "" || end.IntentSeq == 0 {
				t.Errorf("outcome %+v", end.Outcome)
			}
			g.stop()
			_ = g.link.Close()
			if e.bytes.Load() != 0 || e.calls.Load() != 0 {
				t.Errorf("the server got %d bytes and %d calls", e.bytes.Load(), e.calls.Load())
			}
		})
	}
}

func TestServerThatIsAwayAndComesBack(t *testing.T) {
	g := newGuard(t)
	c := g.client()
	_, err := unary(within(t), c, "/test.v1.Echo/Unary", nil)
	if status.Code(err) != codes.Unavailable || !strings.Contains(err.Error(), "cannot be reached") || !strings.Contains(err.Error(), g.back) {
		t.Errorf("before it was there: %v", err)
	}
	if err := g.link.Ready(within(t)); err == nil || !strings.Contains(err.Error(), "cannot be reached") {
		t.Errorf("ready: %v", err)
	}
	for range 2 {
		e := serveEcho(t, g.back, g.pipes)
		for {
			if _, err = unary(within(t), c, "/test.v1.Echo/Unary", raw.Message("x")); err == nil {
				break
			}
			if status.Code(err) != codes.Unavailable {
				t.Fatal(err)
			}
			_ = g.link.Ready(within(t)) // waits for the next attempt, or its failure
		}
		e.stop()
	}
	if _, err := unary(within(t), c, "/test.v1.Echo/Unary", nil); status.Code(err) != codes.Unavailable {
		t.Errorf("after it had gone: %v", err)
	}
}

func TestServerThatDiesDuringACall(t *testing.T) {
	g := newGuard(t)
	e := serveEcho(t, g.back, g.pipes)
	begun := make(chan struct{})
	e.handler(func(_ any, s grpc.ServerStream) error {
		close(begun)
		<-s.Context().Done()
		return nil
	})
	go func() {
		<-begun
		e.server.Stop()
	}()
	if _, err := unary(within(t), g.client(), "/test.v1.Echo/Unary", nil); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
	if end := g.log.terminals(t, 1)[0]; end.Outcome.Code != "Unavailable" || end.Outcome.Result != audit.ResultError {
		t.Errorf("outcome %+v", end.Outcome)
	}
}

func TestServerThatSaysNothingIsGivenUp(t *testing.T) {
	prefix, o := pipes(t)
	listener, err := listen(prefix+"back", o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = listener.Close() })
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			t.Cleanup(func() { _ = conn.Close() })
		}
	}()
	l := link(t, Target{Pipe: prefix + "back"}, Options{SocketDir: o.SocketDir, Servers: server(), ConnectTimeout: 50 * time.Millisecond})
	if _, err := unary(within(t), l.client, "/a.B/C", nil); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}

func TestTargetsThatMeanNothingAreRefused(t *testing.T) {
	for _, exe := range []string{"server.exe", `C:server.exe`, `C:\server\*`, `C:\a\..\b.exe`, " ", `\\host\share\x.exe`} {
		if _, err := NewLink(Target{Pipe: "x", Exe: exe}, Options{}); err == nil {
			t.Errorf("exe %q was taken", exe)
		}
	}
	for _, name := range []string{"", `..\x`, "a/b", `\\.\pipe\a`, "-a", "a.", "a b", "\u212a"} {
		if _, err := NewLink(Target{Pipe: name}, Options{}); err == nil {
			t.Errorf("pipe %q was taken", name)
		}
	}
}
