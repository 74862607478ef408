package forward

import (
	"context"
	"net"
	"runtime"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// named says of every process that it is the one of its identity.
type named struct {
	mu       sync.Mutex
	identity caller.Caller
	err      error
	dead     error
	held     int
	asked    int
}

func (n *named) set(change func(*named)) {
	n.mu.Lock()
	defer n.mu.Unlock()
	change(n)
}

func (n *named) Resolve(net.Conn, peer.Arrival) (peer.Peer, error) {
	n.mu.Lock()
	defer n.mu.Unlock()
	n.asked++
	if n.err != nil {
		return nil, n.err
	}
	n.held++
	return &namedPeer{of: n, identity: n.identity}, nil
}

// settle waits until nobody is held: gRPC closes connections that the other side has left in its own time.
func (n *named) settle(t testing.TB, who string) {
	t.Helper()
	held := 1
	for end := time.Now().Add(patience); held != 0 && time.Now().Before(end); runtime.Gosched() {
		n.set(func(n *named) { held = n.held })
	}
	if held != 0 {
		t.Errorf("%d processes of %s are still held", held, who)
	}
}

type namedPeer struct {
	of       *named
	identity caller.Caller
	once     sync.Once
}

func (p *namedPeer) Identity() caller.Caller { return p.identity }

func (p *namedPeer) Alive() error {
	p.of.mu.Lock()
	defer p.of.mu.Unlock()
	return p.of.dead
}

func (p *namedPeer) Close() error {
	p.once.Do(func() { p.of.set(func(n *named) { n.held-- }) })
	return nil
}

const serverExe = `C:\server\server.exe`

func driver() *named {
	return &named{identity: caller.Caller{
		Assurance: caller.AssuranceProcess, User: caller.User{SID: "S-1-5-18"},
		Process: caller.Process{PID: 4711, Start: time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC), Exe: `C:\driver\node.exe`},
	}}
}

func server() *named {
	return &named{identity: caller.Caller{
		Assurance: caller.AssuranceProcess, User: caller.User{SID: "S-1-5-18"}, Process: caller.Process{PID: 815, Exe: serverExe},
	}}
}

// memoryLog keeps records, and fails when it is told to.
type memoryLog struct {
	mu      sync.Mutex
	events  []audit.Event
	changed chan struct{}
	fail    error
}

func newMemoryLog() *memoryLog { return &memoryLog{changed: make(chan struct{})} }

func (l *memoryLog) Append(_ context.Context, e *audit.Event) (uint64, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.fail != nil {
		return 0, l.fail
	}
	copied := *e
	copied.Seq, copied.Session = uint64(len(l.events)+1), "test"
	l.events = append(l.events, copied)
	close(l.changed)
	l.changed = make(chan struct{})
	return copied.Seq, nil
}

func (l *memoryLog) failing(err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.fail = err
}

// terminals returns the terminal records of requests once there are n.
func (l *memoryLog) terminals(t testing.TB, n int) []audit.Event {
	t.Helper()
	timeout := time.After(patience)
	for {
		l.mu.Lock()
		changed, events := l.changed, slices.Clone(l.events)
		l.mu.Unlock()
		events = slices.DeleteFunc(events, func(e audit.Event) bool {
			return e.Type != audit.TypeRequest || e.Stage == audit.StageRequestReceived
		})
		if len(events) >= n {
			return events
		}
		select {
		case <-changed:
		case <-timeout:
			t.Fatalf("%d terminal records, want %d", len(events), n)
		}
	}
}
