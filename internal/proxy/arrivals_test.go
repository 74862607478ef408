package proxy

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"

	"golang.org/x/net/http2"
	"golang.org/x/net/http2/hpack"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// wire is a client that speaks HTTP/2 frames, well or badly.
type wire struct {
	t      testing.TB
	broken bool // a quiet test goes on after an error
	conn   net.Conn
	framer *http2.Framer
	buffer bytes.Buffer
	hpack  *hpack.Encoder
	stream uint32
}

func (f *fixture) wire(t *testing.T) *wire {
	t.Helper()
	return wireOver(t, f.raw(t, "filesystem-v1"))
}

// wireOver begins HTTP/2 on a connection.
func wireOver(t testing.TB, c net.Conn) *wire {
	t.Helper()
	w := &wire{t: t, conn: c, stream: 1}
	w.hpack = hpack.NewEncoder(&w.buffer)
	w.framer = http2.NewFramer(w.conn, w.conn)
	w.framer.SetMaxReadFrameSize(1 << 20)
	w.write([]byte(preface))
	w.must(w.framer.WriteSettings())
	return w
}

func (w *wire) must(err error) {
	w.t.Helper()
	w.broken = w.broken || err != nil
	if err != nil {
		w.t.Fatal(err)
	}
}

func (w *wire) write(b []byte) {
	w.t.Helper()
	_, err := w.conn.Write(b)
	w.must(err)
}

// request sends headers in pairs over those of a good request, "-" leaving one out.
func (w *wire) request(end bool, change ...string) {
	w.t.Helper()
	fields := [][2]string{
		{":method", "POST"}, {":scheme", "http"}, {":path", "/v1.Filesystem/Mkdir"}, {":authority", "pipe"},
		{"content-type", "application/grpc"}, {"te", "trailers"},
	}
	for i := 0; i < len(change); i += 2 {
		known := false
		for j := range fields {
			if fields[j][0] == change[i] {
				fields[j][1], known = change[i+1], true
			}
		}
		if !known {
			fields = append(fields, [2]string{change[i], change[i+1]})
		}
	}
	w.buffer.Reset()
	for _, field := range fields {
		if field[1] != "-" {
			w.must(w.hpack.WriteField(hpack.HeaderField{Name: field[0], Value: field[1]}))
		}
	}
	block := bytes.Clone(w.buffer.Bytes())
	first := block[:min(len(block), 16<<10)]
	w.must(w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: w.stream, BlockFragment: first, EndStream: end, EndHeaders: len(first) == len(block)}))
	for rest := block[len(first):]; len(rest) > 0; {
		part := rest[:min(len(rest), 16<<10)]
		rest = rest[len(part):]
		if w.framer.WriteContinuation(w.stream, len(rest) == 0, part) != nil {
			break // the server has seen enough and has closed
		}
	}
	w.stream += 2
}

// data sends a gRPC message with these bytes.
func (w *wire) data(b ...byte) {
	w.t.Helper()
	w.must(w.framer.WriteData(w.stream-2, true, append([]byte{0, 0, 0, 0, byte(len(b))}, b...)))
}

// drain reads what the server says until it closes, so that it never waits for us.
func (w *wire) drain() {
	go func() { _, _ = io.Copy(io.Discard, w.conn) }()
}

func TestEveryArrivalLeavesItsRecord(t *testing.T) {
	call := func(request *v1.MkdirRequest, options ...grpc.CallOption) func(*testing.T, *fixture) {
		return func(t *testing.T, f *fixture) {
			_, err := v1.NewFilesystemClient(f.client(t, "filesystem-v1")).Mkdir(within(t), request, options...)
			if err == nil {
				t.Error("no error")
			}
		}
	}
	invoke := func(method string, code codes.Code) func(*testing.T, *fixture) {
		return func(t *testing.T, f *fixture) {
			err := f.client(t, "filesystem-v1").Invoke(within(t), method, &v1.MkdirRequest{}, &v1.MkdirResponse{})
			if status.Code(err) != code {
				t.Errorf("got %v, want %v", err, code)
			}
		}
	}
	onWire := func(do func(*wire)) func(*testing.T, *fixture) {
		return func(t *testing.T, f *fixture) {
			w := f.wire(t)
			w.drain()
			do(w)
		}
	}
	tests := []struct {
		name   string
		do     func(*testing.T, *fixture)
		result string
		code   string
		text   string // in the record's error
	}{
		{"a message over the limit", call(&v1.MkdirRequest{Path: strings.Repeat("x", maxMessage+1)}), "rejected", "ResourceExhausted", "larger than max"},
		{"a message far over the limit", call(&v1.MkdirRequest{Path: strings.Repeat("x", 5<<20)}, grpc.MaxCallSendMsgSize(6<<20)), "rejected", "ResourceExhausted", "larger than max"},
		{"bytes that are not protobuf", onWire(func(w *wire) { w.request(false); w.data(0xff, 0xff, 0xff) }), "rejected", "Internal", "unmarshal"},
		{"text that is not UTF-8", onWire(func(w *wire) { w.request(false); w.data(0x0a, 0x01, 0xff) }), "rejected", "Internal", "UTF-8"},
		{"an encoding that nobody has", onWire(func(w *wire) { w.request(false, "grpc-encoding", "nobody-has-this"); w.data() }), "rejected", "Unimplemented", "nobody-has-this"},
		{"gzip, which is not offered", onWire(func(w *wire) { w.request(false, "grpc-encoding", "gzip"); w.data() }), "rejected", "Unimplemented", "gzip"},
		{"headers and then the end of the stream", onWire(func(w *wire) { w.request(true) }), "rejected", "Internal", ""},
		{"headers and then a reset", onWire(func(w *wire) {
			w.request(false)
			w.must(w.framer.WriteRSTStream(1, http2.ErrCodeCancel))
		}), "rejected", "Canceled", ""},
		{"headers and then the end of the connection", onWire(func(w *wire) { w.request(false); _ = w.conn.Close() }), "rejected", "Canceled", ""},
		{"headers and half a message", onWire(func(w *wire) {
			w.request(false)
			w.must(w.framer.WriteData(1, true, []byte{0, 0, 0, 0, 9, 1}))
		}), "rejected", "Internal", ""},
		{"an unknown service", invoke("/v1.Nothing/Mkdir", codes.Unimplemented), "rejected", "Unimplemented", "unknown service v1.Nothing"},
		{"an unknown method", invoke("/v1.Filesystem/Nothing", codes.Unimplemented), "rejected", "Unimplemented", "unknown method Nothing for service v1.Filesystem"},
		{"another version's service", invoke("/v2alpha1.Filesystem/Mkdir", codes.Unimplemented), "rejected", "Unimplemented", "unknown service v2alpha1.Filesystem"},
		{"a method name without a slash within", onWire(func(w *wire) { w.request(true, ":path", "/nothing") }), "rejected", "Unimplemented", "malformed method name"},
		{"a method name without its slash", onWire(func(w *wire) { w.request(true, ":path", "v1.Filesystem/Mkdir") }), "rejected", "Unimplemented", "malformed method name"},
		{"no path", onWire(func(w *wire) { w.request(true, ":path", "-") }), "rejected", "Unimplemented", "malformed method name"},
		{"GET with gRPC's content type", onWire(func(w *wire) { w.request(true, ":method", "GET") }), "rejected", "InvalidArgument", "requests that are not gRPC"},
		{"GET by a browser", onWire(func(w *wire) { w.request(true, ":method", "GET", "content-type", "-", "te", "-") }), "rejected", "InvalidArgument", "requests that are not gRPC"},
		{"another content type", onWire(func(w *wire) { w.request(true, "content-type", "text/html") }), "rejected", "InvalidArgument", "requests that are not gRPC"},
		{"no authority", onWire(func(w *wire) { w.request(true, ":authority", "-") }), "rejected", "InvalidArgument", "requests that are not gRPC"},
		{"a time-out that is no number", onWire(func(w *wire) { w.request(true, "grpc-timeout", "soon") }), "rejected", "InvalidArgument", "requests that are not gRPC"},
		{"a time-out that is over at once", onWire(func(w *wire) { w.request(true, "grpc-timeout", "0n") }), "rejected", "DeadlineExceeded", ""},
		{"headers over the limit", onWire(func(w *wire) { w.request(true, "x-long", strings.Repeat("~", maxHeaders+1)) }), "rejected", "InvalidArgument", "requests that are not gRPC"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, "unix")
			tt.do(t, f)
			end := f.log.await(t, 1, terminal)[0]
			if end.Outcome.Result != tt.result || end.Outcome.Code != tt.code || !strings.Contains(end.Outcome.Error, tt.text) {
				t.Errorf("outcome %+v, want %s %s %q", end.Outcome, tt.result, tt.code, tt.text)
			}
			if end.Who.User == nil || end.Who.User.SID != "S-1-5-18" || end.Corr.Conn == "" {
				t.Errorf("who %+v, corr %+v", end.Who, end.Corr)
			}
			if f.ran.Load() != 0 {
				t.Error("an operation ran")
			}
			f.mustWork(t)
		})
	}
}

func TestManyBadRequestsOnOneConnection(t *testing.T) {
	f := start(t, "unix")
	w := f.wire(t)
	w.drain()
	for range 50 {
		w.request(true, ":method", "GET")
		w.request(true, ":path", "/nothing")
	}
	f.log.await(t, 51, terminal) // 50 by name, the others in groups
	f.mustWork(t)
	_ = w.conn.Close()
	_ = f.stop()
	if n := f.becomes(t, "pipeguard_transport_refusals_total", 50); n != 50 {
		t.Errorf("%v requests were refused by the transport, want 50", n)
	}
}

func TestTooManyStreamsAtOnce(t *testing.T) {
	f := start(t, "unix")
	w := f.wire(t)
	w.drain()
	for range maxStreams + 5 {
		w.request(false) // no message follows, so each stays open
	}
	refusals := f.log.await(t, 1, func(e audit.Event) bool {
		return terminal(e) && e.Outcome != nil && strings.Contains(e.Outcome.Error, "at once")
	})
	if len(refusals) == 0 {
		t.Error("no record of the streams over the limit")
	}
	f.mustWork(t)
	_ = w.conn.Close()
	f.log.await(t, maxStreams, func(e audit.Event) bool { return terminal(e) && e.Outcome.Code == "Canceled" })
}

func TestConnectionsThatAreNotHTTP2(t *testing.T) {
	tests := []struct {
		name   string
		do     func(net.Conn)
		result string
		text   string
	}{
		{"connect and close", func(c net.Conn) { _ = c.Close() }, "idle", "closed without anything being sent"},
		{"HTTP/1.1", func(c net.Conn) {
			_, _ = io.WriteString(c, "GET / HTTP/1.1\r\nHost: pipe\r\n\r\n")
			_, _ = io.Copy(io.Discard, c)
		}, "rejected", "not HTTP/2"},
		{"random bytes", func(c net.Conn) { _, _ = c.Write(bytes.Repeat([]byte{0xde, 0xad}, 500)); _, _ = io.Copy(io.Discard, c) }, "rejected", "not HTTP/2"},
		{"half a preface", func(c net.Conn) { _, _ = io.WriteString(c, preface[:10]); _ = c.Close() }, "rejected", "not carried through"},
		{"a preface and no settings", func(c net.Conn) { _, _ = io.WriteString(c, preface); _ = c.Close() }, "rejected", "not carried through"},
		{"a preface and rubbish", func(c net.Conn) {
			_, _ = io.WriteString(c, preface+strings.Repeat("rubbish", 100))
			_, _ = io.Copy(io.Discard, c)
		}, "rejected", "not carried through"},
		{"a handshake and no request", func(c net.Conn) {
			_, _ = io.WriteString(c, preface)
			framer := http2.NewFramer(c, c)
			_ = framer.WriteSettings()
			for { // the server's acknowledgement shows that it has taken ours
				if frame, err := framer.ReadFrame(); err != nil || frame.Header().Type == http2.FrameSettings && frame.Header().Flags.Has(http2.FlagSettingsAck) {
					break
				}
			}
			_ = c.Close()
		}, "idle", "closed without a request"},
		{"a handshake and then rubbish", func(c net.Conn) {
			_, _ = io.WriteString(c, preface)
			_ = http2.NewFramer(c, c).WriteSettings()
			_, _ = io.WriteString(c, strings.Repeat("rubbish", 10_000))
			_, _ = io.Copy(io.Discard, c)
		}, "rejected", "breach of HTTP/2"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			f := start(t, "unix")
			tt.do(f.raw(t, "filesystem-v1"))
			record := f.log.await(t, 1, connection)[0]
			if record.Outcome.Result != tt.result || !strings.Contains(record.Outcome.Error, tt.text) {
				t.Errorf("outcome %+v, want %s %q", record.Outcome, tt.result, tt.text)
			}
			f.mustWork(t)
		})
	}
}

func TestUnidentifiedCallerIsRecordedAndRefused(t *testing.T) {
	f := start(t, "unix")
	f.peers.set(func(p *fakePeers) { p.err = errors.New("process 7 started after its connection") })
	c := f.raw(t, "filesystem-v1")
	if _, err := io.Copy(io.Discard, c); err != nil && !errors.Is(err, net.ErrClosed) {
		t.Logf("read: %v", err)
	}
	record := f.log.await(t, 1, connection)[0]
	if record.Outcome.Result != "rejected" || !strings.Contains(record.Outcome.Error, "process 7 started after") || record.Who.Assurance != "none" {
		t.Errorf("outcome %+v, who %+v", record.Outcome, record.Who)
	}
	f.peers.set(func(p *fakePeers) { p.err = nil })
	f.mustWork(t)
}

func TestResolverThatPanicsRefusesOneConnection(t *testing.T) {
	panics := panickingPeers{first: make(chan struct{}, 1)}
	panics.first <- struct{}{}
	f := start(t, "unix", func(o *Options) { panics.next = o.Peers.(*fakePeers); o.Peers = panics })
	_, _ = io.Copy(io.Discard, f.raw(t, "filesystem-v1"))
	if record := f.log.await(t, 1, connection)[0]; record.Outcome.Result != "rejected" || !strings.Contains(record.Outcome.Error, "panic") {
		t.Errorf("outcome %+v", record.Outcome)
	}
	f.mustWork(t)
}

func TestResolverThatHangsIsBounded(t *testing.T) {
	release := make(chan struct{})
	f := start(t, "unix", func(o *Options) {
		o.Peers = hangingPeers{release}
		o.Limits.PeerTimeout = 1 // a nanosecond
	})
	_, _ = io.Copy(io.Discard, f.raw(t, "filesystem-v1"))
	if record := f.log.await(t, 1, connection)[0]; record.Outcome.Result != "rejected" || !strings.Contains(record.Outcome.Error, "no answer within") {
		t.Errorf("outcome %+v", record.Outcome)
	}
	close(release)
	if err := f.client(t, "filesystem-v1").Invoke(context.WithoutCancel(within(t)), "/v1.Filesystem/Mkdir", &v1.MkdirRequest{}, &v1.MkdirResponse{}); status.Code(err) != codes.Unavailable {
		t.Errorf("got %v", err)
	}
}
