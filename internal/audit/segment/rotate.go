package segment

import (
	"fmt"
	"time"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// due says why the open segment should be closed before more bytes are written to it, or nothing.
func (l *log) due(more int64) string {
	if l.at.last == l.at.first {
		return "" // there is nothing in it yet
	}
	switch {
	case l.at.bytes+more > l.options.SegmentBytes:
		return audit.CauseSize
	// Either clock will do: one may have been set, the other may have stood still while the machine slept.
	case time.Since(l.began) >= l.options.SegmentAge || l.options.Now().Sub(l.at.opening.Time) >= l.options.SegmentAge:
		return audit.CauseAge
	}
	return ""
}

// rotate closes the open segment if it is due. The next file is made first: on a disk that has no room for one, the open segment is used
// further. It leaves no segment open, for begin.
func (l *log) rotate(more int64) {
	if l.file == nil {
		return
	}
	if !l.isHere() {
		l.options.OnFault(fmt.Errorf("audit segment %s was moved away or removed, or the lock of its directory was", l.at.name))
		l.leave(audit.CauseMissing, nil)
		return
	}
	cause := l.due(more)
	if cause == "" || time.Now().Before(l.retry) {
		return
	}
	next, err := l.create(l.seq + 2) // behind the end of this one
	if err != nil {
		if l.retry.IsZero() { // the same fault is told once
			l.options.OnFault(err)
		}
		l.retry = time.Now().Add(l.options.Retry)
		return
	}
	if err := l.end(); err != nil {
		l.discard(next) // its name has the wrong number now
		l.poison(err)
		return
	}
	l.leave(cause, nil)
	l.next = next
}

// isHere says whether the open segment is in its directory and that is this writer's. It looks once in a tick, and not before each batch: an account that
// can move files away can do it right after a look, too.
func (l *log) isHere() bool {
	now := time.Now()
	if now.Sub(l.here) < tick {
		return true
	}
	if !l.file.IsHere() {
		return false
	}
	l.here = now
	return true
}

// end writes the last record of the open segment.
func (l *log) end() error {
	var found *audit.Log
	switch {
	case l.isLast: // there may be no other record to say what is missing
		found = &audit.Log{Cause: audit.CauseStop, Lost: l.lost, Unwritten: l.unwritten.Load()}
	case l.lost > 0:
		found = &audit.Log{Lost: l.lost}
	}
	closing, err := l.own(audit.StageLogClose, found)
	if err != nil {
		return err
	}
	if err := l.write([]*pending{closing}); err != nil {
		return err
	}
	l.lost = 0
	return nil
}
