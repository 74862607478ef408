package copies

import (
	"context"
	"fmt"
	"time"
)

// Destination takes copies; its calls come from one goroutine per Destination.
//
// It may have these methods too:
//
//	Wants(line []byte) bool          // which records it takes; called by the writer of the log, so it must be quick
//	CheckpointEvery() time.Duration  // it takes checkpoints, at most one in that time; without the method it takes none
//	Gather() time.Duration           // how long to wait for more records before a batch that is not full
//	Close() error                    // called when nothing follows
type Destination interface {
	// Name is the destination's in metrics and errors.
	Name() string
	// Send hands a batch on: records, or one checkpoint. An error means that none of them counts as sent, unless it is a
	// *PartialError. A *AgainError asks for another try.
	Send(ctx context.Context, records []Record) error
}

// Record is a record of the log, or a checkpoint. Its bytes are shared by all destinations, which must not change them.
type Record struct {
	Line       []byte // raw, without newline
	Checkpoint []byte // instead of Line: a signed note
}

// PartialError says that a destination took a batch but for some records.
type PartialError struct {
	Failed int // how many it did not take
	Err    error
}

func (e *PartialError) Error() string { return fmt.Sprintf("%d records: %v", e.Failed, e.Err) }

// Unwrap returns why they were not taken.
func (e *PartialError) Unwrap() error { return e.Err }

// AgainError says that a destination took nothing now and may later.
type AgainError struct {
	Err   error
	After time.Duration // as the destination asked, 0 if it did not
}

func (e *AgainError) Error() string { return e.Err.Error() }

// Unwrap returns why nothing was taken.
func (e *AgainError) Unwrap() error { return e.Err }
