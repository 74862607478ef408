// Package periodic repeats work at an interval, waits between attempts, and wakes what waits.
package periodic

import (
	"context"
	"time"
)

// Run calls do after each interval until ctx is done.
func Run(ctx context.Context, interval time.Duration, do func()) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			do()
		}
	}
}

// Sleep waits for d. It returns false once ctx is done, and then at once.
func Sleep(ctx context.Context, d time.Duration) bool { return Wait(ctx, d, nil) }

// Wait is Sleep that also ends when it receives from wake.
func Wait(ctx context.Context, d time.Duration, wake <-chan struct{}) bool {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
	case <-timer.C:
	case <-wake:
	}
	return ctx.Err() == nil
}

// Signal sends on a channel that holds one value, unless it holds one already: the receiver has yet to look, and will see this change too.
func Signal(c chan<- struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
