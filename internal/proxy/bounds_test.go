package proxy

import (
	"context"
	"io"
	"net"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

func newPrivateRegistry() *prometheus.Registry { return prometheus.NewRegistry() }

func nopLog() *zap.Logger { return zap.NewNop() }

func value(t *testing.T, m prometheus.Metric) float64 {
	t.Helper()
	var out dto.Metric
	if err := m.Write(&out); err != nil {
		t.Fatal(err)
	}
	return out.GetCounter().GetValue() + out.GetGauge().GetValue()
}

func TestTwoHundredIdleConnectionsAreBounded(t *testing.T) {
	f := start(t, "unix")
	for i := range 200 {
		f.raw(t, "filesystem-v1")
		f.named(t, i+1)
	}
	// One caller may hold 64: the oldest silent ones have given way, quietly.
	gone := f.log.await(t, 200-defaultConnectionsPerCaller, connection)
	for _, e := range gone {
		if e.Outcome.Result != audit.ResultIdle || !strings.Contains(e.Outcome.Error, "gave way") {
			t.Fatalf("outcome %+v", e.Outcome)
		}
	}
	if _, err := v1.NewFilesystemClient(f.client(t, "filesystem-v1")).Mkdir(within(t), &v1.MkdirRequest{Path: `C:\a`}); err != nil {
		t.Errorf("the same caller's next good call on the same pipe: %v", err)
	}
	f.mustWork(t)
	_ = f.stop()
	if n := f.becomes(t, "pipeguard_connection_records_total", 202); n != 202 {
		t.Errorf("%v connection records, want 202", n)
	}
}

// named waits until n connections have been accepted and none waits to be named: a client that does not is turned away at some point.
func (f *fixture) named(t *testing.T, n int) {
	t.Helper()
	l := f.server.pipes[0].conns.pending
	for deadline := within(t); ; runtime.Gosched() {
		l.mu.Lock()
		waiting := l.waiting
		l.mu.Unlock()
		if waiting == 0 && f.metric(t, "pipeguard_connections_accepted_total") >= float64(n) {
			return
		}
		if deadline.Err() != nil {
			t.Fatalf("%d connections wait to be named", waiting)
		}
	}
}

func TestCallerWithTooManyBusyConnectionsIsRefused(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.ConnectionsPerCaller = 3 })
	for range 3 {
		c := f.client(t, "filesystem-v1")
		if err := mkdirs["v1"](within(t), c); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.Copy(io.Discard, f.raw(t, "filesystem-v1")) // ends when the server closes it
	record := f.log.await(t, 1, connection)[0]
	if record.Outcome.Result != audit.ResultRejected || !strings.Contains(record.Outcome.Error, "holds 3 connections") {
		t.Errorf("outcome %+v", record.Outcome)
	}
	f.peers.set(func(p *fakePeers) { p.identity.Process.PID++; p.identity.Process.Exe = `C:\driver\other.exe` })
	if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); err != nil {
		t.Errorf("another program: %v", err)
	}
}

func TestFullPipeRefusesWhenNothingIsIdle(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.Connections = 2 })
	for range 2 {
		if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.Copy(io.Discard, f.raw(t, "filesystem-v1"))
	record := f.log.await(t, 1, connection)[0]
	if record.Outcome.Result != audit.ResultRejected || !strings.Contains(record.Outcome.Error, "the pipe has 2 connections") || record.Who.Assurance != "process" {
		t.Errorf("outcome %+v, who %+v", record.Outcome, record.Who)
	}
	f.mustWork(t)
}

func TestSilentConnectionEndsWithThePrefaceTimeout(t *testing.T) {
	f := start(t, "unix", func(o *Options) { o.Limits.PrefaceTimeout = 50 * time.Millisecond })
	c := f.raw(t, "filesystem-v1")
	if _, err := io.Copy(io.Discard, c); err != nil {
		t.Fatal(err)
	}
	record := f.log.await(t, 1, connection)[0]
	if record.Outcome.Result != audit.ResultIdle || !strings.Contains(record.Outcome.Error, "nothing was sent within") {
		t.Errorf("outcome %+v", record.Outcome)
	}
}

func TestStockClientsBareConnectionIsQuiet(t *testing.T) {
	f := start(t, "unix")
	bare := f.raw(t, "filesystem-v1") // NewClient dials once to see whether the pipe is there
	c := f.client(t, "filesystem-v1")
	if err := mkdirs["v1"](within(t), c); err != nil {
		t.Fatal(err)
	}
	_ = c.Close()
	_ = bare.Close()
	for _, e := range f.log.await(t, 2, connection) {
		if e.Outcome.Result != audit.ResultOK && e.Outcome.Result != audit.ResultIdle {
			t.Errorf("outcome %+v", e.Outcome)
		}
	}
}

// seats is a table with connections that are nowhere but in it.
type seats struct {
	t     *testing.T
	p     *pipe
	conns *connLimiter
}

func newSeats(t *testing.T, limits Limits) *seats {
	p := &pipe{conns: newConnLimiter(limits, newPendingConns()), gv: apiserver.GroupVersion{Group: "filesystem", Version: "v1"}, rules: func(string, string) *Rules { return nil }}
	return &seats{t, p, p.conns}
}

// accept takes a connection of a client process, if there is room to name its caller.
func (s *seats) accept(client uint32) (*conn, error) {
	if !s.conns.pending.enter(client) {
		return nil, errCrowded
	}
	ours, theirs := net.Pipe()
	s.t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
	c := newConn(ours, s.p, peer.Arrival{PID: client})
	return c, s.conns.add(c)
}

// sit takes a connection and names its caller.
func (s *seats) sit(who caller.Principal, stranger bool) (c, victim *conn, err error) {
	s.t.Helper()
	c, err = s.accept(1)
	if err != nil {
		s.t.Fatal(err)
	}
	victim, err = s.conns.identify(c, who, stranger)
	if err != nil {
		s.conns.remove(c)
	}
	return c, victim, err
}

func TestTableGivesWayInOrder(t *testing.T) {
	s, who := newSeats(t, Limits{Connections: 3, ConnectionsPerCaller: 3}), caller.Principal{User: "a", Exe: "a"}
	first, _, _ := s.sit(who, false)
	second, _, _ := s.sit(who, false)
	third, _, err := s.sit(who, false)
	if err != nil {
		t.Fatal(err)
	}
	second.asked.Store(true)
	fourth, victim, err := s.sit(who, false)
	if victim != first || err != nil {
		t.Errorf("victim %p, error %v; want the oldest silent connection", victim, err)
	}
	_, victim, err = s.sit(who, false)
	if victim != third || err != nil {
		t.Errorf("victim %p, error %v; want the next silent connection", victim, err)
	}
	_, victim, err = s.sit(caller.Principal{User: "b", Exe: "b"}, false)
	if victim != fourth || err != nil {
		t.Errorf("victim %p, error %v; want a silent connection of the caller that has most", victim, err)
	}
	if _, err := s.conns.identify(first, who, false); err == nil {
		t.Error("a connection that gave way was counted to its caller")
	}
	s.conns.stop()
	if _, err := s.accept(1); err == nil {
		t.Error("a connection was taken after the stop")
	}
}

func TestStrangersTakeNoPlaceOfOthers(t *testing.T) {
	s := newSeats(t, Limits{Connections: 64, ConnectionsPerCaller: 64})
	var seated []*conn
	for i := range 4 {
		c, victim, err := s.sit(caller.Principal{User: "x", Exe: strconv.Itoa(i)}, true)
		if victim != nil || err != nil {
			t.Fatal(victim, err)
		}
		seated = append(seated, c)
	}
	seated[0].busy.Add(1) // a request of it is being denied
	if _, victim, err := s.sit(caller.Principal{}, true); victim != seated[1] || err != nil {
		t.Errorf("victim %p, error %v; want the oldest stranger on whose connection nothing is going on", victim, err)
	}
	for _, c := range seated {
		c.busy.Store(1)
	}
	for c := range s.conns.conns {
		c.busy.Store(1)
	}
	if _, _, err := s.sit(caller.Principal{}, true); err == nil {
		t.Error("strangers have more than their share")
	}
	for i := range 64 {
		if _, victim, err := s.sit(caller.Principal{User: "driver", Exe: "d"}, false); victim != nil || err != nil {
			t.Fatalf("connection %d of a driver: victim %v, %v", i, victim, err)
		}
	}
}

func TestNoNamespaceAndNoAccountFillsAPipe(t *testing.T) {
	for name, who := range map[string]func(i int) caller.Principal{
		"containers of one namespace": func(i int) caller.Principal {
			return caller.Principal{PodUID: strconv.Itoa(i), Container: strconv.Itoa(i), Namespace: "tenant"}
		},
		"programs of one account": func(i int) caller.Principal { return caller.Principal{User: "S-1-5-18", Exe: strconv.Itoa(i)} },
	} {
		s, got := newSeats(t, Limits{Connections: 32, ConnectionsPerCaller: 4}), 0
		for i := range 64 {
			c, _, err := s.sit(who(i), false)
			if err == nil {
				got++
				c.asked.Store(true)
			}
		}
		if got != 16 {
			t.Errorf("%s have %d of 32 places", name, got)
		}
		if _, _, err := s.sit(caller.Principal{PodUID: "d", Container: "d", Namespace: "kube-system"}, false); err != nil {
			t.Errorf("beside %s: %v", name, err)
		}
	}
}

// Three programs hold all the places of an account, or of a pipe. Of what they have most of, something gives way to others, and nothing that is in use.
func TestWhereAllPlacesAreTakenTheLargestCallerGivesWay(t *testing.T) {
	for name, tc := range map[string]struct {
		limits  Limits // with 16 places
		holders [3]caller.Principal
	}{
		"of an account": {Limits{Connections: 32, ConnectionsPerCaller: 6}, [3]caller.Principal{{User: "x", Exe: "a"}, {User: "x", Exe: "b"}, {User: "x", Exe: "c"}}},
		"of a pipe":     {Limits{Connections: 16, ConnectionsPerCaller: 6}, [3]caller.Principal{{User: "u", Exe: "a"}, {User: "v", Exe: "b"}, {User: "w", Exe: "c"}}},
	} {
		s := newSeats(t, tc.limits)
		var held []*conn // in turn, so that a has six of them, b and c five
		for i := range 16 {
			c, victim, err := s.sit(tc.holders[i%3], false)
			if victim != nil || err != nil {
				t.Fatalf("%s: %d: %v, %v", name, i, victim, err)
			}
			c.asked.Store(true)
			held = append(held, c)
		}
		held[0].busy.Store(1)
		held[4].asked.Store(false)
		for i, want := range []*conn{
			held[3], // a has most, and this is its oldest without a request in progress
			held[4], // all have five: nothing was ever asked on it
			held[2], // a and c have five, and this is the oldest
		} {
			c, victim, err := s.sit(caller.Principal{User: "x", Exe: "new" + strconv.Itoa(i)}, false)
			if victim != want || err != nil {
				t.Errorf("%s: newcomer %d takes the place of %d, %v", name, i, slices.Index(held, victim), err)
			}
			c.asked.Store(true)
		}
		if _, victim, err := s.sit(tc.holders[0], false); err == nil {
			t.Errorf("%s: %d gave way to the caller that has most", name, slices.Index(held, victim))
		}
		for c := range s.conns.conns {
			c.busy.Store(1)
		}
		if _, victim, err := s.sit(caller.Principal{User: "x", Exe: "late"}, false); err == nil {
			t.Errorf("%s: %d gave way although it was in use", name, slices.Index(held, victim))
		}
	}
}

func TestTwoNamespacesWithManyContainersKeepNoThirdOut(t *testing.T) {
	s := newSeats(t, Limits{Connections: 32, ConnectionsPerCaller: 4})
	of := func(namespace string, i int) caller.Principal {
		return caller.Principal{PodUID: strconv.Itoa(i), Container: namespace + strconv.Itoa(i), Namespace: namespace}
	}
	var held []*conn
	for i := range 16 {
		for _, namespace := range []string{"one", "other"} {
			c, victim, err := s.sit(of(namespace, i), false)
			if victim != nil || err != nil {
				t.Fatal(i, victim, err)
			}
			c.asked.Store(true)
			held = append(held, c)
		}
	}
	for i := range 4 {
		if _, victim, err := s.sit(of("kube-system", 0), false); err != nil || victim != held[i] {
			t.Errorf("connection %d of a third: victim %d, %v", i, slices.Index(held, victim), err)
		}
	}
}

func TestAProcessThatConnectsInALoopLeavesOthersRoomToBeNamed(t *testing.T) {
	s := newSeats(t, Limits{Connections: 256, ConnectionsPerCaller: 64})
	for client := range uint32(8) {
		for {
			if _, err := s.accept(client + 1); err != nil {
				break
			}
		}
	}
	for client := range uint32(8) {
		if _, err := s.accept(client + 100); err != nil {
			t.Errorf("another process, beside eight: %v", err)
		}
	}
	if n := len(s.conns.conns); n > mostUnnamed {
		t.Errorf("%d connections wait to be named", n)
	}
	for c := range s.conns.conns {
		s.conns.remove(c)
	}
	if s.conns.pending.waiting != 0 || len(s.conns.pending.clients) != 0 {
		t.Errorf("%d are left, of %v", s.conns.pending.waiting, s.conns.pending.clients)
	}
}

func TestNewReportsEveryMissingPart(t *testing.T) {
	_, err := New(Options{Limits: Limits{Connections: -1, StopTimeout: -1}})
	if err == nil {
		t.Fatal("no error")
	}
	for _, want := range []string{"APIs", "Handle", "Listen", "Peers", "Rules", "Audit", "Connections is -1", "StopTimeout is -1ns"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("%q does not name %s", err, want)
		}
	}
}

func TestRunOpensAllPipesOrNone(t *testing.T) {
	f := start(t, "unix")
	opened, closed := 0, 0
	server := &Server{shared: shared{audit: &auditWriter{}}, log: zap.NewNop(), listen: func(name string) (net.Listener, error) {
		if strings.HasSuffix(name, "v1") {
			return nil, errDisk
		}
		opened++
		return countedListener{closed: &closed}, nil
	}}
	for _, gv := range []string{"csi-proxy-filesystem-v1beta1", "csi-proxy-filesystem-v1", "csi-proxy-filesystem-v2alpha1"} {
		server.pipes = append(server.pipes, &pipe{name: gv})
	}
	if err := server.Run(context.Background()); err == nil || !strings.Contains(err.Error(), "open pipe csi-proxy-filesystem-v1: no space") {
		t.Errorf("got %v", err)
	}
	if opened == 0 || opened != closed {
		t.Errorf("%d pipes opened, %d closed", opened, closed)
	}
	f.mustWork(t)
}

type countedListener struct {
	net.Listener
	closed *int
}

func (l countedListener) Close() error { *l.closed++; return nil }

func TestOneFailingPipeStopsAll(t *testing.T) {
	broken := make(chan struct{})
	f := start(t, "unix", func(o *Options) {
		listen := o.Listen
		o.Listen = func(name string) (net.Listener, error) {
			l, err := listen(name)
			if name == "csi-proxy-filesystem-v1beta2" {
				return failingListener{l, broken}, err
			}
			return l, err
		}
	})
	f.mustWork(t)
	close(broken)
	ended := f.ended()
	if ended == nil || !strings.Contains(ended.Error(), "serve pipe csi-proxy-filesystem-v1beta2") {
		t.Errorf("Run: %v", ended)
	}
	f.stop = func() error { return nil }
}

type failingListener struct {
	net.Listener
	broken chan struct{}
}

func (l failingListener) Accept() (net.Conn, error) {
	<-l.broken
	return nil, errDisk
}
