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
	"github.com/pipeguard/pipeguard/internal/logkeys"
	"github.com/pipeguard/pipeguard/internal/proxy/peer"
	"github.com/pipeguard/pipeguard/internal/proxy/pipe"
)

// Target is the pipe of a gRPC server.
type Target struct {
	// Pipe is its name without \\.\pipe\. Pods must not be able to mount it.
	Pipe string
	// Exe is the full path of the program that must be serving it. If it is empty, whoever made the pipe first is believed.
	Exe string
}

// Options are what all targets have in common.
type Options struct {
	// SocketDir is where the sockets are that stand in for pipes outside Windows.
	SocketDir string
	// Servers names the processes that serve pipes; nil asks the kernel.
	Servers peer.Resolver
	// ConnectTimeout is how long opening a pipe, naming its server and the beginning of HTTP/2 may take together, 5 s if not
	// set. A call waits for that; while a server is away, calls fail at once.
	ConnectTimeout time.Duration
	// Log takes diagnostics; nil means none.
	Log *zap.Logger
}

// dialer opens connections to a server that is who it must be.
type dialer struct {
	Target
	pipes   pipe.Options
	servers peer.Resolver
	log     *zap.Logger

	mu   sync.Mutex // guards what follows
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
	held, err := d.check(conn)
	if err != nil {
		err = errors.Join(fmt.Errorf("the server of pipe %s is refused: %w", d.Pipe, err), conn.Close())
		d.report(err.Error(), err)
		return nil, err
	}
	who := held.Identity()
	d.report(fmt.Sprintf("process %d", who.Process.PID), nil, zap.Uint32(logkeys.PID, who.Process.PID), zap.String(logkeys.Path, who.Process.Exe),
		zap.String(logkeys.UID, who.User.SID))
	return &connection{Conn: conn, held: held}, nil
}

// check names the process at the other end and holds it.
func (d *dialer) check(conn net.Conn) (peer.Peer, error) {
	held, err := d.servers.Resolve(conn, peer.Dialled())
	if err != nil {
		return nil, fmt.Errorf("find out who serves it: %w", err)
	}
	who := held.Identity().Process
	switch {
	case who.PID == uint32(os.Getpid()): // #nosec G115 -- process ids are 32 bits
		err = errors.New("this process serves it: calls would go round in a circle")
	case d.Exe != "" && !access.SameExe(who.Exe, d.Exe):
		err = fmt.Errorf("process %d runs %q and not %q", who.PID, who.Exe, d.Exe)
	}
	if err != nil {
		return nil, errors.Join(err, held.Close())
	}
	return held, nil
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

// connection holds the server's process.
type connection struct {
	net.Conn
	held peer.Peer
}

// Close implements net.Conn.
func (c *connection) Close() error { return errors.Join(c.Conn.Close(), c.held.Close()) }
