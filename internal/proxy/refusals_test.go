package proxy

import (
	"bytes"
	"fmt"
	"net"
	"strings"
	"testing"
	"time"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/acl"
)

// intruder is a process that no rule of allowDriver names.
var intruder = caller.Caller{
	Assurance: caller.AssuranceProcess, Process: caller.Process{PID: 666, Start: time.Now(), Exe: `C:\evil.exe`}, User: caller.User{SID: "S-1-5-21-666"},
}

// strict gives callers a budget that a test can use up.
func strict(f *fixture, records float64) {
	b := f.server.audit.refusals
	b.mu.Lock()
	defer b.mu.Unlock()
	b.budgets = refusalBudgets
	b.budgets.records = budget{acl.Rate{Most: records, PerSecond: 1e-3}, maxKindsOfCaller}
}

// welcomeAgain ends the time for which client processes are turned away at the accept.
func (f *fixture) welcomeAgain() {
	s := f.server.pipes[0].arrivals
	s.mu.Lock()
	defer s.mu.Unlock()
	clear(s.away)
}

func summary(e audit.Event) bool { return e.Stage == audit.StageSummary }

// counts is how many requests and connections the records stand for.
func counts(events []audit.Event) (requests, connections uint64) {
	for _, e := range events {
		switch {
		case connection(e):
			connections += e.Count()
		case terminal(e):
			requests += e.Count()
		}
	}
	return requests, connections
}

func TestAFloodOfAStrangerEndsWhereItBegins(t *testing.T) {
	f := start(t, "unix")
	strict(f, 20)
	f.peers.set(func(p *fakePeers) { p.identity = intruder })
	var refused, exhausted int
	for range 30 { // each is a client that connects anew when it is cut off
		c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
		for i := range 5 {
			_, err := c.Rmdir(within(t), &v1.RmdirRequest{Path: fmt.Sprint(`C:\`, i)})
			switch status.Code(err) {
			case codes.PermissionDenied:
				refused++
			case codes.ResourceExhausted:
				exhausted++
			case codes.Unavailable: // it has no connection any more
			default:
				t.Fatalf("got %v", err)
			}
		}
	}
	if refused > 20 || exhausted == 0 {
		t.Errorf("%d calls were denied one by one and %d told that there were too many, of a budget of 20", refused, exhausted)
	}
	f.peers.set(func(p *fakePeers) { p.identity = driver })
	f.welcomeAgain() // the driver is another process than the stranger; here it has the same number
	f.mustWork(t)    // the driver beside it
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	var single int
	for _, e := range f.log.all() {
		if e.Type != audit.TypeLog && e.Stage != audit.StageSummary && e.Who.User.SID == intruder.User.SID {
			single++
		}
	}
	if single > 20+2*8 { // and the first of each kind
		t.Errorf("%d records of single refusals", single)
	}
	requests, connections := counts(f.log.all())
	if float64(requests) != f.metric(t, "pipeguard_streams_total") || float64(connections) != f.metric(t, "pipeguard_connections_accepted_total") {
		t.Errorf("records stand for %d requests and %d connections", requests, connections)
	}
	if connections < 30 {
		t.Errorf("%d connections are recorded, and more were made", connections)
	}
}

func TestAFloodOfConnectionsIsCounted(t *testing.T) {
	f := start(t, "unix")
	strict(f, 10)
	f.peers.set(func(p *fakePeers) { p.identity = intruder })
	for range 200 {
		_ = f.raw(t, "filesystem-v1").Close()
	}
	for began := time.Now(); f.metric(t, "pipeguard_connections_accepted_total") < 200; {
		if time.Since(began) > patience {
			t.Fatal("the connections are not accepted")
		}
	}
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	if n := len(f.log.all()); n > 10+2*8 {
		t.Errorf("%d records of 200 empty connections", n)
	}
	if _, connections := counts(f.log.all()); connections != 200 {
		t.Errorf("the records stand for %d connections", connections)
	}
}

func TestACallerThatARuleNamesKeepsItsConnection(t *testing.T) {
	f := start(t, "unix")
	strict(f, 5)
	c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
	told := map[string]bool{}
	for i := range 40 {
		_, err := c.Rmdir(within(t), &v1.RmdirRequest{Path: fmt.Sprint(`C:\`, i)})
		if status.Code(err) != codes.PermissionDenied {
			t.Fatalf("call %d: %v", i, err)
		}
		_, id, _ := strings.Cut(err.Error(), "audit id ")
		told[strings.TrimSuffix(id, ")")] = true
		if _, err := c.Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`}); err != nil {
			t.Fatalf("an allowed call beside denied ones: %v", err)
		}
	}
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	accepted := f.metric(t, "pipeguard_connections_accepted_total")
	if accepted != 1 {
		t.Errorf("%v connections, want 1", accepted)
	}
	for _, e := range f.log.all() {
		delete(told, e.ID)
	}
	if len(told) > 0 {
		t.Errorf("callers were told audit ids that no record has: %v", told)
	}
	summaries := 0
	for _, e := range f.log.all() {
		if summary(e) {
			summaries++
			if e.Outcome.Count != 35 || e.What.Method != "Rmdir" || len(e.What.Targets)+e.What.MoreTargets != 35 {
				t.Errorf("%+v %+v", e.What, e.Outcome)
			}
		}
	}
	if summaries != 1 {
		t.Errorf("%d summaries, want 1", summaries)
	}
}

// memoryConn keeps what is written to it.
type memoryConn struct {
	net.Conn
	buffer bytes.Buffer
}

func (c *memoryConn) Write(b []byte) (int, error) { return c.buffer.Write(b) }

// burst are the bytes of a connection with n requests.
func burst(t *testing.T, n int, request func(*wire)) []byte {
	t.Helper()
	c := &memoryConn{}
	w := &wire{t: t, conn: c, stream: 1, framer: http2.NewFramer(c, nil)}
	w.hpack = hpack.NewEncoder(&w.buffer)
	w.write([]byte(preface))
	w.must(w.framer.WriteSettings())
	for range n {
		request(w)
	}
	return c.buffer.Bytes()
}

func TestOtherWaysToBeRefusedAreCountedToo(t *testing.T) {
	for name, flood := range map[string]func(w *wire){
		"not gRPC":         func(w *wire) { w.request(true, ":method", "GET") },
		"made-up methods":  func(w *wire) { w.request(true, ":path", fmt.Sprintf("/v1.Filesystem/M%d", time.Now().UnixNano())) },
		"malformed method": func(w *wire) { w.request(true, ":path", fmt.Sprintf("/m%d", time.Now().UnixNano())) },
	} {
		t.Run(name, func(t *testing.T) {
			f := start(t, "unix")
			strict(f, 5)
			f.peers.set(func(p *fakePeers) { p.identity = intruder })
			for range 20 {
				c := f.raw(t, "filesystem-v1")
				_, _ = c.Write(burst(t, 10, flood)) // the server may have closed it
				_ = c.Close()
			}
			if err := f.stop(); err != nil {
				t.Fatal(err)
			}
			if n := len(f.log.all()); n > 5+maxReasons*4+16 {
				t.Errorf("%d records", n)
			}
			requests, _ := counts(f.log.all())
			if float64(requests) != f.metric(t, "pipeguard_streams_total") {
				t.Errorf("records stand for %d requests, and %v arrived", requests, f.metric(t, "pipeguard_streams_total"))
			}
		})
	}
}
