package proxy

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/test/memnet"
)

// doors are two ways into one pipe, so that a test has two callers at once: the second is for strangers.
type doors struct {
	first, second *memnet.Listener
	conns         chan net.Conn
	closed        chan struct{}
	once          sync.Once
}

// stranger is a connection that came in by the second door.
type stranger struct{ net.Conn }

func newDoors() *doors {
	d := &doors{first: memnet.Listen(), second: memnet.Listen(), conns: make(chan net.Conn), closed: make(chan struct{})}
	for _, l := range []*memnet.Listener{d.first, d.second} {
		go func() {
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				at := peer.Note(conn)
				if l == d.second {
					conn, at.PID = stranger{conn}, 99
				}
				conn = peer.Accepted{Conn: conn, Arrival: at}
				select {
				case d.conns <- conn:
				case <-d.closed:
					_ = conn.Close()
				}
			}
		}()
	}
	return d
}

func (d *doors) Accept() (net.Conn, error) {
	select {
	case conn := <-d.conns:
		return conn, nil
	case <-d.closed:
		return nil, net.ErrClosed
	}
}

func (d *doors) Close() error {
	d.once.Do(func() { close(d.closed) })
	return errors.Join(d.first.Close(), d.second.Close())
}

func (d *doors) Addr() net.Addr { return d.first.Addr() }

// container is a pod's container whose every connection is another process's.
func container(id string) caller.Caller {
	who := driver
	who.Assurance = caller.AssurancePod
	who.Container = caller.Container{ID: id, Name: "driver"}
	who.Pod = caller.Pod{Namespace: "storage", Name: "driver-x", UID: "uid-" + id}
	return who
}

// twoCallers names those of the second door as a container, each connection as a process of its own.
type twoCallers struct {
	*fakePeers
	other caller.Caller
	next  *atomic.Uint32
}

func (c twoCallers) Resolve(conn net.Conn, at peer.Arrival) (peer.Peer, error) {
	held, err := c.fakePeers.Resolve(conn, at)
	if p, ok := held.(*fakePeer); ok {
		if _, other := conn.(stranger); other {
			p.identity = c.other
			p.identity.Process.PID = 10_000 + c.next.Add(1)
		}
	}
	return held, err
}

// startDoors runs a server whose filesystem-v1 has two doors; stranger opens a connection through the second.
func startDoors(t *testing.T, other caller.Caller, change ...func(*Options)) (f *fixture, dialStranger func(testing.TB) net.Conn) {
	t.Helper()
	d := newDoors()
	dial := make(chan func(context.Context) (net.Conn, error), 1)
	change = append([]func(*Options){func(o *Options) {
		o.Peers = twoCallers{o.Peers.(*fakePeers), other, &atomic.Uint32{}}
		listen := o.Listen
		o.Listen = func(name string) (net.Listener, error) {
			l, err := listen(name)
			if name != "csi-proxy-filesystem-v1" || err != nil {
				return l, err
			}
			dial <- d.first.DialContext
			return d, l.Close()
		}
	}}, change...)
	f = start(t, "memory", change...)
	f.dialers["csi-proxy-filesystem-v1"] = <-dial
	return f, func(t testing.TB) net.Conn {
		t.Helper()
		c, err := d.second.DialContext(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = c.Close() })
		return c
	}
}

// shake begins HTTP/2 and reads what the server says until it closes.
func shake(c net.Conn) *http2.Framer {
	go func() { _, _ = io.Copy(io.Discard, c) }()
	_, _ = io.WriteString(c, preface)
	framer := http2.NewFramer(c, nil)
	_ = framer.WriteSettings()
	return framer
}

func TestAThousandConnectionsOfOneCallerLeaveRoomForAnother(t *testing.T) {
	f, dial := startDoors(t, container("flood"))
	kept := f.client(t, "filesystem-v1")
	if err := mkdirs["v1"](within(t), kept); err != nil {
		t.Fatal(err)
	}
	kinds := []func(net.Conn){
		func(net.Conn) {}, // silent
		func(c net.Conn) { _, _ = io.WriteString(c, preface[:12]) },
		func(c net.Conn) { shake(c) },
		func(c net.Conn) { // a call that never sends its message
			var block bytes.Buffer
			encoder := hpack.NewEncoder(&block)
			for _, h := range [][2]string{{":method", "POST"}, {":scheme", "http"}, {":path", "/v1.Filesystem/Mkdir"}, {":authority", "pipe"}, {"content-type", "application/grpc"}, {"te", "trailers"}} {
				_ = encoder.WriteField(hpack.HeaderField{Name: h[0], Value: h[1]})
			}
			_ = shake(c).WriteHeaders(http2.HeadersFrameParam{StreamID: 1, BlockFragment: block.Bytes(), EndHeaders: true})
		},
	}
	const connections = 1000
	var flood sync.WaitGroup
	strangers := make([]net.Conn, connections)
	for i := range 4 {
		flood.Go(func() {
			for n := i; n < connections; n += 4 {
				strangers[n] = dial(t)
				kinds[i](strangers[n])
			}
		})
	}
	over := make(chan struct{})
	go func() { flood.Wait(); close(over) }()
	calls := 0
	for done := false; !done || calls < 40; calls++ {
		select {
		case <-over:
			done = true
		default:
		}
		if err := mkdirs["v1"](within(t), kept); err != nil {
			t.Fatalf("call %d on a connection from before: %v", calls, err)
		}
		if calls < newBurst/2 {
			fresh := f.client(t, "filesystem-v1")
			if err := mkdirs["v1"](within(t), fresh); err != nil {
				t.Fatalf("call %d on a new connection: %v", calls, err)
			}
			_ = fresh.Close()
		}
	}
	for _, p := range f.server.pipes {
		if n := held(p, container("flood").Principal()); p.name == "csi-proxy-filesystem-v1" && (n == 0 || n > defaultConnectionsPerCaller) {
			t.Errorf("the caller holds %d connections", n)
		}
	}
	for _, c := range strangers {
		_ = c.Close() // a stop waits for calls that are still to send their message, within its bound
	}
	_ = f.stop()
	if n := f.metric(t, "pipeguard_connections_accepted_total"); n < connections+float64(min(calls, newBurst/2)) {
		t.Errorf("%v connections accepted", n)
	}
}

// held counts a caller's connections that are identified.
func held(p *pipe, who caller.Principal) int {
	p.conns.mu.Lock()
	defer p.conns.mu.Unlock()
	return p.conns.callers[who]
}

// clientBy is a gRPC client over connections that dial opens.
func clientBy(t *testing.T, dial func(testing.TB) net.Conn) *grpc.ClientConn {
	t.Helper()
	c, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(context.Context, string) (net.Conn, error) { return dial(t), nil }))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

func TestAContainerIsOneCallerHoweverManyProcessesItHas(t *testing.T) {
	f, dial := startDoors(t, container("a"), func(o *Options) { o.Limits.ConnectionsPerCaller = 3 })
	for range 3 {
		if err := mkdirs["v1"](within(t), clientBy(t, dial)); err != nil {
			t.Fatal(err)
		}
	}
	_, _ = io.Copy(io.Discard, dial(t)) // ends when the server closes it
	refused := f.log.await(t, 1, connection)[0]
	if refused.Outcome.Result != audit.ResultRejected || !strings.Contains(refused.Outcome.Error, "holds 3 connections") {
		t.Errorf("outcome %+v", refused.Outcome)
	}
	if err := mkdirs["v1"](within(t), f.client(t, "filesystem-v1")); err != nil {
		t.Errorf("a process that is in no container: %v", err)
	}
}

func TestAContainerRunsAtMostHalfOfWhatRunsHoweverManyProcessesItHas(t *testing.T) {
	f, dial := startDoors(t, container("a"), func(o *Options) { o.Limits.Operations = 4 })
	var running atomic.Int32
	entered, release := make(chan struct{}, 8), make(chan struct{})
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		running.Add(1)
		entered <- struct{}{}
		<-release
		return answer(call)
	})
	var calls sync.WaitGroup
	for i := range 4 {
		c := clientBy(t, dial)
		calls.Go(func() {
			if _, err := v1.NewFilesystemClient(c).Mkdir(within(t), &v1.MkdirRequest{Path: fmt.Sprintf(`C:\a%d`, i)}); err != nil {
				t.Error(err)
			}
		})
	}
	<-entered
	<-entered
	for f.server.queue.Load().Waiting < 2 { // its other two wait behind those
		time.Sleep(time.Millisecond)
	}
	calls.Go(func() {
		if _, err := v1.NewFilesystemClient(f.client(t, "filesystem-v1")).Mkdir(within(t), &v1.MkdirRequest{Path: `C:\b`}); err != nil {
			t.Error(err)
		}
	})
	<-entered // another caller's
	if n := running.Load(); n != 3 {
		t.Errorf("%d run, want 2 of the container and 1 of the other caller", n)
	}
	close(release)
	calls.Wait()
}

func TestAPrefaceHasOneDeadlineHoweverItArrives(t *testing.T) {
	const most = 20 * time.Second
	settings := "\x00\x00\x00\x04\x00\x00\x00\x00\x00"
	tests := []struct {
		name   string
		text   string
		every  time.Duration // between two bytes; 0 sends all at once
		result string
	}{
		{"nothing", "", 0, audit.ResultIdle},
		{"half a preface", preface[:12], 0, audit.ResultRejected},
		{"all but its last byte", preface[:len(preface)-1], 0, audit.ResultRejected},
		{"a byte each second", preface + settings, time.Second, audit.ResultRejected},
		{"a byte every five seconds", preface + settings, 5 * time.Second, audit.ResultRejected},
		{"a preface and no settings", preface, 0, audit.ResultRejected},
		{"a preface and half a frame", preface + settings[:5], 0, audit.ResultRejected},
		{"the beginning of HTTP/1", "GET / HTTP/1.1\r\n", 0, audit.ResultRejected},
		{"the beginning of TLS", "\x16\x03\x01\x02\x00\x01", 0, audit.ResultRejected},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, "memory", func(o *Options) { o.Limits.PrefaceTimeout = most })
				c, began := f.raw(t, "filesystem-v1"), time.Now()
				var sending sync.WaitGroup
				sending.Go(func() {
					for i := range len(test.text) {
						if _, err := io.WriteString(c, test.text[i:i+1]); err != nil {
							return
						}
						time.Sleep(test.every)
					}
				})
				_, _ = io.Copy(io.Discard, c) // ends when the server closes it
				if took := time.Since(began); took != most {
					t.Errorf("it was closed after %v", took)
				}
				if record := f.log.await(t, 1, connection)[0]; record.Outcome.Result != test.result {
					t.Errorf("outcome %+v", record.Outcome)
				}
				f.mustWork(t)
				_, _ = f.stop(), c.Close()
				sending.Wait()
			})
		})
	}
}

func TestAnIdleConnectionIsNoAttackAndLivesOn(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "memory")
		bare := f.raw(t, "filesystem-v1") // a stock client leaves one behind
		c := f.client(t, "filesystem-v1", grpc.WithIdleTimeout(0))
		if err := mkdirs["v1"](within(t), c); err != nil {
			t.Fatal(err)
		}
		time.Sleep(7 * 24 * time.Hour)
		records := f.log.await(t, 1, connection)
		if len(records) != 1 || records[0].Outcome.Result != audit.ResultIdle {
			t.Errorf("after a week: %+v", records)
		}
		if err := mkdirs["v1"](within(t), c); err != nil {
			t.Errorf("after a week: %v", err)
		}
		if n := f.becomes(t, "pipeguard_connections_accepted_total", 2); n != 2 {
			t.Errorf("%v connections: the client had to come again", n)
		}
		_, _ = bare.Close(), c.Close()
		_ = f.stop()
	})
}

// farewell reads frames until the server closes, and returns why it said that it would.
func (w *wire) farewell() (code http2.ErrCode, reason string) {
	w.t.Helper()
	_ = w.conn.SetReadDeadline(time.Now().Add(patience))
	for {
		frame, err := w.framer.ReadFrame()
		if err != nil {
			var timeout net.Error
			if errors.As(err, &timeout) && timeout.Timeout() {
				w.t.Fatal("the server does not close")
			}
			return code, reason
		}
		if f, ok := frame.(*http2.GoAwayFrame); ok && f.ErrCode != http2.ErrCodeNo {
			code, reason = f.ErrCode, string(f.DebugData())
		}
	}
}

func TestAFloodOfPingsIsEnded(t *testing.T) {
	f := start(t, "unix")
	w := f.wire(t)
	go func() {
		for i := range 1000 {
			if w.framer.WritePing(false, [8]byte{byte(i)}) != nil {
				return
			}
		}
	}()
	if code, reason := w.farewell(); code != http2.ErrCodeEnhanceYourCalm || reason != "too_many_pings" {
		t.Errorf("the server leaves with %v %q", code, reason)
	}
	if record := f.log.await(t, 1, connection)[0]; record.Outcome.Result != audit.ResultRejected || !strings.Contains(record.Outcome.Error, "too many pings") {
		t.Errorf("outcome %+v", record.Outcome)
	}
	f.mustWork(t)
}

func TestHeadersThatUnfoldAreBoundedByWhatTheyUnfoldTo(t *testing.T) {
	f := start(t, "unix")
	w := f.wire(t)
	w.drain()
	change := []string{"x-a", strings.Repeat("~", 1000)}
	for i := range 40 { // each is one byte on the wire once the first has been sent
		change = append(change, fmt.Sprintf("x-%d", i), change[1])
	}
	w.request(true, change...)
	if end := f.log.await(t, 1, terminal)[0]; end.Outcome.Result != audit.ResultRejected {
		t.Errorf("outcome %+v", end.Outcome)
	}
	if f.ran.Load() != 0 {
		t.Error("an operation ran")
	}
	f.mustWork(t)
}

func TestHeadersWithoutAnEndAreEnded(t *testing.T) {
	f := start(t, "unix")
	w := f.wire(t)
	go func() {
		field := append([]byte{0x00, 0x01, 'x', 0x7f, 0x81, 0x7e}, bytes.Repeat([]byte{'~'}, 127+0x7f*128-126)...) // never stored in a table
		_ = w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
		for range 10_000 {
			if w.framer.WriteContinuation(1, false, field[:16<<10]) != nil {
				return
			}
		}
	}()
	w.farewell()
	if record := f.log.await(t, 1, connection)[0]; record.Outcome.Result != audit.ResultRejected {
		t.Errorf("outcome %+v", record.Outcome)
	}
	f.mustWork(t)
}

func TestAStreamThatIsResetAtOnceIsRecordedAndHoldsNothing(t *testing.T) {
	f := start(t, "unix")
	w := f.wire(t)
	w.drain()
	const resets = framesBurst/2 - 8 // each is two frames; more of them end the connection
	for range resets {
		w.request(false)
		w.must(w.framer.WriteRSTStream(w.stream-2, http2.ErrCodeCancel))
	}
	f.log.await(t, resets, terminal)
	if n := f.becomes(t, "pipeguard_streams_in_flight", 0); n != 0 {
		t.Errorf("%v streams are in flight", n)
	}
	if f.ran.Load() != 0 {
		t.Error("an operation ran")
	}
	f.mustWork(t)
	_ = w.conn.Close()
}

func TestALengthThatNobodySendsIsRefusedAtOnce(t *testing.T) {
	for _, length := range [][4]byte{{0xff, 0xff, 0xff, 0xff}, {0x7f, 0xff, 0xff, 0xff}, {0, 4, 0, 1}} { // the last is one byte over
		f := start(t, "unix")
		w := f.wire(t)
		w.drain()
		w.request(false)
		w.must(w.framer.WriteData(1, false, append([]byte{0}, length[:]...)))
		if end := f.log.await(t, 1, terminal)[0]; end.Outcome.Result != audit.ResultRejected || end.Outcome.Code != "ResourceExhausted" {
			t.Errorf("%x: outcome %+v", length, end.Outcome)
		}
		f.mustWork(t)
	}
}
