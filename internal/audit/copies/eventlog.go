package copies

import (
	"context"
	"errors"
	"time"

	"github.com/pipeguard/pipeguard/internal/winsvc"
)

// Which is the configured choice of the records that go to the event log.
type Which string

// Choices of records.
const (
	All Which = "all"
	// Denied is what was refused or went wrong: the decision is deny, also one that was not enforced, or the outcome is neither ok
	// nor idle; and the log's own records.
	Denied Which = "denied"
)

// checkpointEvery keeps checkpoints from filling the event log, which has little room. What is between two is in the next.
const checkpointEvery = time.Minute

// EventLog returns a destination that writes an event for each record, or for those that which says, and a checkpoint once a minute. It does
// not close the log. The text of an event is one line that says what it is, a few fields, and the record as JSON that means the same.
func EventLog(log winsvc.EventLog, which Which) Destination {
	p := &eventLog{log}
	if which == Denied {
		return &deniedOnly{p}
	}
	return p
}

type eventLog struct{ log winsvc.EventLog }

// deniedOnly is an event log for records that are not fine.
type deniedOnly struct{ *eventLog }

// Wants refuses the rest before it is queued: calls that are fine must not take the room of those that are not.
func (*deniedOnly) Wants(line []byte) bool { return !isUneventful(line) }

// Name implements Destination.
func (*eventLog) Name() string { return "eventlog" }

// CheckpointEvery bounds how often checkpoints are taken.
func (*eventLog) CheckpointEvery() time.Duration { return checkpointEvery }

// Send implements Destination. Each record is an event of its own; one that the log refuses does not hold up the next.
func (p *eventLog) Send(ctx context.Context, records []Record) error {
	failed := 0
	var first error
	for _, r := range records {
		err := ctx.Err()
		if err == nil {
			err = p.write(r)
		}
		if err != nil {
			failed++
			if first == nil {
				first = err
			}
		}
	}
	if failed > 0 {
		return &PartialError{Failed: failed, Err: first}
	}
	return nil
}

func (p *eventLog) write(r Record) error {
	if r.Checkpoint != nil {
		line, err := checkpointLine(r.Checkpoint)
		return errors.Join(err, p.log.Info(EventCheckpoint, checkpointText(line)))
	}
	f := factsOf(r.Line)
	k := f.kind()
	text := recordText(k, &f, r.Line)
	switch k.severity {
	case failure:
		return p.log.Error(k.event, text)
	case warning:
		return p.log.Warning(k.event, text)
	default:
		return p.log.Info(k.event, text)
	}
}
