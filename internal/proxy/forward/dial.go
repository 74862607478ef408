package forward

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"go.uber.org/zap"

	"github.com/pipeguard/pipeguard/internal/core/access"
	"github.com/pipeguard/pipeguard/internal/core/caller"
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// Target is the pipe of a gRPC server.
type Target struct {
	// Pipe is its name without \\.\pipe\. Pods must not be able to mount it.
	Pipe string
	// Exe is the full path of the program that must be serving it. If it is empty, the process that made the pipe first is trusted.
	Exe string
}

// Options are what all targets have in common.
type Options struct {
	// SocketDir is where the sockets are that stand in for pipes outside Windows.
	SocketDir string
	// Servers identifies the processes that serve pipes; nil asks the kernel.
	Servers peer.Resolver
	// ConnectTimeout is how long opening a pipe, naming its server and the beginning of HTTP/2 may take together, 5 s if not
	// set. A call waits for that; while a server is away, calls fail at once.
	ConnectTimeout time.Duration
	// Log takes diagnostics; nil means none.
	Log *zap.Logger
}

// dialer opens connections to a server and checks its program.
type dialer struct {
	Target
	pipes   pipe.Options
	servers peer.Resolver
	log     *zap.Logger

	mu   sync.Mutex // guards the fields below
	last string     // what was logged last, so that a server that stays away is one line
}

func newDialer(t Target, o Options) (*dialer, error) {
	if err := pipe.CheckName(t.Pipe); err != nil {
		return nil, fmt.Errorf("server behind a pipe: %w", err)
	}
	if t.Exe != "" && !access.SameExe(t.Exe, t.Exe) {
		return nil, fmt.Errorf("server of pipe %s: exe %q is not the full path of a program", t.Pipe, t.Exe)
	}
	if o.Servers == nil {
		o.Servers = peer.NewServerResolver()
	}
	o.Log = cmp.Or(o.Log, zap.NewNop())
	return &dialer{
		Target: t, pipes: pipe.Options{SocketDir: o.SocketDir}, servers: o.Servers,
		log: o.Log.With(zap.String(logkeys.Pipe, t.Pipe)),
	}, nil
}

// dial opens the pipe, and returns it before anything was sent or received. The server's process is held for as long as
// the connection is open.
func (d *dialer) dial(ctx context.Context, _ string) (net.Conn, error) {
	conn, err := pipe.Dial(ctx, d.Pipe, d.pipes)
	if err != nil {
		err = fmt.Errorf("the server of pipe %s cannot be reached: %w", d.Pipe, err)
		d.report(err.Error(), err)
		return nil, err
	}
	var server caller.Caller
	held, err := peer.CheckServer(d.servers, conn, func(who caller.Caller) error {
		server = who
		return d.check(who.Process)
	})
	if err != nil {
		err = fmt.Errorf("the server of pipe %s is refused: %w", d.Pipe, err)
		d.report(err.Error(), err)
		return nil, err
	}
	d.report(fmt.Sprintf("process %d", server.Process.PID), nil, zap.Uint32(logkeys.PID, server.Process.PID), zap.String(logkeys.Path, server.Process.Exe),
		zap.String(logkeys.UID, server.User.SID))
	return held, nil
}

// check refuses this process, and every program but Exe.
func (d *dialer) check(server caller.Process) error {
	switch {
	case server.PID == uint32(os.Getpid()): // #nosec G115 -- process ids are 32 bits
		return errors.New("this process serves it: calls would go round in a circle")
	case d.Exe != "" && !access.SameExe(server.Exe, d.Exe):
		return fmt.Errorf("process %d runs %q and not %q", server.PID, server.Exe, d.Exe)
	}
	return nil
}

// report logs what has changed since it was asked last.
func (d *dialer) report(what string, err error, fields ...zap.Field) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if d.last == what {
		return
	}
	d.last = what
	if err != nil {
		d.log.Error("the server behind a pipe does not answer", zap.Error(err))
		return
	}
	d.log.Info("connected to the server behind a pipe", fields...)
}

// reason is why the last connection failed.
func (d *dialer) reason() string {
	d.mu.Lock()
	defer d.mu.Unlock()
	return d.last
}
