package proxy

import (
	"context"
	"net"
	"runtime"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// slowLog takes a while for each record.
type slowLog struct {
	audit.Writer
	each time.Duration
}

func (l slowLog) Append(ctx context.Context, e *audit.Event) (uint64, error) {
	time.Sleep(l.each)
	return l.Writer.Append(ctx, e)
}

// On a full pipe each connection that gives way leaves a record. Those who come later do not wait for it to be accepted.
func TestAnAcceptWaitsForNoRecord(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		peers := &notedPeers{}
		f := start(t, "memory", func(o *Options) {
			peers.fakePeers = o.Peers.(*fakePeers)
			o.Peers = peers
			o.Limits.Connections, o.Limits.ConnectionsPerCaller = 2, 2
			o.Audit = slowLog{o.Audit, time.Second}
			listen := o.Listen
			o.Listen = func(name string) (net.Listener, error) {
				l, err := listen(name)
				return tardy{Listener: l}, err
			}
		})
		began := time.Now()
		const connections = 6
		for range connections {
			f.raw(t, "filesystem-v1")
		}
		synctest.Wait()
		peers.mu.Lock()
		defer peers.mu.Unlock()
		if len(peers.times) != connections {
			t.Errorf("%d of %d connections were accepted while the log was busy", len(peers.times), connections)
		}
		for i, at := range peers.times {
			if !at.Equal(began) {
				t.Errorf("connection %d was accepted %v after it was opened", i, at.Sub(began))
			}
		}
	})
}

func TestConnectionsOfAStrangerBeyondItsRateAreCountedTogether(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dial := startDoors(t, outsider("a"))
		const seconds, each = 30, 50
		for range seconds {
			for range each {
				_ = dial(t).Close()
			}
			if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); err != nil {
				t.Fatalf("a driver beside it: %v", err)
			}
			time.Sleep(time.Second)
		}
		_ = f.stop()
		var own, together, summaries uint64
		for _, e := range f.log.all() {
			switch {
			case !connection(e):
			case summary(e):
				summaries, together = summaries+1, together+e.Count()
			case e.Who.User == nil || e.Who.User.SID == outsider("a").User.SID:
				own++
			}
		}
		if own+together != seconds*each {
			t.Errorf("%d records of one connection, and %d connections in others: want %d in all", own, together, seconds*each)
		}
		// The budget of the caller, that of clients that went before they were named, what came back of both meanwhile, and the first of each kind.
		if most := uint64(2*refusalBudgets.records.Most + 2*seconds*refusalBudgets.records.PerSecond + 8); own > most || summaries > 8 {
			t.Errorf("%d records of one connection, want %d at most; %d of several", own, most, summaries)
		}
	})
}

// What docs/node-administrators-guide.md says of headers that do not end: a stranger's connection ends, and one of a caller that rules name does not.
func TestHeadersThatDoNotEndAreBoundedInTimeForStrangersAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dial := startDoors(t, outsider("a"))
		for _, w := range []*wire{f.wire(t), wireOver(t, dial(t))} {
			w.drain()
			w.must(w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1}))
		}
		time.Sleep(time.Hour)
		var ended []audit.Event
		for _, e := range f.log.all() {
			if connection(e) {
				ended = append(ended, e)
			}
		}
		if len(ended) != 1 || ended[0].Who.User.SID != outsider("a").User.SID || !strings.Contains(ended[0].Outcome.Error, "no rule names the caller") {
			t.Errorf("%d connections have ended: %+v", len(ended), ended)
		}
		_ = f.stop()
	})
}

// What a stranger does seldom is recorded in full, whatever other strangers do.
func TestAStrangerThatComesSeldomIsServedBesideAStorm(t *testing.T) {
	s := newArrivalLimiter()
	storm, seldom := outsider("storm").Principal(), outsider("seldom").Principal()
	for range 1000 {
		s.admit(storm, true, client{"a", 1})
	}
	if !s.isAway(client{"a", 1}) || s.isAway(client{"a", 2}) {
		t.Error("the process of the storm is named again, or another is not")
	}
	if s.isAway(client{"b", 1}) {
		t.Error("it is turned away from a pipe where a rule may name it")
	}
	if !s.admit(seldom, true, client{"a", 2}) {
		t.Error("a stranger that comes for the first time is not served")
	}
	if s.admit(storm, true, client{"a", 0}); s.isAway(client{"a", 0}) {
		t.Error("all clients whose process is not known are turned away")
	}
}

// A caller that rules name, and that connects in a loop, is served at a rate of its own.
func TestACallerThatConnectsInALoopIsTurnedAwayAndOthersAreNot(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		n, loop, other := newArrivalLimiter(), container("loop").Principal(), container("other").Principal()
		served := 0
		for range 10 * newBurst {
			if at := (client{"a", 1}); !n.isAway(at) && n.admit(loop, false, at) {
				served++
			}
		}
		if served != newBurst || !n.isAway(client{"a", 1}) || n.isAway(client{"b", 1}) {
			t.Errorf("%d connections are served", served)
		}
		if !n.admit(other, false, client{"a", 2}) || n.isAway(client{"a", 2}) {
			t.Error("another caller is turned away")
		}
		time.Sleep(awayFor + 1)
		for i := range newPerSecond {
			if n.isAway(client{"a", 1}) || !n.admit(loop, false, client{"a", 1}) {
				t.Fatalf("connection %d of those that may come a second later is turned away", i)
			}
		}
		if n.admit(loop, false, client{"a", 1}) || !n.isAway(client{"a", 1}) {
			t.Error("more are served than may come in a second")
		}
	})
}

func TestAStrangersConnectionEndsWhenItIdles(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f, dial := startDoors(t, outsider("a"))
		kept := f.client(t, "filesystem-v1")
		if err := mkdirs["v1"](within(t), kept); err != nil {
			t.Fatal(err)
		}
		c := clientBy(t, dial)
		began := time.Now()
		for range 3 { // it lives as long as it is used
			if err := mkdirs["v1"](t.Context(), c); status.Code(err) != codes.PermissionDenied {
				t.Fatal(err)
			}
			time.Sleep(strangerIdle / 2)
		}
		record := f.log.await(t, 1, connection)[0]
		if took := time.Since(began); took != 2*strangerIdle || record.Outcome.Result != audit.ResultIdle || !strings.Contains(record.Outcome.Error, "no rule names") {
			t.Errorf("after %v: %+v", took, record.Outcome)
		}
		_ = c.Close()
		time.Sleep(24 * time.Hour)
		if err := mkdirs["v1"](within(t), kept); err != nil || f.metric(t, "pipeguard_connections_accepted_total") > 4 {
			t.Errorf("a driver's connection that idled beside it: %v", err)
		}
		_, _ = kept.Close(), f.stop()
	})
}

func TestOfAStormOneConnectionASecondIsNamed(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, storm := newArrivalLimiter(), client{"a", 1}
		s.turnAway(storm)
		for second := range 10 {
			time.Sleep(awayFor + 1)
			named := 0
			for range 100 {
				if !s.isAway(storm) {
					named++
				}
			}
			if named != 1 {
				t.Fatalf("second %d: %d of 100 connections would be named, want 1", second, named)
			}
		}
		if s.welcome(storm); s.isAway(storm) {
			t.Error("a process that rules name by now is turned away")
		}
		s.turnAway(storm)
		time.Sleep(2*awayFor + 1)
		for range 2 {
			if s.isAway(storm) {
				t.Error("a process that has been quiet for long is turned away")
			}
		}
	})
}

// endless is a listener on which there is always another connection of the process 7, until it is closed.
type endless struct {
	accepted, closed atomic.Int64
}

func (l *endless) Accept() (net.Conn, error) {
	if l.closed.Load() > 0 {
		return nil, net.ErrClosed
	}
	l.accepted.Add(1)
	return peer.Accepted{Conn: deadConn{}, Arrival: peer.Arrival{Time: time.Now(), PID: 7}}, nil
}

func (l *endless) Close() error { l.closed.Add(1); return nil }
func (*endless) Addr() net.Addr { return nil }

// deadConn is a connection of which nothing is expected.
type deadConn struct{ net.Conn }

func (deadConn) Close() error { return nil }

// stormed is a pipe from which the process 7 is turned away.
func stormed(t *testing.T) *pipe {
	t.Helper()
	l := testLedger(t, &weighing{})
	p := &pipe{shared: shared{audit: l, metrics: l.metrics, arrivals: newArrivalLimiter()}, name: "csi-proxy-disk-v1"}
	p.turnedAway = p.turnedAwayRecord()
	p.arrivals.away[client{p.name, 7}] = time.Now().Add(time.Hour)
	return p
}

func TestAStormOfConnectionsLetsOthersRun(t *testing.T) {
	defer runtime.GOMAXPROCS(runtime.GOMAXPROCS(1))
	storm := &endless{}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = (&listener{Listener: storm, pipe: stormed(t)}).Accept() // its error is that of the end
	}()
	const times = 200
	for range times {
		runtime.Gosched()
	}
	if n := storm.accepted.Load(); n == 0 || n > 5*times {
		t.Errorf("%d connections were accepted while another goroutine ran %d times", n, times)
	}
	_ = storm.Close()
	<-ended
}

func TestAConnectionThatIsTurnedAwayLeavesNothingInMemory(t *testing.T) {
	p := stormed(t)
	at := peer.Arrival{Time: time.Now(), PID: 7}
	const runs = 1000
	if n := testing.AllocsPerRun(runs, func() {
		if p.take(deadConn{}, at) != nil {
			t.Error("it is served")
		}
	}); n > 2 {
		t.Errorf("%v allocations for each", n)
	}
	if n := p.audit.unwritten(); n != runs+1 {
		t.Errorf("%d are counted, want %d", n, runs+1)
	}
	if err := p.audit.summarise(t.Context(), true); err != nil || p.audit.unwritten() != 0 {
		t.Errorf("%v, %d are in no record", err, p.audit.unwritten())
	}
	log := p.audit.writer.(*weighing) //nolint:forcetypeassert // made above
	if len(log.summaries) != 1 || log.summaries[0].Outcome.Count != runs+1 || log.summaries[0].Outcome.First.After(log.summaries[0].Time) {
		t.Errorf("%+v", log.summaries)
	}
}
