package segment

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// OnFailure decides about operations whose records cannot be written.
type OnFailure string

// Ways to handle a log that fails.
const (
	// FailOperation refuses them until the log works again. The safe choice, and the default.
	FailOperation OnFailure = "fail_operation"
	// Continue lets them run without a record. The next record that can be written says how many were lost; their content is lost.
	Continue OnFailure = "continue"
	// Shutdown refuses them and ends the process, so that its supervisor notices.
	Shutdown OnFailure = "shutdown"
)

// Options configure how a log is written. The zero value is the safe choice.
type Options struct {
	// SegmentBytes is the length at which a segment is closed; 0 means 64 MiB. One batch may make it longer.
	SegmentBytes int64
	// SegmentAge is the age at which a segment that holds anything is closed; 0 means 24 hours.
	SegmentAge time.Duration
	// KeepBytes bounds what the segments take together; the oldest are removed. An eighth of it belongs to the records of refusals, so that
	// these never cause a removal. 0 keeps all: a full disk then refuses every call.
	KeepBytes int64
	// KeepAge is how long records stay; a segment goes when its newest record is older. 0 keeps all. It is counted by the clock of
	// the machine: an account that can set the clock can have records removed.
	KeepAge time.Duration
	// Admitted bounds how many operations may be under way at a time; for each, room for two records is kept free on the disk.
	// 0 means 1024, which keeps 16 MiB.
	Admitted int
	// OnFailure is what a failing log does to operations; empty means FailOperation.
	OnFailure OnFailure
	// OnShutdown ends the process; Shutdown needs it. It must not call the Writer.
	OnShutdown func(error)
	// OnFault is told of each fault that the log went on after, or waits behind, and of nil when all is well again. It must
	// not call the Writer. Nil ignores faults.
	OnFault func(error)
	// Retry is how long a log that fails waits before it tries again; 0 means a second.
	Retry time.Duration
	// OnRecord is given each record once it is durable, in order: its raw line with the newline, valid until it returns. It must not
	// wait, and must not call the Writer. It may be nil.
	OnRecord func(line []byte)
	// NoSync leaves it to the operating system when a record reaches the disk. A crash of the machine may then lose records of
	// operations that were carried out.
	NoSync bool
	// Now is the clock of records; nil means time.Now.
	Now func() time.Time
	// Where is written into the records of the log itself.
	Where *audit.Where
	// Covered is the number of the last record under a signed checkpoint. What a crash seems to have done to records up to it was
	// no crash. 0 means that there is no checkpoint.
	Covered uint64
	// Fits is Signed.Fits for that checkpoint.
	Fits func(names []string) (bool, error)
	// Missing is how many records the key has signed of a log of which nothing is there, for the first record to say.
	Missing uint64
	// SignEvery is how long a record may wait for its signature, in a log that has been written to for some seconds; 0 means a second. All
	// times of signing go with it: the first records of a session wait for a twentieth of it, and a log that is idle is signed after 60 of it.
	SignEvery time.Duration
	// Evidence makes what keeps the Merkle tree of the log, given what is there. Nil keeps no tree.
	Evidence func(*Found) (Evidence, error)
}

// Evidence keeps the Merkle tree of all records, and signs it. Its methods are called by several goroutines.
type Evidence interface {
	// Append adds the leaf of a record that is durable.
	Append(leaf [32]byte)
	// Checkpoint signs and keeps the tree as it is.
	Checkpoint(ctx context.Context) error
	// Root returns how many leaves there are, and the root hash.
	Root() (size uint64, root [32]byte, err error)
	// Prune keeps what is needed to go on without the records up to last, which are still there and are removed next. It may take
	// seconds; records are appended meanwhile.
	Prune(ctx context.Context, last uint64) error
	// Removed is the last record that was to be removed when the log was opened: a process that ended meanwhile may have left some.
	Removed() uint64
}

func (o *Options) complete() error {
	o.SegmentBytes = cmp.Or(o.SegmentBytes, 64<<20)
	o.SegmentAge = cmp.Or(o.SegmentAge, 24*time.Hour)
	o.Retry = cmp.Or(o.Retry, time.Second)
	o.SignEvery = cmp.Or(o.SignEvery, time.Second)
	o.Admitted = cmp.Or(o.Admitted, 1024)
	o.OnFailure = cmp.Or(o.OnFailure, FailOperation)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.OnRecord == nil {
		o.OnRecord = func([]byte) {}
	}
	if o.OnFault == nil {
		o.OnFault = func(error) {}
	}
	var errs []error
	if o.SegmentBytes < 2*audit.MaxRecord {
		errs = append(errs, fmt.Errorf("segments of %d bytes are shorter than two records", o.SegmentBytes))
	}
	if o.KeepBytes != 0 && o.KeepBytes < 2*o.SegmentBytes {
		errs = append(errs, fmt.Errorf("keeping %d bytes is less than two segments", o.KeepBytes))
	}
	if o.SegmentAge < 0 || o.KeepAge < 0 || o.Retry < 0 || o.SignEvery < 0 || o.Admitted < 0 {
		errs = append(errs, errors.New("a negative age or number"))
	}
	switch o.OnFailure {
	case FailOperation, Continue:
	case Shutdown:
		if o.OnShutdown == nil {
			errs = append(errs, errors.New("OnShutdown is missing"))
		}
	default:
		errs = append(errs, fmt.Errorf("unknown OnFailure %q", o.OnFailure))
	}
	return errors.Join(errs...)
}
