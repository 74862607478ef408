// Package periodic repeats work at an interval.
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
