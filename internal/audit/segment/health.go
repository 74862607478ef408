package segment

import (
	"errors"
	"fmt"

	"github.com/pipeguard/pipeguard/internal/audit"
)

// Stats is the one place for the health of the log: Stats.Err is why it takes no records of further operations, Stats.Unsigned why it is not signed, and Stats.Unpruned
// why nothing is removed from it. OnFault is called when that changes, and with nil once all is well again.

// notes changes the faults of the log, and reports them. l.mu must not be held.
func (l *log) notes(change func(*Stats)) {
	l.mu.Lock()
	before := l.stats
	change(&l.stats)
	now := l.stats
	l.mu.Unlock()
	if now.Err != nil && (before.Err == nil || before.Err.Error() != now.Err.Error()) {
		l.options.OnFault(now.Err)
	}
	if now.Unsigned != nil && before.Unsigned == nil {
		l.options.OnFault(now.Unsigned)
	}
	if now.Unpruned != nil && before.Unpruned == nil {
		l.options.OnFault(now.Unpruned)
	}
	if !before.isWell() && now.isWell() {
		l.options.OnFault(nil)
	}
}

func (s *Stats) isWell() bool { return s.Err == nil && s.Unsigned == nil && s.Unpruned == nil }

// setFull notes whether there is room for the records of one more operation. The owner of the log calls it.
func (l *log) setFull(err error) {
	if err != nil && !errors.Is(err, ErrFull) {
		err = errors.Join(ErrFull, err)
	}
	if (l.full == nil) != (err == nil) {
		l.full = err
		l.notes(func(s *Stats) { s.Err = l.failure() })
	}
}

// failure is the reason why no operation can be recorded, nil if there is none.
func (l *log) failure() error {
	if l.err != nil {
		return l.err
	}
	return l.full
}

// setSigned notes how the last attempt to sign went.
func (l *log) setSigned(err error) {
	if err != nil {
		err = fmt.Errorf("sign audit log: %w", err)
	}
	l.notes(func(s *Stats) { s.Unsigned = err })
}

// setPruned notes how the last attempt to remove what is too old or too much went.
func (l *log) setPruned(err error) {
	if err != nil {
		err = fmt.Errorf("nothing is removed from the audit log: %w", err)
	}
	l.notes(func(s *Stats) { s.Unpruned = err })
}

// lookForRoom finds out whether one more operation could be recorded, so that a full disk shows before a call is refused, and that it is no
// longer full before one is tried.
func (l *log) lookForRoom() {
	if l.file == nil {
		return
	}
	l.setFull(l.grow(l.at.bytes + always + forStart + l.roomForEnds() + perOperation + audit.MaxRecord))
}
