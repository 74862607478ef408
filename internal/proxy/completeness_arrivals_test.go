package proxy

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// Whatever arrives leaves these records, in this order, and no other. Each arrival has a connection of its own.
var arrivals = []struct {
	name string
	do   func(*testing.T, *fixture)
	want []string
}{
	{"a call", calling(nil), []string{"intent", "ResponseComplete ok OK", "connection ok OK"}},
	{"a call that is denied", invoking("/v1.Filesystem/Rmdir"), []string{"ResponseComplete denied PermissionDenied", "connection idle OK"}},
	{"a call whose handler panics", calling(func(context.Context, *apiserver.Call) (proto.Message, error) { panic("strange") }),
		[]string{"intent", "Panic panic Internal", "connection ok OK"}},
	{"a call whose caller leaves", leaving, []string{"intent", "ResponseComplete ok OK", "connection ok OK"}},
	{"a message over the limit", sending(strings.Repeat("x", maxMessage+1)), rejectedAs("ResourceExhausted")},
	{"bytes that are not protobuf", wired(func(w *wire) { w.request(false); w.data(0xff, 0xff) }), rejectedAs("Internal")},
	{"an encoding that nobody has", wired(func(w *wire) { w.request(false, "grpc-encoding", "x"); w.data() }), rejectedAs("Unimplemented")},
	{"headers without a message", wired(func(w *wire) { w.request(true) }), rejectedAs("Internal")},
	{"an unknown service", invoking("/v1.Nothing/Mkdir"), rejectedAs("Unimplemented")},
	{"an unknown method", invoking("/v1.Filesystem/Nothing"), rejectedAs("Unimplemented")},
	{"a malformed method name", wired(func(w *wire) { w.request(true, ":path", "/nothing") }), rejectedAs("Unimplemented")},
	{"another content type", wired(func(w *wire) { w.request(true, "content-type", "text/html") }), rejectedAs("InvalidArgument")},
	{"GET", wired(func(w *wire) { w.request(true, ":method", "GET") }), rejectedAs("InvalidArgument")},
	{"no HTTP/2", speaking("GET / HTTP/1.1\r\nHost: pipe\r\n\r\n"), []string{"connection rejected Unavailable"}},
	{"connect and close", func(t *testing.T, f *fixture) { _ = f.raw(t, "filesystem-v1").Close() }, []string{"connection idle OK"}},
}

func rejectedAs(code string) []string {
	return []string{"ResponseComplete rejected " + code, "connection idle OK"}
}

func calling(handle apiserver.Handler) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		if handle != nil {
			f.handler(handle)
			defer f.handle.Store(nil)
		}
		c := f.client(t, "filesystem-v1")
		defer func() { _ = c.Close() }()
		_ = mkdir(within(t), c, `C:\a`)
	}
}

func invoking(method string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		c := f.client(t, "filesystem-v1")
		defer func() { _ = c.Close() }()
		if err := c.Invoke(within(t), method, &v1.RmdirRequest{}, &v1.RmdirResponse{}); err == nil {
			t.Error("no error")
		}
	}
}

func sending(path string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		c := f.client(t, "filesystem-v1", grpc.WithDefaultCallOptions(grpc.MaxCallSendMsgSize(2*maxMessage)))
		defer func() { _ = c.Close() }()
		before := len(f.log.all())
		if err := mkdir(within(t), c, path); err == nil {
			t.Error("no error")
		}
		f.log.await(t, before+1, func(audit.Event) bool { return true }) // gRPC answers before it says that the request is over
	}
}

// leaving is a call that its caller gives up once it is carried out.
func leaving(t *testing.T, f *fixture) {
	ctx, cancel := context.WithCancel(within(t))
	f.handler(func(_ context.Context, call *apiserver.Call) (proto.Message, error) {
		cancel()
		return answer(call)
	})
	defer f.handle.Store(nil)
	c := f.client(t, "filesystem-v1")
	defer func() { _ = c.Close() }()
	_ = mkdir(ctx, c, `C:\a`) // the answer may have been faster
	f.log.await(t, 1, func(e audit.Event) bool { return terminal(e) && e.Corr.Conn == f.latest(t) })
}

func wired(do func(*wire)) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		before := len(f.log.all())
		w := f.wire(t)
		w.drain()
		do(w)
		f.log.await(t, before+1, func(audit.Event) bool { return true }) // the connection is closed when it was dealt with
		_ = w.conn.Close()
	}
}

func speaking(text string) func(*testing.T, *fixture) {
	return func(t *testing.T, f *fixture) {
		c := f.raw(t, "filesystem-v1")
		_, _ = io.WriteString(c, text)
		_, _ = io.Copy(io.Discard, c)
	}
}

// latest is the connection of the last record.
func (f *fixture) latest(t *testing.T) string {
	t.Helper()
	all := f.log.await(t, 1, func(audit.Event) bool { return true })
	return all[len(all)-1].Corr.Conn
}

func TestEveryArrivalLeavesExactlyItsRecords(t *testing.T) {
	f := start(t, "unix")
	for i, arrival := range arrivals {
		t.Run(arrival.name, func(t *testing.T) {
			arrival.do(t, f)
			last := f.log.await(t, i+1, connection)[i]
			var got []string
			for _, e := range f.log.all() {
				switch {
				case e.Corr.Conn != last.ID:
				case e.Stage == audit.StageRequestReceived:
					got = append(got, "intent")
				case connection(e):
					got = append(got, fmt.Sprintf("connection %s %s", e.Outcome.Result, e.Outcome.Code))
				default:
					got = append(got, fmt.Sprintf("%s %s %s", e.Stage, e.Outcome.Result, e.Outcome.Code))
				}
			}
			if diff := cmp.Diff(arrival.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
	if err := f.stop(); err != nil {
		t.Fatal(err)
	}
	f.settle(t)
	if connections := f.log.await(t, 1, connection); len(connections) != len(arrivals) {
		t.Errorf("%d connection records of %d connections", len(connections), len(arrivals))
	}
}

// Stock clients look whether a pipe is there before they use it.
func TestABareConnectionOfAStockClientIsNoAttack(t *testing.T) {
	f := start(t, "unix")
	for name, bare := range map[string]func(net.Conn){
		"closed at once": func(c net.Conn) { _ = c.Close() },
		"closed after HTTP/2 was begun": func(c net.Conn) {
			var hello bytes.Buffer
			hello.WriteString(preface)
			_ = http2.NewFramer(&hello, nil).WriteSettings()
			_, _ = c.Write(hello.Bytes())
			for framer := http2.NewFramer(io.Discard, c); ; {
				if frame, err := framer.ReadFrame(); err != nil || frame.Header().Flags.Has(http2.FlagSettingsAck) {
					break
				}
			}
			_ = c.Close()
		},
	} {
		t.Run(name, func(t *testing.T) {
			before := len(f.log.all())
			bare(f.raw(t, "filesystem-v1"))
			e := f.log.await(t, before+1, func(audit.Event) bool { return true })[before]
			if !connection(e) || e.Outcome.Result != audit.ResultIdle || e.Outcome.Code != "OK" {
				t.Errorf("%s %+v", e.Type, e.Outcome)
			}
		})
	}
	if n := f.metric(t, "pipeguard_transport_refusals_total"); n != 0 {
		t.Errorf("%v refusals", n)
	}
}
