package proxy

import (
	"context"
	"errors"
	"fmt"
	"net"
	"path/filepath"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	hub "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	"github.com/prometheus/client_golang/prometheus"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"
	"google.golang.org/protobuf/protoadapt"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/test/audit/recorded"
	"github.com/pipeguard/pipeguard/test/memnet"
)

const patience = 20 * time.Second // more than any step takes; reached only by a test that fails

// memoryLog is an audit.Writer that keeps records and fails when it is told to.
type memoryLog struct {
	mu      sync.Mutex
	events  []audit.Event
	changed chan struct{}
	fail    func(audit.Event) error
}

func newMemoryLog() *memoryLog { return &memoryLog{changed: make(chan struct{})} }

func (l *memoryLog) Append(_ context.Context, e *audit.Event) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		if err := l.fail(*e); err != nil {
			return 0, err
		}
	}
	copied := *e
	copied.Seq, copied.Session = uint64(len(l.events)+1), "test"
	l.events = append(l.events, copied)
	close(l.changed)
	l.changed = make(chan struct{})
	return copied.Seq, nil
}

func (l *memoryLog) failing(f func(audit.Event) error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = f
}

func (l *memoryLog) all() []audit.Event {
	l.mu.Lock()
	defer l.mu.Unlock()
	return slices.Clone(l.events)
}

// await returns the records that match once there are n of them.
func (l *memoryLog) await(t *testing.T, n int, match func(audit.Event) bool) []audit.Event {
	t.Helper()
	timeout := time.After(patience)
	for {
		l.mu.Lock()
		changed := l.changed
		l.mu.Unlock()
		var found []audit.Event
		for _, e := range l.all() {
			if match(e) {
				found = append(found, e)
			}
		}
		if len(found) >= n {
			return found
		}
		select {
		case <-changed:
		case <-timeout:
			for _, e := range l.all() {
				t.Logf("%s %s %s outcome %+v", e.Type, e.Stage, e.What.FullMethod, e.Outcome)
			}
			t.Fatalf("%d records match, want %d", len(found), n)
		}
	}
}

func terminal(e audit.Event) bool {
	return e.Type == audit.TypeRequest && e.Stage != audit.StageRequestReceived
}

func connection(e audit.Event) bool { return e.Type == audit.TypeConnection }

// fakePeers names every caller as it is told.
type fakePeers struct {
	mu       sync.Mutex
	identity caller.Caller
	err      error
	dead     error
	held     int
}

type fakePeer struct {
	peers    *fakePeers
	identity caller.Caller
	once     sync.Once
}

func (f *fakePeers) Resolve(net.Conn, peer.Arrival) (peer.Peer, error) {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.err != nil {
		return nil, f.err
	}
	f.held++
	return &fakePeer{peers: f, identity: f.identity}, nil
}

func (p *fakePeer) Identity() caller.Caller { return p.identity }

func (p *fakePeer) Alive() error {
	p.peers.mu.Lock()
	defer p.peers.mu.Unlock()
	return p.peers.dead
}

func (p *fakePeer) Close() error {
	p.once.Do(func() {
		p.peers.mu.Lock()
		defer p.peers.mu.Unlock()
		p.peers.held--
	})
	return nil
}

func (f *fakePeers) set(change func(*fakePeers)) {
	f.mu.Lock()
	defer f.mu.Unlock()
	change(f)
}

// driver is the caller of all tests that do not say otherwise.
var driver = caller.Caller{
	Assurance: caller.AssuranceProcess,
	Process:   caller.Process{PID: 4711, Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Exe: `C:\driver\node.exe`},
	User:      caller.User{SID: "S-1-5-18"},
}

// allowDriver lets the driver do everything but Rmdir on the filesystem pipes; RmdirContents on v2alpha1 is LogOnly.
var allowDriver = acl.Spec{
	Modes: []acl.PipeMode{{Pipe: "filesystem-v2alpha1", Mode: access.LogOnly}},
	Rules: []acl.Rule{{
		Name: "driver", Pipes: []string{"filesystem-*"}, Operations: []string{"PathExists", "Mkdir", "IsSymlink"},
		Callers: []acl.CallerPattern{{User: "S-1-5-18", Exe: `C:\driver\*`}},
	}},
}

// fixture is a running server and what it is made of.
type fixture struct {
	server   *Server
	log      *memoryLog
	peers    *fakePeers
	handle   atomic.Pointer[apiserver.Handler]
	ran      atomic.Int64 // operations that were carried out
	registry *prometheus.Registry
	dialers  map[string]func(context.Context) (net.Conn, error)
	ended    func() error // waits for Run
	stop     func() error
	settled  bool // nothing is left to compare
}

// start runs a server of all filesystem versions, in memory or over sockets. At the end of the test the server is
// stopped and its counts are compared with its records.
func start(t testing.TB, network string, change ...func(*Options)) *fixture {
	t.Helper()
	apis, err := apiserver.Load("filesystem")
	if err != nil {
		t.Fatal(err)
	}
	policy, err := acl.New(allowDriver)
	if err != nil {
		t.Fatal(err)
	}
	f := &fixture{log: newMemoryLog(), peers: &fakePeers{identity: driver}, registry: prometheus.NewRegistry(), dialers: map[string]func(context.Context) (net.Conn, error){}}
	directory := t.TempDir()
	o := Options{
		APIs: apis,
		Handle: func(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
			f.ran.Add(1)
			if h := f.handle.Load(); h != nil {
				return (*h)(ctx, call)
			}
			return answer(call)
		},
		Listen: func(name string) (net.Listener, error) {
			if network == "memory" {
				l := memnet.Listen()
				f.dialers[name] = l.DialContext
				return l, nil
			}
			if runtime.GOOS == "windows" { // Wine has no unix sockets
				l, err := net.Listen("tcp", "127.0.0.1:0")
				if err != nil {
					return nil, err
				}
				f.dialers[name] = func(ctx context.Context) (net.Conn, error) {
					return new(net.Dialer).DialContext(ctx, "tcp", l.Addr().String())
				}
				return l, nil
			}
			path := filepath.Join(directory, name[len("csi-proxy-"):])
			f.dialers[name] = func(ctx context.Context) (net.Conn, error) { return new(net.Dialer).DialContext(ctx, "unix", path) }
			return net.Listen("unix", path)
		},
		Peers: f.peers, Rules: func(string, string) *Rules { return Listed(policy) }, Audit: f.log, Registerer: f.registry, Node: "node-1",
	}
	for _, c := range change {
		c(&o)
	}
	server, err := New(o)
	if err != nil {
		t.Fatal(err)
	}
	server.audit.refusals.budgets.records.Most, server.audit.refusals.budgets.bytes.Most, server.audit.refusals.budgets.strangers.Most = 1e9, 1e12, 1e12 // most tests are about single records
	f.server = server
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	opened := make(chan struct{})
	listen, left := server.listen, len(apis)
	server.listen = func(name string) (net.Listener, error) {
		l, err := listen(name)
		if left--; left == 0 {
			defer close(opened)
		}
		return l, err
	}
	go func() { ended <- server.Run(ctx) }()
	<-opened
	f.ended = sync.OnceValue(func() error { return <-ended })
	f.stop = func() error { cancel(); return f.ended() }
	t.Cleanup(func() {
		if err := f.stop(); err != nil {
			t.Errorf("stop: %v", err)
		}
		f.settle(t)
	})
	return f
}

// answer is an empty response of the operation's type.
func answer(call *apiserver.Call) (proto.Message, error) {
	var response protoadapt.MessageV1
	switch call.Operation.Name {
	case "PathExists":
		response = &hub.PathExistsResponse{Exists: true}
	case "Mkdir":
		response = &hub.MkdirResponse{}
	case "Rmdir":
		response = &hub.RmdirResponse{}
	case "RmdirContents":
		response = &hub.RmdirContentsResponse{}
	case "CreateSymlink":
		response = &hub.CreateSymlinkResponse{}
	case "IsSymlink":
		response = &hub.IsSymlinkResponse{IsSymlink: true}
	default:
		return nil, fmt.Errorf("no answer for %s", call.Operation.Name)
	}
	return protoadapt.MessageV2Of(response), nil
}

func (f *fixture) handler(h apiserver.Handler) { f.handle.Store(&h) }

// raw opens a connection without saying anything on it.
func (f *fixture) raw(t testing.TB, gv string) net.Conn {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c, err := f.dialers["csi-proxy-"+gv](ctx)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// client opens a gRPC connection as the published clients do.
func (f *fixture) client(t testing.TB, gv string, options ...grpc.DialOption) *grpc.ClientConn {
	t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return f.dialers["csi-proxy-"+gv](ctx) }))
	c, err := grpc.NewClient("passthrough:///pipe", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// mustWork shows that a good call still works.
func (f *fixture) mustWork(t *testing.T) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	c := f.client(t, "filesystem-v2alpha1")
	if _, err := hub.NewFilesystemClient(c).Mkdir(ctx, &hub.MkdirRequest{Path: `C:\ok`}); err != nil {
		t.Errorf("the next good call: %v", err)
	}
	_ = c.Close()
}

// settle compares, after the stop, the server's counts with the records, and the records with each other.
func (f *fixture) settle(t testing.TB) {
	t.Helper()
	if f.settled {
		return
	}
	events := f.log.all()
	var terminals, connections float64
	for _, e := range events {
		switch {
		case connection(e):
			connections += float64(e.Count())
		case terminal(e):
			terminals += float64(e.Count())
		}
	}
	if n := f.metric(t, "pipeguard_connections_accepted_total"); n != connections {
		t.Errorf("%v connections accepted, %v in connection records", n, connections)
	}
	if n := f.metric(t, "pipeguard_streams_total"); n != terminals {
		t.Errorf("%v streams, %v terminal records", n, terminals)
	}
	f.reconciled(t)
	if n := f.metric(t, "pipeguard_streams_in_flight"); n != 0 {
		t.Errorf("%v streams in flight after the stop", n)
	}
	report, err := recorded.Reconcile(recorded.All(events))
	if err != nil {
		t.Error(err)
	}
	for _, fault := range report.Faults {
		t.Error(fault)
	}
	for _, intent := range report.Open {
		t.Errorf("intent without an end: %+v", intent)
	}
	f.peers.set(func(p *fakePeers) {
		if p.held != 0 {
			t.Errorf("%d processes are still held", p.held)
		}
	})
}

// becomes waits until a metric has a value, since some change after the record or the answer that a test saw, and returns it.
func (f *fixture) becomes(t testing.TB, name string, want float64) float64 {
	t.Helper()
	for began := time.Now(); time.Since(began) < patience; time.Sleep(time.Millisecond) {
		if f.metric(t, name) == want {
			break
		}
	}
	return f.metric(t, name)
}

// metric is the sum of a counter or gauge over its labels.
func (f *fixture) metric(t testing.TB, name string) float64 {
	t.Helper()
	families, err := f.registry.Gather()
	if err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, family := range families {
		if family.GetName() != name {
			continue
		}
		for _, m := range family.GetMetric() {
			sum += m.GetCounter().GetValue() + m.GetGauge().GetValue()
		}
		return sum
	}
	t.Fatalf("no metric %s", name)
	return 0
}

var errDisk = errors.New("no space left on device")
