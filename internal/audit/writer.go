package audit

import "context"

// Writer takes records.
type Writer interface {
	// Append numbers the event, writes it, and returns its sequence number once it is durable.
	// An error means that the record may not be there: an operation whose intent it was must not run.
	// With an error, seq is the number under which the record would be found if it is there after all, or 0 if it cannot be.
	// The event is not changed and not kept. Append may be called by many goroutines.
	Append(ctx context.Context, event *Event) (seq uint64, err error)
}
