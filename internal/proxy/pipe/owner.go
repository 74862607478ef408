package pipe

import (
	"context"
	"fmt"
	"os"
)

// VerifyOwner opens the pipe as a client would and returns ErrTaken unless this very process is at the other
// end. It needs somebody to be accepting on the listener. Windows already refuses a second first instance; this
// finds the case in which it did not. Listen does it by itself on Windows; a socket is kept by its directory.
func VerifyOwner(ctx context.Context, name string, o Options) error {
	pid, err := serverPID(ctx, name, o)
	if err != nil {
		return fmt.Errorf("ask who serves %s: %w", Address(name, o), err)
	}
	return judgeOwner(Address(name, o), pid, os.Getpid())
}

func judgeOwner(address string, pid uint32, self int) error {
	if int64(pid) != int64(self) {
		return fmt.Errorf("%s: %w: process %d answers on it", address, ErrTaken, pid)
	}
	return nil
}
