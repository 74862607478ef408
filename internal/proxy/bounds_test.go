package proxy

import (
	"context"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	dto "github.com/prometheus/client_model/go"
	"go.uber.org/zap"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
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
	for range 200 {
		f.raw(t, "filesystem-v1")
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
	if n := f.metric(t, "pipeguard_connection_records_total"); n != 202 {
		t.Errorf("%v connection records, want 202", n)
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
	if record.Outcome.Result != audit.ResultRejected || !strings.Contains(record.Outcome.Error, "the pipe has 2 connections") || record.Who.Assurance != "none" {
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

func TestTableGivesWayInOrder(t *testing.T) {
	table := &table{limits: Limits{Connections: 3, ConnectionsPerCaller: 2}, conns: map[*conn]callerKey{}}
	p := &pipe{table: table}
	accept := func() (*conn, *conn, error) {
		ours, theirs := net.Pipe()
		t.Cleanup(func() { _, _ = ours.Close(), theirs.Close() })
		c := newConn(ours, p, peer.Arrival{}, table.next())
		victim, err := table.add(c)
		return c, victim, err
	}
	first, _, _ := accept()
	second, _, _ := accept()
	third, _, err := accept()
	if err != nil {
		t.Fatal(err)
	}
	second.bare.Store(false)
	_, victim, err := accept()
	if victim != first || err != nil {
		t.Errorf("victim %p, error %v; want the oldest silent connection", victim, err)
	}
	_, victim, err = accept()
	if victim != third || err != nil {
		t.Errorf("victim %p, error %v; want the next silent connection", victim, err)
	}
	if _, err := table.identify(first, peer.Identity{}); err == nil {
		t.Error("a connection that gave way was counted to its caller")
	}
	table.stop()
	if _, _, err := accept(); err == nil {
		t.Error("a connection was taken after the stop")
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
	server := &Server{log: zap.NewNop(), ledger: &ledger{}, listen: func(name string) (net.Listener, error) {
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
