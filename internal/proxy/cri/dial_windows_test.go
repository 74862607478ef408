package cri

import (
	"strings"
	"testing"
	"time"

	"github.com/Microsoft/go-winio"
	"golang.org/x/sys/windows"
	"google.golang.org/grpc"
	runtimeapi "k8s.io/cri-api/pkg/apis/runtime/v1"
)

// listen serves the runtime on a pipe. Where the pipe's first instance lets a client in (Wine does, Windows does not),
// one is spent on it.
func listen(t *testing.T, f *fakeRuntime) (address string) {
	t.Helper()
	address = `\\.\pipe\` + strings.NewReplacer("/", "-", "_", "-").Replace(t.Name())
	listener, err := winio.ListenPipe(address, nil)
	if err != nil {
		t.Fatal(err)
	}
	wait := 50 * time.Millisecond
	if spent, err := winio.DialPipe(address, &wait); err == nil {
		t.Cleanup(func() { _ = spent.Close() })
	}
	server := grpc.NewServer()
	runtimeapi.RegisterRuntimeServiceServer(server, f)
	go func() { _ = server.Serve(listener) }()
	t.Cleanup(server.Stop)
	return address
}

func self(t *testing.T) string {
	t.Helper()
	user, err := windows.GetCurrentProcessToken().GetTokenUser()
	if err != nil {
		t.Fatal(err)
	}
	return user.User.Sid.String()
}
