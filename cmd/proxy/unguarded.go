package main

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/pipeguard/pipeguard/internal/proxy/watch"
)

// searchWithin bounds how long status looks for pipes.
const searchWithin = 20 * time.Second

// unguarded finds pipes of CSI Proxy's names that another process than the service serves, whether or not it runs. Opening them leaves an
// idle connection in the service's audit log for each of its own.
func unguarded(ctx context.Context, service uint32) ([]watch.Foreign, error) {
	ctx, cancel := context.WithTimeout(ctx, searchWithin)
	defer cancel()
	found, err := watch.Search{Candidates: candidates()}.Foreign(ctx)
	if err != nil {
		return nil, fmt.Errorf("look for pipes that are not guarded: %w", err)
	}
	return without(service, found), nil
}

// without leaves out pipes that the service serves. Process 0 serves none.
func without(service uint32, found []watch.Foreign) []watch.Foreign {
	return slices.DeleteFunc(found, func(f watch.Foreign) bool { return service != 0 && f.PID == service })
}

// describeUnguarded is one line for a pipe.
func describeUnguarded(f watch.Foreign) string {
	if f.PID == 0 {
		return fmt.Sprintf("%q: who serves it is not known: %s", f.Pipe, f.Doubt)
	}
	return fmt.Sprintf("%q: process %d, %s", f.Pipe, f.PID, cmp.Or(f.Program, "an unknown program"))
}
