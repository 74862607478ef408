//go:build unix

package proxy

import (
	"context"
	"errors"
	"io"
	"net"
	"os"
	"strings"
	"syscall"
	"testing"
	"testing/synctest"
	"time"

	"golang.org/x/net/http2"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/proxy/raw"
)

// The answers of a client that never reads would pile up in memory, as fast as it asks.
func TestAClientThatNeverReadsIsReadNoFurtherAndEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := start(t, "memory")
		const many = 8000
		began, c := time.Now(), f.raw(t, "filesystem-v1")
		said := &memoryConn{}
		w := wireOver(t, said)
		asked := 0
		for ; asked < many; asked++ {
			w.request(false)
			w.data(10, 4, 'C', ':', '\\', 'a')
			if _, err := c.Write(said.buffer.Bytes()); err != nil {
				break
			}
			said.buffer.Reset()
			synctest.Wait() // each is answered before the next
		}
		if asked == many {
			t.Fatal("all requests were taken")
		}
		record := f.log.await(t, 1, connection)[0]
		if took := time.Since(began); took < takenWithin || took > takenWithin+time.Second || record.Outcome.Result != audit.ResultRejected || !strings.Contains(record.Outcome.Error, "did not read") {
			t.Errorf("after %v: %+v", took, record.Outcome)
		}
		if n := f.metric(t, "pipeguard_streams_total"); n == 0 || n > many/2 {
			t.Errorf("%v of %d requests were read", n, many)
		}
		f.mustWork(t)
		_ = f.stop()
	})
}

// Descriptors that come with the bytes of a socket are closed with the read of these, and are not kept.
func TestDescriptorsThatAClientSendsAreNotKept(t *testing.T) {
	f := start(t, "unix")
	ours, theirs, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = ours.Close() })
	c, ok := f.raw(t, "filesystem-v1").(*net.UnixConn)
	if !ok {
		t.Fatal("no socket")
	}
	w := &wire{t: t, conn: c, stream: 1}
	begun := burst(t, 0, nil)
	for i := range begun { // the last byte too has read all descriptors
		const each = 16
		fds := make([]int, each)
		for j := range fds {
			fds[j] = int(theirs.Fd()) //nolint:gosec // descriptors are small
		}
		if _, _, err := c.WriteMsgUnix(begun[i:i+1], syscall.UnixRights(fds...), nil); err != nil {
			t.Fatal(err)
		}
	}
	if err := theirs.Close(); err != nil {
		t.Fatal(err)
	}
	w.drain()
	if err := ours.SetReadDeadline(time.Now().Add(patience)); err != nil {
		t.Fatal(err)
	}
	if _, err := ours.Read(make([]byte, 1)); err != io.EOF { //nolint:errorlint // as it is returned
		t.Errorf("somebody holds the other end of the pipe while the connection is open: %v", err)
	}
	f.mustWork(t)
}

// A client may read all that arrives and grant no room for answers: gRPC then keeps them, long after the calls have ended.
func TestAnswersThatFindNoWindowCountAsInProgressAndEndTheConnection(t *testing.T) {
	large := raw.Message(make([]byte, 1<<20))
	for _, c := range []struct {
		name, method string
		calls        int
		full         bool // no more calls of this kind are taken
	}{
		{"methods of the node API", "/v1.Filesystem/Mkdir", 40, false},
		{"calls that are passed on unread", "/v1.Filesystem/New", forwardedRequests, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := start(t, "memory", forwarding(t, func(_ context.Context, _ string, s grpc.ServerStream) error {
					var m raw.Message
					return errors.Join(s.RecvMsg(&m), s.SendMsg(&large))
				}))
				reader := f.client(t, "filesystem-v1")
				answered := func() error {
					sent, got := raw.Message{10, 4, 'C', ':', '\\', 'a'}, raw.Message(nil)
					err := reader.Invoke(within(t), c.method, &sent, &got, grpc.ForceCodecV2(raw.Codec{}))
					synctest.Wait()
					return err
				}
				if err := answered(); err != nil {
					t.Fatal(err)
				}
				shares := f.server.pipes[0].shares
				inProgress := func() int {
					shares.mu.Lock()
					defer shares.mu.Unlock()
					return shares.used + shares.passed
				}
				if n := inProgress(); n != 0 {
					t.Fatalf("%d requests are in progress after one that was read", n)
				}
				w := wireOver(t, f.raw(t, "filesystem-v1"))
				w.must(w.framer.WriteSettings(http2.Setting{ID: http2.SettingInitialWindowSize, Val: 0}))
				w.drain()
				for range c.calls {
					w.request(false, ":path", c.method)
					w.data(10, 4, 'C', ':', '\\', 'a')
					synctest.Wait()
				}
				if n := inProgress(); n != c.calls {
					t.Errorf("%d of %d requests count as in progress", n, c.calls)
				}
				if err := answered(); c.full != (status.Code(err) == codes.ResourceExhausted) {
					t.Errorf("one more: %v", err)
				}
				time.Sleep(takenWithin - time.Second)
				if n := inProgress(); n != c.calls {
					t.Errorf("%d of %d requests count as in progress a second before their time is over", n, c.calls)
				}
				time.Sleep(2 * time.Second)
				if record := f.log.await(t, 1, connection)[0]; record.Outcome.Result != audit.ResultRejected || !strings.Contains(record.Outcome.Error, "did not read") {
					t.Errorf("%+v", record.Outcome)
				}
				synctest.Wait()
				if n := inProgress(); n != 0 {
					t.Errorf("%d requests are in progress when the connection has ended", n)
				}
				if err := answered(); err != nil {
					t.Error(err)
				}
				_, _ = reader.Close(), f.stop()
			})
		})
	}
}

func TestStrangersShareWhatIsPassedOnUnread(t *testing.T) {
	s := newShares(8)
	var release func()
	for range forwardedRequests {
		var err error
		if release, err = s.take(caller.Principal{}, true, true); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := s.take(caller.Principal{}, true, true); status.Code(err) != codes.ResourceExhausted {
		t.Errorf("one more: %v", err)
	}
	if _, err := s.take(caller.Principal{}, true, false); err != nil {
		t.Errorf("another call: %v", err)
	}
	release()
	if _, err := s.take(caller.Principal{}, true, true); err != nil {
		t.Errorf("after one has ended: %v", err)
	}
}
