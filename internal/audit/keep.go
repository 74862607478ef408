package audit

import (
	"context"
	"time"
)

// Keep reopens the file whenever it has failed, looking every interval, until ctx is done.
// onReopen is told how each attempt went.
func (f *File) Keep(ctx context.Context, interval time.Duration, onReopen func(error)) {
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
			if f.Err() != nil {
				onReopen(f.Reopen())
			}
		}
	}
}
