package token_test

import (
	"context"
	"fmt"
	"net"
	"os"
	"path/filepath"

	disk "github.com/kubernetes-csi/csi-proxy/client/api/disk/v1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/metadata"
	"google.golang.org/grpc/status"
	"google.golang.org/grpc/test/bufconn"

	"github.com/pipeguard/pipeguard/client/token"
)

// A driver dials the pipe itself and uses the stubs that CSI Proxy publishes.
func ExampleDial() {
	dir, openPipe, stop := node() // on a node: C:\var\run\secrets\pipeguard, winio.DialPipeContext
	defer stop()

	source := token.NewSource(filepath.Join(dir, "token"), token.Options{})
	conn, err := token.Dial(`\\.\pipe\csi-proxy-disk-v1`, source, openPipe)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer conn.Close()
	answer, err := disk.NewDiskClient(conn).ListDiskLocations(context.Background(), &disk.ListDiskLocationsRequest{})
	fmt.Println(len(answer.GetDiskLocations()), "disk", err)
	// Output: 1 disk <nil>
}

// A driver that has its own way of connecting adds the interceptors.
func ExampleSource_UnaryClientInterceptor() {
	source := token.NewSource(`C:\var\run\secrets\pipeguard\token`, token.Options{})
	options := []grpc.DialOption{
		grpc.WithChainUnaryInterceptor(source.UnaryClientInterceptor()),
		grpc.WithChainStreamInterceptor(source.StreamClientInterceptor()),
	}
	fmt.Println(len(options), "options")
	// Output: 2 options
}

// On nodes where no proxy asks for tokens there is none to mount.
func ExampleOptions() {
	source := token.NewSource(`C:\var\run\secrets\none\token`, token.Options{Optional: true})
	text, err := source.Token()
	fmt.Printf("%q %v\n", text, err)
	// Output: "" <nil>
}

// node stands in for a node: a token in a directory, and a pipe that serves callers who send it.
func node() (dir string, open token.Dialer, stop func()) {
	dir, err := os.MkdirTemp("", "token")
	if err != nil {
		panic(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "token"), []byte("header.claims.signature"), 0o600); err != nil {
		panic(err)
	}
	pipe, server := bufconn.Listen(1<<16), grpc.NewServer()
	disk.RegisterDiskServer(server, &disks{})
	done := make(chan error, 1)
	go func() { done <- server.Serve(pipe) }()
	open = func(ctx context.Context, _ string) (net.Conn, error) { return pipe.DialContext(ctx) }
	return dir, open, func() {
		server.Stop()
		<-done
		_ = os.RemoveAll(dir)
	}
}

type disks struct{ disk.UnimplementedDiskServer }

func (*disks) ListDiskLocations(ctx context.Context, _ *disk.ListDiskLocationsRequest) (*disk.ListDiskLocationsResponse, error) {
	md, _ := metadata.FromIncomingContext(ctx)
	if sent := md.Get("authorization"); len(sent) != 1 || sent[0] != "Bearer header.claims.signature" {
		return nil, status.Error(codes.Unauthenticated, "who are you?")
	}
	return &disk.ListDiskLocationsResponse{DiskLocations: map[uint32]*disk.DiskLocation{0: {}}}, nil
}
