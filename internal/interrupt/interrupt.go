// Package interrupt handles termination signals: the first shuts the program down gracefully, the second at once.
package interrupt

import (
	"context"
	"os"
	"os/signal"
	"syscall"
)

// Context returns a context that the first SIGINT (Ctrl+C, Ctrl+Break) or SIGTERM cancels. Signals then have their usual
// effect again, so that the next one ends the process even if nothing looks at the context. stop gives signals
// back earlier.
func Context(parent context.Context) (ctx context.Context, stop context.CancelFunc) {
	ctx, stop = signal.NotifyContext(parent, os.Interrupt, syscall.SIGTERM)
	context.AfterFunc(ctx, stop)
	return ctx, stop
}
