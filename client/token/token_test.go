package token

import (
	"context"
	"net"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/pipeguard/pipeguard/test/harness"
)

// server keeps the headers of the calls that reach it.
type server struct {
	listener *bufconn.Listener
	mu       sync.Mutex // guards seen
	seen     [][]string
}

func (s *server) keep(ctx context.Context) {
	s.mu.Lock()
	defer s.mu.Unlock()
	md, _ := metadata.FromIncomingContext(ctx)
	s.seen = append(s.seen, md.Get("authorization"))
}

func (s *server) unary(ctx context.Context, req any, _ *grpc.UnaryServerInfo, handle grpc.UnaryHandler) (any, error) {
	s.keep(ctx)
	return handle(ctx, req)
}

func (s *server) headers() [][]string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.seen)
}

func serve(t *testing.T) *server {
	t.Helper()
	s := &server{listener: bufconn.Listen(1 << 16)}
	g := grpc.NewServer(
		grpc.UnaryInterceptor(s.unary),
		grpc.StreamInterceptor(func(srv any, stream grpc.ServerStream, _ *grpc.StreamServerInfo, handle grpc.StreamHandler) error {
			s.keep(stream.Context())
			return handle(srv, stream)
		}))
	healthpb.RegisterHealthServer(g, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- g.Serve(s.listener) }()
	t.Cleanup(func() {
		g.Stop()
		<-done
	})
	return s
}

func (s *server) dial(ctx context.Context, pipe string) (net.Conn, error) {
	if pipe != `\\.\pipe\csi-proxy-disk-v1` {
		return nil, &net.OpError{Op: "dial", Err: os.ErrNotExist}
	}
	return s.listener.DialContext(ctx)
}

func (s *server) connect(t *testing.T, options ...grpc.DialOption) healthpb.HealthClient {
	t.Helper()
	options = append(options, grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.listener.DialContext(ctx) }))
	conn, err := grpc.NewClient("passthrough:///x", options...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	return healthpb.NewHealthClient(conn)
}

func check(t *testing.T, c healthpb.HealthClient, ctx context.Context) error { //nolint:revive // the client matters more
	t.Helper()
	_, err := c.Check(ctx, &healthpb.HealthCheckRequest{})
	return err
}

func wantHeaders(t *testing.T, s *server, want ...string) {
	t.Helper()
	got := s.headers()
	if len(got) != len(want) {
		t.Fatalf("%d calls arrived with %q, want %q", len(got), got, want)
	}
	for i, w := range want {
		if strings.Join(got[i], "|") != w {
			t.Errorf("call %d came with %q, want %q", i, got[i], w)
		}
	}
}

func TestEveryWaySendsTheTokenOnce(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	harness.Replace(t, file, "aaa.bbb.ccc\n")
	source := NewSource(file, Options{})
	for name, option := range map[string]grpc.DialOption{
		"credentials": grpc.WithPerRPCCredentials(source.Credentials()),
		"interceptor": grpc.WithUnaryInterceptor(source.UnaryClientInterceptor()),
	} {
		t.Run(name, func(t *testing.T) {
			s := serve(t)
			if err := check(t, s.connect(t, option), t.Context()); err != nil {
				t.Fatal(err)
			}
			wantHeaders(t, s, "Bearer aaa.bbb.ccc")
		})
	}
	t.Run("an interceptor replaces an older token", func(t *testing.T) {
		s := serve(t)
		old := metadata.AppendToOutgoingContext(t.Context(), "authorization", "Bearer old", "other", "kept")
		if err := check(t, s.connect(t, grpc.WithUnaryInterceptor(source.UnaryClientInterceptor())), old); err != nil {
			t.Fatal(err)
		}
		wantHeaders(t, s, "Bearer aaa.bbb.ccc")
		if md, _ := metadata.FromOutgoingContext(old); md.Get("authorization")[0] != "Bearer old" {
			t.Error("the caller's own metadata was changed")
		}
	})
	t.Run("streams", func(t *testing.T) {
		s := serve(t)
		stream, err := s.connect(t, grpc.WithStreamInterceptor(source.StreamClientInterceptor())).Watch(t.Context(), &healthpb.HealthCheckRequest{})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := stream.Recv(); err != nil {
			t.Fatal(err)
		}
		wantHeaders(t, s, "Bearer aaa.bbb.ccc")
	})
	t.Run("Dial", func(t *testing.T) {
		s := serve(t)
		conn, err := Dial(`\\.\pipe\csi-proxy-disk-v1`, source, s.dial)
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close()
		if err := check(t, healthpb.NewHealthClient(conn), t.Context()); err != nil {
			t.Fatal(err)
		}
		wantHeaders(t, s, "Bearer aaa.bbb.ccc")
	})
}

func TestRotationIsSeenByTheNextCall(t *testing.T) {
	s, file := serve(t), filepath.Join(t.TempDir(), "token")
	c := s.connect(t, grpc.WithPerRPCCredentials(NewSource(file, Options{}).Credentials()))
	for _, text := range []string{"a.a.a", "b.b.b", "c.c.c"} { // of the same length, within the same moment
		harness.Replace(t, file, text)
		if err := check(t, c, t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantHeaders(t, s, "Bearer a.a.a", "Bearer b.b.b", "Bearer c.c.c")
}

func TestContentIsReadAgainWhenItIsOld(t *testing.T) {
	file := filepath.Join(t.TempDir(), "token")
	harness.Replace(t, file, "a.a.a")
	info, err := os.Stat(file)
	if err != nil {
		t.Fatal(err)
	}
	s := NewSource(file, Options{MaxAge: time.Hour})
	if got, err := s.Token(); err != nil || got != "a.a.a" {
		t.Fatalf("got %q, %v", got, err)
	}
	if err := os.WriteFile(file, []byte("b.b.b"), 0o600); err != nil { // in place, with nothing to tell it by
		t.Fatal(err)
	}
	if err := os.Chtimes(file, info.ModTime(), info.ModTime()); err != nil {
		t.Fatal(err)
	}
	if got, _ := s.Token(); got != "a.a.a" {
		t.Errorf("got %q, want what was read", got)
	}
	s.read = s.read.Add(-time.Hour)
	if got, _ := s.Token(); got != "b.b.b" {
		t.Errorf("got %q, want what the file holds", got)
	}
}

func TestWithoutATokenNothingIsSent(t *testing.T) {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"empty":        "",
		"white space":  " \n",
		"two lines":    "a.a.a\nb.b.b",
		"a kubeconfig": "apiVersion: v1",
		"a nul byte":   "a.a.a\x00",
		"too long":     strings.Repeat("a", maxToken+1),
		"a PEM file":   "-----BEGIN PRIVATE KEY-----",
	} {
		t.Run(name, func(t *testing.T) {
			s, file := serve(t), filepath.Join(dir, name)
			harness.Replace(t, file, text)
			source := NewSource(file, Options{Optional: true})
			for _, option := range []grpc.DialOption{
				grpc.WithPerRPCCredentials(source.Credentials()), grpc.WithUnaryInterceptor(source.UnaryClientInterceptor()),
			} {
				err := check(t, s.connect(t, option), t.Context())
				if status.Code(err) != codes.Unauthenticated {
					t.Errorf("got %v, want Unauthenticated", err)
				}
				if trimmed := strings.TrimSpace(text); trimmed != "" && strings.Contains(err.Error(), trimmed) {
					t.Errorf("the error quotes the file: %v", err)
				}
			}
			wantHeaders(t, s)
		})
	}
	t.Run("no file", func(t *testing.T) {
		s := serve(t)
		source := NewSource(filepath.Join(dir, "none"), Options{})
		if err := check(t, s.connect(t, grpc.WithPerRPCCredentials(source.Credentials())), t.Context()); status.Code(err) != codes.Unauthenticated {
			t.Errorf("got %v, want Unauthenticated", err)
		}
		if _, err := s.connect(t, grpc.WithStreamInterceptor(source.StreamClientInterceptor())).Watch(t.Context(), &healthpb.HealthCheckRequest{}); status.Code(err) != codes.Unauthenticated {
			t.Errorf("got %v, want Unauthenticated", err)
		}
		wantHeaders(t, s)
	})
}

func TestOptionalServesNodesWithoutAToken(t *testing.T) {
	s, file := serve(t), filepath.Join(t.TempDir(), "token")
	source := NewSource(file, Options{Optional: true})
	c := s.connect(t, grpc.WithPerRPCCredentials(source.Credentials()))
	d := s.connect(t, grpc.WithUnaryInterceptor(source.UnaryClientInterceptor()))
	for _, client := range []healthpb.HealthClient{c, d} {
		if err := check(t, client, t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	harness.Replace(t, file, "a.a.a")
	if err := check(t, c, t.Context()); err != nil {
		t.Fatal(err)
	}
	wantHeaders(t, s, "", "", "Bearer a.a.a")
}

func TestAFileThatIsGoneForAMomentFailsNoCall(t *testing.T) {
	for _, optional := range []bool{false, true} {
		file := filepath.Join(t.TempDir(), "token")
		harness.Replace(t, file, "a.a.a")
		s := NewSource(file, Options{Optional: optional})
		if _, err := s.Token(); err != nil {
			t.Fatal(err)
		}
		if err := os.Remove(file); err != nil {
			t.Fatal(err)
		}
		if got, err := s.Token(); err != nil || got != "a.a.a" {
			t.Errorf("optional %v: got %q, %v, want the last token", optional, got, err)
		}
		s.read = s.read.Add(-usualMaxAge)
		if got, err := s.Token(); got != "" || (err == nil) != optional {
			t.Errorf("optional %v: after a minute without a file got %q, %v", optional, got, err)
		}
	}
}

func BenchmarkToken(b *testing.B) {
	file := filepath.Join(b.TempDir(), "token")
	if err := os.WriteFile(file, []byte(strings.Repeat("a", 1200)), 0o600); err != nil {
		b.Fatal(err)
	}
	s := NewSource(file, Options{})
	for b.Loop() {
		if _, err := s.Token(); err != nil {
			b.Fatal(err)
		}
	}
}
