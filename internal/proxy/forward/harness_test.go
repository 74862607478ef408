package forward

import (
	"context"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/pipeguard/pipeguard/internal/proxy"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
)

const patience = 30 * time.Second // more than any step takes; reached only by a test that fails

// pipes makes names that no other test has, and the place where they are.
func pipes(t testing.TB) (prefix string, o pipe.Options) {
	t.Helper()
	prefix = fmt.Sprintf("t%d-%d-", os.Getpid(), serial.Add(1))
	if runtime.GOOS == "windows" {
		return prefix, pipe.Options{}
	}
	dir, err := os.MkdirTemp("", "fwd") // short, since a socket's address is
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = os.RemoveAll(dir) })
	return prefix, pipe.Options{SocketDir: dir}
}

var serial atomic.Int64

// guard is a running proxy before a server.
type guard struct {
	t        testing.TB
	log      *memoryLog
	callers  *named
	servers  *named
	registry *prometheus.Registry
	front    string // the pipe that callers open
	back     string // the server's
	pipes    pipe.Options
	link     *Link
	stop     func()
}

// rules allow the driver everything on the forwarded pipe but the method Denied.
func rules(front string) acl.Spec {
	return acl.Spec{Rules: []acl.Rule{{
		Name: "driver", Pipes: []string{`\\.\pipe\` + front}, Operations: []string{"/test.v1.Echo/*", "/test.v1.Echo/Unary"},
		Callers: []acl.CallerPattern{{User: "S-1-5-18", Exe: `C:\driver\*`}},
	}}}
}

// newGuard runs a proxy that forwards one pipe. At the end its records must add up, and nobody's process be held.
func newGuard(t testing.TB, change ...func(*guard, *proxy.Options)) *guard {
	t.Helper()
	prefix, options := pipes(t)
	g := &guard{
		t: t, log: newMemoryLog(), callers: driver(), servers: server(), registry: prometheus.NewRegistry(),
		front: prefix + "front", back: prefix + "back", pipes: options,
	}
	link, err := NewLink(Target{Pipe: g.back, Exe: serverExe}, Options{SocketDir: options.SocketDir, Servers: g.servers})
	if err != nil {
		t.Fatal(err)
	}
	g.link = link
	policy, err := acl.New(rules(g.front))
	if err != nil {
		t.Fatal(err)
	}
	o := proxy.Options{
		Forward: []proxy.Forwarded{{Pipe: g.front, Serve: link.Serve}},
		Listen:  func(name string) (net.Listener, error) { return listen(name, options) },
		Peers:   g.callers, Rules: func(string, string) *proxy.Rules { return proxy.Listed(policy) }, Audit: g.log, Registerer: g.registry,
	}
	for _, c := range change {
		c(g, &o)
	}
	g.stop = run(t, o, g.log)
	t.Cleanup(func() {
		g.stop()
		if err := link.Close(); err != nil {
			t.Errorf("close the link: %v", err)
		}
		g.callers.settle(t, "callers")
		g.servers.settle(t, "servers")
	})
	return g
}

// run starts a proxy, waits until its pipes are open, and returns what stops it and reconciles its records.
func run(t testing.TB, o proxy.Options, log *memoryLog) func() {
	t.Helper()
	open, listen, left := make(chan struct{}), o.Listen, len(o.APIs)+len(o.Forward)
	o.Listen = func(name string) (net.Listener, error) {
		l, err := listen(name)
		if left--; left == 0 {
			close(open)
		}
		return l, err
	}
	server, err := proxy.New(o)
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- server.Run(ctx) }()
	<-open
	stop := sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Errorf("stop: %v", err)
		}
		if log == nil {
			return
		}
		report, err := recorded.Reconcile(recorded.All(log.events))
		if err != nil || len(report.Faults)+len(report.Open) > 0 {
			t.Errorf("records do not add up: %v, %+v", err, report)
		}
	})
	t.Cleanup(stop)
	return stop
}

// dial opens a pipe as a client.
func dial(t testing.TB, name string, o pipe.Options, more ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	client, err := grpc.NewClient("passthrough:///pipe", append(more, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) {
			return pipe.Dial(ctx, name, o)
		}))...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

func (g *guard) client(more ...grpc.DialOption) *grpc.ClientConn {
	g.t.Helper()
	return dial(g.t, g.front, g.pipes, more...)
}

func within(t testing.TB) context.Context {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	t.Cleanup(cancel)
	return ctx
}
