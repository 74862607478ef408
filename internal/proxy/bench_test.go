package proxy

import (
	"context"
	"io"
	"net"
	"testing"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	"google.golang.org/grpc/test/bufconn"
	"google.golang.org/protobuf/proto"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/audit"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
)

// bareServer serves the same messages without any guard.
func bareServer(b *testing.B) *grpc.ClientConn {
	b.Helper()
	apis, err := apiserver.Load("filesystem")
	if err != nil {
		b.Fatal(err)
	}
	l := bufconn.Listen(64 << 10)
	server := grpc.NewServer()
	for _, api := range apis {
		if api.GroupVersion().Version == "v1" {
			server.RegisterService(api.Desc(func(_ context.Context, call *apiserver.Call) (proto.Message, error) { return answer(call) }, nil), nil)
		}
	}
	go func() { _ = server.Serve(l) }()
	b.Cleanup(server.Stop)
	c, err := grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return l.DialContext(ctx) }))
	if err != nil {
		b.Fatal(err)
	}
	b.Cleanup(func() { _ = c.Close() })
	return c
}

// BenchmarkCall is the whole way of a call over bufconn, client included, with records that are encoded and thrown away; and
// the same without the guard.
func BenchmarkCall(b *testing.B) {
	f := start(b, "bufconn", func(o *Options) { o.Audit = audit.NewStream(io.Discard) })
	f.settled = true // the records are gone
	c := v1.NewFilesystemClient(f.client(b, "filesystem-v1"))
	bare := v1.NewFilesystemClient(bareServer(b))
	for name, call := range map[string]func() error{
		"allowed": func() error {
			_, err := c.Mkdir(context.Background(), &v1.MkdirRequest{Path: `C:\var\lib\kubelet\plugins\x`})
			return err
		},
		"bare": func() error {
			_, err := bare.Mkdir(context.Background(), &v1.MkdirRequest{Path: `C:\var\lib\kubelet\plugins\x`})
			return err
		},
		"denied": func() error {
			if _, err := c.Rmdir(context.Background(), &v1.RmdirRequest{Path: `C:\a`}); err == nil {
				b.Error("not denied")
			}
			return nil
		},
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				if err := call(); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
