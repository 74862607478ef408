// Package program builds the proxy and starts servers of pipes, for what measures them from outside.
package program

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"

	"github.com/kubernetes-csi/csi-proxy/client/api/filesystem/v1"

	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// workingDir is a path that a server is asked about to see whether it answers.
const workingDir = `C:\var\lib\kubelet`

// Build makes the proxy in dir as the Makefile does.
func Build(ctx context.Context, dir string) (string, error) {
	exe := filepath.Join(dir, "proxy.exe")
	command := exec.CommandContext(ctx, "go", "build", "-trimpath", "-ldflags", "-s -w", "-o", exe, "./cmd/proxy") //nolint:gosec // our own program
	command.Env = append(os.Environ(), "CGO_ENABLED=0")
	if text, err := command.CombinedOutput(); err != nil {
		return "", fmt.Errorf("build the proxy: %w\n%s", err, text)
	}
	return exe, nil
}

// Server is a running process that serves a pipe.
type Server struct {
	Command *exec.Cmd
	ended   chan struct{}
	Began   time.Duration // from the start to the first answer
	dial    func(context.Context) (net.Conn, error)
}

// Start starts command, and returns when the server has answered a call.
func Start(ctx context.Context, command *exec.Cmd, name string, o pipe.Options) (*Server, error) {
	command.Stdout = io.Discard
	began := time.Now()
	if err := command.Start(); err != nil {
		return nil, err
	}
	s := &Server{Command: command, ended: make(chan struct{}), dial: func(ctx context.Context) (net.Conn, error) { return pipe.Dial(ctx, name, o) }}
	go func() {
		_ = command.Wait()
		close(s.ended)
	}()
	for {
		connection, err := s.Connect()
		if err != nil {
			return nil, errors.Join(err, s.Kill())
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
		case <-s.ended:
			return nil, fmt.Errorf("%s ended: %w", command.Path, err)
		case <-ctx.Done():
			return nil, errors.Join(err, s.Kill())
		case <-time.After(time.Millisecond):
		}
	}
}

// Connect returns a client of the pipe.
func (s *Server) Connect() (*grpc.ClientConn, error) {
	return grpc.NewClient("passthrough:///pipe", grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithContextDialer(func(ctx context.Context, _ string) (net.Conn, error) { return s.dial(ctx) }))
}

// Kill ends the process and waits for its end.
func (s *Server) Kill() error {
	err := s.Command.Process.Kill()
	<-s.ended
	if errors.Is(err, os.ErrProcessDone) {
		return nil
	}
	return err
}

// Dial opens a connection to the pipe.
func (s *Server) Dial(ctx context.Context) (net.Conn, error) { return s.dial(ctx) }

// Ended is closed once the process has ended.
func (s *Server) Ended() <-chan struct{} { return s.ended }
