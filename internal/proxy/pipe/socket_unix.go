//go:build unix

package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync/atomic"
)

// socket is a listener that remembers which file it was bound to.
type socket struct {
	*net.UnixListener
	bound  fs.FileInfo
	closed atomic.Bool
}

// Accept returns a peer.Accepted.
func (s *socket) Accept() (net.Conn, error) { return noting{s.UnixListener}.Accept() }

// Close closes the listener and removes its file.
func (s *socket) Close() error {
	s.closed.Store(true)
	return s.UnixListener.Close()
}

// Verify implements Listener. It opens no connection. The kernel keeps the file of a socket that is bound, so its number
// names no other file while this listener is open, even if it was removed from its directory.
func (s *socket) Verify(context.Context) error {
	address := s.Addr().String() // a closed socket has no file, or another's
	now, err := os.Lstat(address)
	switch {
	case s.closed.Load():
		return net.ErrClosed
	case errors.Is(err, fs.ErrNotExist):
		return fmt.Errorf("%s: %w: the socket was removed", address, ErrLost)
	case err != nil:
		return fmt.Errorf("look at %s: %w", address, err)
	case !os.SameFile(s.bound, now):
		return fmt.Errorf("%s: %w: there is another file than the socket that was made", address, ErrTaken)
	}
	return nil
}
