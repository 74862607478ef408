package pipe

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/peer"
)

// verifyOwner opens the pipe as a client would and returns ErrTaken unless this very process is at the other
// end. The listener must be accepting meanwhile. Windows already refuses a second first instance; this
// finds the case in which it did not. Listen does it by itself on Windows; a socket is kept by its directory.
// It keeps its connection until the other end closes it, or for as long as that may take.
func verifyOwner(ctx context.Context, name string, o Options, linger time.Duration) error {
	address := Address(name, o)
	conn, err := Dial(ctx, name, o)
	if errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("%s: %w: %w", address, ErrLost, err)
	}
	if err != nil {
		return fmt.Errorf("ask who serves %s: %w", address, err)
	}
	defer func() { _ = conn.Close() }() // nothing was written that could be lost
	pid, err := peer.ServerPID(conn)
	if err != nil {
		return fmt.Errorf("ask who serves %s: %w", address, err)
	}
	if err := judgeOwner(address, pid, os.Getpid()); err != nil || linger == 0 {
		return err
	}
	if conn.SetReadDeadline(time.Now().Add(linger)) == nil {
		_, _ = conn.Read(make([]byte, 1)) // its end is what is waited for
	}
	return nil
}

func judgeOwner(address string, pid uint32, self int) error {
	if int64(pid) != int64(self) {
		return fmt.Errorf("%s: %w: process %d answers on it", address, ErrTaken, pid)
	}
	return nil
}
