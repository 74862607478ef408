package windows

import (
	"context"
	"io"
	"net"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	fsapi "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/status"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// raw is a connection without a stock client's manners.
func raw(t *testing.T, version string) *grpc.ClientConn {
	t.Helper()
	conn, err := grpc.NewClient("passthrough:///"+pipePath(version),
		grpc.WithContextDialer(func(ctx context.Context, path string) (net.Conn, error) { return winio.DialPipeContext(ctx, path) }),
		grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return conn
}

func TestUnknownMethodsAreRefusedAndRecorded(t *testing.T) {
	p := start(t)
	ctx, conn := bounded(t), raw(t, "v1")
	for _, method := range []string{"/v1.Filesystem/Nothing", "/v1.Filesystem/RmdirContents", "/v1.Disk/ListDiskIDs", "/v2alpha1.Filesystem/Mkdir", "/x/y"} {
		err := conn.Invoke(ctx, method, &fsapi.MkdirRequest{Path: p.path("unknown")}, &fsapi.MkdirResponse{})
		if status.Code(err) != codes.Unimplemented {
			t.Errorf("%s: %v", method, err)
		}
		if _, end := p.terminal(method, ""); end.Outcome.Result != audit.ResultRejected {
			t.Errorf("%s is recorded as %+v", method, end.Outcome)
		}
	}
	if p.has("unknown") {
		t.Error("an unknown method did something")
	}
	good(ctx, t, p)
}

// good is the call that must go on working whatever went before.
func good(ctx context.Context, t *testing.T, p *proxy) {
	t.Helper()
	d := dial(t, "v2alpha1")
	if err := d.mkdir(ctx, p.path("good")); err != nil || !p.has("good") {
		t.Errorf("the next good call: %v, on the disk: %t", err, p.has("good"))
	}
}

func TestAKilledClientLeavesTheProxyInOrder(t *testing.T) {
	p := start(t)
	const files = 3000
	p.fill("full", files)
	self, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	ctx := bounded(t)
	client := p.call(ctx, self, "RmdirContents", p.path("full"))
	p.untilItShrinks(ctx, "full", files)
	client.Kill()
	if err := client.Wait(); err == nil {
		t.Fatalf("the call was over before its client was killed: %s", client.Stdout.String())
	}
	intent, end := p.terminal("/v2alpha1.Filesystem/RmdirContents", p.path("full"))
	if intent == nil || end.Outcome == nil || int(end.Who.Process.PID) != client.PID() {
		t.Errorf("recorded as %+v and %+v", intent, end)
	}
	good(ctx, t, p)
	p.reconciles()
}

// untilItShrinks returns once a call is at work in a directory.
func (p *proxy) untilItShrinks(ctx context.Context, rel string, from int) {
	p.t.Helper()
	for {
		entries, err := os.ReadDir(p.path(rel))
		if err != nil {
			p.t.Fatal(err)
		}
		if len(entries) < from {
			return
		}
		if ctx.Err() != nil {
			p.t.Fatal("nothing happens")
		}
	}
}

func TestBytesThatAreNoCallDoNotHarm(t *testing.T) {
	p := start(t)
	ctx := bounded(t)
	junk := []string{"GET /metrics HTTP/1.1\r\nHost: node\r\n\r\n", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\xff\xff\xff\xff\xff\xff\xff\xff\xff", strings.Repeat("\x00", 4096), "\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03" + strings.Repeat("x", 64)}
	for _, bytes := range junk {
		conn, err := winio.DialPipeContext(ctx, pipePath("v1"))
		if err != nil {
			t.Fatal(err)
		}
		// The server speaks first, and its pipe has no buffer: whoever does not read is waited for, up to a bound.
		answered := make(chan struct{})
		go func() {
			_, _ = io.Copy(io.Discard, conn) // until the server hangs up
			close(answered)
		}()
		_, _ = conn.Write([]byte(bytes)) // the server may hang up before it has read all
		select {
		case <-answered:
		case <-ctx.Done():
			t.Errorf("%q: the server does not hang up", bytes)
		}
		_ = conn.Close()
	}
	// A record is written once the connection has ended, and the log may take it later than the client sees the end.
	for rejected := []string{}; ; rejected = rejected[:0] {
		for _, event := range p.events() {
			if event.Type == audit.TypeConnection && event.Outcome.Result == audit.ResultRejected {
				rejected = append(rejected, event.Outcome.Error)
			}
		}
		if len(rejected) == len(junk) {
			break
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%d of %d are recorded as rejected: %q", len(rejected), len(junk), rejected)
		case <-time.After(20 * time.Millisecond):
		}
	}
	for range 100 { // opened and never used
		conn, err := winio.DialPipeContext(ctx, pipePath("v2alpha1"))
		if err != nil {
			break // bounded
		}
		t.Cleanup(func() { _ = conn.Close() })
	}
	good(ctx, t, p)
}
