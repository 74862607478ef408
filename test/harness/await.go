package harness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"testing"
	"time"
)

// Await asks again and again until ask returns nil or the time is over.
func Await(ctx context.Context, limit time.Duration, ask func(context.Context) error) error {
	ctx, cancel := context.WithTimeoutCause(ctx, limit, fmt.Errorf("not within %s", limit))
	defer cancel()
	again := time.NewTicker(50 * time.Millisecond)
	defer again.Stop()
	var last error
	for {
		err := ask(ctx)
		if err == nil {
			return nil
		}
		if ctx.Err() == nil || last == nil {
			last = err // what is said when the time is over is about the time
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w; last answer: %w", context.Cause(ctx), last)
		case <-again.C:
		}
	}
}

// Eventually fails the test if ask does not return nil within the limit. It also waits while the test cleans up.
func Eventually(t testing.TB, limit time.Duration, what string, ask func(context.Context) error) {
	t.Helper()
	began := time.Now()
	if err := Await(context.WithoutCancel(t.Context()), limit, ask); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
	t.Logf("%s: after %.1f s", what, time.Since(began).Seconds())
}

// ServedAddresses finds in the log of a webhook which part serves at which address.
func ServedAddresses(log []byte) map[string]string {
	found := map[string]string{}
	for line := range bytes.Lines(log) {
		var entry struct{ Msg, Name, Address string }
		if json.Unmarshal(line, &entry) == nil && entry.Msg == "serving" {
			found[entry.Name] = entry.Address
		}
	}
	return found
}
