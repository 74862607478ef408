package main

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"google.golang.org/grpc"

	"github.com/pipeguard/pipeguard/internal/core/safepath"
	"github.com/pipeguard/pipeguard/internal/proxy/apiserver"
	"github.com/pipeguard/pipeguard/internal/proxy/fakehost"
	"github.com/pipeguard/pipeguard/internal/proxy/handler"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
	"github.com/pipeguard/pipeguard/test/bench/program"
)

// workingDir is where the paths of all calls lie.
const workingDir = `C:\var\lib\kubelet`

// stage is where servers are started.
type stage struct {
	dir, exe    string
	turn        time.Duration
	turns       int
	starts      int // how often the time to start is taken
	connections int
	only        string // part of what the rows to measure are called
	lines       string // file for the rows as lines of go test -bench; empty for none
}

// barePipe is what the bare server listens on: on Windows names of pipes are the machine's, so it has one of its own.
const barePipe = "pipeguard-bench-bare"

// guardedPipe is what the proxy listens on.
const guardedPipe = "csi-proxy-filesystem-v1"

// serveBare is a gRPC server of the same API over the same host, and nothing else.
func serveBare(ctx context.Context, dir string) error {
	roots, err := safepath.NewRoots(workingDir)
	if err != nil {
		return err
	}
	handlers, err := handler.New(handler.Hosts{Filesystem: fakehost.New(fakehost.Options{Roots: roots})}, roots)
	if err != nil {
		return err
	}
	apis, err := apiserver.Load("filesystem")
	if err != nil {
		return err
	}
	listener, err := pipe.Listen(barePipe, pipe.Options{SocketDir: dir, SDDL: program.OpenSDDL})
	if err != nil {
		return err
	}
	server := grpc.NewServer()
	for _, api := range apis {
		if api.GroupVersion().Version == "v1" {
			server.RegisterService(api.Desc(handlers.Handle, nil), nil)
		}
	}
	context.AfterFunc(ctx, server.Stop)
	return server.Serve(listener)
}

// guard starts the proxy with an access list of a driver's size, and its records in a file or thrown away.
func (s *stage) guard(ctx context.Context, audit string, flushes bool) (*program.Server, error) {
	dir, err := os.MkdirTemp(s.dir, "guard")
	if err != nil {
		return nil, err
	}
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	config := "limits: {connectionsPerCaller: 600, connections: 600}\naudit: {noSync: " + strconv.FormatBool(!flushes) + "}\nacl:\n  rules:\n" +
		"  - {name: other, pipes: [\"volume-*\"], operations: [\"*\"], callers: [{exe: " + strconv.Quote(self+".other") + "}]}\n" +
		"  - {name: bench, pipes: [\"*\"], operations: [\"*\"], callers: [{exe: " + strconv.Quote(self) + "}]}\n"
	if audit == "file" {
		audit = filepath.Join(dir, "audit")
	}
	return program.Proxy(ctx, s.exe, dir, config, guardedPipe, "--audit-log", audit)
}

// bare starts this program as the server to compare with.
func (s *stage) bare(ctx context.Context) (*program.Server, error) {
	self, err := os.Executable()
	if err != nil {
		return nil, err
	}
	dir, err := os.MkdirTemp(s.dir, "bare")
	if err != nil {
		return nil, err
	}
	dir = filepath.Join(dir, "s")
	return program.Start(ctx, exec.Command(self, "-bare", dir), barePipe, pipe.Options{SocketDir: dir}) //nolint:gosec // this program
}
