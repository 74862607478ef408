// Package patience reads with a time limit from sources that may never answer, such as a file on an unreachable network file system.
package patience

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// ErrLate means that something was not read in time.
var ErrLate = errors.New("the disk or a network file system does not answer")

// Usual is how long a file of a few hundred kilobytes may take before that is a fault.
const Usual = 30 * time.Second

// Reader reads on a goroutine of its own. At most one is left behind, and nothing is read again before it has come back. Its methods are for one goroutine.
type Reader[T any] struct {
	atMost  time.Duration
	read    func() (T, error)
	reading chan result[T] // of a read that has not returned; nil if there is none
}

type result[T any] struct {
	value T
	err   error
}

// New returns a Reader that waits so long for read, which is called by one goroutine at a time, also after a caller of Read has given up.
func New[T any](atMost time.Duration, read func() (T, error)) *Reader[T] {
	return &Reader[T]{atMost: atMost, read: read}
}

// Read returns what read does, an error that is ErrLate, or that of ctx. What comes late is thrown away, since it may be what was there long ago.
func (r *Reader[T]) Read(ctx context.Context) (T, error) {
	var none T
	late := time.NewTimer(r.atMost)
	defer late.Stop()
	for {
		isOld := r.reading != nil
		if !isOld {
			r.reading = make(chan result[T], 1)
			go func(done chan<- result[T]) {
				v, err := r.read()
				done <- result[T]{v, err}
			}(r.reading)
		}
		select {
		case got := <-r.reading:
			if r.reading = nil; !isOld {
				return got.value, got.err
			}
		case <-late.C:
			return none, fmt.Errorf("not read after %v: %w", r.atMost, ErrLate)
		case <-ctx.Done():
			return none, ctx.Err()
		}
	}
}
