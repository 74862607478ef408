package token

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"

	"github.com/Microsoft/go-winio"
	"google.golang.org/grpc"
	"google.golang.org/grpc/health"
	healthpb "google.golang.org/grpc/health/grpc_health_v1"

	"github.com/pipeguard/pipeguard/test/harness"
)

func TestDialSendsTheTokenOverANamedPipe(t *testing.T) {
	pipe := fmt.Sprintf(`\\.\pipe\pipeguard-client-token-%d`, os.Getpid())
	listener, err := winio.ListenPipe(pipe, nil)
	if err != nil {
		t.Fatal(err)
	}
	// Wine lets a client into the first instance of a pipe, which nobody serves; Windows does not. This one takes that place.
	first, err := winio.DialPipe(pipe, nil)
	if err == nil {
		defer first.Close()
	}
	s := &server{}
	g := grpc.NewServer(grpc.UnaryInterceptor(s.unary))
	healthpb.RegisterHealthServer(g, health.NewServer())
	done := make(chan error, 1)
	go func() { done <- g.Serve(listener) }()
	defer func() {
		g.Stop()
		<-done
	}()

	file := filepath.Join(t.TempDir(), "token")
	harness.Replace(t, file, "aaa.bbb.ccc")
	conn, err := Dial(pipe, NewSource(file, Options{}), winio.DialPipeContext)
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	for _, text := range []string{"aaa.bbb.ccc", "ddd.eee.fff"} {
		harness.Replace(t, file, text)
		if err := check(t, healthpb.NewHealthClient(conn), t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	wantHeaders(t, s, "Bearer aaa.bbb.ccc", "Bearer ddd.eee.fff")
}
