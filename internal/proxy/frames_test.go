package proxy

import (
	"context"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/protobuf/proto"

	v1 "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// controls are frames that ask for nothing, each sent by a client that reads no answer.
var controls = map[string]func(w *wire, i int) error{
	"SETTINGS":                  func(w *wire, _ int) error { return w.framer.WriteSettings() },
	"SETTINGS that acknowledge": func(w *wire, _ int) error { return w.framer.WriteSettingsAck() },
	"PING that acknowledges":    func(w *wire, _ int) error { return w.framer.WritePing(true, [8]byte{}) },
	"WINDOW_UPDATE":             func(w *wire, _ int) error { return w.framer.WriteWindowUpdate(0, 1) },
	"WINDOW_UPDATE of streams that are over": func(w *wire, i int) error {
		return w.framer.WriteWindowUpdate(uint32(2*i+1), 1) // #nosec G115 -- a test's counter
	},
	"PRIORITY":       func(w *wire, _ int) error { return w.framer.WritePriority(1, http2.PriorityParam{Weight: 1}) },
	"GOAWAY":         func(w *wire, _ int) error { return w.framer.WriteGoAway(0, http2.ErrCodeNo, nil) },
	"unknown frames": func(w *wire, _ int) error { return w.framer.WriteRawFrame(0xbe, 0, 1, nil) },
	"empty DATA": func(w *wire, i int) error {
		if i == 0 {
			w.request(false)
		}
		return w.framer.WriteData(1, false, nil)
	},
	"DATA of a byte": func(w *wire, i int) error {
		if i == 0 {
			w.request(false)
		}
		return w.framer.WriteData(1, false, []byte{0})
	},
	"RST_STREAM": func(w *wire, i int) error { return w.framer.WriteRSTStream(uint32(2*i+1), http2.ErrCodeCancel) }, // #nosec G115 -- likewise
	"requests that are reset at once (CVE-2023-44487)": func(w *wire, i int) error {
		w.request(false)
		return w.framer.WriteRSTStream(w.stream-2, http2.ErrCodeCancel)
	},
	"requests that are refused unannounced": func(w *wire, _ int) error { w.request(true, ":method", "GET"); return nil },
	"empty CONTINUATION": func(w *wire, i int) error {
		if i == 0 {
			return w.framer.WriteHeaders(http2.HeadersFrameParam{StreamID: 1})
		}
		return w.framer.WriteContinuation(1, false, nil)
	},
}

func TestFramesThatAskForNothingEndTheConnection(t *testing.T) {
	for name, send := range controls {
		t.Run(name, func(t *testing.T) {
			f := start(t, "memory")
			sent := make(chan int, 1)
			c := f.raw(t, "filesystem-v1")
			go func() {
				i := 0
				defer func() { sent <- i }()
				w := wireOver(quietly{t}, c)
				for ; i < 100_000; i++ {
					if send(w, i) != nil || w.broken {
						return
					}
				}
			}()
			record := f.log.await(t, 1, connection)[0]
			if record.Outcome.Result != audit.ResultRejected {
				t.Errorf("outcome %+v", record.Outcome)
			}
			_ = c.Close()
			if n := <-sent; n > 20*framesBurst { // the buffer between the two holds 7,000
				t.Errorf("%d were taken", n)
			}
			f.mustWork(t)
		})
	}
}

func TestFramesThatRequestsNeedAreNotCountedAgainstThem(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "memory")
		c := v1.NewFilesystemClient(f.client(t, "filesystem-v1"))
		for i := range 3 * framesBurst { // each takes two frames and more
			if _, err := c.PathExists(within(t), &v1.PathExistsRequest{Path: `C:\` + strings.Repeat("a", i%200+1)}); err != nil {
				t.Fatalf("call %d: %v", i, err)
			}
		}
		for range 20 { // drivers give up all at once, and try again
			ctx, cancel := context.WithCancel(t.Context())
			f.handler(func(ctx context.Context, _ *apiserver.Call) (proto.Message, error) {
				<-ctx.Done()
				return nil, ctx.Err()
			})
			ended := make(chan struct{}, 60)
			for range cap(ended) {
				go func() {
					_, _ = c.PathExists(ctx, &v1.PathExistsRequest{Path: `C:\a`})
					ended <- struct{}{}
				}()
			}
			synctest.Wait()
			cancel()
			for range cap(ended) {
				<-ended
			}
			time.Sleep(time.Second)
		}
		if n := f.becomes(t, "pipeguard_connections_accepted_total", 1); n != 1 {
			t.Errorf("%v connections: the client had to come again", n)
		}
		_ = f.stop()
	})
}

// A forwarded call may last for days and carry large messages.
func TestLongStreamsOfForwardedPipesEarnTheirFrames(t *testing.T) {
	f := start(t, "unix", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
		for {
			var m raw.Message
			if err := s.RecvMsg(&m); err != nil {
				return nil //nolint:nilerr // its end
			}
			if err := s.SendMsg(&m); err != nil {
				return err
			}
		}
	}))
	s, err := f.client(t, "filesystem-v1").NewStream(within(t), &grpc.StreamDesc{ServerStreams: true, ClientStreams: true}, "/v1.Filesystem/New", grpc.ForceCodecV2(raw.Codec{}))
	if err != nil {
		t.Fatal(err)
	}
	message := make(raw.Message, maxMessage-1)
	for i := range 200 {
		if err := s.SendMsg(&message); err != nil {
			t.Fatalf("message %d: %v", i, err)
		}
		var got raw.Message
		if err := s.RecvMsg(&got); err != nil || len(got) != len(message) {
			t.Fatalf("message %d: %d bytes, %v", i, len(got), err)
		}
	}
	if err := s.CloseSend(); err != nil {
		t.Error(err)
	}
	_ = s.RecvMsg(&raw.Message{})
}

// quietly lets the server close when it likes.
type quietly struct{ testing.TB }

func (quietly) Fatal(...any) {}
