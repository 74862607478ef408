//go:build unix

package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"
	"time"

	"github.com/pipeguard/pipeguard/internal/filetrust"
	"github.com/pipeguard/pipeguard/internal/periodic"
)

// Address returns the path of the socket that stands in for the pipe.
func Address(name string, o Options) string {
	return filepath.Join(o.SocketDir, name+".sock")
}

// Listen makes the socket that stands in for the pipe and returns its listener; closing the listener removes it.
// A socket on which a process answers is ErrTaken; one that was left behind by a dead process of ours is replaced.
func Listen(name string, o Options) (Listener, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	directory, err := openPrivate(o.SocketDir)
	if err != nil {
		return nil, err
	}
	defer func() { _ = directory.Close() }() // read only
	// Two processes that start at once must not each take the other's fresh socket for a stale one.
	if err := syscall.Flock(int(directory.Fd()), syscall.LOCK_EX); err != nil {
		return nil, fmt.Errorf("lock %s: %w", o.SocketDir, err)
	}
	address := Address(name, o)
	if err := removeStale(address); err != nil {
		return nil, err
	}
	listener, err := net.ListenUnix("unix", &net.UnixAddr{Name: address, Net: "unix"})
	if err != nil {
		return nil, fmt.Errorf("listen on %s: %w", address, err)
	}
	// The directory keeps others out in the meantime.
	err = os.Chmod(address, 0o600)
	bound, statErr := os.Lstat(address)
	if err := errors.Join(err, statErr); err != nil {
		return nil, errors.Join(err, listener.Close())
	}
	return &socket{UnixListener: listener, bound: bound}, nil
}

// Dial opens the socket that stands in for the pipe. While more clients wait than the kernel lets wait it tries again until ctx ends,
// as clients of a pipe do while none of its instances is free.
func Dial(ctx context.Context, name string, o Options) (net.Conn, error) {
	if err := CheckName(name); err != nil {
		return nil, err
	}
	for {
		var dialer net.Dialer
		conn, err := dialer.DialContext(ctx, "unix", Address(name, o))
		if !errors.Is(err, syscall.EAGAIN) {
			return conn, err
		}
		if !periodic.Sleep(ctx, busyInterval) {
			return nil, errors.Join(err, ctx.Err())
		}
	}
}

// busyInterval is how long a client waits before it tries again, as in go-winio.
const busyInterval = 10 * time.Millisecond

// openPrivate makes the directory if it is missing and refuses one that others could put a socket into.
// The checks are on the open directory, so that they are about what the lock is on.
func openPrivate(path string) (*os.File, error) {
	if path == "" {
		return nil, errors.New("no directory for sockets was given")
	}
	if err := os.Mkdir(path, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, fmt.Errorf("make the directory for sockets: %w", err)
	}
	directory, err := os.OpenFile(path, os.O_RDONLY|syscall.O_DIRECTORY|syscall.O_NOFOLLOW, 0)
	if err != nil {
		return nil, fmt.Errorf("open the directory for sockets, which must be no link: %w", err)
	}
	err = checkPrivate(directory)
	if err == nil {
		err = checkPlace(path)
	}
	if err != nil {
		return nil, errors.Join(err, directory.Close())
	}
	return directory, nil
}

// checkPlace refuses a directory that others could replace, with one in which they listen.
func checkPlace(path string) error {
	if err := filetrust.CheckPlace(path); err != nil {
		return fmt.Errorf("directory for sockets %s: %w", path, err)
	}
	return nil
}

func checkPrivate(directory *os.File) error {
	info, err := directory.Stat()
	if err != nil {
		return err
	}
	if mode := info.Mode().Perm(); mode != 0o700 {
		return fmt.Errorf("directory for sockets %s: mode is %#o, must be 0700", directory.Name(), mode)
	}
	return checkOwner(directory.Name(), info)
}

func checkOwner(path string, info fs.FileInfo) error {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return fmt.Errorf("%s: its owner is not known", path)
	}
	if int64(stat.Uid) != int64(os.Geteuid()) {
		return fmt.Errorf("%s: belongs to user %d, must belong to user %d", path, stat.Uid, os.Geteuid())
	}
	return nil
}

// removeStale removes a socket of ours on which no process answers, and nothing else.
func removeStale(address string) error {
	info, err := os.Lstat(address)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("listen on %s: there is something that is not a socket", address)
	}
	if err := checkOwner(address, info); err != nil {
		return err
	}
	conn, err := net.DialTimeout("unix", address, time.Second)
	if err == nil {
		return errors.Join(fmt.Errorf("listen on %s: %w: a process answers on it", address, ErrTaken), conn.Close())
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("find out whether %s is in use: %w", address, err)
	}
	return os.Remove(address)
}
