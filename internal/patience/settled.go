package patience

import (
	"context"
	"errors"
	"time"
)

// ErrUnsettled means that something changed between any two reads.
var ErrUnsettled = errors.New("it changes all the time")

// Quiet is how long a file or directory must stay the same before it counts: half of a list can permit more than all of it.
const Quiet = time.Second

const mostReads = 20

// Settled reads until two reads in a row, quiet apart, return equal keys, so that what is being written is not taken for a whole. A key that
// is known needs no second read. The error is the first of read, that of ctx, or ErrUnsettled after twenty reads.
func Settled[T any, K comparable](ctx context.Context, quiet time.Duration, known K, read func() (T, K, error)) (T, K, error) {
	value, key, err := read()
	for n := 1; err == nil && key != known; n++ {
		if n == mostReads {
			return value, key, ErrUnsettled
		}
		timer := time.NewTimer(quiet)
		select {
		case <-ctx.Done():
			timer.Stop()
			return value, key, ctx.Err()
		case <-timer.C:
		}
		before := key
		if value, key, err = read(); key == before {
			break
		}
	}
	return value, key, err
}
