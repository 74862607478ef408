package admission

import "context"

type traceKey struct{}

// WithoutTrace makes reviews leave no record, no metric and no log line: for scans, trials and canaries, which ask what
// would be decided. Only the context can say so, never a request. A panic is logged all the same.
func WithoutTrace(ctx context.Context) context.Context {
	return context.WithValue(ctx, traceKey{}, true)
}

func isTraced(ctx context.Context) bool { return ctx.Value(traceKey{}) == nil }
