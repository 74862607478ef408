// Package program builds the proxy and starts servers of pipes for the benchmarks that measure them from outside.
package program

import (
	"context"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/test/harness"
)

// workingDir is a path that a server is asked about to see whether it answers.
const workingDir = `C:\var\lib\kubelet`

// Server is a running process that serves a pipe.
type Server struct {
	*harness.Process
	Began time.Duration // from the start to the first answer
	dial  func(context.Context) (net.Conn, error)
}

// Build compiles the proxy into dir as the Makefile does.
func Build(ctx context.Context, dir string) (string, error) {
	return harness.Build(ctx, dir, "-trimpath", "./cmd/proxy")
}

// OpenSDDL lets any account that runs this program create pipes; the descriptor does not slow a call down.
const OpenSDDL = "D:P(A;;GA;;;WD)"

// Proxy starts the proxy exe over an invented host, with this configuration and with its sockets in dir, and returns when
// it has answered a call on the pipe.
func Proxy(ctx context.Context, exe, dir, config, name string, args ...string) (*Server, error) {
	file := filepath.Join(dir, "proxy.yaml")
	if err := os.WriteFile(file, []byte("apiVersion: pipeguard.dev/v1alpha1\nkind: ProxyConfig\n"+config), 0o600); err != nil {
		return nil, err
	}
	args = append([]string{"--host", "memory", "--config", file}, args...)
	options := pipe.Options{}
	if runtime.GOOS == "windows" {
		args = append(args, "--pipe-sddl", OpenSDDL)
	} else {
		options.SocketDir = filepath.Join(dir, "s")
		args = append(args, "--socket-dir", options.SocketDir)
	}
	return Start(ctx, exec.Command(exe, args...), name, options) //nolint:gosec // our own program
}

// Start starts command, and returns when the server has answered a call. What it writes is thrown away.
func Start(ctx context.Context, command *exec.Cmd, name string, o pipe.Options) (*Server, error) {
	nowhere, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	if err != nil {
		return nil, err
	}
	defer func() { _ = nowhere.Close() }() // the process has its own
	command.Stdout, command.Stderr = nowhere, nowhere
	began := time.Now()
	process, err := harness.Start(command.Path, command)
	if err != nil {
		return nil, err
	}
	s := &Server{Process: process, dial: func(ctx context.Context) (net.Conn, error) { return pipe.Dial(ctx, name, o) }}
	for {
		connection, err := s.Connect()
		if err != nil {
			s.Kill()
			return nil, err
		}
		// Wine leaves the first connection to a pipe unanswered; the next one is.
		attempt, cancel := context.WithTimeout(ctx, 200*time.Millisecond)
		_, err = v1.NewFilesystemClient(connection).PathExists(attempt, &v1.PathExistsRequest{Path: workingDir})
		cancel()
		_ = connection.Close()
		if err == nil {
			s.Began = time.Since(began)
			return s, nil
		}
		select {
		case <-s.Exited():
			return nil, fmt.Errorf("%s ended: %w", command.Path, err)
		case <-ctx.Done():
			s.Kill()
			return nil, err
		case <-time.After(time.Millisecond):
		}
	}
}

// Connect returns a client of the pipe.
func (s *Server) Connect() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.dial(ctx) }))
}
