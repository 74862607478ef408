//go:build unix

package main

import (
	"context"
	"os"
	"path/filepath"
	"strings"
	"testing"

	filesystem "github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v2alpha1"
	"google.golang.org/grpc"
	"google.golang.org/grpc/codes"
	"google.golang.org/grpc/status"
	"google.golang.org/protobuf/proto"

	"github.com/pipeguard/pipeguard/cmd/pipeguard/internal/cli"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/test/clitest"
)

// serve answers on the pipes of the filesystem group, and returns the directory of their sockets.
func serve(t *testing.T, handle apiserver.Handler) string {
	t.Helper()
	// t.TempDir would be too long for the address of a socket on some systems.
	parent, err := os.MkdirTemp("", "call")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := os.RemoveAll(parent); err != nil {
			t.Error(err)
		}
	})
	dir := filepath.Join(parent, "pipes")
	apis, err := apiserver.Load("filesystem")
	if err != nil {
		t.Fatal(err)
	}
	for _, api := range apis {
		listener, err := pipe.Listen(api.GroupVersion().Pipe(), pipe.Options{SocketDir: dir})
		if err != nil {
			t.Fatal(err)
		}
		server := grpc.NewServer()
		server.RegisterService(api.Desc(handle, nil), nil)
		done := make(chan error, 1)
		go func() { done <- server.Serve(listener) }()
		t.Cleanup(func() {
			server.Stop()
			if err := <-done; err != nil {
				t.Error(err)
			}
		})
	}
	return dir
}

// host knows one path, refuses another and answers slowly on a third.
func host(ctx context.Context, call *apiserver.Call) (proto.Message, error) {
	request, ok := call.Request.(*filesystem.PathExistsRequest)
	if !ok {
		return nil, status.Error(codes.PermissionDenied, "only PathExists is allowed here\x1b[2J")
	}
	if request.Path == "slow" {
		<-ctx.Done()
		return nil, ctx.Err()
	}
	return &filesystem.PathExistsResponse{Exists: request.Path == `C:\var\lib\kubelet`}, nil
}

func TestCallPrintsTheResponse(t *testing.T) {
	dir := serve(t, host)
	for name, c := range map[string]struct {
		stdin      string
		args       []string
		code       int
		out, inErr string
	}{
		"a method of the newest version": {
			args: []string{"--pipe", "filesystem-v2alpha1", "PathExists", `{"path": "C:\\var\\lib\\kubelet"}`},
			out:  "{\n  \"exists\": true\n}\n",
		},
		"fields at their defaults are printed too": {
			args: []string{"--pipe", "csi-proxy-filesystem-v1", "PathExists", `{"path": "C:\\x"}`},
			out:  "{\n  \"exists\": false\n}\n",
		},
		"an older version with more fields": {
			args: []string{"--pipe", "FileSystem-V1alpha1", "PathExists", `{"path": "C:\\x", "context": "POD"}`},
			out:  "{\n  \"error\": \"\",\n  \"exists\": false\n}\n",
		},
		"a request from standard input": {
			stdin: `{"path": "C:\\var\\lib\\kubelet"}`,
			args:  []string{"--pipe", "filesystem-v1", "PathExists", "-"},
			out:   "{\n  \"exists\": true\n}\n",
		},
		"a refused call": {
			args: []string{"--pipe", "filesystem-v1", "Mkdir", `{}`},
			code: cli.ExitNo, inErr: "pipeguard call: PermissionDenied: only PathExists is allowed here<U+001B>[2J\n",
		},
		"a call that takes too long": {
			args: []string{"--pipe", "filesystem-v1", "--timeout", "50ms", "PathExists", `{"path": "slow"}`},
			code: cli.ExitNo, inErr: "DeadlineExceeded: ",
		},
		"a request that is too large": {
			stdin: `{"path": "` + strings.Repeat("a", maxRequest) + `"}`,
			args:  []string{"--pipe", "filesystem-v1", "PathExists", "-"},
			code:  cli.ExitBadInput, inErr: "more than",
		},
		"a pipe that nobody serves": {
			args: []string{"--pipe", "volume-v1", "GetVolumeStats", `{}`},
			code: cli.ExitNo, inErr: "Unavailable: ",
		},
	} {
		t.Run(name, func(t *testing.T) {
			got := execute(t, c.stdin, append([]string{"call", "--socket-dir", dir}, c.args...)...)
			if got.Code != c.code || got.Out != c.out || !strings.Contains(got.ErrOut, c.inErr) {
				t.Errorf("got %+v, want code %d, output %q, standard error with %q", got, c.code, c.out, c.inErr)
			}
		})
	}
}

func TestCallNeedsToKnowWhereTheSocketsAre(t *testing.T) {
	got := execute(t, "", "call", "--pipe", "filesystem-v1", "Mkdir", "{}")
	if got.Code != cli.ExitBadInput || !strings.Contains(got.ErrOut, "--socket-dir") {
		t.Errorf("got %+v", got)
	}
}

func TestCallListNamesPipesAndMethods(t *testing.T) {
	all := execute(t, "", "call", "--list")
	for _, want := range []string{
		"csi-proxy-filesystem-v1 Mkdir\n", "csi-proxy-filesystem-v1alpha1 LinkPath (CreateSymlink)\n",
		"csi-proxy-volume-v1 FormatVolume\n", "csi-proxy-system-v1alpha1 StopService\n",
	} {
		if !strings.Contains(all.Out, want) {
			t.Errorf("%q is missing", want)
		}
	}
	one := execute(t, "", "call", "--list", "--pipe", "filesystem-v1alpha1")
	clitest.Golden(t, "call-list.txt", one.Out)
}
